//! Mapping of another process's memory through the kernel module XPMEM (`/dev/xpmem`).
//!
//! A process exports its whole address space under a name.
//! Any process of the same user that knows the name may map parts of it,
//! and each access reaches the memory that the owner has mapped there at that time.
//!
//! Guarantee: a refusal is an error, and no mapping remains
//! when a [`Permit`] and its [`Attachment`]s are dropped or the process ends.
//!
//! Properties of the kernel module that callers must consider:
//! * A load or store faults (`SIGBUS`) at addresses where the owner has no writable
//!   memory, and after the owner has ended.
//!   With [`is_mappable`] an owner can check beforehand that a range is memory that never faults.
//! * Mapped memory can be loaded and stored.
//!   It cannot be passed to XPMEM, or to the kernel's copies between processes.
//! * A child of `fork` does not inherit the mapping.
//!   Every page that was accessed is pinned until the mapping is detached.
//! * The module has one state per process, not per descriptor:
//!   when a process closes one descriptor of the device, all of its mappings disappear.
//!   So a process opens the device one time and never closes it.

#![allow(unsafe_code)]

use crate::mem::PAGE;
use std::ffi::{c_int, c_long};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::OnceLock;

const PATH: &str = "/dev/xpmem";

/// The reason why memory cannot be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XpmemError {
    /// The device does not exist.
    Absent,
    /// This user or this container has no permission to open the device.
    Forbidden,
    /// The module is too old: its names of address spaces have fewer than 64 bits.
    Old,
    /// The process that exported the memory has ended, or belongs to another user.
    Gone,
    /// The address space does not contain this range.
    BadRange,
    /// The kernel reported another error, with this `errno`.
    Refused(i32),
}

impl std::fmt::Display for XpmemError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            XpmemError::Absent => {
                write!(
                    f,
                    "there is no {PATH}: the kernel module XPMEM is not loaded"
                )
            }
            XpmemError::Forbidden => write!(f, "{PATH} may not be opened by this user"),
            XpmemError::Old => write!(f, "the kernel module XPMEM is older than version 2"),
            XpmemError::Gone => write!(f, "the other process has ended or is another user's"),
            XpmemError::BadRange => write!(f, "no process has memory in such a range"),
            XpmemError::Refused(number) => {
                let why = std::io::Error::from_raw_os_error(*number);
                write!(f, "{PATH} refuses it: {why}")
            }
        }
    }
}

impl std::error::Error for XpmemError {}

/// The name by which other processes on this machine map a process's address space.
pub type Name = NonZeroU64;

/// The open device, and the name of this process's address space.
#[derive(Debug)]
pub struct Device {
    file: File,
    name: Name,
}

/// Returns this process's device, which the first call opens.
/// From then on the kernel notifies the module of every range that this process unmaps.
pub fn device() -> Result<&'static Device, XpmemError> {
    static DEVICE: OnceLock<Result<Device, XpmemError>> = OnceLock::new();
    let opened = DEVICE.get_or_init(Device::open);
    opened.as_ref().map_err(|why| *why)
}

/// The commands of the device and their argument types, from `xpmem.h`.
mod command {
    use std::ffi::c_int;

    pub const VERSION: u32 = 0;
    pub const MAKE: u32 = 1;
    pub const GET: u32 = 3;
    pub const RELEASE: u32 = 4;
    pub const ATTACH: u32 = 5;
    pub const DETACH: u32 = 6;

    /// The only type of permission: an octal mode like that of a file.
    pub const PERMIT_MODE: c_int = 1;
    pub const READ_WRITE: c_int = 2;

    #[repr(C)]
    pub struct Make {
        pub address: u64,
        pub size: usize,
        pub permit_type: c_int,
        pub mode: u64,
        pub name: i64,
    }

    #[repr(C)]
    pub struct Get {
        pub name: i64,
        pub flags: c_int,
        pub permit_type: c_int,
        pub nothing: u64,
        pub permit: i64,
    }

    #[repr(C)]
    pub struct Release {
        pub permit: i64,
    }

    #[repr(C)]
    pub struct Attach {
        pub permit: i64,
        pub offset: i64,
        pub size: usize,
        pub address: u64,
        pub descriptor: c_int,
        pub flags: c_int,
    }

    #[repr(C)]
    pub struct Detach {
        pub address: u64,
    }
}

