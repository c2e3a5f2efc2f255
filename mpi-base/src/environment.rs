//! The environment of this process: the one door through which the library and the launcher read it.
//!
//! A program with more rights than its user ([`is_raised`]) must not let that user choose files, folders, programs, libraries or
//! parameters. Its user chooses every variable, so [`var`] and [`all`] find none in such a program.
//! [`of_launch`] hands out all variables in any program: to find the launcher, which says numbers and descriptors.
//! `xtask/tests/tidy.rs` finds code that reads the environment without this module.

use crate::privilege::is_raised;
use std::ffi::{OsStr, OsString};

/// The value of a variable; `None` in a program with more rights than its user.
pub fn var(name: impl AsRef<OsStr>) -> Option<OsString> {
    guarded(is_raised(), || std::env::var_os(name))
}

/// The same, for a variable whose value is words or numbers; `None` also if it is not UTF-8.
pub fn text(name: impl AsRef<OsStr>) -> Option<String> {
    var(name)?.into_string().ok()
}

/// All variables; none in a program with more rights than its user.
pub fn all() -> Vec<(OsString, OsString)> {
    guarded(is_raised(), || Some(std::env::vars_os().collect())).unwrap_or_default()
}

/// All variables in any program, to find out how the launcher has started it.
///
/// The caller reads numbers, descriptors and names of jobs from it. A variable that names a file or code is read with [`var`].
pub fn of_launch() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// Whether a variable is set, in any program; its value is not read.
pub fn is_set(name: impl AsRef<OsStr>) -> bool {
    std::env::var_os(name).is_some()
}

/// All variables in any program, to be handed on to a process that this one starts.
///
/// The kernel marks a program that a process with raised rights executes, too, so the new program reads nothing from them either.
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
