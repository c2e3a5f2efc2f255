//! Programs of the standard ABI on another library (`--on openmpi`, `mpich`, `intel` or a path).
//!
//! An installation has one translation library per implementation (`lib/portcullis/on`).
//! The translation library has the standard's name `libmpi_abi.so.1` and calls the other library.
//! Its folder comes first in `LD_LIBRARY_PATH`; `PORTCULLIS_ON` names the other library's file.
//! The symbols in that file identify the implementation; the name `libmpi.so` is ambiguous.
//! If ranks are traced or checked for hangs, a watch library is preloaded: it intercepts MPI calls.
//!
//! Another library of the standard ABI needs no translation: its own folder comes first.
//! Some of these libraries use the constants of an ABI draft, which only a running rank can detect.
//! The watch library detects these libraries, also those that the loader finds without `--on`.

use super::dynamic::Dynamic;
use super::{Env, First, PRELOAD, SEARCH, Served, folders, get, put};
use memchr::memmem;
use mpi_base::text;
use printable::name;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The variable that names the library that a program must run on; `--on` sets it.
pub const ON: &str = "PORTCULLIS_ON";

/// Variables of the watch library: trace file, time before a hang report, report file.
pub const TRACE: &str = "PORTCULLIS_TRACE";
pub const HANG: &str = "PORTCULLIS_HANG";
pub const HANG_REPORT: &str = "PORTCULLIS_HANG_REPORT";
/// The variables of the watch library that other launchers must pass to the ranks.
pub const WATCHING: [&str; 4] = [TRACE, HANG, HANG_REPORT, "PORTCULLIS_MCA_mpi_base_trace"];

/// The watch library's file name; the file is beside the folder of translation libraries.
const WATCHER: &str = "libportcullis-preload.so";

pub const STANDARD: &str = "libmpi_abi.so.1";
/// The prefix of the file names of standard ABI libraries, of all versions.
pub const STANDARD_NAMES: &str = "libmpi_abi.so";
/// A symbol that every library of this project exports and no other library has.
const OURS: &[u8] = b"portcullis_make_operator";

/// An MPI implementation that programs can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Mpich,
    OpenMpi,
    /// A library that provides the standard ABI itself.
    Standard,
}

impl Family {
    /// Returns the folder below `lib/portcullis/on`; `None` for the standard ABI.
    fn folder(self) -> Option<&'static str> {
        match self {
            Family::Mpich => Some("mpich"),
            Family::OpenMpi => Some("openmpi"),
            Family::Standard => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Family::Mpich => "MPICH",
            Family::OpenMpi => "Open MPI",
            Family::Standard => "the standard ABI",
        }
    }
}

/// The keywords of `--on` with their library file names and the folders to search in a prefix.
const WORDS: [(&str, &[&str], &[&str]); 3] = [
    (
        "openmpi",
        &["libmpi.so.40"],
        &["lib", "lib64", "lib/openmpi/lib", "lib64/openmpi/lib"],
    ),
    (
        "mpich",
        &["libmpi.so.12", "libmpich.so.12"],
        &["lib", "lib64", "lib/mpich/lib", "lib64/mpich/lib"],
    ),
    ("intel", &["libmpi.so.12"], &["lib", "lib/release"]),
];

/// The reason why a program cannot run on the library of `--on`.
#[derive(Debug)]
pub enum OnError {
    /// No library file with one of these names exists in the searched folders.
    Missing {
        word: String,
        files: String,
        searched: Vec<PathBuf>,
    },
    /// The file is not a library of a known MPI implementation.
    Unknown { file: PathBuf },
    /// The library belongs to another implementation than the keyword names.
    Other {
        word: String,
        file: PathBuf,
        is: Family,
    },
    /// This installation has no translation library for the implementation.
    NotInstalled { family: Family, file: PathBuf },
}

impl fmt::Display for OnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnError::Missing {
                word,
                files,
                searched,
            } => {
                let searched: Vec<String> = searched.iter().map(|p| name(p).to_string()).collect();
                write!(
                    f,
                    "--on {}: there is no {files} in {}; --on takes the path of the library, too",
                    name(word),
                    searched.join(", ")
                )
            }
            OnError::Unknown { file } => write!(
                f,
                "--on {}: the file is no library of MPICH, Intel MPI or Open MPI, and none of the standard ABI",
                name(file)
            ),
            OnError::Other { word, file, is } => write!(
                f,
                "--on {}: {} is a library of {}",
                name(word),
                name(file),
                is.name()
            ),
            OnError::NotInstalled { family, file } => write!(
                f,
                "programs cannot run on {}: this installation has no {}",
                family.name(),
                name(file)
            ),
        }
    }
}

impl std::error::Error for OnError {}

