//! Adapts MPICH's tests to Portcullis's compiler wrappers and builds them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{MpichTestsError, file};
use crate::debian_source;
use crate::process::{self, ProcessError};
use crate::workspace;

/// Code that only works with MPICH's own header, as (file, code, portable replacement).
const PATCHES: &[(&str, &str, &str)] = &[
    // These names were removed by MPI-3.0.
    (
        "dtpools/src/dtpools_custom.c",
        "MPI_Type_hvector(",
        "MPI_Type_create_hvector(",
    ),
    (
        "dtpools/src/dtpools_custom.c",
        "MPI_Type_hindexed(",
        "MPI_Type_create_hindexed(",
    ),
    (
        "dtpools/src/dtpools_custom.c",
        "MPI_Type_struct(",
        "MPI_Type_create_struct(",
    ),
    // Otherwise configure enables the mpi_f08 tests for MPICH only.
    (
        "configure",
        r#"test "$enable_f08" = "yes" -a "$FROM_MPICH" = "yes""#,
        r#"test "$enable_f08" = "yes""#,
    ),
    // These names are in the standard since MPI 4.1.
    (
        "include/mtest_mpix.h",
        "MPIX_Delete_error_",
        "MPI_Remove_error_",
    ),
    // In other libraries handles are not integers, and null handles of different kinds may differ.
    (
        "coll/nonblocking2.c",
        "int *sendtypes",
        "MPI_Datatype *sendtypes",
    ),
    (
        "coll/nonblocking2.c",
        "int *recvtypes",
        "MPI_Datatype *recvtypes",
    ),
    (
        "coll/nonblocking3.c",
        "int *sendtypes",
        "MPI_Datatype *sendtypes",
    ),
    (
        "coll/nonblocking3.c",
        "int *recvtypes",
        "MPI_Datatype *recvtypes",
    ),
    (
        "threads/pt2pt/mt_probe_impl.c",
        "*message != MPI_REQUEST_NULL",
        "*message != MPI_MESSAGE_NULL",
    ),
];

/// Returns the folder of the tests, unpacked and patched below `folder`; fetches the archive if it is missing.
pub fn fetch(folder: &str) -> Result<PathBuf, MpichTestsError> {
    let archive = debian_source::archive("mpich").map_err(MpichTestsError::Source)?;
    let folder = workspace::target().join(folder).join("source");
    let root = folder.join("test/mpi");
    if root.join("configure").is_file() {
        return Ok(root);
    }
    debian_source::unpack(&archive, &folder, Some("*/test/mpi/*"))
        .map_err(MpichTestsError::Source)?;
    for (path, old, new) in PATCHES {
        let path = root.join(path);
        let text = fs::read_to_string(&path).map_err(file(&path))?;
        fs::write(&path, text.replace(old, new)).map_err(file(&path))?;
    }
    Ok(root)
}

/// Returns a function that creates commands. The commands run in the tests' folder,
/// and Portcullis's compiler wrappers are first in their search path.
fn commands(root: &Path, bin: &Path) -> impl Fn(&str) -> Command {
    let path = match std::env::var_os("PATH") {
        Some(path) => {
            let all = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
            std::env::join_paths(all).unwrap_or(path)
        }
        None => bin.into(),
    };
    let root = root.to_owned();
    move |program| {
        let mut command = Command::new(program);
        command.current_dir(&root).env("PATH", &path);
        command
    }
}

/// Configures the tests, unless they are already configured.
pub fn configure(root: &Path, bin: &Path, languages: &str) -> Result<(), MpichTestsError> {
    if root.join("Makefile").is_file() {
        return Ok(());
    }
    let mut configure = commands(root, bin)("./configure");
    configure
        .args([languages, "--disable-cxx", "--enable-strictmpi"])
        .arg(format!(
            "--with-mpi={}",
            bin.parent().unwrap_or(bin).display()
        ));
    // Without optimisation the build takes half the time.
    // Tests of mpif.h pass several types to one procedure (`-fallow-argument-mismatch`).
    let fortran = "-O0 -w -fallow-argument-mismatch";
    for (flags, value) in [
        ("CFLAGS", "-O0 -w"),
        ("FFLAGS", fortran),
        ("FCFLAGS", fortran),
    ] {
        configure.env(flags, value);
    }
    process::output(&mut configure, Duration::from_secs(600)).map_err(MpichTestsError::Process)?;
    Ok(())
}

/// Builds the programs of these folders; failures are not reported here but by the runs.
pub fn build(root: &Path, bin: &Path, folders: &[&str]) -> Result<(), MpichTestsError> {
    let command = commands(root, bin);
    let make = |folder: &str, targets: &[String]| {
        let mut make = command("make");
        make.args(["-k", "-j2", "-C", folder]).args(targets);
        match process::output(&mut make, Duration::from_secs(600)) {
            Ok(_) | Err(ProcessError::Failed { .. }) => Ok(()),
            Err(error) => Err(MpichTestsError::Process(error)),
        }
    };
    for folder in folders {
        make(folder, &["all".to_owned()])?;
        // The strict configuration omits the nonblocking programs of `io`, which belong to MPI 3.1.
        // The first make call generates the sources of the programs.
        let listed = listed(&root.join(folder));
        if !listed.is_empty() {
            make(folder, &listed)?;
        }
    }
    Ok(())
}

/// Returns the programs of a folder's list whose sources exist.
fn listed(folder: &Path) -> Vec<String> {
    let list = std::fs::read_to_string(folder.join("testlist")).unwrap_or_default();
    let names = list
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let mut names: Vec<_> = names
        .filter(|name| {
            let source = |ending| folder.join(name).with_extension(ending);
            ["c", "f", "f90"]
                .map(source)
                .iter()
                .any(|path| path.is_file())
        })
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
