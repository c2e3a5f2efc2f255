//! `/dev/parportN` without a kernel driver: a file system in user space whose files answer ppdev's ioctls.
//!
//! Every ioctl code of ppdev contains the size of its argument,
//! so the kernel copies the argument to and from a file system as it does for a device.
//! Any process may use the files; each file operates on one [`ParallelPort`].
//!
//! # Behaviour copied from `drivers/char/ppdev.c`
//!
//! * Before `PPCLAIM` a register access fails with EPERM. A second `PPCLAIM`, and `PPEXCL` after `PPCLAIM`, fail with EINVAL.
//! * The first `PPCLAIM` of an open file registers it with the port.
//!   The registration fails with ENXIO if the file has set `PPEXCL` and other files are registered,
//!   or if an exclusive file is registered.
//! * Closing the file, also by the death of its process,
//!   releases the port and removes the registration;
//!   the port's registers keep their values.
//! * `PPCLAIM` enables the port's interrupt. Each rise of nACK increments the count of the file
//!   that has claimed the port. `PPCLRIRQ` returns and clears the count.
//!   `poll` reports the file as readable while the count is not zero; see `interrupts`.
//!
//! Differences from the kernel: if another file has claimed the port without `PPEXCL`,
//! a claim fails with EAGAIN here and sleeps in the kernel;
//! and ioctls of modes other than compatibility are not implemented (ENOTTY).

mod interrupts;

use super::device_folder::{DeviceFiles, DeviceFolder};
use super::parallel::{ParallelPort, Register};
use fuser::{
    Errno, FileHandle, Filesystem, FopenFlags, INodeNo, IoctlFlags, LockOwner, OpenFlags,
    PollEvents, PollFlags, PollNotifier, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyOpen,
    ReplyPoll, Request,
};
use interrupts::{Lines, Watcher};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PPCLAIM: u32 = 0x708b;
const PPRELEASE: u32 = 0x708c;
const PPEXCL: u32 = 0x708f;
const PPRSTATUS: u32 = 0x8001_7081;
const PPRCONTROL: u32 = 0x8001_7083;
const PPWCONTROL: u32 = 0x4001_7084;
const PPRDATA: u32 = 0x8001_7085;
const PPWDATA: u32 = 0x4001_7086;
const PPDATADIR: u32 = 0x4004_7090;
const PPCLRIRQ: u32 = 0x8004_7093;

/// Control bit that makes the data lines inputs.
const DATA_ARE_INPUTS: u8 = 1 << 5;

/// Control bit that enables the interrupt at a rise of nACK.
const INTERRUPTS: u8 = 1 << 4;

/// The mounted files; dropping it unmounts them.
#[derive(Debug)]
pub struct Parports {
    watcher: Watcher,
    folder: DeviceFolder,
}

impl Parports {
    /// Mounts the files `parport0`, `parport1` and so on over a temporary folder.
    ///
    /// The mount needs /dev/fuse and the right to mount:
    /// root, or root in a new user and mount namespace.
    pub fn mount(ports: Vec<ParallelPort>) -> io::Result<Self> {
        let names = DeviceFiles {
            prefix: "parport",
            count: ports.len(),
        };
        let files = Files {
            names,
            lines: Arc::new(Lines::new(State::new(ports))),
        };
        let lines = files.lines.clone();
        let folder = DeviceFolder::mount(files, names)?;
        Ok(Self {
            watcher: Watcher::of(lines),
            folder,
        })
    }

    /// Returns the number of times that programs have waited in `poll` for an interrupt.
    pub fn sleeps(&self) -> u64 {
        self.watcher.sleeps()
    }

    /// Returns the folder with the files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a port's file.
    pub fn path(&self, port: usize) -> PathBuf {
        self.folder.file(port)
    }
}

struct Files {
    names: DeviceFiles,
    lines: Arc<Lines>,
}

struct State {
    ports: Vec<ParallelPort>,
    opened: HashMap<FileHandle, Opened>,
    next: u64,
    /// The level of each port's nACK at the last poll.
    acks: Vec<bool>,
    /// The files on which a process waits in `poll`, with the handles that wake the process.
    sleepers: HashMap<FileHandle, PollNotifier>,
}

/// An open file of a port.
#[derive(Debug, Clone, Copy)]
struct Opened {
    port: usize,
    /// True if the file has requested exclusive access.
    exclusive: bool,
    /// True if the file has claimed the port at least once: it is registered until it is closed.
    registered: bool,
    claimed: bool,
    /// Number of interrupts since the count was last cleared.
    interrupts: u32,
}

/// The result of an ioctl: the byte that it stores in its argument, if any, or an error number.
type Answer = Result<Option<u8>, Errno>;