/// The version of the first module with 64-bit names (2.0):
/// the major number, shifted left by the 16 bits of the minor number.
const OLDEST: c_int = 2 << 16;

impl Device {
    fn open() -> Result<Device, XpmemError> {
        let file = File::options().read(true).write(true).open(PATH);
        let file = file.map_err(|why| match why.kind() {
            ErrorKind::NotFound => XpmemError::Absent,
            ErrorKind::PermissionDenied => XpmemError::Forbidden,
            // These errors mean that the device file exists but the module is not loaded.
            _ if matches!(why.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) => {
                XpmemError::Absent
            }
            _ => XpmemError::Refused(why.raw_os_error().unwrap_or(libc::EIO)),
        })?;
        let mut make = command::Make {
            address: 0,
            // The size covers the whole address space.
            size: usize::MAX,
            permit_type: command::PERMIT_MODE,
            mode: 0o600,
            name: 0,
        };
        // SAFETY: the command takes no argument.
        let version = unsafe { ioctl(&file, command::VERSION, std::ptr::null_mut::<u8>()) }?;
        if version < OLDEST {
            return Err(XpmemError::Old);
        }
        // SAFETY: `make` is this command's argument type; the command exports memory for others to map, and accesses none.
        unsafe { ioctl(&file, command::MAKE, &raw mut make) }?;
        let name = u64::try_from(make.name).ok().and_then(Name::new);
        let name = name.ok_or(XpmemError::Refused(libc::EIO))?;
        Ok(Device { file, name })
    }

    /// Returns the name of this process's address space.
    pub fn name(&self) -> Name {
        self.name
    }

    /// Requests permission to map memory of the process with this name, which may be this one.
    pub fn permit(&'static self, name: Name) -> Result<Permit, XpmemError> {
        let mut get = command::Get {
            name: i64::try_from(name.get()).map_err(|_| XpmemError::Gone)?,
            flags: command::READ_WRITE,
            permit_type: command::PERMIT_MODE,
            nothing: 0,
            permit: 0,
        };
        // SAFETY: `get` is this command's argument type, and is valid during the call.
        unsafe { ioctl(&self.file, command::GET, &raw mut get) }?;
        Ok(Permit(Rc::new(Leave {
            device: self,
            number: get.permit,
        })))
    }
}

/// # Safety
/// `argument` points to the command's argument type, and the effect of the command is sound.
unsafe fn ioctl<T>(file: &File, command: u32, argument: *mut T) -> Result<c_int, XpmemError> {
    // All commands have the code `_IO('x', n)`, independent of their arguments.
    let request = libc::_IO(u32::from(b'x'), command);
    // SAFETY: the descriptor is open, and by this function's contract the argument and the command's effect are sound.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), request, argument) };
    match answer {
        -1 => Err(match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOENT | libc::EACCES) => XpmemError::Gone,
            Some(number) => XpmemError::Refused(number),
            None => XpmemError::Refused(libc::EIO),
        }),
        answer => Ok(answer),
    }
}

/// The permission to map memory of one process.
/// The permit is released when it and everything mapped with it have been dropped.
#[derive(Clone, Debug)]
pub struct Permit(Rc<Leave>);

#[derive(Debug)]
struct Leave {
    device: &'static Device,
    number: i64,
}

impl Drop for Leave {
    fn drop(&mut self) {
        let mut release = command::Release {
            permit: self.number,
        };
        // SAFETY: `release` is this command's argument type.
        // Nothing is mapped with this permit, because every attachment holds a reference to it.
        // The command fails if the permit has already been released, as in a child of `fork`.
        let _ = unsafe { ioctl(&self.device.file, command::RELEASE, &raw mut release) };
    }
}