/// Returns the library that a keyword or path of `--on` names.
pub fn find(word: &str, env: &[(OsString, OsString)]) -> Result<PathBuf, OnError> {
    let known = WORDS.iter().find(|(known, ..)| *known == word);
    let (files, folders): (&[&str], Vec<PathBuf>) = match known {
        Some((_, files, below)) => (files, searched(word, below, env)),
        None if text::to_path(word).is_dir() => {
            let prefix = text::to_path(word);
            (
                &["libmpi.so.40", "libmpi.so.12", "libmpich.so.12"],
                vec![prefix.join("lib"), prefix.join("lib64"), prefix],
            )
        }
        None => {
            let file = text::to_path(word);
            return match file.is_file() {
                true => Ok(fs::canonicalize(&file).unwrap_or(file)),
                false => Err(OnError::Missing {
                    word: word.into(),
                    files: "such file".into(),
                    searched: vec![std::env::current_dir().unwrap_or_default()],
                }),
            };
        }
    };
    let found = folders
        .iter()
        .flat_map(|folder| files.iter().map(move |file| folder.join(file)))
        .find(|file| file.is_file() && !is_ours(file));
    let file = found.ok_or_else(|| OnError::Missing {
        word: word.into(),
        files: files.join(" or "),
        searched: folders.clone(),
    })?;
    let is = family(&file).ok_or_else(|| OnError::Unknown { file: file.clone() })?;
    match (word, is) {
        ("openmpi", Family::Mpich | Family::Standard)
        | ("mpich" | "intel", Family::OpenMpi | Family::Standard) => Err(OnError::Other {
            word: word.into(),
            file,
            is,
        }),
        _ => Ok(file),
    }
}

/// Returns the folders to search: the user's, those near launchers in `PATH`, then the system's.
fn searched(word: &str, below: &[&str], env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let list = |name: &str| {
        let value = env.iter().find(|(known, _)| known == name);
        value.map_or_else(Vec::new, |(_, value)| {
            std::env::split_paths(value).collect()
        })
    };
    let mut folders: Vec<PathBuf> = list(SEARCH);
    let variable = if word == "intel" {
        "I_MPI_ROOT"
    } else {
        "MPI_HOME"
    };
    let named = list(variable).into_iter();
    let beside = list("PATH")
        .into_iter()
        .filter_map(|bin| Some(bin.parent()?.to_owned()));
    for prefix in named
        .chain(beside)
        .chain(["/usr/local".into(), "/usr".into()])
    {
        folders.extend(below.iter().map(|folder| prefix.join(folder)));
    }
    let triplet = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let triplet = Path::new(&triplet);
    folders.extend([
        triplet.to_owned(),
        triplet.join("openmpi/lib"),
        triplet.join("mpich/lib"),
    ]);
    let mut kept: Vec<PathBuf> = Vec::new();
    for folder in folders {
        if folder.is_dir() && !kept.contains(&folder) {
            kept.push(folder);
        }
    }
    kept
}

/// Returns true if a file is a stand-in of this installation.
fn is_ours(file: &Path) -> bool {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    file.to_string_lossy().contains("/portcullis/compat/")
}

/// Returns a library's implementation, from its DT_SONAME or from a symbol of that implementation.
pub fn family(file: &Path) -> Option<Family> {
    let name = Dynamic::of(file).and_then(|dynamic| dynamic.name);
    if name.is_some_and(|name| name.starts_with(STANDARD_NAMES)) {
        return Some(Family::Standard);
    }
    let bytes = fs::read(file).ok()?;
    let has = |name: &[u8]| memmem::find(&bytes, name).is_some();
    if has(b"ompi_mpi_comm_world") {
        Some(Family::OpenMpi)
    } else if has(b"MPI_UNWEIGHTED") {
        Some(Family::Mpich)
    } else {
        None
    }
}

/// Returns the translation library for an implementation; `None` for the standard ABI itself.
pub fn library(family: Family, folder: Option<&Path>) -> Result<Option<PathBuf>, OnError> {
    let Some(own) = family.folder() else {
        return Ok(None);
    };
    let place = folder.unwrap_or(Path::new("lib/portcullis/on"));
    let file = place.join(own).join(STANDARD);
    match file.is_file() {
        true => Ok(Some(file)),
        false => Err(OnError::NotInstalled { family, file }),
    }
}

/// Returns the folder of this installation's translation libraries.
pub fn folder() -> Option<PathBuf> {
    Some(crate::prefix::prefix()?.join("lib/portcullis/on"))
}

/// Returns the library that the variable [`ON`] in a job's environment names.
pub fn wanted(env: &[(OsString, OsString)]) -> Option<&Path> {
    let value = env.iter().find(|(name, _)| name == ON);
    value
        .map(|(_, value)| Path::new(value))
        .filter(|path| !path.as_os_str().is_empty())
}

