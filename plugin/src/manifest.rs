//! The manifest of a plugin file: an ELF note without pointers.
//! The library reads it from the file before any code of the plugin runs.

use std::ffi::CStr;

/// The owner name in the ELF note.
pub const OWNER: &[u8; 11] = b"Portcullis\0";
/// The type of the ELF note.
pub const KIND: u32 = 1;

/// The size in bytes of the framework name in a manifest, with its NUL.
pub const FRAMEWORK: usize = 16;
/// The size in bytes of the component name in a manifest, with its NUL.
pub const COMPONENT: usize = 64;
/// The size in bytes of the version text in a manifest, with its NUL.
pub const VERSION: usize = 32;

/// The version of a plugin interface: the major version, and all minor versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The major version. It increases when a change does more than add slots to a table.
    pub major: u32,
    /// Each minor version with the layout hash of all tables; the last entry is this build's.
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

/// The C structure `portcullis_manifest`: an ELF note.
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

/// The size in bytes of the note's header, before its description.
pub const HEAD: usize = 24;

impl Note {
    /// Creates the note of a plugin at compile time. Compilation fails if a text is too long.
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

    /// Returns the bytes of the note as they are stored in a plugin file.
    #[allow(unsafe_code)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: all fields are `u32`s and bytes without padding, so all bytes are initialised.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Note>()) }
    }
}

/// Copies a text to a zeroed array of `N` bytes, which is at least as long as the text.
const fn field<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut to = [0; N];
    let (to_text, _) = to.split_at_mut(text.len());
    to_text.copy_from_slice(text);
    to
}