impl Permit {
    /// Maps the pages that contain `range` of the other process, without accessing them.
    pub fn attach(&self, range: Range<u64>) -> Result<Attachment, XpmemError> {
        let page = PAGE as u64;
        let pages = |range: Range<u64>| {
            if range.is_empty() {
                return None;
            }
            let from = range.start / page * page;
            let to = range.end.checked_next_multiple_of(page)?;
            let len = to.checked_sub(from).filter(|len| *len > 0)?;
            let (offset, size) = (i64::try_from(from).ok()?, usize::try_from(len).ok()?);
            Some((from..to, offset, size))
        };
        let (pages, offset, size) = pages(range).ok_or(XpmemError::BadRange)?;
        let mut attach = command::Attach {
            permit: self.0.number,
            // The exported address space begins at address 0.
            offset,
            size,
            address: 0,
            descriptor: 0,
            flags: 0,
        };
        // SAFETY: `attach` is this command's argument type. With address 0 the kernel chooses a free range.
        let attached = unsafe { ioctl(&self.0.device.file, command::ATTACH, &raw mut attach) };
        attached.map_err(|why| match why {
            XpmemError::Refused(libc::EINVAL) => XpmemError::BadRange,
            why => why,
        })?;
        Ok(Attachment {
            start: attach.address as usize,
            pages,
            permit: self.0.clone(),
        })
    }
}

/// Pages of another process that stay mapped into this process until this value is dropped.
#[derive(Debug)]
pub struct Attachment {
    start: usize,
    /// The pages' addresses in the owner's address space.
    pages: Range<u64>,
    permit: Rc<Leave>,
}

impl Attachment {
    /// Returns the address in this process of the owner's `range`; `None` if it is not mapped.
    /// The address is valid for loads and stores until this value is dropped.
    pub fn at(&self, range: &Range<u64>) -> Option<*mut u8> {
        let inside = range.start <= range.end
            && range.start >= self.pages.start
            && range.end <= self.pages.end;
        let offset = range.start.wrapping_sub(self.pages.start) as usize;
        inside.then(|| std::ptr::with_exposed_provenance_mut(self.start + offset))
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut detach = command::Detach {
            address: self.start as u64,
        };
        // SAFETY: `detach` is this command's argument type.
        // The command removes the mapping that `attach` made,
        // and by the contract of `at` no pointer into it is used any more.
        // Only this command may remove the mapping: otherwise the kernel ends the process.
        let _ = unsafe { ioctl(&self.permit.device.file, command::DETACH, &raw mut detach) };
    }
}

/// Returns true if other processes can map this whole range and access it without a fault.
/// Such a range is private and writable memory, without a device behind it.
///
/// Files and shared memory are not mappable:
/// a load of a missing page would end the process that executes the load.
pub fn is_mappable(range: Range<u64>) -> bool {
    let Ok(maps) = File::open("/proc/self/maps") else {
        return false;
    };
    let lines = BufReader::new(maps).lines();
    covers(lines.map_while(Result::ok), range)
}

/// As [`is_mappable`], for the lines of `/proc/PID/maps`, which are sorted by address.
fn covers(lines: impl Iterator<Item = String>, range: Range<u64>) -> bool {
    let mut next = range.start;
    for line in lines {
        let Some(area) = Area::of(&line) else {
            return false;
        };
        if area.range.end <= next {
            continue;
        }
        if area.range.start > next || !area.is_plain {
            return false;
        }
        next = area.range.end;
        if next >= range.end {
            return true;
        }
    }
    range.is_empty()
}

/// One line of a maps file: `start-end permissions offset device inode path`.
struct Area {
    range: Range<u64>,
    is_plain: bool,
}

impl Area {
    fn of(line: &str) -> Option<Area> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let address = |text| u64::from_str_radix(text, 16).ok();
        let may = words.next()?;
        let path = words.nth(3).unwrap_or_default();
        Some(Area {
            range: address(start)?..address(end)?,
            is_plain: may.starts_with("rw") && may.ends_with('p') && !path.starts_with("/dev/"),
        })
    }
}

