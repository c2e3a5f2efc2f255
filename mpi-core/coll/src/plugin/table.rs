//! Validation of component tables: the only place where a C table becomes a Rust value.
//!
//! The caller that passes a table guarantees the following, on which the `SAFETY` comments of this module rely:
//! the table and all that it points to stay unchanged for the rest of the process,
//! and its functions keep the rules of `plugin.h`.
#![allow(unsafe_code)]

use super::abi;
use super::guest::BuiltIn;
use crate::priority;
use mpi_base::param::{About, Kind, Level};
use std::ffi::{CStr, c_char};
use std::fmt;
use std::mem::offset_of;

/// A validated component table.
pub struct Plugin {
    pub name: &'static str,
    pub version: &'static str,
    /// The component's default priority.
    pub priority: i32,
    /// The component's parameters; the first of them is its priority.
    /// Leaked, since the plugin's file is never closed.
    pub params: &'static [About],
    /// The parameter with which the user requests the component: any value other than its default is a request.
    pub asked_by: Option<&'static str>,
    pub(super) query: Query,
}

pub(super) type Query = unsafe extern "C-unwind" fn(
    *const abi::Host,
    *mut abi::Comm,
    *mut *mut std::ffi::c_void,
    *mut abi::Why,
) -> *const abi::ModuleTable;

/// The reason why a component table is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableError {
    /// `portcullis_component` returned a null pointer.
    Null,
    /// The table is too short to contain the field `query`.
    Short {
        size: usize,
        needed: usize,
    },
    /// The returned address is not aligned, so it is not that of a table.
    Misplaced,
    /// The table has more parameters than a component may have.
    Params {
        count: usize,
    },
    AbiVersion {
        theirs: u32,
        ours: u32,
    },
    Framework {
        theirs: String,
    },
    /// A string is null or not UTF-8.
    Text {
        field: &'static str,
    },
    Name {
        theirs: String,
    },
    /// The field `query` is null.
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
            TableError::Misplaced => f.write_str(
                "its function portcullis_component returns an odd address, which is that of no table",
            ),
            TableError::Params { count } => write!(
                f,
                "its table names {count} parameters, and a component has at most {MOST_PARAMS}"
            ),
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

/// The maximum number of a component's parameters; bounds how many are read from a corrupt table.
const MOST_PARAMS: usize = 256;

/// The maximum length in bytes of component names that the selection protocol can encode.
const LONGEST_NAME: usize = 63;

impl Plugin {
    /// Validates the table of a component that is linked into the library.
    pub fn of_built_in(component: &BuiltIn) -> Result<Plugin, TableError> {
        // SAFETY: `BuiltIn::of` made the table from constants and from functions of its package, so it is valid and stays unchanged.
        unsafe { Plugin::check(component.as_ptr()) }
    }

    /// Validates a table.
    ///
    /// # Safety
    /// See the module documentation.
    pub unsafe fn check(table: *const abi::ComponentTable) -> Result<Plugin, TableError> {
        if table.is_null() {
            return Err(TableError::Null);
        }
        if !table.is_aligned() {
            return Err(TableError::Misplaced);
        }
        // SAFETY: the caller guarantees that the table is valid and stays unchanged.
        let table = unsafe { abi::read(table) };
        // A table for another ABI version may have any length, so the version is checked as soon as the length shows that it is present.
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
        // SAFETY: the caller guarantees that every non-null text of the table is NUL-terminated and stays unchanged.
        let framework = unsafe { text(table.framework, "framework") }?;
        if framework != "coll" {
            return Err(TableError::Framework {
                theirs: framework.into(),
            });
        }
        // SAFETY: `name` is a text of the table; the caller guarantees that it is NUL-terminated and stays unchanged.
        let name = unsafe { text(table.name, "name") }?;
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(plain) {
            return Err(TableError::Name {
                theirs: name.into(),
            });
        }
        // SAFETY: `version` is a text of the table; the caller guarantees that it is NUL-terminated and stays unchanged.
        let version = unsafe { text(table.version, "version") }?;
        let query = table.query.ok_or(TableError::NoQuery)?;
        let asked_by = match table.asked_by.is_null() {
            true => None,
            // SAFETY: `asked_by` is a text of the table; the caller guarantees that it is NUL-terminated and stays unchanged.
            false => Some(unsafe { text(table.asked_by, "asked_by") }?),
        };
        if table.param_count > MOST_PARAMS {
            return Err(TableError::Params {
                count: table.param_count,
            });
        }
        let mut params = vec![priority::about(
            name,
            // `About` needs static texts, so one short text per plugin is leaked.
            table.priority.to_string().leak(),
        )];
        if !table.params.is_null() {
            // SAFETY: `params` is not null, and the caller guarantees that it points to `param_count` parameters.
            let declared = unsafe { std::slice::from_raw_parts(table.params, table.param_count) };
            for param in declared {
                // SAFETY: the caller guarantees that the parameters' texts are NUL-terminated and stay unchanged.
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

    /// Returns the component's parameter with this name, if it has one.
    pub fn param(&self, name: &str) -> Option<&About> {
        self.params.iter().find(|p| p.name == name)
    }
}

/// # Safety
/// The parameter's texts meet the conditions in the module documentation.
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
    // SAFETY: the caller guarantees that the parameter's texts are NUL-terminated and stay unchanged.
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
        // SAFETY: `param.kind` is not null, and the caller guarantees that it is NUL-terminated and stays unchanged.
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
        check: None,
    })
}

/// # Safety
/// `at` is null or a NUL-terminated text that stays unchanged for the rest of the process.
unsafe fn text(at: *const c_char, field: &'static str) -> Result<&'static str, TableError> {
    if at.is_null() {
        return Err(TableError::Text { field });
    }
    // SAFETY: `at` is not null, and the caller guarantees a NUL-terminated text that stays unchanged.
    unsafe { CStr::from_ptr(at) }
        .to_str()
        .map_err(|_| TableError::Text { field })
}
