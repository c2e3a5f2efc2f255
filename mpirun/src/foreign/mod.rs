//! Programs that are linked to another MPI library.
//!
//! Compiler wrappers of MPICH and Open MPI link programs to `libmpi.so.12` or `libmpi.so.40`.
//! An installation has stand-ins for these files in `lib/portcullis/compat`.
//! A stand-in calls the installation's own library.
//! The stand-ins' folder precedes all others in the program's `LD_LIBRARY_PATH`.
//! If the program has a `DT_RPATH`, which overrides that variable, the stand-in is preloaded.
//! An interpreter or a script may load an MPI library later ([`offer`]).
//! A program of the standard ABI without a library on its search path gets this installation's
//! library.
//!
//! With `--compat no`, or in an installation without stand-ins, a program keeps its own library.
//! MPICH's library speaks PMI-1, which this launcher serves.
//! Open MPI's library speaks PMIx; without a PMIx server each rank is a singleton.
//! Such a rank prints "0 of 1" and exits with 0, so mpirun warns first.
//! Libraries that ranks load themselves are detected at run time ([`loaded`]).
//!
//! `--on` does the reverse: it runs a program of the standard ABI on another library ([`on`]).

pub(crate) mod dynamic;
mod folders;
pub mod loaded;
mod offer;
pub mod on;

use crate::rank_environment::set_env;
use dynamic::Dynamic;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The variable that `--compat` sets; with "no", programs keep the MPI library they are linked to.
pub const COMPAT: &str = "PORTCULLIS_COMPAT";
const SEARCH: &str = "LD_LIBRARY_PATH";
const PRELOAD: &str = "LD_PRELOAD";

type Env = Vec<(OsString, OsString)>;

/// An MPI implementation for which stand-ins exist.
#[derive(Debug)]
struct Family {
    name: &'static str,
    /// The folder of the stand-ins, below `lib/portcullis/compat`.
    folder: &'static str,
    /// The library names that programs are linked to; a stand-in exists for each name.
    libraries: &'static [&'static str],
    /// Libraries that depend on `libraries[0]`; a Fortran program may name only such a library.
    on_top: &'static [&'static str],
    /// Whether the library speaks PMI-1, so that its ranks form one job under this launcher.
    speaks_pmi: bool,
}

/// The implementations with stand-ins. `libmpi.so.12` counts as MPICH's name, although it is also a
/// name of Open MPI 1.10's library, which has been unmaintained since 2017.
static FAMILIES: [Family; 2] = [
    Family {
        name: "MPICH",
        folder: "mpich",
        libraries: &["libmpi.so.12", "libmpich.so.12"],
        on_top: &[],
        speaks_pmi: true,
    },
    Family {
        name: "Open MPI",
        folder: "openmpi",
        libraries: &["libmpi.so.40"],
        on_top: &[
            "libmpi_mpifh.so.40",
            "libmpi_usempif08.so.40",
            "libmpi_usempi_ignore_tkr.so.40",
        ],
        speaks_pmi: false,
    },
];

/// Prefixes of library names that only Open MPI uses, in all versions.
const OPEN_MPI: &[&str] = &[
    "libmpi.so.",
    "libopen-rte.so.",
    "libopen-pal.so.",
    "libmpi_mpifh.so.",
];
const NOT_ONLY_OPEN_MPI: &[&str] = &["libmpi.so.12", "libmpi.so.1"];

/// The outcome of [`serve`] for one program.
#[derive(Debug, PartialEq, Eq)]
pub enum Served {
    /// The program gets a stand-in; `--explain` prints this message.
    StandIn(String),
    /// The program's ranks will not form one job; this warning is always printed.
    Warning(String),
    /// There is nothing to report.
    Nothing,
}

/// The folders of libraries that an installation offers to programs.
#[derive(Clone, Debug, Default)]
pub struct Libraries {
    /// The folder that contains one folder of stand-ins for each implementation.
    stand_ins: Option<PathBuf>,
    /// The folder that contains only the standard ABI's library, for `LD_LIBRARY_PATH`.
    alone: Option<PathBuf>,
    /// The folder of this installation's library, if there is no `alone` folder.
    own: Option<PathBuf>,
}

impl Libraries {
    /// Finds the libraries of the installation that contains this executable.
    pub fn of_this_installation() -> Libraries {
        let Some(lib) = crate::prefix::prefix().map(|prefix| prefix.join("lib")) else {
            return Libraries::default();
        };
        let has_own = |folder: &PathBuf| folder.join(on::STANDARD).is_file();
        Libraries {
            stand_ins: Some(lib.join("portcullis/compat")).filter(|folder| folder.is_dir()),
            alone: Some(lib.join("portcullis/abi")).filter(has_own),
            own: Some(lib).filter(has_own),
        }
    }
}

