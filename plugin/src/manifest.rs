//! The manifest of a plugin file: an ELF note without pointers, which the library reads from the file before any code of it runs.

use std::ffi::CStr;

/// The owner's name in the note.
pub const OWNER: &[u8; 11] = b"Portcullis\0";
/// The type of the note.
pub const KIND: u32 = 1;

/// The lengths of the texts in a manifest, with their NUL.
pub const FRAMEWORK: usize = 16;
/// See [`FRAMEWORK`].
pub const COMPONENT: usize = 64;
/// See [`FRAMEWORK`].
pub const VERSION: usize = 32;

/// The version of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Raised for what a longer table cannot say.
    pub major: u32,
    /// For each minor version, which a table that has grown raises, a hash over the layout of all tables. The last one is that of this build.
    pub layouts: &'static [(u32, u32)],
}

impl Interface {
    /// Returns the minor version of this build.
    pub const fn minor(&self) -> u32 {
        match self.layouts.last() {
            Some((minor, _)) => *minor,
            None => 0,
        }
    }

    /// Returns the layout hash of this build.
    pub const fn layout(&self) -> u32 {
        match self.layouts.last() {
            Some((_, hash)) => *hash,
            None => 0,
        }
    }
}

/// `portcullis_manifest`: the note.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    owner_bytes: u32,
    description_bytes: u32,
    kind: u32,
    owner: [u8; 12],
    major: u32,
    minor: u32,
    needs_minor: u32,
    layout: u32,
    framework: [u8; FRAMEWORK],
    component: [u8; COMPONENT],
    version: [u8; VERSION],
}

/// The bytes of the note before its description.
pub const HEAD: usize = 24;

impl Note {
    /// Makes the note of a plugin, at compile time, which fails if a text is too long.
    pub const fn of(
        interface: &Interface,
        framework: &CStr,
        component: &CStr,
        version: &CStr,
    ) -> Note {
        Note {
            owner_bytes: OWNER.len() as u32,
            description_bytes: (size_of::<Note>() - HEAD) as u32,
            kind: KIND,
            owner: field(OWNER),
            major: interface.major,
            minor: interface.minor(),
            needs_minor: interface.minor(),
            layout: interface.layout(),
            framework: field(framework.to_bytes_with_nul()),
            component: field(component.to_bytes_with_nul()),
            version: field(version.to_bytes_with_nul()),
        }
    }

    /// Returns its bytes, as they are in a file.
    #[allow(unsafe_code)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the structure consists of `u32` and bytes without padding, so all of its bytes are initialised.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Note>()) }
    }
}

/// Copies a text to a field that is as long or longer.
const fn field<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut to = [0; N];
    let (to_text, _) = to.split_at_mut(text.len());
    to_text.copy_from_slice(text);
    to
}