/// Prepares a program's environment to run on the library that the variable [`ON`] names.
pub fn serve(program: &Path, env: &mut Vec<(OsString, OsString)>) -> Served {
    let Some(below) = get(env, ON).map(OsStr::to_owned) else {
        return Served::Nothing;
    };
    let below = Path::new(&below);
    let family = match family(below) {
        Some(family) => family,
        None => {
            let error = OnError::Unknown { file: below.into() };
            return Served::Warning(error.to_string());
        }
    };
    let file = match library(family, folder().as_deref()) {
        Ok(file) => file,
        Err(error) => return Served::Warning(error.to_string()),
    };
    let first = file.as_deref().unwrap_or(below);
    if let Some(folder) = first.parent() {
        put(env, SEARCH, folder, First);
    }
    let dynamic = Dynamic::of(program).unwrap_or_default();
    // The library is preloaded if the loader would not find it by the path above: its folder has no file `libmpi_abi.so.1`,
    // or the program's `DT_RPATH`, which overrides `LD_LIBRARY_PATH`, leads to another `libmpi_abi.so.1`.
    let is_found = first.with_file_name(STANDARD).is_file();
    if !is_found || dynamic.on_rpath(STANDARD, program).is_some() {
        put(env, PRELOAD, first, First);
    }
    let is_watched = [TRACE, HANG].iter().any(|name| is_set(env, name));
    match watcher(folder().as_deref()) {
        Some(watcher) if is_watched || file.is_none() => put(env, PRELOAD, &watcher, First),
        None if is_watched => {
            return Served::Warning(format!(
                "{} cannot be watched on {}: this installation has no lib/portcullis/{WATCHER}",
                name(program),
                family.name()
            ));
        }
        _ => {}
    }
    let through = file.map_or_else(String::new, |file| format!(", through {}", name(&file)));
    Served::StandIn(format!(
        "{} runs on {} of {}{through}",
        name(program),
        name(below),
        family.name(),
    ))
}

/// Returns the watch library, which is beside the folder of translation libraries.
fn watcher(folder: Option<&Path>) -> Option<PathBuf> {
    let file = folder?.parent()?.join(WATCHER);
    file.is_file().then_some(file)
}

/// Prepares a program of the standard ABI for which the loader finds another library.
/// The preloaded watch library checks in each rank for constants of an ABI draft.
pub fn serve_other_standard(
    program: &Path,
    dynamic: &Dynamic,
    folder: Option<&Path>,
    env: &mut Env,
) -> Served {
    let found = taken(program, dynamic, env).filter(|file| !is_of_portcullis(file));
    match (found, watcher(folder)) {
        (Some(file), Some(watcher)) => {
            put(env, PRELOAD, &watcher, First);
            Served::StandIn(format!(
                "{} gets {}, which is not of Portcullis",
                name(program),
                name(&file)
            ))
        }
        _ => Served::Nothing,
    }
}

/// Returns the standard ABI library that the loader would find for a program (ld.so(8)).
pub fn taken(program: &Path, dynamic: &Dynamic, env: &Env) -> Option<PathBuf> {
    let listed = || {
        let mut files = folders::listed(env)
            .into_iter()
            .map(|folder| folder.join(STANDARD));
        files.find(|file| file.is_file())
    };
    dynamic
        .on_rpath(STANDARD, program)
        .or_else(listed)
        .or_else(|| dynamic.on_run_path(STANDARD, program))
}

/// Returns true if a file is a library of this or another Portcullis installation.
pub fn is_of_portcullis(file: &Path) -> bool {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let is_installed = crate::prefix::prefix().is_some_and(|prefix| file.starts_with(prefix));
    let says_so = || {
        let bytes = fs::read(&file).unwrap_or_default();
        memmem::find(&bytes, OURS).is_some()
    };
    is_installed || says_so()
}

fn is_set(env: &[(OsString, OsString)], name: &str) -> bool {
    env.iter()
        .any(|(known, value)| known == name && !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_known_by_what_is_in_it_not_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libmpi.so.12");
        fs::write(&file, b"\0ompi_mpi_comm_world\0").unwrap();
        assert_eq!(family(&file), Some(Family::OpenMpi));
        let word = folder.path().to_str().unwrap();
        assert_eq!(find(word, &[]).unwrap(), file);
        let env = [(OsString::from(SEARCH), folder.path().as_os_str().to_owned())];
        let error = find("mpich", &env).unwrap_err().to_string();
        assert!(error.ends_with("is a library of Open MPI"), "{error}");
        fs::write(&file, b"nothing of that kind").unwrap();
        let error = find(word, &[]).unwrap_err().to_string();
        assert!(error.contains("no library of MPICH"), "{error}");
    }

    #[test]
    fn a_missing_library_is_reported_with_all_searched_places() {
        let error = find("/no/such/libmpi.so.40", &[]).unwrap_err().to_string();
        assert!(error.contains("there is no such file"), "{error}");
    }
}
