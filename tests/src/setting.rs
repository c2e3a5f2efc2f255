//! The environment of the tests: the installation, compiled programs, and other MPI libraries.
//!
//! A test that needs another MPI library is skipped if that library is not installed.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use xtask::cargo::Profile;
use xtask::install::Contents;
use xtask::{install, process, test_installation, venv, workspace};

/// The environment variable that `cargo xtask test` sets after it has installed all dependencies.
/// A test with a missing dependency then fails instead of being skipped.
const NO_SKIPS: &str = xtask::test::NO_SKIPS;

/// Returns the prefix of an installation of the current sources; each test program makes it once.
pub fn installation() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| match std::env::var_os(test_installation::MADE) {
        Some(prefix) => prefix.into(),
        None => make(
            test_installation::installation(),
            &test_installation::CONTENTS,
        ),
    })
}

/// Returns an installation compiled and linked like the distributed packages, but not optimised.
///
/// Unlike these, the files of the shared [`installation`] contain build paths,
/// and its launcher is linked dynamically with the C library.
pub fn shipped_installation() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let contents = Contents {
            profile: Profile::Dev,
            ..test_installation::CONTENTS
        };
        make(
            workspace::target().join("test-installation-shipped"),
            &contents,
        )
    })
}

/// Returns an installation without the hardware barrier and without plugin files.
pub fn bare_installation() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let contents = Contents {
            bare: true,
            plugins: false,
            others: true,
            ..test_installation::CONTENTS
        };
        make(
            workspace::target().join("test-installation-bare"),
            &contents,
        )
    })
}

fn make(prefix: PathBuf, contents: &Contents) -> PathBuf {
    let _alone = lock("installation");
    install::install(&prefix, contents).unwrap_or_else(|e| panic!("no installation to test: {e}"));
    prefix
}

/// Takes an exclusive lock against other threads and test processes; closing the file releases it.
pub(crate) fn lock(what: &str) -> File {
    let folder = workspace::target();
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
    let path = folder.join(format!("{what}.lock"));
    let file =
        File::create(&path).unwrap_or_else(|e| panic!("cannot make {}: {e}", path.display()));
    flock(&file, FlockOperation::LockExclusive)
        .unwrap_or_else(|e| panic!("cannot lock {}: {e}", path.display()));
    file
}

/// Compiles `programs/NAME.c` with `mpicc` unless the program is up to date; returns its path.
pub fn compile(name: &str) -> PathBuf {
    compile_with(name, name, &[])
}

/// As `compile`, with additional compiler options and another name for the program.
pub fn compile_with(name: &str, program: &str, options: &[&str]) -> PathBuf {
    let source = workspace::programs().join(name).with_extension("c");
    let options = [&["-std=gnu11"], options].concat();
    compile_by("bin/mpicc", &source, program, &options)
}

/// Compiles a program that a test has generated, unless the program is up to date.
/// It may include the headers in `programs/`.
pub fn compile_source(name: &str, text: &str) -> PathBuf {
    let folder = workspace::target().join("test-programs");
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
    let source = folder.join(name).with_extension("c");
    // An unchanged file keeps its modification time, so the program stays up to date.
    if fs::read_to_string(&source).ok().as_deref() != Some(text) {
        fs::write(&source, text)
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", source.display()));
    }
    let headers = format!("-I{}", workspace::programs().display());
    compile_by("bin/mpicc", &source, name, &["-std=gnu11", &headers])
}

/// Compiles `programs/NAME.cc` with `mpicxx` unless the program is up to date; returns its path.
pub fn compile_cpp(name: &str) -> PathBuf {
    let source = workspace::programs().join(name).with_extension("cc");
    compile_by("bin/mpicxx", &source, name, &[])
}

fn compile_by(compiler: &str, source: &Path, program: &str, options: &[&str]) -> PathBuf {
    static ALONE: Mutex<()> = Mutex::new(());
    let compiler = installation().join(compiler);
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _alone_everywhere = lock("programs");
    let folder = workspace::target().join("test-programs");
    let program = folder.join(program);
    let headers = ["check.h", "device.h", "elements.h", "layouts.h"];
    let mut inputs: Vec<PathBuf> = headers.map(|name| workspace::programs().join(name)).into();
    inputs.extend([
        source.to_owned(),
        installation().join("include/mpi.h"),
        compiler.clone(),
    ]);
    if inputs.iter().all(|input| is_newer(&program, input)) {
        return program;
    }
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
    let mut command = Command::new(compiler);
    // Optimisation is off, because it would double the processor time of a compilation.
    command
        .args(["-Wall", "-Wextra", "-Werror", "-O0", "-o"])
        .arg(&program)
        .args(options)
        .arg(source)
        .arg("-lm");
    process::output(&mut command, Duration::from_secs(60)).unwrap_or_else(|e| panic!("{e}"));
    program
}

pub(crate) fn is_newer(a: &Path, b: &Path) -> bool {
    let time = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    matches!((time(a), time(b)), (Some(a), Some(b)) if a > b)
}

/// Compiles `programs/killed_at.c`, a library for `LD_PRELOAD` that kills its process at a given
/// step of writing, unless it is up to date; returns its path.
pub fn killed_at() -> PathBuf {
    let _alone = lock("programs");
    let source = workspace::programs().join("killed_at.c");
    let library = workspace::target().join("killed_at.so");
    if !is_newer(&library, &source) {
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
        command.arg(&library).arg(source).arg("-ldl");
        process::output(&mut command, Duration::from_secs(60)).unwrap_or_else(|e| panic!("{e}"));
    }
    library
}

/// Returns the environment of MPICH's wheel, if installed.
pub fn mpich() -> Option<&'static venv::Venv> {
    let mpich = &venv::MPICH;
    needs(
        mpich.is_there(),
        "MPICH 5.0.2 in the target folder (cargo xtask test fetches it)",
    )
    .then_some(mpich)
}

/// Returns the environment of Open MPI's wheel, if installed.
pub fn open_mpi() -> Option<&'static venv::Venv> {
    let open_mpi = &venv::OPEN_MPI;
    needs(
        open_mpi.is_there(),
        "Open MPI 5.0.11 in the target folder (cargo xtask test fetches it)",
    )
    .then_some(open_mpi)
}

/// Returns the Python interpreter with mpi4py built by this `mpicc`, if installed.
pub fn mpi4py_python() -> Option<PathBuf> {
    let mpi4py = &venv::MPI4PY;
    needs(
        mpi4py.is_there(),
        "mpi4py built with our mpicc (cargo xtask test builds it)",
    )
    .then(|| mpi4py.bin("python"))
}

/// Returns `there`. If `there` is false, prints that the test is skipped because `what` is missing.
/// The message is printed even if the test runner captures the output.
pub fn needs(there: bool, what: &str) -> bool {
    if !there {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        assert!(std::env::var_os(NO_SKIPS).is_none(), "{test} needs {what}");
        // The write fails if standard error is closed; this is ignored.
        let _ = writeln!(std::io::stderr().lock(), "skipped: {test} needs {what}");
    }
    there
}
