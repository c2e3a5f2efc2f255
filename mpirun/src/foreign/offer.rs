//! Environment of interpreters and scripts, whose MPI library is unknown before they run.
//!
//! `LD_LIBRARY_PATH` begins with the stand-ins' folders.
//! With another MPI library first in that path, each rank would be a singleton.
//! `LD_LIBRARY_PATH` ends with the folder of this installation's own standard ABI library.
//! Some searches bypass `LD_LIBRARY_PATH`: R's start script puts the system's folder first.
//! A `DT_RPATH` takes precedence over that variable as well.
//! So interpreters run with an auditing library in `LD_AUDIT` ([`SEARCHER`], `compat/search.rs`).
//! The auditing library redirects each search for a stand-in's name to the stand-in.
//!
//! The unversioned name `libmpi.so` belongs to the MPI library whose headers are installed.
//! Searches for this name lead to the stand-in of that implementation.

use super::dynamic::{self, Dynamic};
use super::{Env, FAMILIES, Family, First, Last, SEARCH, folders, get, on, put};
use crate::rank_environment::set_env;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The auditing library's file name; the file is beside the stand-ins' folders.
const SEARCHER: &str = "libportcullis-search.so";
/// The variable that names auditing libraries to the loader.
const AUDIT: &str = "LD_AUDIT";
/// The variable that passes the stand-ins' paths to the auditing library.
const STAND_INS: &str = "PORTCULLIS_STAND_INS";
/// The unversioned library name.
const PLAIN: &str = "libmpi.so";

/// Prepares the environment for any MPI library that the program may load.
/// `stand_ins` contains the folders of stand-ins; `alone` contains this installation's library.
pub fn to_any(program: &Path, stand_ins: Option<&Path>, alone: Option<&Path>, env: &mut Env) {
    if let Some(stand_ins) = stand_ins {
        let plain = family_of_plain_name(env);
        let others = FAMILIES
            .iter()
            .filter(|family| family.folder != plain.folder);
        let families: Vec<&Family> = std::iter::once(plain).chain(others).collect();
        let place = |family: &&Family| stand_ins.join(family.folder);
        for folder in families
            .iter()
            .rev()
            .map(place)
            .filter(|folder| folder.is_dir())
        {
            put(env, SEARCH, &folder, First);
        }
        if is_interpreter(program) && !dynamic::is_of_32_bits(program) {
            lead_searches(stand_ins, plain, env);
        }
    }
    if let Some(alone) = alone {
        put(env, SEARCH, alone, Last);
    }
}

/// Name prefixes of programs that load libraries at run time: R and script interpreters.
const INTERPRETERS: &[&str] = &[
    "python", "pypy", "R", "Rscript", "julia", "ruby", "perl", "octave", "lua", "node",
];

/// Returns true if a program, or the program in a script's first line, is an interpreter.
///
/// Only interpreters are audited: with auditing, valgrind reports an error inside glibc 2.36.
/// With auditing, libraries with large static thread-local storage (ThreadSanitizer's) do not load.
fn is_interpreter(program: &Path) -> bool {
    let is_one = |path: &[u8]| {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        INTERPRETERS.iter().any(|known| {
            let rest = name.strip_prefix(known.as_bytes());
            // Accepts "python3.11", but not "Runner".
            rest.is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphabetic))
        })
    };
    is_one(program.as_os_str().as_bytes())
        || first_line(program).is_some_and(|line| {
            let words = line.split(|byte| byte.is_ascii_whitespace());
            // The line is, for example, `#!/usr/bin/env python3` or `#!/usr/bin/python3 -u`.
            words.take(2).any(is_one)
        })
}

/// Returns the first line of a script without the leading `#!`; `None` if the file is no script.
fn first_line(program: &Path) -> Option<Vec<u8>> {
    /// The number of bytes of a script's first line that the kernel reads.
    const LONGEST: u64 = 256;
    let mut begin = Vec::new();
    let file = File::open(program).ok()?;
    file.take(LONGEST).read_to_end(&mut begin).ok()?;
    let line = begin.strip_prefix(b"#!")?;
    line.split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec)
}

/// Adds this installation's library to the search path.
/// Does nothing if the loader finds another library of the standard ABI.
pub fn own_library(program: &Path, dynamic: &Dynamic, own: Option<&Path>, env: &mut Env) {
    let Some(own) = own else { return };
    let is_found = || {
        let mut folders = folders::of_the_system().into_iter();
        folders.any(|folder| folder.join(on::STANDARD).is_file())
    };
    if on::taken(program, dynamic, env).is_none() && !is_found() {
        put(env, SEARCH, own, Last);
    }
}

/// Sets the variables by which the loader redirects searches for stand-ins' names.
fn lead_searches(stand_ins: &Path, plain: &Family, env: &mut Env) {
    let searcher = stand_ins.join(SEARCHER);
    if !searcher.is_file() {
        return;
    }
    let by_version = FAMILIES.iter().flat_map(|family| {
        let names = family.libraries.iter();
        names.map(|name| stand_ins.join(family.folder).join(name))
    });
    let plain = stand_ins.join(plain.folder).join(PLAIN);
    let files: Vec<PathBuf> = by_version
        .chain([plain])
        .filter(|file| file.is_file())
        .collect();
    // A path with a colon cannot be an element of a colon-separated list.
    if let Ok(list) = std::env::join_paths(files) {
        set_env(env, STAND_INS, list);
        // An outer mpirun may have added the auditing library already.
        let named = get(env, AUDIT).unwrap_or_default();
        if !std::env::split_paths(named).any(|file| file == searcher) {
            put(env, AUDIT, &searcher, Last);
        }
    }
}

/// Returns the implementation whose library the program would find as `libmpi.so`.
fn family_of_plain_name(env: &Env) -> &'static Family {
    let folders = folders::listed(env)
        .into_iter()
        .chain(folders::of_the_system());
    let name = folders
        .map(|folder| folder.join(PLAIN))
        // The file may be a linker script, which has no dynamic section.
        .find_map(|file| Dynamic::of(&file)?.name);
    let [first, ..] = &FAMILIES;
    let of_name = |name: String| {
        FAMILIES
            .iter()
            .find(|family| family.libraries.contains(&&*name))
    };
    name.and_then(of_name).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_interpreters_are_audited() {
        for program in [
            "/usr/bin/python3.11",
            "/usr/bin/Rscript",
            "/opt/R",
            "python3",
        ] {
            assert!(is_interpreter(Path::new(program)), "{program}");
        }
        for program in [
            "/usr/bin/env",
            "/usr/bin/valgrind",
            "/bin/sh",
            "./Runner",
            "./nodes",
        ] {
            assert!(!is_interpreter(Path::new(program)), "{program}");
        }
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        for (first, audited) in [
            ("#!/usr/bin/env python3", true),
            ("#!/usr/bin/python3 -u", true),
            ("#!/bin/sh", false),
            ("no script", false),
        ] {
            std::fs::write(&script, format!("{first}\nimport mpi4py\n")).unwrap();
            assert_eq!(is_interpreter(&script), audited, "{first}");
        }
    }
}
