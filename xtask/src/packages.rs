//! Debian packages that the tests require; they are detected by their files and not by their names.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use hdl::tool::{Archive, Tool};

use crate::process::{self, ProcessError};
use crate::ui;

/// How to detect that a package is installed.
#[derive(Clone, Copy)]
enum Sign {
    /// A program on the search path.
    Program(&'static str),
    /// Python code that succeeds if the package is installed.
    Python(&'static str),
    /// A file that must exist.
    File(&'static str),
}

/// A required package: detection, package name, purpose.
type Needed = (Sign, &'static str, &'static str);

/// The packages without which the library does not compile.
const COMPILERS: &[&str] = &["gcc"];

/// The packages that the tests need.
const NEEDED: &[Needed] = &[
    (Sign::Program("gcc"), "gcc", "compiling the C test programs"),
    (Sign::Program("g++"), "g++", "compiling the header as C++"),
    (
        Sign::Program("gfortran"),
        "gfortran",
        "compiling the Fortran test programs",
    ),
    (Sign::Program("pkg-config"), "pkg-config", "checking mpi.pc"),
    (Sign::Program("cmake"), "cmake", "checking CMake's FindMPI"),
    (
        Sign::Program("make"),
        "make",
        "building CMake's test project",
    ),
    (
        Sign::File("/usr/share/fpga-icestorm/chipdb/chipdb-8k.txt"),
        "fpga-icestorm-chipdb",
        "what icetime knows of the iCE40",
    ),
    (
        Sign::Program("qemu-system-arm"),
        "qemu-system-arm",
        "microcontrollers that run the driver",
    ),
    (
        Sign::Program("valgrind"),
        "valgrind",
        "looking for memory that is lost or used before it is set",
    ),
    (
        Sign::Program("groff"),
        "groff-base",
        "checking the manual pages",
    ),
    (
        Sign::Program("ip"),
        "iproute2",
        "cables between several hosts made of network namespaces",
    ),
    (
        Sign::Program("nsenter"),
        "util-linux",
        "programs on such hosts",
    ),
    (
        Sign::File("/usr/sbin/debootstrap"),
        "debootstrap",
        "a clean root for the packages",
    ),
    (
        Sign::Program("slurmctld"),
        "slurmctld",
        "starting programs by Slurm",
    ),
    (Sign::Program("slurmd"), "slurmd", "Slurm's nodes"),
    (Sign::Program("srun"), "slurm-client", "Slurm's commands"),
    (
        Sign::File("/etc/slurm/plugstack.conf"),
        "slurm-wlm-basic-plugins",
        "Slurm's pmi2 and pmix",
    ),
    (
        Sign::Python(
            "import glob, sys; sys.exit(not glob.glob('/usr/lib/*/pmix2/lib/libpmix.so'))",
        ),
        "libpmix-dev",
        "the name by which Slurm loads libpmix",
    ),
    (
        Sign::Program("mpirun.openmpi"),
        "openmpi-bin",
        "the hardware barrier as a component of Open MPI",
    ),
    (
        Sign::Program("mpicc.openmpi"),
        "libopenmpi-dev",
        "programs for that Open MPI",
    ),
    (
        Sign::Program("gfortran"),
        "gfortran",
        "a Fortran program for that Open MPI",
    ),
    (
        Sign::Python("import glob, sys; sys.exit(not glob.glob('/usr/lib/*/libucp.so.0'))"),
        "libucx0",
        "the transport over UCX, without hardware",
    ),
    (
        Sign::Python("import glob, sys; sys.exit(not glob.glob('/usr/lib/*/libfabric.so.1'))"),
        "libfabric1",
        "the transport over libfabric, without hardware",
    ),
    (Sign::Program("python3"), "python3", "mpi4py and the peers"),
    (
        Sign::Python("import venv, ensurepip"),
        "python3-venv",
        "installing Python packages aside from the system's",
    ),
    (
        Sign::Python("import sysconfig, os; os.stat(sysconfig.get_path('include') + '/Python.h')"),
        "python3-dev",
        "building mpi4py",
    ),
];

/// Packages with libclang, which crates with bindgen require.
const BINDGEN: &[Needed] = &[(
    Sign::Python("import glob, sys; sys.exit(not glob.glob('/usr/lib/llvm-*/lib/libclang.so*'))"),
    "libclang-dev",
    "reading mpi.h with bindgen",
)];

/// The linear algebra library with which hpcc is linked.
const BLAS: &[Needed] = &[(
    Sign::Python("import glob, sys; sys.exit(not glob.glob('/usr/lib/*/libopenblas.so'))"),
    "libopenblas-serial-dev",
    "the linear algebra of hpcc",
)];

/// Packages for generating `configure` in a source package that lacks it.
const AUTOTOOLS: &[Needed] = &[
    (Sign::Program("autoreconf"), "autoconf", "making configure"),
    (Sign::Program("automake"), "automake", "making makefiles"),
    (Sign::Program("libtoolize"), "libtool", "building libraries"),
    (Sign::Program("m4"), "m4", "making PnetCDF's sources"),
    (Sign::Program("make"), "make", "building PnetCDF"),
];

/// Packages that the guest of `nightly-verbs` uses from this machine.
const VERBS: &[Needed] = &[
    (Sign::Program("gcc"), "gcc", "compiling the C test programs"),
    (
        Sign::Python(
            "import glob, sys; sys.exit(not glob.glob('/*bin/rdma') + glob.glob('/usr/*bin/rdma'))",
        ),
        "iproute2",
        "making the emulated device",
    ),
    (
        Sign::Python(
            "import glob, sys; sys.exit(not glob.glob('/usr/lib/*/libibverbs/librxe-rdmav*.so'))",
        ),
        "ibverbs-providers",
        "the user's part of the emulated device",
    ),
    (
        Sign::Python("import glob, sys; sys.exit(not glob.glob('/usr/lib/*/libucp.so.0'))"),
        "libucx0",
        "the transport over UCX",
    ),
    (
        Sign::Python("import glob, sys; sys.exit(not glob.glob('/usr/lib/*/libfabric.so.1'))"),
        "libfabric1",
        "the transport over libfabric",
    ),
];

/// Reasons why a missing package is not installed.
#[derive(Debug)]
pub enum PackagesError {
    /// The user is not root and must run this command first.
    NotRoot {
        /// The complete command.
        command: String,
    },
    /// apt-get failed, usually because of the network or outdated package lists.
    Install(ProcessError),
}

impl fmt::Display for PackagesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRoot { command } => {
                write!(f, "packages are missing; install them with\n    {command}")
            }
            Self::Install(error) => write!(f, "packages could not be installed: {error}"),
        }
    }
}

