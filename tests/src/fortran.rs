//! Fortran programs, compiled by `mpifort` with each compiler of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use xtask::packages::on_path;
use xtask::{process, workspace};

use crate::setting::{installation, is_newer, lock, needs};

/// Names of the flang program in different distributions, in search order.
const FLANG: &[&str] = &["flang-new-19", "flang-new-16", "flang-new", "flang"];

/// The Fortran interface that a program uses; the values are those in `programs/fortran/ways.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `include 'mpif.h'`.
    Header = 1,
    /// `use mpi`.
    Mpi = 2,
    /// `use mpi_f08`.
    F08 = 3,
}

/// All three Fortran interfaces.
pub const WAYS: [Way; 3] = [Way::Header, Way::Mpi, Way::F08];

/// A Fortran compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compiler(&'static str);

impl Compiler {
    /// Returns gfortran if it is installed.
    pub fn gfortran() -> Option<Compiler> {
        needs(on_path("gfortran"), "gfortran").then_some(Compiler("gfortran"))
    }

    /// Returns flang if it is installed;
    /// without flang its tests are skipped and do not fail.
    pub fn flang() -> Option<Compiler> {
        FLANG
            .iter()
            .find(|name| on_path(name))
            .copied()
            .map(Compiler)
    }

    /// Returns the installed Fortran compilers.
    pub fn all() -> Vec<Compiler> {
        Self::gfortran().into_iter().chain(Self::flang()).collect()
    }

    /// Returns the name of the compiler's program.
    pub fn name(self) -> &'static str {
        self.0
    }
}

/// Compiles `programs/fortran/SOURCE` and further sources unless the program is up to date.
/// The returned path ends in the name of the first source.
pub fn compile(compiler: Compiler, way: Way, sources: &[&str]) -> PathBuf {
    // The installation is made before the lock is taken, because that may take minutes.
    let installation = installation();
    let _alone = lock("programs");
    let from = workspace::programs().join("fortran");
    let name = Path::new(sources.first().copied().unwrap_or_default());
    let program = workspace::target()
        .join("test-programs/fortran")
        .join(format!("{}-{way:?}", compiler.name()))
        .join(name.file_stem().unwrap_or_default());
    let wrapper = installation.join("bin/mpifort");
    let mut inputs: Vec<PathBuf> = sources.iter().map(|source| from.join(source)).collect();
    inputs.extend(["ways.h", "check.inc"].map(|name| from.join(name)));
    inputs.extend(
        ["include/mpif.h", "share/portcullis/fortran/mpi_f08.f90"]
            .map(|path| installation.join(path)),
    );
    inputs.push(wrapper.clone());
    if inputs.iter().all(|input| is_newer(&program, input)) {
        return program;
    }
    // Each compilation uses its own folder, because compilers write a program's module files to the current folder.
    let scratch = tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}"));
    let mut objects = Vec::new();
    for source in sources.iter().filter(|source| source.ends_with(".c")) {
        let object = scratch.path().join(source).with_extension("o");
        let mut command = Command::new(installation.join("bin/mpicc"));
        command.args(["-Wall", "-Wextra", "-Werror", "-c", "-o"]);
        run(command.arg(&object).arg(from.join(source)));
        objects.push(object);
    }
    let folder = program.parent().unwrap_or(&program);
    fs::create_dir_all(folder).unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
    let mut command = Command::new(wrapper);
    command
        .env("MPIFORT_FC", compiler.name())
        .current_dir(scratch.path())
        .args(["-O1", "-w", "-cpp", &format!("-DWAY={}", way as u32), "-o"])
        .arg(&program);
    let fortran = sources.iter().filter(|source| !source.ends_with(".c"));
    command
        .args(fortran.map(|source| from.join(source)))
        .args(objects);
    run(&mut command);
    program
}

fn run(command: &mut Command) {
    process::output(command, Duration::from_secs(120)).unwrap_or_else(|e| panic!("{e}"));
}
