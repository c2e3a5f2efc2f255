//! `cargo xtask nightly-qemu`: two virtual machines pass barriers through the simulator.
//!
//! The nodes in the guests use Linux's parport driver.
//!
//! QEMU, a kernel and busybox are Debian packages. They are unpacked into the target folder and
//! not installed, so the machine is not changed and no privileges are needed.
//! The command runs the ignored test `guests` of `barrier-emulation`, which mounts /dev/fuse.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{self, ProcessError};
use crate::ui::Steps;
use crate::workspace;

/// The number of barriers per guest and port; the ignored test expects this number.
const BARRIERS: u32 = 300;
const PORTS: [&str; 2] = [
    "ppdev:/dev/parport0,out=D0,in=nACK",
    "parport:0x378,out=D0,in=nACK",
];

/// The Debian package of the emulator; [`libraries`] returns its dependencies.
const QEMU: &str = "qemu-system-x86";
const KERNEL: &str = "linux-image-amd64";
const BUSYBOX: &str = "busybox-static";
/// Kernel modules of the guests, in loading order.
const MODULES: [(&str, &str); 3] = [
    ("parport", "drivers/parport"),
    ("parport_pc", "drivers/parport"),
    ("ppdev", "drivers/char"),
];
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const MINUTES: Duration = Duration::from_secs(600);

/// The reason why the guests did not pass their barriers.
#[derive(Debug)]
pub enum GuestsError {
    /// A program that prepares or boots the guests failed.
    Process(ProcessError),
    /// A file could not be read or written.
    File(PathBuf, io::Error),
    /// Debian lacks a kernel package, or a package has unexpected contents.
    Missing(String),
}

impl fmt::Display for GuestsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(error) => error.fmt(f),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Missing(what) => write!(f, "{what} is missing; try apt-get update"),
        }
    }
}

impl std::error::Error for GuestsError {}

impl From<ProcessError> for GuestsError {
    fn from(error: ProcessError) -> Self {
        Self::Process(error)
    }
}

/// Prepares the guests and boots them.
pub fn run() -> Result<(), GuestsError> {
    let folder = workspace::target().join("guests");
    let mut steps = Steps::new(4);
    let kernel = steps.step("fetching qemu, a kernel and busybox", || fetch(&folder))?;
    let guest = steps.step("building the guests' program", || build(&folder))?;
    steps.step("packing what they boot", || pack(&folder, &kernel, &guest))?;
    steps.step("booting two machines", || {
        let mut test = Command::new(cargo());
        test.current_dir(workspace::root())
            .args([
                "test",
                "-q",
                "-p",
                "barrier-emulation",
                "--test",
                "guests",
                "--",
            ])
            .args(["--ignored", "--nocapture"])
            .env("PORTCULLIS_GUESTS", &folder);
        let outcome = process::output(&mut test, MINUTES)?;
        print!("{}", outcome.stdout);
        Ok(())
    })
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn said(command: &mut Command) -> Result<String, GuestsError> {
    Ok(process::output(command, MINUTES)?.stdout)
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, GuestsError> {
    result.map_err(|error| GuestsError::File(path.to_owned(), error))
}

/// Downloads and unpacks the packages that are missing; returns the release of the kernel.
fn fetch(folder: &Path) -> Result<String, GuestsError> {
    let (debs, root) = (folder.join("debs"), folder.join("root"));
    at(&debs, fs::create_dir_all(&debs))?;
    let depends = said(Command::new("apt-cache").args(["depends", KERNEL]))?;
    let image = depends
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: linux-image-"))
        .ok_or_else(|| GuestsError::Missing(KERNEL.into()))?
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

/// Returns the packages, including firmware, that the emulator depends on and this machine lacks.
fn libraries() -> Result<Vec<String>, GuestsError> {
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
    // Dependencies are indented below their packages; names in angle brackets are virtual packages.
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

/// Builds the node program with static linkage, because the guests have no libraries.
fn build(folder: &Path) -> Result<PathBuf, GuestsError> {
    let target = folder.join("cargo");
    let mut build = Command::new(cargo());
    build
        .current_dir(workspace::root())
        .args(["build", "-q", "-p", "barrier-driver", "--example", "guest"])
        .args(["--release", "--target", TRIPLE, "--target-dir"])
        .arg(&target)
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    said(&mut build)?;
    Ok(target.join(TRIPLE).join("release/examples/guest"))
}

/// Writes the initial file system: busybox, the modules, the program, and the init script.
fn pack(folder: &Path, kernel: &str, guest: &Path) -> Result<(), GuestsError> {
    let root = folder.join("root");
    let path = folder.join("initramfs");
    let mut archive = Archive(at(&path, File::create(&path))?);
    let mut add = |name: &str, mode, contents: &[u8]| at(&path, archive.add(name, mode, contents));
    for folder in ["bin", "dev", "proc"] {
        add(folder, DIRECTORY, &[])?;
    }
    let modules = root.join("lib/modules").join(kernel).join("kernel");
    let mut files = vec![
        ("bin/busybox".to_owned(), root.join("bin/busybox")),
        ("guest".to_owned(), guest.to_owned()),
    ];
    files.extend(MODULES.iter().map(|(name, place)| {
        let file = format!("{name}.ko");
        (file.clone(), modules.join(place).join(file))
    }));
    for (name, from) in files {
        add(&name, PROGRAM, &at(&from, fs::read(&from))?)?;
    }
    add("init", PROGRAM, script().as_bytes())?;
    at(&path, archive.end())
}

/// Returns the init script of the guests; the kernel's command line sets `node`.
fn script() -> String {
    let modules = MODULES.map(|(name, _)| name).join(" ");
    format!(
        "#!/bin/busybox sh\n\
         /bin/busybox mount -t devtmpfs none /dev\n\
         /bin/busybox mount -t proc none /proc\n\
         exec < /dev/ttyS0 > /dev/ttyS0 2>&1\n\
         for module in {modules}; do /bin/busybox insmod /$module.ko; done\n\
         /bin/busybox stty -F /dev/ttyS1 raw -echo\n\
         for port in {}; do /guest $port /dev/ttyS1 $node 2 {BARRIERS}; done\n\
         /bin/busybox poweroff -f\n",
        PORTS.join(" ")
    )
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// A cpio archive in the kernel's format
/// (Documentation/driver-api/early-userspace/buffer-format.rst).
struct Archive(File);

impl Archive {
    fn add(&mut self, name: &str, mode: u32, contents: &[u8]) -> io::Result<()> {
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

    fn end(&mut self) -> io::Result<()> {
        self.add("TRAILER!!!", 0, &[])
    }
}
