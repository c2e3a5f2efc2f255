//! Files of virtual machines: Debian packages that are unpacked but not installed, and initial
//! file systems.
//!
//! [`crate::guests`] and [`crate::verbs`] boot the machines.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::install::InstallError;
use crate::packages::PackagesError;
use crate::process::{self, ProcessError};
use crate::workspace;

/// The package of the emulator; [`libraries`] returns its dependencies.
const QEMU: &str = "qemu-system-x86";
/// A package that depends on the newest kernel package.
const KERNEL: &str = "linux-image-amd64";
const BUSYBOX: &str = "busybox-static";
/// The time limit of each program that prepares a machine.
pub(crate) const MINUTES: Duration = Duration::from_secs(600);

/// Reasons why a virtual machine does not do its work.
#[derive(Debug)]
pub enum MachineError {
    /// A program that prepares or runs a machine failed.
    Process(ProcessError),
    /// A file could not be read or written.
    File(PathBuf, io::Error),
    /// Debian lacks a kernel package, or a package has unexpected contents.
    Missing(String),
    /// A package could not be installed on this machine.
    Packages(PackagesError),
    /// The installation that the machine runs could not be built.
    Install(InstallError),
    /// The machine's task failed; the text is the message.
    Failed(String),
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(error) => error.fmt(f),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Missing(what) => write!(f, "{what} is missing; try apt-get update"),
            Self::Packages(error) => error.fmt(f),
            Self::Install(error) => error.fmt(f),
            Self::Failed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for MachineError {}

impl From<ProcessError> for MachineError {
    fn from(error: ProcessError) -> Self {
        Self::Process(error)
    }
}

impl From<PackagesError> for MachineError {
    fn from(error: PackagesError) -> Self {
        Self::Packages(error)
    }
}

impl From<InstallError> for MachineError {
    fn from(error: InstallError) -> Self {
        Self::Install(error)
    }
}

/// Returns the folder of the unpacked packages, which all machines share.
pub(crate) fn folder() -> PathBuf {
    workspace::target().join("guests")
}

/// The variable that names the folder of QEMU's modules; without it, QEMU looks only beside its program.
pub(crate) const MODULES_VARIABLE: &str = "QEMU_MODULE_DIR";

/// Returns the folder of QEMU's modules: a package that this machine has installed is not unpacked.
pub(crate) fn modules(folder: &Path) -> PathBuf {
    let modules = "usr/lib/x86_64-linux-gnu/qemu";
    let unpacked = folder.join("root").join(modules);
    match unpacked.exists() {
        true => unpacked,
        false => Path::new("/").join(modules),
    }
}

/// Returns the emulator's command without any device.
pub(crate) fn emulator(folder: &Path) -> Command {
    let root = folder.join("root");
    let libraries = [
        "usr/lib",
        "usr/lib/x86_64-linux-gnu",
        "lib/x86_64-linux-gnu",
    ];
    let libraries = libraries.map(|folder| root.join(folder).display().to_string());
    let mut command = Command::new(root.join("usr/bin/qemu-system-x86_64"));
    command
        .env("LD_LIBRARY_PATH", libraries.join(":"))
        .env(MODULES_VARIABLE, modules(folder))
        .arg("-L")
        .arg(root.join("usr/share/qemu"))
        .arg("-L")
        .arg(root.join("usr/share/seabios"))
        .args(["-L", "/usr/share/qemu", "-L", "/usr/share/seabios"])
        .args(["-nodefaults", "-display", "none", "-no-reboot"]);
    command
}

pub(crate) fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

pub(crate) fn said(command: &mut Command) -> Result<String, MachineError> {
    Ok(process::output(command, MINUTES)?.stdout)
}

pub(crate) fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, MachineError> {
    result.map_err(|error| MachineError::File(path.to_owned(), error))
}

/// Downloads and unpacks missing packages, and returns the kernel release.
pub(crate) fn fetch(folder: &Path) -> Result<String, MachineError> {
    let (debs, root) = (folder.join("debs"), folder.join("root"));
    at(&debs, fs::create_dir_all(&debs))?;
    let depends = said(Command::new("apt-cache").args(["depends", KERNEL]))?;
    let image = depends
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: linux-image-"))
        .ok_or_else(|| MachineError::Missing(KERNEL.into()))?
        .to_owned();
    let vmlinuz = folder.join("vmlinuz");
    let unpacked = root.join("boot").join(format!("vmlinuz-{image}"));
    if !vmlinuz.exists() || !unpacked.exists() {
        let mut wanted = vec![format!("linux-image-{image}"), BUSYBOX.into(), QEMU.into()];
        wanted.extend(libraries()?);
        let mut download = Command::new("apt-get");
        download.args(["-q", "download"]).args(&wanted);
        said(download.current_dir(&debs))?;
        for deb in at(&debs, fs::read_dir(&debs))?.flatten() {
            said(Command::new("dpkg").arg("-x").arg(deb.path()).arg(&root))?;
        }
        at(&unpacked, fs::copy(&unpacked, &vmlinuz))?;
    }
    Ok(image)
}

/// Returns the packages, including firmware, on which the emulator depends and this machine lacks.
fn libraries() -> Result<Vec<String>, MachineError> {
    let only_depends = [
        "recommends",
        "suggests",
        "conflicts",
        "breaks",
        "replaces",
        "enhances",
    ];
    let mut closure = Command::new("apt-cache");
    closure.args(["depends", "--recurse"]);
    closure.args(only_depends.map(|kind| format!("--no-{kind}")));
    let closure = said(closure.arg(QEMU))?;
    // Dependencies are indented below their packages; names in brackets are virtual packages.
    let names = closure.lines().filter(|line| {
        line.starts_with(|c: char| c.is_ascii_alphanumeric()) && !line.contains(':')
    });
    let installed =
        said(Command::new("dpkg-query").args(["-W", "-f", "${Package} ${db:Status-Status}\n"]))?;
    let is_there = |name: &str| {
        installed
            .lines()
            .any(|line| line == format!("{name} installed"))
    };
    let mut missing: Vec<_> = names
        .filter(|name| *name != QEMU && !is_there(name))
        .map(str::to_owned)
        .collect();
    missing.sort();
    missing.dedup();
    Ok(missing)
}

pub(crate) const DIRECTORY: u32 = 0o040_755;
pub(crate) const PROGRAM: u32 = 0o100_755;

/// A cpio archive in the kernel's format
/// (Documentation/driver-api/early-userspace/buffer-format.rst).
pub(crate) struct Archive(File);

impl Archive {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self)
    }

    pub(crate) fn add(&mut self, name: &str, mode: u32, contents: &[u8]) -> io::Result<()> {
        let (name_size, size) = (name.len() as u32 + 1, contents.len() as u32);
        let links = 1;
        // The fields: inode, mode, user, group, links, time, size, four device numbers,
        // the size of the name, and a checksum that is not used.
        let fields = [0, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        let fields: String = fields.iter().map(|field| format!("{field:08x}")).collect();
        let mut head = format!("070701{fields}{name}\0").into_bytes();
        head.resize(head.len().next_multiple_of(4), 0);
        self.0.write_all(&head)?;
        self.0.write_all(contents)?;
        let padding = contents.len().next_multiple_of(4) - contents.len();
        self.0.write_all(&[0; 3][..padding])
    }

    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.add("TRAILER!!!", 0, &[])
    }
}
