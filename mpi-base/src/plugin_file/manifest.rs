//! Parser of a plugin's manifest, and the check that the library can use the plugin. The manifest is
//! an ELF note that is read from the file before any code of the file runs.
//!
//! Package `portcullis-plugin` defines the manifest and creates it for plugins in Rust;
//! `portcullis/plugin.h` creates the manifest of plugins in C.

use object::Endianness;
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{ReadCache, ReadRef, elf};
use portcullis_plugin::manifest::{COMPONENT, FRAMEWORK, KIND, OWNER, VERSION};
pub use portcullis_plugin::manifest::{Interface, Note};
use std::ffi::CStr;
use std::fmt;
use std::fs::File;
use std::path::Path;

/// The contents of a plugin file's manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The major version of the plugin interface for which the file was built.
    pub major: u32,
    /// The minor version of the plugin header with which the file was built.
    pub minor: u32,
    /// The minimum minor version of the library's interface that the plugin requires.
    pub needs_minor: u32,
    /// The hash of the layout of the plugin header's tables.
    pub layout: u32,
    /// The plugin's framework: `coll` or `btl`.
    pub framework: String,
    /// The component's name.
    pub component: String,
    /// The component's version.
    pub version: String,
}

/// The reason why a plugin file is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestError {
    /// The file cannot be read.
    Read(String),
    /// The file is not a shared object for this machine.
    Machine,
    /// The file has no manifest; plugins for interfaces before version 2 have none.
    Missing,
    /// The manifest is too short, or a text in it is not terminated.
    Malformed,
    /// The plugin was built for another major version of the plugin interface.
    Major {
        /// The major version for which the plugin was built.
        theirs: u32,
        /// The major version of this library.
        ours: u32,
    },
    /// The plugin requires a newer minor version of the plugin interface.
    Minor {
        /// The minor version that the plugin requires.
        needs: u32,
        /// The major version of the plugin and of this library.
        major: u32,
        /// The minor version of this library.
        ours: u32,
    },
    /// The hash in the manifest differs from the layout of the header version in the manifest.
    Layout {
        /// The major version in the manifest.
        major: u32,
        /// The minor version in the manifest.
        minor: u32,
    },
    /// The manifest and the file's name have different frameworks.
    Framework {
        /// The framework in the manifest.
        theirs: String,
        /// The framework in the file's name.
        named: String,
    },
    /// The manifest and the file's name have different components.
    Component {
        /// The component in the manifest.
        theirs: String,
        /// The framework in the manifest and in the file's name.
        framework: String,
    },
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(reason) => write!(f, "it cannot be read: {reason}"),
            Self::Machine => write!(
                f,
                "it is no shared object for this machine ({})",
                std::env::consts::ARCH
            ),
            Self::Missing => f.write_str(
                "it has no manifest, so it is no plugin or one for version 1 of the plugin ABI; compile it with the macro PORTCULLIS_PLUGIN of today's portcullis/plugin.h",
            ),
            Self::Malformed => f.write_str(
                "its manifest is too short or has a text without an end; only the macro PORTCULLIS_PLUGIN makes it",
            ),
            Self::Major { theirs, ours } => write!(
                f,
                "it was built for version {theirs} of the plugin ABI, this library speaks version {ours}; compile it with this installation's header"
            ),
            Self::Minor { needs, major, ours } => write!(
                f,
                "it needs version {major}.{needs} of the plugin ABI, this library has {major}.{ours}; a newer Portcullis has it"
            ),
            Self::Layout { major, minor } => write!(
                f,
                "the tables of the header with which it was built differ from those of version {major}.{minor} of the plugin ABI; compile it with this installation's header"
            ),
            Self::Framework { theirs, named } => write!(
                f,
                "it is a component of the framework \"{theirs}\", and its file is named after the framework {named}"
            ),
            Self::Component { theirs, framework } => write!(
                f,
                "its component is called {theirs}, so the file must be called {framework}_{theirs}.so"
            ),
        }
    }
}

impl std::error::Error for ManifestError {}

