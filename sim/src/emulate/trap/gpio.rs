//! The GPIO chip of this process: its ioctls, and the accesses to its registers.
//!
//! A process has one chip. Its registers are wherever the process has mapped a file `gpiomem` that has no pages.

use crate::emulate::gpio::GpioChip;
use crate::emulate::gpio::chardev::{
    GET_CHIPINFO, GET_LINE, GET_LINEINFO, GET_VALUES, Requests, SET_CONFIG, SET_VALUES,
};
use crate::emulate::gpio::registers::Registers;
use rustix::io::Errno;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const PAGE: usize = 4096;

struct Machine {
    chip: GpioChip,
    registers: Registers,
    requests: Requests,
}

static MACHINE: Mutex<Option<Machine>> = Mutex::new(None);
/// Held by the thread that has a chip plugged in.
static PLACE: Mutex<()> = Mutex::new(());
/// The page at which the registers were found last.
static FOUND: AtomicUsize = AtomicUsize::new(0);

/// Plugged in until dropped.
#[derive(Debug)]
pub struct PluggedChip {
    watcher: Option<JoinHandle<()>>,
    _place: MutexGuard<'static, ()>,
}

impl Drop for PluggedChip {
    fn drop(&mut self) {
        *machine() = None;
        if let Some(watcher) = self.watcher.take() {
            // A panic of the thread has been printed.
            let _ = watcher.join();
        }
    }
}

/// Looks at the lines whose users are told of edges, until the chip is taken away.
fn watch() {
    const OFTEN: Duration = Duration::from_micros(20);
    const SELDOM: Duration = Duration::from_millis(2);
    loop {
        let told = machine()
            .as_mut()
            .map(|m| m.requests.tell_edges(&mut m.chip));
        match told {
            None => return,
            Some(true) => thread::sleep(OFTEN),
            Some(false) => thread::sleep(SELDOM),
        }
    }
}

/// Gives this process its chip, once the one before has been taken away.
pub fn plug_chip(chip: GpioChip) -> PluggedChip {
    let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    *machine() = Some(Machine {
        chip,
        registers: Registers::default(),
        requests: Requests::default(),
    });
    PluggedChip {
        watcher: Some(thread::spawn(watch)),
        _place: place,
    }
}

/// Does something to the chip of this process, as a program that runs aside of the tested one would.
pub fn with_chip<T>(change: impl FnOnce(&mut GpioChip) -> T) -> Option<T> {
    machine().as_mut().map(|machine| change(&mut machine.chip))
}

fn machine() -> MutexGuard<'static, Option<Machine>> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers an ioctl of a GPIO chip with 0 or an error's number.
///
/// # Safety
///
/// As for the system call: `argument` points to what `code` says.
pub(super) unsafe fn ioctl(file: RawFd, code: u32, argument: i64) -> i32 {
    let mut machine = machine();
    let Some(Machine { chip, requests, .. }) = machine.as_mut() else {
        return libc::ENODEV;
    };
    // SAFETY: the caller's promise, for each structure; the program waits for us as it would for the kernel.
    let done = unsafe {
        match code {
            GET_CHIPINFO => {
                *structure(argument) = requests.chip_info();
                Ok(())
            }
            GET_LINEINFO => requests.line_info(chip, structure(argument)),
            GET_LINE => requests.request(chip, structure(argument)),
            SET_CONFIG => requests.configure(chip, file, structure(argument)),
            GET_VALUES => requests.get(chip, file, structure(argument)),
            SET_VALUES => requests.set(chip, file, structure(argument)),
            _ => Err(Errno::INVAL),
        }
    };
    done.map_or_else(Errno::raw_os_error, |()| 0)
}

/// # Safety
///
/// `at` is the address of a `T` that no other code uses meanwhile.
unsafe fn structure<'a, T>(at: i64) -> &'a mut T {
    // SAFETY: the caller's promise.
    unsafe { &mut *(at as *mut T) }
}

/// The offset of a register, if this address is one's.
pub(super) fn register_at(address: usize) -> Option<u32> {
    let (page, offset) = (address & !(PAGE - 1), address & (PAGE - 1));
    if FOUND.load(Ordering::Relaxed) != page {
        if !is_mapped_at(page) {
            return None;
        }
        FOUND.store(page, Ordering::Relaxed);
    }
    Some(offset as u32)
}

/// Whether the kernel says that a file `gpiomem` is mapped there.
fn is_mapped_at(page: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let begin = format!("{page:x}-");
    maps.lines()
        .any(|line| line.starts_with(&begin) && line.ends_with("/gpiomem"))
}

/// Reads a register; without a chip the bus floats.
pub(super) fn read(offset: u32) -> u32 {
    machine().as_mut().map_or(u32::MAX, |machine| {
        machine.registers.read(&mut machine.chip, offset)
    })
}

/// Writes a register.
pub(super) fn write(offset: u32, value: u32) {
    if let Some(machine) = machine().as_mut() {
        machine.registers.write(&mut machine.chip, offset, value);
    }
}
