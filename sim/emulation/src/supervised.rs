//! GPIO chips for a command and for all processes that it starts, on any machine.
//!
//! A seccomp filter makes the kernel stop each ioctl of a GPIO chip and notify this process,
//! which answers it from the chip's state and in the memory of the caller (`SECCOMP_RET_USER_NOTIF` of seccomp(2)).
//! The other calls of these processes reach the kernel, so their reads and polls of a request's file are real:
//! the file is one end of a socket pair, which the supervisor adds to the caller's file descriptors (`SECCOMP_IOCTL_NOTIF_ADDFD`).
//!
//! 1. [`run`] starts a thread, which gets a `/dev` with the chips' empty files ([`machine`]) and then installs the filter.
//!    Processes that the thread starts inherit both; no other thread or process has them.
//! 2. The calling thread is the supervisor: it answers ioctls until the thread ends.
//!    It identifies a caller's file by device and inode, so files that are inherited or duplicated are recognised.
//! 3. An ioctl of this type on any other file continues in the kernel.
//!
//! A signal does not interrupt an ioctl that the supervisor is answering, unless it kills the caller (Linux 5.19 or later).
//! Before that version an interrupted ioctl is answered twice, and a request of lines can fail with EBUSY.
#![allow(unsafe_code)]

use crate::bpf::{ARCH, ARCHITECTURE, NUMBER, SECOND_ARGUMENT, TYPE_MASK};
use crate::bpf::{and, answer, equal, load};
use crate::gpio::chardev::{
    self, ChipInfo, FileIdentity, GET_CHIPINFO, GET_LINE, GET_LINEINFO, GET_VALUES, LineConfig,
    LineInfo, LineRequest, LineValues, Requests, SET_CONFIG, SET_VALUES,
};
use crate::gpio::{GpioChip, machine};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::mpsc;
use std::{fmt, io, panic, slice, thread};

/// How long the supervisor waits for an ioctl while a program waits for edges of a line, in ns.
/// After this time it polls the lines.
const OFTEN: i64 = 50_000;
/// How long the supervisor waits for an ioctl at any other time, in ns.
/// After this time it checks whether the command has ended.
const SELDOM: i64 = 5_000_000;

/// The reason why no chips can be emulated on this machine.
#[derive(Debug)]
pub enum Refused {
    /// The `/dev` with the chips could not be mounted.
    Mount(io::Error),
    /// The kernel refused to install the seccomp filter.
    Filter(io::Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount(e) => write!(
                f,
                "a /dev with the chips cannot be mounted: {e}; it needs root, or root in a new namespace (unshare -rm)"
            ),
            Self::Filter(e) => write!(
                f,
                "the ioctls of the chips cannot be supervised: {e}; it needs Linux 5.9 or later with seccomp"
            ),
        }
    }
}

impl std::error::Error for Refused {}

/// Runs `work` on a new thread. For this thread and the processes that it starts,
/// `/dev/gpiochip0`, `/dev/gpiochip1` and so on are these chips.
///
/// # Errors
///
/// The error describes what this machine does not permit; in this case `work` was not called.
pub fn run<T: Send>(chips: Vec<GpioChip>, work: impl FnOnce() -> T + Send) -> Result<T, Refused> {
    let count = chips.len();
    thread::scope(|scope| {
        let (installed, awaited) = mpsc::channel();
        let worker = scope.spawn(move || {
            let (listener, files) = enter(count)?;
            // The supervisor waits for this message or for the end of this thread.
            let _ = installed.send((listener, files));
            Ok(work())
        });
        if let Ok((listener, files)) = awaited.recv() {
            let chips = files.into_iter().zip(chips).map(|(file, chip)| Chip {
                file,
                chip,
                requests: Requests::default(),
            });
            let chips = chips.collect();
            Supervisor { listener, chips }.serve(|| worker.is_finished());
        }
        match worker.join() {
            Ok(done) => done,
            Err(panicked) => panic::resume_unwind(panicked),
        }
    })
}

