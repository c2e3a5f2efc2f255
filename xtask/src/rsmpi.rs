//! `cargo xtask rsmpi`: builds the crate `mpi` (rsmpi) and runs its examples on Portcullis.
//!
//! The crate is unmodified; it is only configured to use Portcullis's `mpicc`.
//! Every example must succeed on every requested number of processes.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde::Deserialize;

use crate::install::{self, InstallError};
use crate::packages::{self, PackagesError};
use crate::process::{self, ProcessError, Running};
use crate::test_installation;
use crate::ui::{self, Steps};
use crate::workspace;

/// The examples to run, and their limits.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Numbers of processes
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 4], value_parser = clap::value_parser!(u32).range(1..))]
    np: Vec<u32>,
    /// Seconds that an example may take
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Only these examples; all if none is given
    #[arg(value_name = "EXAMPLE")]
    examples: Vec<String>,
}

const VERSION: &str = "0.8.2";

/// Examples that need more than one process, each with the minimum number.
const NEEDS: &[(&str, u32)] = &[
    ("all_gather_bool", 2),
    ("immediate_multiple_requests", 2),
    // The example's grid has four rows, so there must be at least four processes.
    ("cartesian_map", 4),
];

/// The reason why the examples were not built or failed.
#[derive(Debug)]
pub enum RsmpiError {
    /// A compiler, a tool, or bindgen's libclang is missing and could not be installed.
    Packages(PackagesError),
    /// Portcullis could not be installed.
    Install(InstallError),
    /// cargo could not fetch or build the crate, or an example could not be started or awaited.
    Process(ProcessError),
    /// The copy of the crate, or the package with which cargo fetches it, could not be written or read.
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
    /// The output of `cargo metadata` is not valid JSON.
    Metadata(serde_json::Error),
    /// cargo's metadata lists no crate named `mpi`.
    NoSource,
    /// The user named an example that the crate does not have.
    NoSuch {
        /// The example's name as given by the user.
        example: String,
    },
    /// All examples were run, and some results were unexpected.
    Examples {
        /// A sentence for each unexpected result: example, processes, result.
        sentences: Vec<String>,
    },
}

impl fmt::Display for RsmpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packages(error) => error.fmt(f),
            Self::Install(error) => error.fmt(f),
            Self::Process(error) => error.fmt(f),
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::Metadata(error) => write!(f, "cargo's metadata cannot be read: {error}"),
            Self::NoSource => write!(f, "cargo does not say where the source of mpi {VERSION} is"),
            Self::NoSuch { example } => write!(f, "rsmpi has no example {example}"),
            Self::Examples { sentences } => {
                write!(f, "rsmpi's examples:\n  {}", sentences.join("\n  "))
            }
        }
    }
}

impl std::error::Error for RsmpiError {}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> RsmpiError {
    move |reason| RsmpiError::File {
        path: path.to_owned(),
        reason,
    }
}

/// Runs `cargo xtask rsmpi`.
pub fn run(options: &Options) -> Result<(), RsmpiError> {
    let mut steps = Steps::new(5);
    steps
        .step("looking for compilers, tools and libclang", || {
            packages::ensure()?;
            packages::ensure_bindgen()
        })
        .map_err(RsmpiError::Packages)?;
    let prefix = test_installation::installation();
    steps
        .step("installing Portcullis", || {
            install::install(&prefix, &test_installation::CONTENTS)
        })
        .map_err(RsmpiError::Install)?;
    let source = steps.step(format!("fetching the crate mpi {VERSION}"), source)?;
    let mut examples = steps.step("building its examples with our mpicc", || {
        build(&source, &prefix)
    })?;
    if let Some(unknown) = options
        .examples
        .iter()
        .find(|wanted| !examples.iter().any(|e| name(e) == **wanted))
    {
        return Err(RsmpiError::NoSuch {
            example: unknown.clone(),
        });
    }
    if !options.examples.is_empty() {
        examples.retain(|e| options.examples.contains(&name(e)));
    }
    steps.step("running them", || check(options, &prefix, &examples))
}