impl std::error::Error for PackagesError {}

/// Installs missing packages if the user is root; otherwise returns the command as an error.
pub fn ensure() -> Result<(), PackagesError> {
    ensure_all(of_tests())
}

/// Installs the missing packages without which the library does not compile, and returns those that only tests need.
/// If the user is not root and any package is missing, returns the command for all of them as an error.
pub fn ensure_compilers() -> Result<Missing, PackagesError> {
    let mut missing = Missing::of(of_tests())?;
    let now = missing.0.extract_if(.., |name| COMPILERS.contains(name));
    Missing(now.collect()).install()?;
    Ok(missing)
}

/// Returns all packages that the tests need; `Tool::ALL` lists those of the hardware tools.
fn of_tests() -> impl Iterator<Item = Needed> {
    let hardware = Tool::ALL
        .iter()
        .filter(|tool| tool.archive == Archive::Debian)
        .map(|tool| (Sign::Program(tool.program), tool.package, tool.purpose));
    NEEDED.iter().copied().chain(hardware)
}

/// Installs the packages that bindgen requires.
pub fn ensure_bindgen() -> Result<(), PackagesError> {
    ensure_all(BINDGEN.iter().copied())
}

/// Installs the linear algebra library that hpcc requires.
pub fn ensure_blas() -> Result<(), PackagesError> {
    ensure_all(BLAS.iter().copied())
}

/// Installs the packages that the guest of `nightly-verbs` uses.
pub fn ensure_verbs() -> Result<(), PackagesError> {
    ensure_all(VERBS.iter().copied())
}

/// Installs the packages that generate `configure`.
pub fn ensure_autotools() -> Result<(), PackagesError> {
    ensure_all(AUTOTOOLS.iter().copied())
}

fn ensure_all(needed: impl Iterator<Item = Needed>) -> Result<(), PackagesError> {
    Missing::of(needed)?.install()
}

/// Packages that are not installed.
#[derive(Debug)]
#[must_use]
pub struct Missing(Vec<&'static str>);

impl Missing {
    /// Prints the missing packages with their purposes; returns an error if there are any and the user is not root.
    fn of(needed: impl Iterator<Item = Needed>) -> Result<Self, PackagesError> {
        let mut packages: Vec<&str> = Vec::new();
        for (sign, package, purpose) in needed {
            if sign.is_there() {
                continue;
            }
            ui::say(&format!("      {package} is missing: {purpose}"));
            if !packages.contains(&package) {
                packages.push(package);
            }
        }
        if !packages.is_empty() && !rustix::process::geteuid().is_root() {
            return Err(PackagesError::NotRoot {
                command: format!("sudo apt-get install {}", packages.join(" ")),
            });
        }
        Ok(Self(packages))
    }

    /// Installs the packages by apt-get.
    pub fn install(self) -> Result<(), PackagesError> {
        let Self(packages) = self;
        if packages.is_empty() {
            return Ok(());
        }
        ui::say(&format!(
            "      installing as root, with apt-get: {}",
            packages.join(" ")
        ));
        let apt = || {
            let mut command = Command::new("apt-get");
            command
                .env("DEBIAN_FRONTEND", "noninteractive")
                .arg("-qq")
                .stdout(Stdio::null());
            command
        };
        process::run(apt().arg("update")).map_err(PackagesError::Install)?;
        process::run(
            apt()
                .args(["install", "-y", "--no-install-recommends"])
                .args(&packages),
        )
        .map_err(PackagesError::Install)
    }
}

impl Sign {
    fn is_there(&self) -> bool {
        match self {
            Self::Program(name) => on_path(name),
            Self::File(path) => Path::new(path).is_file(),
            Self::Python(code) => Command::new("python3")
                .args(["-c", code])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success()),
        }
    }
}

/// Returns true if a program of this name is on the search path.
pub fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_program(&folder.join(name)))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_the_path() {
        assert!(on_path("sh"));
        assert!(!on_path("no-such-program-anywhere"));
    }
}