/// Moves this thread to a `/dev` with `count` chips and installs the filter.
/// Returns the listener and the identities of the chips' files.
fn enter(count: usize) -> Result<(OwnedFd, Vec<FileIdentity>), Refused> {
    let mounted = || {
        let folder = tempfile::tempdir()?;
        let files = machine::enter_with_chips(folder.path(), count)?;
        let identities = files.iter().map(|file| Ok(FileIdentity::of(file)?));
        identities.collect::<io::Result<_>>()
    };
    let files = mounted().map_err(Refused::Mount)?;
    Ok((listener().map_err(Refused::Filter)?, files))
}

/// Installs the filter on this thread, and returns the listener of its notifications.
fn listener() -> io::Result<OwnedFd> {
    let mut program = [
        load(ARCH),
        equal(ARCHITECTURE, 0, 5),
        load(NUMBER),
        equal(libc::SYS_ioctl as u32, 0, 3),
        load(SECOND_ARGUMENT),
        and(TYPE_MASK),
        equal((chardev::TYPE as u32) << 8, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(libc::SECCOMP_RET_USER_NOTIF),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    let install = |flags: libc::c_ulong| {
        let flags = flags | libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        // SAFETY: the program outlives the call, which copies it, and the kernel validates it and the flags.
        unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &program,
            )
        }
    };
    let mut made = install(libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    if made < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        made = install(0);
    }
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call returned a new descriptor, which no other code owns.
    Ok(unsafe { OwnedFd::from_raw_fd(made as RawFd) })
}

/// A chip, the file that represents it, and the assignment of its lines.
struct Chip {
    file: FileIdentity,
    chip: GpioChip,
    requests: Requests,
}

struct Supervisor {
    listener: OwnedFd,
    chips: Vec<Chip>,
}

impl Supervisor {
    /// Answers ioctls until `over` returns true.
    fn serve(mut self, over: impl Fn() -> bool) {
        while !over() {
            let mut period = SELDOM;
            for Chip { chip, requests, .. } in &mut self.chips {
                if requests.tell_edges(chip) {
                    period = OFTEN;
                }
            }
            let limit = Timespec {
                tv_sec: 0,
                tv_nsec: period,
            };
            let mut wanted = [PollFd::new(&self.listener, PollFlags::IN)];
            let polled = poll(&mut wanted, Some(&limit));
            if polled.is_ok() && wanted[0].revents().contains(PollFlags::IN) {
                self.answer_next();
            }
        }
    }

    /// Receives a notification and answers it.
    fn answer_next(&mut self) {
        // SAFETY: all-zero is a valid `seccomp_notif`, and the kernel requires it.
        let mut call: libc::seccomp_notif = unsafe { mem::zeroed() };
        // If the caller has been killed since the poll, the call fails with ENOENT.
        if self
            .control(libc::SECCOMP_IOCTL_NOTIF_RECV, &mut call)
            .is_err()
        {
            return;
        }
        let (error, flags) = match self.answer(&call) {
            Ok(true) => (0, 0),
            Ok(false) => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Err(errno) => (-errno.raw_os_error(), 0),
        };
        let mut response = libc::seccomp_notif_resp {
            id: call.id,
            val: 0,
            error,
            flags,
        };
        // If the caller has been killed, the call fails with ENOENT, and no answer is needed.
        let _ = self.control(libc::SECCOMP_IOCTL_NOTIF_SEND, &mut response);
    }

    /// Issues an ioctl of the listener.
    fn control<T>(&self, code: libc::Ioctl, argument: &mut T) -> Result<RawFd, Errno> {
        // SAFETY: each code of this module is passed with the structure of <linux/seccomp.h> that it defines,
        // and the kernel uses the structure only during the call.
        let done = unsafe { libc::ioctl(self.listener.as_raw_fd(), code, argument as *mut T) };
        match done {
            0.. => Ok(done),
            _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        }
    }

    /// Answers an ioctl; returns false if its file is neither that of a chip nor that of a request.
    fn answer(&mut self, call: &libc::seccomp_notif) -> Result<bool, Errno> {
        let [file, code, address, ..] = call.data.args;
        let (file, code) = (file as RawFd, code as u32);
        let path = format!("/proc/{}/fd/{file}", call.pid);
        let about = rustix::fs::stat(&path).map_err(|_| Errno::BADF)?;
        let identity = FileIdentity {
            device: about.st_dev,
            inode: about.st_ino,
        };
        let caller = Caller::open(call.pid, address)?;
        // If this call succeeds, the process with this ID is still the caller,
        // so the opened memory is that of the caller.
        let mut id = call.id;
        self.control(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id)?;
        let chips = self.chips.iter();
        if let Some(index) = chips.clone().position(|chip| chip.file == identity) {
            self.on_chip(index, call.id, code, &caller)?;
            return Ok(true);
        }
        let mut chips = self.chips.iter_mut();
        match chips.find_map(|chip| chip.requests.has(identity).then_some(chip)) {
            Some(chip) => chip.on_request(identity, code, &caller).map(|()| true),
            None => Ok(false),
        }
    }

