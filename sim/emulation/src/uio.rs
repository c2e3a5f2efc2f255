//! `/dev/uioN` without a kernel driver: a file system in user space,
//! with one file for the interrupt of each node of a register block.
//!
//! A read returns the node's number of interrupts as four bytes. The file is readable if this
//! number differs from the one that the same open file has returned last,
//! and `poll` reports this.
//! A write of 1 or 0 enables or disables the next interrupt, as in `drivers/uio/uio.c`.
//! A read that would block fails with EAGAIN. The registers are in the mapped file of the
//! [`RegisterDevice`].

use super::device_folder::{DeviceFiles, DeviceFolder};
use super::registers::{RegisterDevice, Shared};
use fuser::{
    Errno, FileHandle, Filesystem, FopenFlags, INodeNo, LockOwner, OpenFlags, PollEvents,
    PollFlags, PollNotifier, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyPoll,
    ReplyWrite, Request, WriteFlags,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The mounted files; dropping it unmounts them.
#[derive(Debug)]
pub struct Uios {
    sleeps: Sleepers,
    folder: DeviceFolder,
}

impl Uios {
    /// Mounts the files `uio0`, `uio1` and so on, one for each node of the device, over a temporary folder.
    ///
    /// The mount needs /dev/fuse and the right to mount:
    /// root, or root in a new user and mount namespace.
    pub fn mount(device: &RegisterDevice) -> io::Result<Self> {
        let shared = device.shared();
        let sleepers = Sleepers::default();
        let woken = sleepers.clone();
        shared.call_on_interrupt(Box::new(move |node| woken.wake(node)));
        let names = DeviceFiles {
            prefix: "uio",
            count: shared.nodes(),
        };
        let files = Files {
            names,
            shared,
            sleepers: sleepers.clone(),
            opened: Mutex::new(Opened::default()),
        };
        Ok(Self {
            sleeps: sleepers,
            folder: DeviceFolder::mount(files, names)?,
        })
    }

    /// Returns the folder with the files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a node's file.
    pub fn path(&self, node: usize) -> PathBuf {
        self.folder.file(node)
    }

    /// Returns the number of times that programs have waited in `poll` for an interrupt.
    pub fn sleeps(&self) -> u64 {
        self.sleeps.lock().count
    }
}

/// The programs that wait in `poll` on the files.
#[derive(Clone, Default)]
struct Sleepers(Arc<Mutex<Sleeping>>);

#[derive(Default)]
struct Sleeping {
    notifiers: Vec<(usize, PollNotifier)>,
    count: u64,
}

impl Sleepers {
    fn lock(&self) -> std::sync::MutexGuard<'_, Sleeping> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, node: usize) {
        let notifiers = std::mem::take(&mut self.lock().notifiers);
        let (woken, others): (Vec<_>, Vec<_>) =
            notifiers.into_iter().partition(|(of, _)| *of == node);
        self.lock().notifiers.extend(others);
        for (_, notifier) in woken {
            // The call fails if the file has been closed; then no process sleeps on it.
            let _ = notifier.notify();
        }
    }
}

impl std::fmt::Debug for Sleepers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the sleepers")
    }
}

/// The open files, each with its node and the interrupt count that it has returned last.
#[derive(Default)]
struct Opened {
    files: HashMap<FileHandle, (usize, u64)>,
    next: u64,
}

struct Files {
    names: DeviceFiles,
    shared: Arc<Shared>,
    sleepers: Sleepers,
    opened: Mutex<Opened>,
}

impl Files {
    fn opened(&self) -> std::sync::MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the node of an open file, and its number of interrupts since the file's last read.
    fn unread(&self, handle: FileHandle) -> Option<(usize, u64)> {
        let (node, read) = *self.opened().files.get(&handle)?;
        Some((node, self.shared.count(node) - read))
    }
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, _: INodeNo, wanted: &OsStr, reply: ReplyEntry) {
        self.names.lookup(wanted, reply);
    }

    fn getattr(&self, _: &Request, file: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.names.getattr(file, reply);
    }

    fn open(&self, _: &Request, file: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let Some(node) = self.names.number(file) else {
            return reply.error(Errno::ENXIO);
        };
        let mut opened = self.opened();
        let handle = FileHandle(opened.next);
        opened.next += 1;
        opened.files.insert(handle, (node, self.shared.count(node)));
        reply.opened(handle, FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.unread(handle) {
            _ if size != 4 => reply.error(Errno::EINVAL),
            None => reply.error(Errno::EBADF),
            Some((_, 0)) => reply.error(Errno::EAGAIN),
            Some((node, _)) => {
                let count = self.shared.count(node);
                self.opened().files.insert(handle, (node, count));
                reply.data(&(count as u32).to_ne_bytes());
            }
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let (Some((node, _)), Ok(word)) = (self.unread(handle), <[u8; 4]>::try_from(data)) else {
            return reply.error(Errno::EINVAL);
        };
        self.shared.enable(node, u32::from_ne_bytes(word) != 0);
        reply.written(4);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.opened().files.remove(&handle);
        reply.ok();
    }

    fn poll(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        notifier: PollNotifier,
        _: PollEvents,
        flags: PollFlags,
        reply: ReplyPoll,
    ) {
        let Some((node, _)) = self.unread(handle) else {
            return reply.error(Errno::EBADF);
        };
        if flags.contains(PollFlags::FUSE_POLL_SCHEDULE_NOTIFY) {
            let mut sleeping = self.sleepers.lock();
            sleeping.notifiers.push((node, notifier));
            sleeping.count += 1;
        }
        // The count is read after the notifier is stored,
        // so an interrupt in between wakes the program.
        match self.unread(handle) {
            Some((_, unread)) if unread > 0 => {
                reply.poll(PollEvents::POLLIN | PollEvents::POLLRDNORM);
            }
            _ => reply.poll(PollEvents::empty()),
        }
    }
}
