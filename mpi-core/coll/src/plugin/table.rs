//! A component table that has been looked at: the only door through which a foreign table becomes a value.
//!
//! The caller that hands in a table vouches for two things, and everything below relies on them:
//! the table and all it points to stay as they are for the rest of the process,
//! and its functions keep the rules of `plugin.h`.
#![allow(unsafe_code)]

use super::abi;
use crate::priority;
use mpi_base::param::{About, Kind, Level};
use std::ffi::{CStr, c_char};
use std::fmt;
use std::mem::offset_of;

/// What a component says about itself, checked.
pub struct Plugin {
    pub name: &'static str,
    pub version: &'static str,
    /// The default of its priority.
    pub priority: i32,
    /// Its parameters, the first of which is its priority.
    /// Kept to the end of the process, as the file is.
    pub params: &'static [About],
    /// The parameter by which the user asks for it.
    pub asked_by: Option<&'static str>,
    pub(super) query: Query,
}

pub(super) type Query = unsafe extern "C" fn(
    *const abi::Host,
    *mut abi::Comm,
    *mut *mut std::ffi::c_void,
    *mut abi::Why,
) -> *const abi::ModuleTable;

/// Why a component table is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableError {
    /// `portcullis_component` returned nothing.
    Null,
    /// The table ends before the slot `query`.
    Short {
        size: usize,
        needed: usize,
    },
    AbiVersion {
        theirs: u32,
        ours: u32,
    },
    Framework {
        theirs: String,
    },
    /// A text is null or not UTF-8.
    Text {
        field: &'static str,
    },
    Name {
        theirs: String,
    },
    /// The slot `query` is empty.
    NoQuery,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Null => f.write_str("its function portcullis_component returns no table"),
            TableError::Short { size, needed } => {
                write!(
                    f,
                    "its table has {size} bytes, the first version had {needed}"
                )
            }
            TableError::AbiVersion { theirs, ours } => {
                write!(
                    f,
                    "it was built for version {theirs} of the plugin ABI, this library speaks version {ours}"
                )
            }
            TableError::Framework { theirs } => {
                write!(
                    f,
                    "it is a component of the framework \"{theirs}\", and only coll takes plugins"
                )
            }
            TableError::Text { field } => write!(
                f,
                "the text \"{field}\" in its table is missing or not UTF-8"
            ),
            TableError::Name { theirs } => {
                write!(
                    f,
                    "its name \"{theirs}\" is not 1 to 63 lower-case letters, digits and underscores"
                )
            }
            TableError::NoQuery => {
                f.write_str("its table has no function query, without which it can serve nothing")
            }
        }
    }
}

impl std::error::Error for TableError {}

/// The longest name that selection passes between processes.
const LONGEST_NAME: usize = 63;

impl Plugin {
    /// Looks at a table.
    ///
    /// # Safety
    /// See the head of the module.
    pub unsafe fn check(table: *const abi::ComponentTable) -> Result<Plugin, TableError> {
        if table.is_null() {
            return Err(TableError::Null);
        }
        // SAFETY: the caller vouches for the table.
        let table = unsafe { abi::read(table) };
        // Another version's table may have any length, so the version is looked at as soon as it is there.
        if table.size >= offset_of!(abi::ComponentTable, priority)
            && table.abi_version != abi::ABI_VERSION
        {
            return Err(TableError::AbiVersion {
                theirs: table.abi_version,
                ours: abi::ABI_VERSION,
            });
        }
        let needed = offset_of!(abi::ComponentTable, query) + size_of::<usize>();
        if table.size < needed {
            return Err(TableError::Short {
                size: table.size,
                needed,
            });
        }
        // SAFETY: the caller vouches for the table's texts, here and below.
        let framework = unsafe { text(table.framework, "framework") }?;
        if framework != "coll" {
            return Err(TableError::Framework {
                theirs: framework.into(),
            });
        }
        // SAFETY: as above.
        let name = unsafe { text(table.name, "name") }?;
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(plain) {
            return Err(TableError::Name {
                theirs: name.into(),
            });
        }
        // SAFETY: as above.
        let version = unsafe { text(table.version, "version") }?;
        let query = table.query.ok_or(TableError::NoQuery)?;
        let asked_by = match table.asked_by.is_null() {
            true => None,
            // SAFETY: as above.
            false => Some(unsafe { text(table.asked_by, "asked_by") }?),
        };
        let mut params = vec![priority::about(
            name,
            // A listing wants texts that live as long as the library; one short text for each plugin is what that costs.
            table.priority.to_string().leak(),
        )];
        if !table.params.is_null() {
            // SAFETY: the caller vouches for the array.
            let declared = unsafe { std::slice::from_raw_parts(table.params, table.param_count) };
            for param in declared {
                // SAFETY: the caller vouches for the parameters' texts.
                params.push(unsafe { about(name, param) }?);
            }
        }
        Ok(Plugin {
            name,
            version,
            priority: table.priority,
            params: params.leak(),
            asked_by,
            query,
        })
    }

    /// One of the component's own parameters.
    pub fn param(&self, name: &str) -> Option<&About> {
        self.params.iter().find(|p| p.name == name)
    }
}

/// # Safety
/// The texts must be as the head of the module asks.
unsafe fn about(component: &'static str, param: &abi::Param) -> Result<About, TableError> {
    const KINDS: [Kind; 7] = [
        Kind::Bool,
        Kind::Int,
        Kind::Unsigned,
        Kind::Size,
        Kind::Double,
        Kind::Duration,
        Kind::Text,
    ];
    // SAFETY: the caller vouches for the texts, here and below.
    let (name, default, help) = unsafe {
        (
            text(param.name, "param name")?,
            text(param.default_value, "param default_value")?,
            text(param.help, "param help")?,
        )
    };
    let kind = if param.kind.is_null() {
        Kind::Text
    } else {
        // SAFETY: as above.
        let word = unsafe { text(param.kind, "param type") }?;
        KINDS
            .into_iter()
            .find(|k| k.to_string() == word)
            .unwrap_or(Kind::Text)
    };
    Ok(About {
        framework: "coll",
        component,
        name,
        default,
        help,
        level: Level::TUNER,
        kind,
    })
}

/// # Safety
/// `at` is null or a text that stays for the rest of the process.
unsafe fn text(at: *const c_char, field: &'static str) -> Result<&'static str, TableError> {
    if at.is_null() {
        return Err(TableError::Text { field });
    }
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { CStr::from_ptr(at) }
        .to_str()
        .map_err(|_| TableError::Text { field })
}