/// The sizes of the types in the kernel's header, so that a mismatch is detected.
const _: () = assert!(size_of::<command::Make>() == 5 * size_of::<c_long>());
const _: () = assert!(size_of::<command::Attach>() == 5 * size_of::<c_long>());

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Returns the device, locked so that one test at a time uses it.
    /// Without the device, prints the reason and returns `None`.
    fn here() -> Option<(&'static Device, MutexGuard<'static, ()>)> {
        static ONE: Mutex<()> = Mutex::new(());
        match device() {
            Ok(device) => Some((device, ONE.lock().unwrap_or_else(PoisonError::into_inner))),
            Err(why) => {
                eprintln!("not run: {why}");
                None
            }
        }
    }

    #[test]
    fn a_machine_without_the_device_says_so() {
        match (std::path::Path::new(PATH).exists(), device()) {
            (false, opened) => {
                let why = opened.unwrap_err();
                assert_eq!(why, XpmemError::Absent);
                assert!(why.to_string().contains("/dev/xpmem"), "{why}");
            }
            (true, opened) => assert_ne!(opened.err(), Some(XpmemError::Absent)),
        }
    }

    #[test]
    fn what_is_mapped_is_the_same_memory() {
        let Some((device, _alone)) = here() else {
            return;
        };
        let words: Vec<AtomicU64> = (0..3000).map(AtomicU64::new).collect();
        let start = words.as_ptr().expose_provenance() as u64;
        let range = start + 8..start + 8 * 2900;
        let attached = device
            .permit(device.name())
            .and_then(|permit| permit.attach(range.clone()));
        let attached = attached.expect("our own memory");
        let at = attached.at(&range).expect("what was asked for");
        assert_ne!(at.addr() as u64, range.start);
        assert_eq!(at.addr() % PAGE, range.start as usize % PAGE);
        let word = |i: usize| {
            // SAFETY: the word is inside the range, aligned,
            // and mapped as long as `attached` lives.
            unsafe { AtomicU64::from_ptr(at.cast::<u64>().add(i)) }
        };
        assert_eq!(word(0).load(Ordering::Relaxed), 1);
        assert_eq!(word(2800).fetch_add(5, Ordering::Relaxed), 2801);
        assert_eq!(words[2801].load(Ordering::Relaxed), 2806);
        words[7].store(99, Ordering::Relaxed);
        assert_eq!(word(6).load(Ordering::Relaxed), 99);
        assert_eq!(attached.at(&(start..start + 4 * 8 * 3000)), None);
    }

    #[test]
    fn nothing_stays_mapped() {
        let Some((device, _alone)) = here() else {
            return;
        };
        let data = vec![1_u8; 10 * PAGE];
        let start = data.as_ptr().expose_provenance() as u64;
        let at = {
            let permit = device.permit(device.name()).expect("leave");
            let attached = permit
                .attach(start..start + data.len() as u64)
                .expect("pages");
            attached
                .at(&(start..start + 1))
                .expect("one of them")
                .addr() as u64
        };
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let has = |line: &str| {
            Area::of(line).is_some_and(|area| area.range.contains(&at) && line.contains("rw-s"))
        };
        assert!(!maps.lines().any(has));
    }

    #[test]
    fn malformed_requests_are_refused() {
        let Some((device, _alone)) = here() else {
            return;
        };
        let strange = Name::new(1 << 40 | 3).expect("a number");
        assert_eq!(device.permit(strange).err(), Some(XpmemError::Gone));
        let permit = device.permit(device.name()).expect("leave");
        for range in [u64::MAX - 5..u64::MAX, 1 << 62..(1 << 62) + 8, 8..8] {
            assert!(permit.attach(range.clone()).is_err(), "{range:?}");
        }
    }

    #[test]
    fn private_memory_is_mappable_and_nothing_else() {
        let heap = vec![0_u8; 3 * PAGE];
        let at = heap.as_ptr().expose_provenance() as u64;
        assert!(is_mappable(at..at + heap.len() as u64));
        let constant: &'static str = "read only";
        let text = constant.as_ptr().expose_provenance() as u64;
        assert!(!is_mappable(text..text + 1));
        assert!(!is_mappable(at..at + (1 << 47)));
        assert!(!is_mappable(8..16));
    }

    #[test]
    fn a_range_is_covered_without_holes() {
        let maps = "\
1000-3000 rw-p 00000000 00:00 0          [heap]
3000-4000 rw-p 00000000 fe:00 77         /lib/some library.so
5000-6000 rw-p 00000000 00:00 0
6000-7000 r--p 00000000 00:00 0
7000-8000 rw-s 00000000 00:01 9          /memfd:node (deleted)
8000-9000 rw-p 00000000 00:05 4          /dev/nvidia0
9000-a000 rw-p 00000000 00:00 0          [stack]
";
        let covers = |range| super::covers(maps.lines().map(str::to_owned), range);
        assert!(covers(0x1000..0x4000));
        assert!(covers(0x2fff..0x3001));
        assert!(covers(0x9fff..0xa000));
        assert!(!covers(0x3fff..0x5001));
        for at in [0x0fff, 0x6000, 0x7000, 0x8000, 0xa000] {
            assert!(!covers(at..at + 1), "{at:x}");
        }
    }
}
