//! Environment variables: the only module through which the library and the launcher read them.
//!
//! A program with more rights than its user ([`is_raised`], such as setuid) must not let the user
//! choose files, directories, programs, libraries or parameters.
//! The user controls every variable, so in such a program [`var`] and [`all`] return no variables.
//! [`of_launch`] returns all variables in any program, so that the caller can detect its launcher,
//! which passes numbers and descriptors in variables.
//! `xtask/tests/tidy.rs` rejects code that reads the environment without this module.

use crate::privilege::is_raised;
use std::ffi::{OsStr, OsString};

/// Returns the value of a variable; `None` in a program with more rights than its user.
pub fn var(name: impl AsRef<OsStr>) -> Option<OsString> {
    guarded(is_raised(), || std::env::var_os(name))
}

/// As [`var`], for a variable whose value is text; also `None` if the value is not UTF-8.
pub fn text(name: impl AsRef<OsStr>) -> Option<String> {
    var(name)?.into_string().ok()
}

/// Returns all variables; none in a program with more rights than its user.
pub fn all() -> Vec<(OsString, OsString)> {
    guarded(is_raised(), || Some(std::env::vars_os().collect())).unwrap_or_default()
}

/// Returns all variables in any program, to detect the launcher that has started the program.
///
/// The caller reads only numbers, descriptors and job names from these variables.
/// A variable that names a file or code is read with [`var`].
pub fn of_launch() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// Returns true if a variable is set, in any program; does not read its value.
pub fn is_set(name: impl AsRef<OsStr>) -> bool {
    std::env::var_os(name).is_some()
}

/// Returns all variables in any program, for the environment of a child process.
///
/// If this process has more rights than its user, the kernel marks its children likewise,
/// so the child ignores the variables, too.
pub fn for_children() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

fn guarded<T>(raised: bool, read: impl FnOnce() -> Option<T>) -> Option<T> {
    if raised { None } else { read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_more_rights_than_its_user_reads_no_variable() {
        assert_eq!(guarded(true, || Some("of the user")), None);
        assert_eq!(guarded(false, || Some("of the user")), Some("of the user"));
    }

    #[test]
    fn an_ordinary_program_reads_its_variables() {
        let path = std::env::var_os("PATH");
        assert!(path.is_some(), "tests run with a search path");
        assert_eq!(var("PATH"), path);
        assert_eq!(text("PATH").map(OsString::from), path);
        assert!(is_set("PATH") && all().iter().any(|(name, _)| name == "PATH"));
    }
}
