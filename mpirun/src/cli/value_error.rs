//! Why an option's value cannot be used: it is no value of the option, or it asks for something that does not exist here.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// The option has no such value.
    Unknown {
        /// The accepted form, as the object of "it takes".
        wanted: &'static str,
    },
    /// Other launchers have this value.
    NotYet {
        /// The option and the value.
        option: &'static str,
        /// Its effect in the other launchers, in a few words.
        what: &'static str,
        /// What the user can type here instead.
        instead: &'static str,
    },
}

impl ValueError {
    /// The error for a value that the option does not have.
    pub const fn unknown(wanted: &'static str) -> ValueError {
        ValueError::Unknown { wanted }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueError::Unknown { wanted } => f.write_str(wanted),
            ValueError::NotYet {
                option,
                what,
                instead,
            } => f.write_str(&not_yet(option, what, instead)),
        }
    }
}

impl std::error::Error for ValueError {}

/// The sentence for an option or a value of other launchers that this one does not have.
pub fn not_yet(option: &str, what: &str, instead: &str) -> String {
    let option = printable::name(option);
    format!("{option} ({what}) is not there yet in this version of mpirun; {instead}")
}
