//! `cargo xtask pnetcdf`: runs the tests of PnetCDF, from Debian's source package, on Portcullis.
//!
//! PnetCDF (J. Li et al., "Parallel netCDF: a high-performance scientific I/O interface", SC 2003)
//! accesses files only by MPI-IO: derived views, collective and nonblocking accesses, hints.
//! Its tests write files, read them back, and check each file with a separate validator of the format.
//! Portcullis's `mpicc` builds PnetCDF unchanged, and Portcullis's `mpirun` runs the tests.
//!
//! If a test does not pass, the command fails and quotes the test's output.
//! All files are fetched and built below the target folder.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;

use crate::debian_source::{self, SourceError};
use crate::install::{self, InstallError};
use crate::packages::{self, PackagesError};
use crate::process::{self, ProcessError};
use crate::test_installation;
use crate::ui::{self, Steps};
use crate::workspace;

/// The test folders that need several processes but no Fortran, each with the process counts of its tests.
const FOLDERS: [(&str, &[u32]); 7] = [
    ("test/nonblocking", &[2, 4]),
    ("test/C", &[4]),
    ("test/cdf_format", &[4]),
    ("test/header", &[2, 4]),
    ("test/testcases", &[2, 4]),
    ("benchmarks/C", &[4]),
    ("examples/C", &[4]),
];

/// The number of folders, from the first, that `cargo xtask test` runs; they are the quickest.
const QUICK: usize = 4;

fn processes(text: &str) -> Result<u32, String> {
    match text {
        "2" => Ok(2),
        "4" => Ok(4),
        _ => Err("PnetCDF has lists of tests for 2 and for 4 processes".into()),
    }
}

/// The tests to run, and their limits.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Numbers of processes, 2 and 4
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4], value_parser = processes)]
    np: Vec<u32>,
    /// Set a parameter of the library for all runs, as with mpirun
    #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], action = clap::ArgAction::Append)]
    mca: Vec<String>,
    /// Seconds that the tests of one folder may take
    #[arg(long, value_name = "SECONDS", default_value = "900", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Only the quickest folders
    #[arg(long)]
    quick: bool,
}

/// The reason why PnetCDF was not built or its tests did not pass.
#[derive(Debug)]
pub enum PnetcdfError {
    /// A compiler or a tool is missing and could not be installed.
    Packages(PackagesError),
    /// Portcullis could not be installed.
    Install(InstallError),
    /// The source package could not be fetched or unpacked.
    Source(SourceError),
    /// The file that marks a complete build could not be written.
    File(PathBuf, std::io::Error),
    /// The build or a test failed; its output is quoted.
    Process(ProcessError),
}

impl fmt::Display for PnetcdfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packages(error) => error.fmt(f),
            Self::Install(error) => error.fmt(f),
            Self::Source(error) => error.fmt(f),
            Self::File(path, reason) => write!(f, "{}: {reason}", path.display()),
            Self::Process(error) => write!(f, "PnetCDF: {error}"),
        }
    }
}

impl std::error::Error for PnetcdfError {}

/// Runs `cargo xtask pnetcdf`.
pub fn run(options: &Options) -> Result<(), PnetcdfError> {
    let mut steps = Steps::new(5);
    let prefix = test_installation::installation();
    steps
        .step("looking for compilers and tools", packages::ensure)
        .map_err(PnetcdfError::Packages)?;
    steps
        .step("installing Portcullis", || {
            install::install(&prefix, &test_installation::CONTENTS)
        })
        .map_err(PnetcdfError::Install)?;
    let archive = steps
        .step("fetching the source package pnetcdf", || {
            debian_source::archive("pnetcdf")
        })
        .map_err(PnetcdfError::Source)?;
    let folder = steps.step("building it with our mpicc", || build(&archive, &prefix))?;
    steps.step("running its tests", || check(options, &prefix, &folder))
}

fn told(command: &mut Command, limit: Duration) -> Result<(), PnetcdfError> {
    process::output(command, limit)
        .map(drop)
        .map_err(PnetcdfError::Process)
}

/// Builds the library and its tests, unless they exist.
/// The tests load Portcullis at run time, so a changed Portcullis does not require another build.
fn build(archive: &Path, prefix: &Path) -> Result<PathBuf, PnetcdfError> {
    packages::ensure_autotools().map_err(PnetcdfError::Packages)?;
    let folder = workspace::target().join("pnetcdf").join("build");
    let built = folder.join("built");
    if built.exists() {
        return Ok(folder);
    }
    debian_source::unpack(archive, &folder, None).map_err(PnetcdfError::Source)?;
    let limit = Duration::from_secs(900);
    let within = |program: &str| {
        let mut command = Command::new(program);
        command.current_dir(&folder);
        command
    };
    told(within("autoreconf").arg("-i"), limit)?;
    let mpicc = prefix.join("bin/mpicc");
    told(
        within("./configure")
            .arg(format!("MPICC={}", mpicc.display()))
            .arg("CFLAGS=-O1")
            .args(["--disable-fortran", "--disable-cxx"]),
        limit,
    )?;
    told(within("make").arg("-j2"), limit)?;
    told(within("make").args(["-j2", "tests"]), limit)?;
    let mark = |reason| PnetcdfError::File(built.clone(), reason);
    fs::write(&built, "").map_err(mark)?;
    Ok(folder)
}

fn check(options: &Options, prefix: &Path, folder: &Path) -> Result<(), PnetcdfError> {
    let mut mpirun = format!("{} -n NP", prefix.join("bin/mpirun").display());
    for parameter in options.mca.chunks(2) {
        mpirun += &format!(" --mca {}", parameter.join(" "));
    }
    let folders = match options.quick {
        true => &FOLDERS[..QUICK],
        false => &FOLDERS[..],
    };
    for ranks in &options.np {
        for (tests, _) in folders.iter().filter(|(_, lists)| lists.contains(ranks)) {
            told(
                Command::new("make")
                    .arg(format!("ptest{ranks}"))
                    .arg(format!("TESTMPIRUN={mpirun}"))
                    .current_dir(folder.join(tests)),
                Duration::from_secs(options.limit),
            )?;
            ui::say(&format!("      {tests} on {ranks} processes: all pass"));
        }
    }
    Ok(())
}
