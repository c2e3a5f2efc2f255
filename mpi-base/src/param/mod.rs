//! Parameters: every knob of the library is a value with its name, type, default, help and level in one place.
//!
//! A component declares its knobs as `static`s of [`Param<T>`]; the type `T` says how a text becomes a value.
//! What the user has set is a [`Params`], loaded once from the environment and two files and then handed about as a value,
//! so that four ranks in one test process can have four different settings.
//!
//! Sources, strongest first (the order users know from Open MPI):
//! 1. `mpirun --mca name value`, which reaches a rank as environment plus a marker ([`MARKER`]) that tells it from 2;
//! 2. the environment, `PORTCULLIS_MCA_name`;
//! 3. `~/.portcullis/mca-params.conf`;
//! 4. `<prefix>/etc/portcullis-mca-params.conf`;
//! 5. the default in the declaration.
//!
//! Promise: a malformed value never stops a program by itself.
//! The getter answers with a [`ParamError`] whose sentence names the parameter, the value, where it came from and what was expected;
//! what to do about it is the caller's choice.

mod list;
mod load;
mod selection;
mod value;

pub use list::{Style, list};
pub use load::{Files, MARKER, PREFIX, Params, Source};
pub use selection::{Selection, SelectionError};
pub use value::{Kind, Value};

use std::fmt;
use std::marker::PhantomData;

/// The readers that a parameter is for, 1 to 9: user, tuner, developer, each basic, detail and all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u8);

impl Level {
    /// The parameter is for users who run programs.
    pub const USER: Level = Level(1);
    /// The parameter is for users who make programs faster on a machine.
    pub const TUNER: Level = Level(4);
    /// The parameter is for people who work on this library.
    pub const DEVELOPER: Level = Level(7);
    /// Everything.
    pub const ALL: Level = Level(9);
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0.clamp(1, 9);
        let group = ["user", "tuner", "dev"][usize::from((n - 1) / 3)];
        let depth = ["basic", "detail", "all"][usize::from((n - 1) % 3)];
        write!(f, "{n} {group}/{depth}")
    }
}

/// A parameter without its Rust type: what a listing needs, so that parameters of all types stand in one table.
#[derive(Debug)]
pub struct About {
    /// The framework that reads it, `btl` or `coll`; the first part of its name.
    pub framework: &'static str,
    /// Empty for what belongs to the framework itself, such as the selection `btl`.
    pub component: &'static str,
    /// Empty for the selection of a framework's components.
    pub name: &'static str,
    /// The default, written as a user would write it.
    pub default: &'static str,
    /// What it does, for readers of the list of `mpi-info`.
    pub help: &'static str,
    /// Listings of a lower level leave it out.
    pub level: Level,
    /// What its values are; follows from the `T` of [`Param`].
    pub kind: Kind,
}

impl About {
    /// `<framework>_<component>_<name>`, without the parts that are empty.
    pub fn full_name(&self) -> String {
        self.parts().collect::<Vec<_>>().join("_")
    }

    /// Whether this is its full name; asked for every parameter whenever a communicator is made, so nothing is put together.
    pub fn is_called(&self, name: &str) -> bool {
        let mut rest = Some(name);
        for (i, part) in self.parts().enumerate() {
            rest = match i {
                0 => rest,
                _ => rest.and_then(|rest| rest.strip_prefix('_')),
            };
            rest = rest.and_then(|rest| rest.strip_prefix(part));
        }
        rest == Some("")
    }

    fn parts(&self) -> impl Iterator<Item = &'static str> {
        let parts = [self.framework, self.component, self.name];
        parts.into_iter().filter(|part| !part.is_empty())
    }
}

/// A parameter whose values are read as `T`.
pub struct Param<T> {
    about: About,
    value: PhantomData<fn() -> T>,
}

impl<T: Value> Param<T> {
    /// Declares a parameter; meant for a `static`.
    pub const fn new(
        framework: &'static str,
        component: &'static str,
        name: &'static str,
        default: &'static str,
        level: Level,
        help: &'static str,
    ) -> Self {
        Param {
            about: About {
                framework,
                component,
                name,
                default,
                help,
                level,
                kind: T::KIND,
            },
            value: PhantomData,
        }
    }

    /// Declares the selection of a framework's components, `--mca btl self,sm`.
    pub const fn selection(
        framework: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self::new(framework, "", "", default, Level::USER, help)
    }
}

impl<T> Param<T> {
    /// The untyped part, for tables and listings.
    pub const fn about(&self) -> &About {
        &self.about
    }
}

/// Why a parameter has no usable value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamError {
    /// A value that is not of the parameter's type.
    Malformed {
        /// The parameter's full name, as [`About::full_name`] has it.
        name: String,
        /// What the user wrote, unchanged.
        value: String,
        /// Where they wrote it, so that they find it.
        source: Source,
        /// What it could have been, as the subject of "… is expected".
        expected: String,
    },
    /// A line of a parameter file that is not `name = value`.
    BadLine {
        /// The file's path as it was opened.
        file: String,
        /// Counted from 1.
        line: usize,
        /// The line itself.
        text: String,
    },
    /// A parameter file that exists and cannot be read.
    Unreadable {
        /// The file's path as it was opened.
        file: String,
        /// What the system said.
        reason: String,
    },
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamError::Malformed {
                name,
                value,
                source,
                expected,
            } => {
                write!(
                    f,
                    "parameter {name} has the value \"{}\" (from {source}), but {expected} is expected",
                    printable::name(value)
                )
            }
            ParamError::BadLine { file, line, text } => {
                write!(
                    f,
                    "line {line} of {} is \"{}\", but \"name = value\" is expected; the line is ignored",
                    printable::name(file),
                    printable::name(text)
                )
            }
            ParamError::Unreadable { file, reason } => {
                write!(
                    f,
                    "the parameter file {} cannot be read ({reason}); it is ignored",
                    printable::name(file)
                )
            }
        }
    }
}

impl std::error::Error for ParamError {}

#[cfg(test)]
mod tests;