impl State {
    fn new(mut ports: Vec<ParallelPort>) -> Self {
        let acks = ports.iter_mut().map(interrupts::ack).collect();
        Self {
            ports,
            opened: HashMap::new(),
            next: 0,
            acks,
            sleepers: HashMap::new(),
        }
    }

    fn ioctl(&mut self, handle: FileHandle, code: u32, argument: &[u8]) -> Answer {
        let me = *self.opened.get(&handle).ok_or(Errno::EBADF)?;
        match code {
            PPEXCL => self.wish_to_be_alone(handle, me),
            PPCLAIM => self.claim(handle, me),
            _ if !me.claimed => Err(Errno::EPERM),
            PPRELEASE => {
                self.update(handle, |file| file.claimed = false);
                Ok(None)
            }
            PPRSTATUS => self.read(me, Register::Status),
            PPRCONTROL => self.read(me, Register::Control),
            PPRDATA => self.read(me, Register::Data),
            PPWDATA => self.write(me, Register::Data, byte(argument)?),
            PPWCONTROL => self.write(me, Register::Control, byte(argument)?),
            PPDATADIR => {
                let control = self.ports[me.port].read(Register::Control);
                let inputs = argument.iter().any(|&byte| byte != 0);
                let direction = if inputs { DATA_ARE_INPUTS } else { 0 };
                self.write(
                    me,
                    Register::Control,
                    control & !DATA_ARE_INPUTS | direction,
                )
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    fn wish_to_be_alone(&mut self, handle: FileHandle, me: Opened) -> Answer {
        if me.registered {
            return Err(Errno::EINVAL);
        }
        self.update(handle, |file| file.exclusive = true);
        Ok(None)
    }

    fn claim(&mut self, handle: FileHandle, me: Opened) -> Answer {
        if me.claimed {
            return Err(Errno::EINVAL);
        }
        let others = || {
            self.opened.iter().filter(|&(&other, file)| {
                other != handle && file.port == me.port && file.registered
            })
        };
        if !me.registered && others().any(|(_, other)| me.exclusive || other.exclusive) {
            return Err(Errno::ENXIO);
        }
        if others().any(|(_, other)| other.claimed) {
            return Err(Errno::EAGAIN);
        }
        self.update(handle, |file| {
            (file.registered, file.claimed) = (true, true);
        });
        let control = self.ports[me.port].read(Register::Control);
        self.write(me, Register::Control, control | INTERRUPTS)
    }

    fn update(&mut self, handle: FileHandle, change: impl FnOnce(&mut Opened)) {
        if let Some(file) = self.opened.get_mut(&handle) {
            change(file);
        }
    }

    fn read(&mut self, me: Opened, register: Register) -> Answer {
        Ok(Some(self.ports[me.port].read(register)))
    }

    fn write(&mut self, me: Opened, register: Register, value: u8) -> Answer {
        self.ports[me.port].write(register, value);
        Ok(None)
    }
}

fn byte(argument: &[u8]) -> Result<u8, Errno> {
    argument.first().copied().ok_or(Errno::EINVAL)
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, _: INodeNo, wanted: &OsStr, reply: ReplyEntry) {
        self.names.lookup(wanted, reply);
    }

    fn getattr(&self, _: &Request, file: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.names.getattr(file, reply);
    }

    fn open(&self, _: &Request, file: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let Some(port) = self.names.number(file) else {
            return reply.error(Errno::ENXIO);
        };
        let mut state = self.lines.state();
        let handle = FileHandle(state.next);
        state.next += 1;
        let opened = Opened {
            port,
            exclusive: false,
            registered: false,
            claimed: false,
            interrupts: 0,
        };
        state.opened.insert(handle, opened);
        reply.opened(handle, FopenFlags::FOPEN_DIRECT_IO);
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
        let mut state = self.lines.state();
        state.opened.remove(&handle);
        state.sleepers.remove(&handle);
        reply.ok();
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: IoctlFlags,
        code: u32,
        argument: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        let mut state = self.lines.state();
        state.sample(handle);
        if code == PPCLRIRQ {
            return match state.take_interrupts(handle) {
                Ok(count) => reply.ioctl(0, &count.to_ne_bytes()),
                Err(errno) => reply.error(errno),
            };
        }
        match state.ioctl(handle, code, argument) {
            Ok(byte) => reply.ioctl(0, byte.as_slice()),
            Err(errno) => reply.error(errno),
        }
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
        let mut state = self.lines.state();
        state.sample(handle);
        let file = state.opened.get(&handle);
        if file.is_some_and(|file| file.interrupts > 0) {
            return reply.poll(PollEvents::POLLIN | PollEvents::POLLRDNORM);
        }
        if flags.contains(PollFlags::FUSE_POLL_SCHEDULE_NOTIFY) {
            state.sleepers.insert(handle, notifier);
            self.lines.has_sleepers();
        }
        reply.poll(PollEvents::empty());
    }
}