/// Returns a copy of the crate's source, which cargo fetches as a dependency.
fn source() -> Result<PathBuf, RsmpiError> {
    let folder = workspace::target().join("sources");
    let copy = folder.join(format!("mpi-{VERSION}"));
    if copy.is_dir() {
        return Ok(copy);
    }
    // This package has the crate as its dependency: cargo fetches it and reports its folder.
    let asking = folder.join("asking-for-mpi");
    fs::create_dir_all(&asking).map_err(file(&asking))?;
    let manifest = asking.join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"asking-for-mpi\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n\
         [dependencies]\nmpi = \"={VERSION}\"\n[workspace]\n"
    );
    fs::write(&manifest, text).map_err(file(&manifest))?;
    fs::write(asking.join("lib.rs"), "").map_err(file(&asking))?;
    let output = process::output(
        cargo()
            .args(["metadata", "--format-version", "1", "--manifest-path"])
            .arg(&manifest),
        Duration::from_secs(300),
    )
    .map_err(RsmpiError::Process)?;
    let metadata: Metadata = serde_json::from_str(&output.stdout).map_err(RsmpiError::Metadata)?;
    let published = metadata
        .packages
        .iter()
        .find(|package| package.name == "mpi")
        .and_then(|package| package.manifest_path.parent())
        .ok_or(RsmpiError::NoSource)?;
    let beside = folder.join(format!("mpi-{VERSION}.new-{}", std::process::id()));
    process::run(Command::new("cp").arg("-r").args([published, &beside]))
        .map_err(RsmpiError::Process)?;
    // The copy is below the folder of this workspace but must not be a member.
    let manifest = beside.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(file(&manifest))?;
    fs::write(&manifest, text + "\n[workspace]\n").map_err(file(&manifest))?;
    fs::rename(&beside, &copy).map_err(file(&copy))?;
    Ok(copy)
}

/// The fields of `cargo metadata` that this module uses.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
}

/// Builds the examples and returns the paths of the programs, sorted by name.
fn build(source: &Path, prefix: &Path) -> Result<Vec<PathBuf>, RsmpiError> {
    let target = workspace::target().join("rsmpi");
    process::run(
        cargo()
            .current_dir(source)
            .args(["build", "--examples", "--locked", "--target-dir"])
            .arg(&target)
            .env("MPICC", prefix.join("bin/mpicc")),
    )
    .map_err(RsmpiError::Process)?;
    let sources = source.join("examples");
    let mut programs = Vec::new();
    for entry in fs::read_dir(&sources).map_err(file(&sources))? {
        let entry = entry.map_err(file(&sources))?.path();
        let program = target.join("debug/examples").join(name(&entry));
        // cargo skips examples of disabled features, so their programs do not exist.
        if entry.extension().is_some_and(|e| e == "rs") && program.is_file() {
            programs.push(program);
        }
    }
    programs.sort_unstable();
    Ok(programs)
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.stdin(Stdio::null());
    command
}

fn name(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn check(options: &Options, prefix: &Path, examples: &[PathBuf]) -> Result<(), RsmpiError> {
    let mut sentences = Vec::new();
    let mut good = 0;
    for program in examples {
        let example = name(program);
        let needs = NEEDS.iter().find(|(name, _)| *name == example);
        let enough = |ranks: &&u32| needs.is_none_or(|(_, least)| *ranks >= least);
        for ranks in options.np.iter().filter(enough) {
            let outcome = Running::start(
                Command::new(prefix.join("bin/mpirun"))
                    .args(["-n", &ranks.to_string()])
                    .arg(program),
            )
            .map_err(RsmpiError::Process)?
            .wait(Duration::from_secs(options.limit));
            let complaint = match outcome {
                Ok(outcome) if outcome.status.success() => None,
                Ok(outcome) => Some(last_line(&outcome.stderr)),
                Err(ProcessError::TimedOut { stderr, .. }) => {
                    Some(format!("it hangs; {}", last_line(&stderr)))
                }
                Err(error) => return Err(RsmpiError::Process(error)),
            };
            match complaint {
                None => good += 1,
                Some(complaint) => {
                    sentences.push(format!("{example} on {ranks} processes: {complaint}"));
                }
            }
        }
    }
    ui::say(&format!(
        "      {good} runs of {} examples passed",
        examples.len()
    ));
    match sentences.is_empty() {
        true => Ok(()),
        false => Err(RsmpiError::Examples { sentences }),
    }
}

fn last_line(text: &str) -> String {
    text.trim_end().lines().next_back().unwrap_or("").to_owned()
}