impl Manifest {
    /// Reads the manifest of a file without running any code of the file.
    pub fn of(file: &Path) -> Result<Manifest, ManifestError> {
        let file = File::open(file).map_err(|error| ManifestError::Read(error.to_string()))?;
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return Err(ManifestError::Machine);
        }
        Manifest::read(&ReadCache::new(file))
    }

    /// Reads the manifest in the contents of a file.
    pub fn read<'data>(data: impl ReadRef<'data>) -> Result<Manifest, ManifestError> {
        let header = elf::FileHeader64::<Endianness>::parse(data);
        let header = header.map_err(|_| ManifestError::Machine)?;
        let endian = header.endian().map_err(|_| ManifestError::Machine)?;
        if header.e_machine(endian) != MACHINE || header.e_type(endian) != elf::ET_DYN {
            return Err(ManifestError::Machine);
        }
        let segments = header.program_headers(endian, data);
        for segment in segments.map_err(|_| ManifestError::Machine)? {
            let Ok(Some(mut notes)) = segment.notes(endian, data) else {
                continue;
            };
            while let Ok(Some(note)) = notes.next() {
                let owner = note.name_bytes();
                if note.n_type(endian) == elf::NoteType(KIND) && owner == OWNER.as_slice() {
                    return Manifest::decode(note.desc()).ok_or(ManifestError::Malformed);
                }
            }
        }
        Err(ManifestError::Missing)
    }

    /// Decodes the note's contents, in this machine's byte order.
    fn decode(bytes: &[u8]) -> Option<Manifest> {
        let (numbers, texts) = bytes.split_at_checked(4 * size_of::<u32>())?;
        let mut numbers =
            (numbers.as_chunks::<4>().0.iter()).map(|bytes| u32::from_ne_bytes(*bytes));
        let (framework, texts) = texts.split_at_checked(FRAMEWORK)?;
        let (component, texts) = texts.split_at_checked(COMPONENT)?;
        let (version, _) = texts.split_at_checked(VERSION)?;
        let text = |field: &[u8]| {
            let text = CStr::from_bytes_until_nul(field).ok()?.to_str().ok()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        Some(Manifest {
            major: numbers.next()?,
            minor: numbers.next()?,
            needs_minor: numbers.next()?,
            layout: numbers.next()?,
            framework: text(framework)?,
            component: text(component)?,
            version: text(version)?,
        })
    }

    /// Checks that this library can use the plugin, whose file name has this framework and component.
    pub fn check(
        &self,
        interface: &Interface,
        (framework, component): (&str, &str),
    ) -> Result<(), ManifestError> {
        let (major, ours) = (interface.major, interface.minor());
        if self.major != major {
            return Err(ManifestError::Major {
                theirs: self.major,
                ours: major,
            });
        }
        if self.needs_minor > ours {
            return Err(ManifestError::Minor {
                needs: self.needs_minor,
                major,
                ours,
            });
        }
        let mut layouts = interface.layouts.iter();
        let known = layouts.find(|(minor, _)| *minor == self.minor);
        if known.is_some_and(|(_, layout)| *layout != self.layout) {
            return Err(ManifestError::Layout {
                major,
                minor: self.minor,
            });
        }
        if self.framework != framework {
            return Err(ManifestError::Framework {
                theirs: self.framework.clone(),
                named: framework.into(),
            });
        }
        if self.component != component {
            return Err(ManifestError::Component {
                theirs: self.component.clone(),
                framework: framework.into(),
            });
        }
        Ok(())
    }
}

const MACHINE: elf::Machine = if cfg!(target_arch = "aarch64") {
    elf::EM_AARCH64
} else {
    elf::EM_X86_64
};

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_plugin::manifest::HEAD;
    use proptest::prelude::*;

    const INTERFACE: Interface = Interface {
        major: 2,
        layouts: &[(0, 7), (1, 8)],
    };

    fn manifest() -> Manifest {
        Manifest {
            major: 2,
            minor: 1,
            needs_minor: 1,
            layout: 8,
            framework: "coll".into(),
            component: "acme".into(),
            version: "1.2".into(),
        }
    }

    #[test]
    fn a_note_is_read_as_it_was_made() {
        let note = Note::of(&INTERFACE, c"coll", c"acme", c"1.2");
        let description = &note.bytes()[HEAD..];
        assert_eq!(Manifest::decode(description), Some(manifest()));
        assert_eq!(note.bytes().len(), HEAD + 128);
        for len in 0..description.len() {
            assert_eq!(Manifest::decode(&description[..len]), None, "{len}");
        }
    }

    #[test]
    fn each_reason_against_a_manifest_has_its_sentence() {
        let refused = |change: fn(&mut Manifest)| {
            let mut manifest = manifest();
            change(&mut manifest);
            let checked = manifest.check(&INTERFACE, ("coll", "acme"));
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(refused(|_| ()), Ok(()));
        // A plugin built with an older or newer header is accepted if it requires no newer library.
        assert_eq!(
            refused(|m| (m.minor, m.layout, m.needs_minor) = (0, 7, 0)),
            Ok(())
        );
        assert_eq!(refused(|m| (m.minor, m.layout) = (9, 99)), Ok(()));
        for (change, part) in [
            (
                (|m| m.major = 3) as fn(&mut Manifest),
                "built for version 3 of the plugin ABI, this library speaks version 2",
            ),
            (|m| m.major = 1, "built for version 1 of the plugin ABI"),
            (
                |m| m.needs_minor = 2,
                "needs version 2.2 of the plugin ABI, this library has 2.1; a newer Portcullis has it",
            ),
            (|m| m.layout = 9, "differ from those of version 2.1"),
            (
                |m| m.framework = "btl".into(),
                "of the framework \"btl\", and its file is named after the framework coll",
            ),
            (
                |m| m.component = "apex".into(),
                "its component is called apex, so the file must be called coll_apex.so",
            ),
        ] {
            let error = refused(change).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_file_without_a_note_is_no_plugin() {
        assert_eq!(
            Manifest::of("/bin/sh".as_ref()),
            Err(ManifestError::Missing)
        );
        assert_eq!(
            Manifest::of("/etc/passwd".as_ref()),
            Err(ManifestError::Machine)
        );
        assert_eq!(
            Manifest::of("/dev/null".as_ref()),
            Err(ManifestError::Machine)
        );
        assert!(matches!(
            Manifest::of("/nonexistent".as_ref()),
            Err(ManifestError::Read(_))
        ));
    }

    proptest! {
        #[test]
        fn no_file_makes_the_reader_panic(at in 0usize..4096, bytes in proptest::collection::vec(any::<u8>(), 1..64)) {
            let mut file = std::fs::read("/bin/true").unwrap();
            let end = (at + bytes.len()).min(file.len());
            let start = at.min(end);
            file[start..end].copy_from_slice(&bytes[..end - start]);
            let _ = Manifest::read(&*file);
        }
    }
}