/// Prepares the environment of a program's ranks.
pub fn serve(program: &Path, ranks: usize, libraries: &Libraries, env: &mut Env) -> Served {
    if on::wanted(env).is_some() {
        return on::serve(program, env);
    }
    let alone = libraries.alone.as_deref();
    let folder = libraries.stand_ins.as_deref();
    let folder = folder.filter(|_| !is_left_alone(env));
    let Some(dynamic) = Dynamic::of(program) else {
        offer::to_any(program, folder, alone, env);
        return Served::Nothing;
    };
    if dynamic
        .needed
        .iter()
        .any(|name| name.starts_with(on::STANDARD_NAMES))
    {
        let own = alone.or(libraries.own.as_deref());
        offer::own_library(program, &dynamic, own, env);
        return match folder {
            Some(_) => on::serve_other_standard(program, &dynamic, on::folder().as_deref(), env),
            None => Served::Nothing,
        };
    }
    let asked = FAMILIES.iter().find_map(|family| {
        let wanted = |name: &&String| family.libraries.contains(&name.as_str());
        if let Some(name) = dynamic.needed.iter().find(wanted) {
            return Some((family, name.as_str()));
        }
        let on_top = |name: &String| family.on_top.contains(&name.as_str());
        let brings = dynamic.needed.iter().any(on_top);
        Some((family, *family.libraries.first().filter(|_| brings)?))
    });
    if let (Some((family, library)), Some(folder)) = (asked, folder) {
        let folder = folder.join(family.folder);
        let file = folder.join(library);
        if file.is_file() {
            put(env, SEARCH, &folder, First);
            if dynamic.on_rpath(library, program).is_some() {
                put(env, PRELOAD, &file, First);
            }
            return Served::StandIn(format!(
                "{} asks for {}'s {library}: {} replaces it (--compat no leaves the program unchanged)",
                printable::name(program),
                family.name,
                printable::name(&file)
            ));
        }
    }
    if let Some(library) = dynamic.needed.iter().find(|name| is_open_mpi(name))
        && asked.is_none_or(|(family, _)| !family.speaks_pmi)
    {
        return Served::Warning(warning(program, library, &dynamic, ranks));
    }
    if asked.is_none() {
        offer::to_any(program, folder, alone, env);
    }
    Served::Nothing
}

/// Returns true if programs must keep the libraries that they are linked to (`--compat no`).
pub fn is_left_alone(env: &Env) -> bool {
    get(env, COMPAT) == Some(OsStr::new("no"))
}

fn warning(program: &Path, library: &str, dynamic: &Dynamic, ranks: usize) -> String {
    let library = match dynamic.on_run_path(library, program) {
        Some(file) => format!("{} (by its run path)", printable::name(&file)),
        None => library.to_string(),
    };
    let ranks = match ranks {
        1 => "its rank is".to_string(),
        more => format!("each of its {more} ranks is"),
    };
    format!(
        "{} is linked to {library} of Open MPI, which this mpirun does not serve: {ranks} a job of its own. \
         Start it with Open MPI's mpirun, or build it with this mpicc.",
        printable::name(program)
    )
}

fn is_open_mpi(name: &str) -> bool {
    OPEN_MPI.iter().any(|begin| name.starts_with(begin)) && !NOT_ONLY_OPEN_MPI.contains(&name)
}

fn get<'a>(env: &'a Env, name: &str) -> Option<&'a OsStr> {
    let found = env.iter().find(|(present, _)| present == name);
    found.map(|(_, value)| value.as_os_str())
}

/// The end of a list at which [`put`] inserts.
#[derive(PartialEq, Eq)]
enum End {
    First,
    Last,
}
use End::{First, Last};

/// Inserts a path at one end of a colon-separated list.
/// No element is empty, since an empty element would mean the working directory.
fn put(env: &mut Env, name: &str, path: &Path, end: End) {
    let mut list = OsString::new();
    let before = get(env, name).filter(|value| !value.is_empty());
    if let (Some(before), Last) = (before, &end) {
        list.push(before);
        list.push(":");
    }
    list.push(path);
    if let (Some(before), First) = (before, &end) {
        list.push(":");
        list.push(before);
    }
    set_env(env, name, list);
}

#[cfg(test)]
mod tests;
