//! Emulates a Raspberry Pi 4 for a program: two files in `/dev`, and the file `/proc/cpuinfo`.
//!
//! [`enter`] moves the calling thread into a new mount namespace, which its threads and processes inherit.
//! There `/dev` is a small file system in memory with the devices that programs expect, and with two empty files:
//!
//! * `gpiomem`, whose mapping has no page behind it, so every access to a register raises SIGBUS;
//! * `gpiochip0`, whose ioctls never reach the kernel,
//!   because [`trap`](crate::trap) makes them raise SIGSYS.
//!
//! No other process has access to the namespace, which ends with the last process in it.
#![allow(unsafe_code)]

use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_move,
};
use rustix::thread::UnshareFlags;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The device files of the host that remain in `/dev`,
/// because programs and this project's tests use them.
const KEPT: [&str; 7] = ["null", "zero", "full", "random", "urandom", "tty", "fuse"];

/// The emulated `/proc/cpuinfo`; rppal recognises a Raspberry Pi 4 B by the revision code.
const CPUINFO: &str =
    "Hardware\t: BCM2711\nRevision\t: c03111\nModel\t\t: Raspberry Pi 4 Model B Rev 1.1\n";

/// Moves this thread, and threads and processes that it creates later, to an emulated Raspberry Pi.
///
/// The call needs the right to mount: root, or root in a new user and mount namespace.
/// `folder` is an empty folder that no other code uses.
pub fn enter(folder: &Path) -> io::Result<()> {
    leave_the_hosts_mounts(folder)?;
    for name in KEPT {
        let (old, new) = (Path::new("/dev").join(name), folder.join(name));
        if old.exists() {
            File::create(&new)?;
            mount_bind(&old, &new)?;
        }
    }
    for name in ["gpiomem", "gpiochip0"] {
        File::create(folder.join(name))?;
    }
    let cpuinfo = folder.join("cpuinfo");
    fs::write(&cpuinfo, CPUINFO)?;
    mount_bind(&cpuinfo, "/proc/cpuinfo")?;
    mount_move(folder, "/dev")?;
    Ok(())
}

/// Moves this thread, and processes that it creates later, to a `/dev` with these GPIO chips instead of the machine's own ones.
///
/// The other devices remain. Returns the files of the chips, which are empty: their ioctls must not reach the kernel.
/// The call needs the right to mount, and an empty folder, as [`enter`] does.
pub fn enter_with_chips(folder: &Path, chips: usize) -> io::Result<Vec<File>> {
    leave_the_hosts_mounts(folder)?;
    for entry in fs::read_dir("/dev")? {
        let entry = entry?;
        let (old, new, kind) = (
            entry.path(),
            folder.join(entry.file_name()),
            entry.file_type()?,
        );
        if entry.file_name().to_string_lossy().starts_with("gpiochip") {
            continue;
        }
        if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&old)?, &new)?;
        } else if kind.is_dir() {
            fs::create_dir(&new)?;
            mount_bind_recursive(&old, &new)?;
        } else {
            File::create(&new)?;
            mount_bind(&old, &new)?;
        }
    }
    let files = (0..chips)
        .map(|chip| File::create(folder.join(format!("gpiochip{chip}"))))
        .collect::<io::Result<_>>()?;
    mount_move(folder, "/dev")?;
    Ok(files)
}

/// Moves this thread to a new mount namespace, and mounts an empty file system over the folder.
fn leave_the_hosts_mounts(folder: &Path) -> io::Result<()> {
    // SAFETY: a new mount namespace affects only this thread,
    // and neither its memory nor its open files.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)? };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    mount("tmpfs", folder, "tmpfs", MountFlags::empty(), None)?;
    Ok(())
}
