//! Error for an option's value: the value is malformed, or only other launchers support it.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// The option accepts no such value.
    Unknown {
        /// The accepted values, as the object of the phrase "it takes".
        wanted: &'static str,
    },
    /// Other launchers accept this value, but this launcher does not.
    Refused {
        /// The option with the unsupported value.
        option: &'static str,
        /// The value's effect in other launchers, in a few words.
        what: &'static str,
        /// A replacement that the user can type for this launcher.
        instead: &'static str,
    },
}

impl ValueError {
    /// Returns the error for a value that the option does not accept.
    pub const fn unknown(wanted: &'static str) -> ValueError {
        ValueError::Unknown { wanted }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueError::Unknown { wanted } => f.write_str(wanted),
            ValueError::Refused {
                option,
                what,
                instead,
            } => f.write_str(&unsupported(option, what, instead)),
        }
    }
}

impl std::error::Error for ValueError {}

/// Returns the message for an unsupported option or value of other launchers.
pub fn unsupported(option: &str, what: &str, instead: &str) -> String {
    let option = printable::name(option);
    format!("{option} ({what}) is not supported; {instead}")
}