    fn on_chip(&mut self, index: usize, id: u64, code: u32, caller: &Caller) -> Result<(), Errno> {
        let Chip { chip, requests, .. } = &mut self.chips[index];
        match code {
            GET_CHIPINFO => caller.write(&requests.chip_info()),
            GET_LINEINFO => {
                let mut info: LineInfo = caller.read()?;
                requests.line_info(chip, &mut info)?;
                caller.write(&info)
            }
            GET_LINE => {
                let mut request: LineRequest = caller.read()?;
                let ours = requests.request(chip, &request)?;
                let mut added = libc::seccomp_notif_addfd {
                    id,
                    flags: 0,
                    srcfd: ours.as_raw_fd() as u32,
                    newfd: 0,
                    newfd_flags: libc::O_CLOEXEC as u32,
                };
                // If the caller cannot get a descriptor, the error drops `ours`, which ends the request.
                request.set_file(self.control(libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut added)?);
                caller.write(&request)
            }
            _ => Err(Errno::INVAL),
        }
    }
}

impl Chip {
    fn on_request(&mut self, file: FileIdentity, code: u32, caller: &Caller) -> Result<(), Errno> {
        let Self { chip, requests, .. } = self;
        match code {
            SET_CONFIG => requests.configure(chip, file, &caller.read::<LineConfig>()?),
            GET_VALUES => {
                let mut values: LineValues = caller.read()?;
                requests.get(chip, file, &mut values)?;
                caller.write(&values)
            }
            SET_VALUES => requests.set(chip, file, &caller.read::<LineValues>()?),
            _ => Err(Errno::INVAL),
        }
    }
}

/// A structure of the kernel's interface that is copied byte by byte.
///
/// # Safety
///
/// Every sequence of bytes is a value of the type, and no byte of a value is padding.
unsafe trait Structure: Sized {}

// SAFETY: the structure consists of arrays of bytes and one number, 68 bytes in total.
unsafe impl Structure for ChipInfo {}
// SAFETY: the `repr(C)` structure consists of bytes and numbers and declares its padding
// as fields, 256 bytes in total.
unsafe impl Structure for LineInfo {}
// SAFETY: as for `LineInfo`, 592 bytes in total.
unsafe impl Structure for LineRequest {}
// SAFETY: as for `LineInfo`, 272 bytes in total.
unsafe impl Structure for LineConfig {}
// SAFETY: the structure consists of two numbers of 64 bits.
unsafe impl Structure for LineValues {}

/// The memory of a caller, and the address of the ioctl's structure in it.
struct Caller {
    memory: File,
    address: u64,
}

impl Caller {
    fn open(pid: u32, address: u64) -> Result<Self, Errno> {
        let path = format!("/proc/{pid}/mem");
        let opened = File::options().read(true).write(true).open(path);
        let memory = opened.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        Ok(Self { memory, address })
    }

    fn read<T: Structure>(&self) -> Result<T, Errno> {
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: the bytes are those of `value`, all initialised to 0 and borrowed by no other code.
        let bytes =
            unsafe { slice::from_raw_parts_mut(value.as_mut_ptr().cast::<u8>(), size_of::<T>()) };
        let read = self.memory.read_exact_at(bytes, self.address);
        read.map_err(|_| Errno::FAULT)?;
        // SAFETY: by the trait's contract, every sequence of bytes is a value.
        Ok(unsafe { value.assume_init() })
    }

    fn write<T: Structure>(&self, value: &T) -> Result<(), Errno> {
        // SAFETY: the bytes are those of `value`; by the trait's contract, none is padding.
        let bytes =
            unsafe { slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) };
        let written = self.memory.write_all_at(bytes, self.address);
        written.map_err(|_| Errno::FAULT)
    }
}
