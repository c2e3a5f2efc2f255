//! `cargo xtask nightly-qemu`: two virtual machines pass barriers through the simulator.
//!
//! The nodes in the guests use Linux's parport driver.
//!
//! QEMU, a kernel and busybox are Debian packages. They are unpacked into the target folder and
//! not installed, so the machine is not changed and no privileges are needed.
//! The command runs the ignored test `guests` of `barrier-emulation`, which mounts /dev/fuse.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machines::{self, Archive, DIRECTORY, MINUTES, MachineError, PROGRAM, at, cargo, said};
use crate::process;
use crate::ui::Steps;
use crate::workspace;

/// The number of barriers per guest and port; the ignored test expects this number.
const BARRIERS: u32 = 300;
const PORTS: [&str; 2] = [
    "ppdev:/dev/parport0,out=D0,in=nACK",
    "parport:0x378,out=D0,in=nACK",
];

/// Kernel modules in loading order.
const MODULES: [(&str, &str); 3] = [
    ("parport", "drivers/parport"),
    ("parport_pc", "drivers/parport"),
    ("ppdev", "drivers/char"),
];
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Prepares the guests and boots them.
pub fn run() -> Result<(), MachineError> {
    let folder = machines::folder();
    let mut steps = Steps::new(4);
    let kernel = steps.step("fetching qemu, a kernel and busybox", || {
        machines::fetch(&folder)
    })?;
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
            .env("PORTCULLIS_GUESTS", &folder)
            .env(machines::MODULES_VARIABLE, machines::modules(&folder));
        let outcome = process::output(&mut test, MINUTES)?;
        print!("{}", outcome.stdout);
        Ok(())
    })
}

/// Builds the node program with static linkage, since a guest has no libraries.
fn build(folder: &Path) -> Result<PathBuf, MachineError> {
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
fn pack(folder: &Path, kernel: &str, guest: &Path) -> Result<(), MachineError> {
    let root = folder.join("root");
    let path = folder.join("initramfs");
    let mut archive = at(&path, Archive::create(&path))?;
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
