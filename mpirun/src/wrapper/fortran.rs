//! Fortran compilers: their names, and the flags that change the content of module files.

use mpi_base::{environment, text};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Names of Fortran compilers, in search order.
const COMPILERS: &[&str] = &[
    "gfortran",
    "flang",
    "flang-new",
    "ifx",
    "nvfortran",
    "nagfor",
    "crayftn",
    "ftn",
    "f95",
];

/// The versions in Debian's compiler names, such as `flang-new-19`.
const VERSIONS: std::ops::RangeInclusive<u32> = 9..=30;

/// Flags that make default INTEGER 8 bytes long.
const LONG_INTEGERS: &[&str] = &[
    "-fdefault-integer-8",
    "-finteger-4-integer-8",
    "-i8",
    "-integer-size=64",
    "-Mi8",
    "-qintsize=8",
    "-sinteger64",
    "-sdefault64",
];

/// Prefixes of flags that change kinds or procedure names; each combination has its own modules.
const KINDS: &[&str] = &[
    "-fdefault-",
    "-freal-",
    "-fno-underscoring",
    "-fsecond-underscore",
    "-r4",
    "-r8",
    "-r16",
    "-real-size",
    "-double-size",
    "-integer-size",
    "-i4",
    "-Mr8",
    "-kind=",
    "-m32",
    "-m64",
    "-mx32",
];

/// The extensions of Fortran source files.
const SOURCES: &[&str] = &[
    "f", "for", "ftn", "f77", "fpp", "f90", "f95", "f03", "f08", "f18",
];

/// Returns the first Fortran compiler in PATH.
pub(super) fn compiler_in_path() -> Result<OsString, String> {
    let path = environment::var("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    find(&folders).ok_or_else(|| {
        format!(
            "no Fortran compiler is in PATH ({}): install one, such as gfortran, or name yours by MPIFORT_FC or -fc=NAME",
            COMPILERS.join(", ")
        )
    })
}

fn find(folders: &[PathBuf]) -> Option<OsString> {
    let there = |name: &str| {
        let mut files = folders.iter().map(|folder| folder.join(name));
        files.any(|file| is_program(&file))
    };
    let versioned = || {
        VERSIONS.rev().flat_map(|version| {
            ["gfortran", "flang", "flang-new"].map(|name| format!("{name}-{version}"))
        })
    };
    let plain = COMPILERS.iter().map(|name| name.to_string());
    plain
        .chain(versioned())
        .find(|name| there(name))
        .map(Into::into)
}

pub(super) fn is_program(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Returns the flag among `args` that makes default INTEGER 8 bytes long.
pub(super) fn long_integers(args: &[OsString]) -> Option<String> {
    let texts: Vec<String> = args.iter().map(text::from_os).collect();
    // Some compilers accept the flag's value as a separate argument.
    let pairs = texts.windows(2).map(|pair| (pair.concat(), pair.join(" ")));
    let single = texts.iter().map(|text| (text.clone(), text.clone()));
    single
        .chain(pairs)
        .find(|(flag, _)| LONG_INTEGERS.contains(&flag.as_str()))
        .map(|(_, shown)| shown)
}

/// Returns the flags among `args` that the modules must be compiled with too.
pub(super) fn kind_flags(args: &[OsString]) -> Vec<OsString> {
    let counts = |arg: &&OsString| {
        let bytes = arg.as_bytes();
        KINDS.iter().any(|flag| bytes.starts_with(flag.as_bytes()))
    };
    args.iter().filter(counts).cloned().collect()
}

/// Returns the flag by which a compiler of this version accepts different buffer types in calls
/// of a procedure without an interface. Programs with `mpif.h` contain such calls.
/// Since version 10 gfortran rejects such calls (`Type mismatch between actual argument`).
/// With the flag gfortran only warns.
pub(super) fn mismatch_flag(version: &str) -> Option<&'static str> {
    let first = version.lines().find(|line| !line.trim().is_empty())?;
    let number = first.starts_with("GNU Fortran").then(|| {
        let last = first.split_whitespace().rev();
        // Example: `GNU Fortran (Debian 12.2.0-14) 12.2.0`; a date and a word may follow.
        let mut numbers = last.filter_map(|word| word.split_once('.')?.0.parse::<u32>().ok());
        numbers.next()
    })??;
    (number >= 10).then_some("-fallow-argument-mismatch")
}

/// Returns true if one of the arguments is a Fortran source file, which may use a module.
pub(super) fn has_source(args: &[OsString]) -> bool {
    args.iter().any(|arg| {
        let ending = Path::new(arg).extension().and_then(OsStr::to_str);
        let ending = ending.map(str::to_ascii_lowercase);
        !arg.as_bytes().starts_with(b"-")
            && ending.is_some_and(|ending| SOURCES.contains(&ending.as_str()))
    }) || args.iter().any(|arg| arg == "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn a_compiler_is_found_by_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().join("none"), folder.path().to_path_buf()];
        let put = |name: &str, mode| {
            let file = folder.path().join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        assert_eq!(find(&folders), None);
        put("gfortran", 0o644);
        assert_eq!(find(&folders), None, "it cannot be executed");
        put("flang-new-19", 0o755);
        assert_eq!(find(&folders), Some("flang-new-19".into()));
        put("ifx", 0o755);
        assert_eq!(find(&folders), Some("ifx".into()));
        put("gfortran", 0o755);
        assert_eq!(find(&folders), Some("gfortran".into()));
    }

    #[test]
    fn flags_that_change_kinds_are_known() {
        for (line, flag) in [
            ("-O2 -i8 a.f90", Some("-i8")),
            ("-fdefault-integer-8", Some("-fdefault-integer-8")),
            ("-s integer64 x.f", Some("-s integer64")),
            ("-integer-size 64", None),
            ("-O2 -fdefault-real-8", None),
            ("", None),
        ] {
            assert_eq!(long_integers(&args(line)).as_deref(), flag, "{line}");
        }
        // The modules are Fortran 2018, so flags for an older standard are not passed on.
        let kept = kind_flags(&args("-O2 -fdefault-real-8 -std=f2008 -r8 a.f90 -o r8"));
        assert_eq!(kept, args("-fdefault-real-8 -r8"));
    }

    #[test]
    fn gfortran_since_version_10_gets_the_flag_of_old_programs() {
        for (version, gets) in [
            (
                "GNU Fortran (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright",
                true,
            ),
            ("GNU Fortran (GCC) 10.1.0", true),
            ("GNU Fortran (GCC) 15.0.1 20250418 (Red Hat 15.0.1-0)", true),
            ("GNU Fortran (GCC) 9.4.0", false),
            ("GNU Fortran (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)", false),
            ("flang-new version 19.1.7", false),
            ("ifx (IFX) 2025.0.4 20241205", false),
            ("GNU Fortran", false),
            ("", false),
        ] {
            assert_eq!(mismatch_flag(version).is_some(), gets, "{version}");
        }
    }

    #[test]
    fn source_files_are_known_by_their_endings() {
        for line in ["-c a.f90", "x.F", "y.o b.F08 -o b", "-x f95 -"] {
            assert!(has_source(&args(line)), "{line}");
        }
        for line in ["a.o -o a", "--version", "a.c", "-o x.o", "-Wl,a.f90"] {
            assert!(!has_source(&args(line)), "{line}");
        }
    }
}
