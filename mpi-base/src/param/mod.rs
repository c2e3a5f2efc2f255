//! Parameters of the library: each declares its name, type, default, help and level in one place.
//!
//! A component declares its parameters as `static`s of [`Param<T>`]; the type `T` defines how text is parsed.
//! The user's settings are loaded one time, into a [`Params`], which is then passed as a value;
//! so four ranks in one test process can have four different settings.
//!
//! Sources, in descending order of precedence (as in Open MPI):
//! 1. `mpirun --mca name value`, passed to a rank as the variable of source 2 plus a marker ([`MARKER`]);
//! 2. the environment, `PORTCULLIS_MCA_name`;
//! 3. `~/.portcullis/mca-params.conf`;
//! 4. `<prefix>/etc/portcullis-mca-params.conf`;
//! 5. the default in the declaration.
//!
//! Guarantee: a malformed value never ends a program in this module.
//! The getter returns a [`ParamError`], whose message contains the parameter, the value,
//! its source and the expected syntax;
//! the caller decides whether the error is fatal.

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

/// The audience of a parameter as in the MPI tool interface, from 1 to 9:
/// users, tuners and developers, each with the grades basic, detail and all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u8);

impl Level {
    /// The level of parameters for users that run programs.
    pub const USER: Level = Level(1);
    /// The level of parameters for users that tune programs on a machine.
    pub const TUNER: Level = Level(4);
    /// The level of parameters for developers of this library.
    pub const DEVELOPER: Level = Level(7);
    /// The level of a listing that contains all parameters.
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

/// Checks that a text is a value of a parameter; the error is the expected syntax.
pub type Check = fn(&str) -> Result<(), String>;

/// The description of a parameter without its Rust type.
/// So all descriptions fit into one table for listings.
#[derive(Debug)]
pub struct About {
    /// The framework that uses the parameter, such as `btl` or `coll`;
    /// the first part of the full name.
    pub framework: &'static str,
    /// The component; empty for a parameter of the framework itself, such as the selection `btl`.
    pub component: &'static str,
    /// The last part of the full name; empty for the selection of a framework's components.
    pub name: &'static str,
    /// The default value as text, in the syntax of a user's setting.
    pub default: &'static str,
    /// Description of the parameter, shown by `mpi-info`.
    pub help: &'static str,
    /// The level of the parameter; listings of a lower level omit it.
    pub level: Level,
    /// The kind of the parameter's values, determined by the `T` of [`Param`].
    pub kind: Kind,
    /// The function that checks a value by the `T` of [`Param`], which may accept fewer texts than the kind;
    /// `None` for parameters of plugins.
    pub check: Option<Check>,
}

impl About {
    /// Returns the full name, `<framework>_<component>_<name>` without empty parts.
    pub fn full_name(&self) -> String {
        self.parts().collect::<Vec<_>>().join("_")
    }

    /// Returns true if `name` is the parameter's full name.
    /// The library calls this for every parameter whenever a communicator is created,
    /// so it does not build the full name.
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

/// A parameter whose value is parsed as a `T`.
pub struct Param<T> {
    about: About,
    value: PhantomData<fn() -> T>,
}

/// Checks that a text is a value of the type `T`; the error is the expected syntax.
fn is_value<T: Value>(text: &str) -> Result<(), String> {
    T::parse(text).map(drop)
}

impl<T: Value> Param<T> {
    /// Declares a parameter, as the initial value of a `static`.
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
                check: Some(is_value::<T>),
            },
            value: PhantomData,
        }
    }

    /// Declares the parameter that selects a framework's components, as in `--mca btl self,sm`.
    pub const fn selection(
        framework: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self::new(framework, "", "", default, Level::USER, help)
    }
}

impl<T> Param<T> {
    /// Returns the description without the Rust type, for tables and listings.
    pub const fn about(&self) -> &About {
        &self.about
    }
}

/// The reason why a parameter has no usable value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamError {
    /// The value cannot be parsed as the parameter's type.
    Malformed {
        /// The parameter's full name, as [`About::full_name`] returns it.
        name: String,
        /// The text that the user wrote, unchanged.
        value: String,
        /// The source of the value.
        source: Source,
        /// The expected syntax, as the subject of "… is expected".
        expected: String,
    },
    /// A line of a parameter file is not of the form `name = value`.
    BadLine {
        /// The file's path as it was opened.
        file: String,
        /// The number of the line, counted from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// A parameter file exists but cannot be read.
    Unreadable {
        /// The file's path as it was opened.
        file: String,
        /// The error that the kernel reported.
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
