//! The GPIO chip of this process: emulates its ioctls and the accesses to its registers.
//!
//! A process has one chip, and its registers are at each address to which the process has mapped an
//! empty file `gpiomem`.

use crate::gpio::GpioChip;
use crate::gpio::chardev::{
    FileIdentity, GET_CHIPINFO, GET_LINE, GET_LINEINFO, GET_VALUES, LineRequest, Requests,
    SET_CONFIG, SET_VALUES,
};
use crate::gpio::registers::Registers;
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
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
/// Locked while a chip is installed, so that the process has one chip at a time.
static PLACE: Mutex<()> = Mutex::new(());
/// Address of the page at which the registers were last found.
static FOUND: AtomicUsize = AtomicUsize::new(0);

/// The installed chip; dropping it removes the chip.
#[derive(Debug)]
pub struct PluggedChip {
    watcher: Option<JoinHandle<()>>,
    _place: MutexGuard<'static, ()>,
}

impl Drop for PluggedChip {
    fn drop(&mut self) {
        *machine() = None;
        if let Some(watcher) = self.watcher.take() {
            // The thread's panic message has been printed.
            let _ = watcher.join();
        }
    }
}

/// Polls the lines with edge detection, until the chip is removed.
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

/// Installs this process's chip; first waits until the previous chip is removed.
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

/// Calls `change` with this process's chip, to change it as another program on the machine would.
pub fn with_chip<T>(change: impl FnOnce(&mut GpioChip) -> T) -> Option<T> {
    machine().as_mut().map(|machine| change(&mut machine.chip))
}

fn machine() -> MutexGuard<'static, Option<Machine>> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers an ioctl of a GPIO chip with 0 or an error number.
///
/// # Safety
///
/// The contract of the system call: `argument` points to the structure that `code` defines.
pub(super) unsafe fn ioctl(file: RawFd, code: u32, argument: i64) -> i32 {
    let mut machine = machine();
    let Some(Machine { chip, requests, .. }) = machine.as_mut() else {
        return libc::ENODEV;
    };
    // SAFETY: by this function's contract, `argument` points to the structure of `code`.
    // The program waits for the handler as it would for the kernel, so its file stays open;
    // the kernel refuses a closed descriptor with EBADF.
    let done = unsafe {
        let identity = || FileIdentity::of(BorrowedFd::borrow_raw(file));
        match code {
            GET_CHIPINFO => {
                *structure(argument) = requests.chip_info();
                Ok(())
            }
            GET_LINEINFO => requests.line_info(chip, structure(argument)),
            GET_LINE => {
                let request: &mut LineRequest = structure(argument);
                let made = requests.request(chip, request);
                made.map(|file| request.set_file(file.into_raw_fd()))
            }
            SET_CONFIG => {
                identity().and_then(|file| requests.configure(chip, file, structure(argument)))
            }
            GET_VALUES => identity().and_then(|file| requests.get(chip, file, structure(argument))),
            SET_VALUES => identity().and_then(|file| requests.set(chip, file, structure(argument))),
            _ => Err(Errno::INVAL),
        }
    };
    done.map_or_else(Errno::raw_os_error, |()| 0)
}

/// # Safety
///
/// `at` is the address of a `T` that no other code uses during `'a`.
unsafe fn structure<'a, T>(at: i64) -> &'a mut T {
    // SAFETY: by this function's contract, `at` is the address of a `T` that no other code uses
    // during `'a`.
    unsafe { &mut *(at as *mut T) }
}

/// Returns the offset of the GPIO register at this address; `None` if there is none.
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

/// Returns true if the kernel reports a file `gpiomem` mapped at this page.
fn is_mapped_at(page: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let begin = format!("{page:x}-");
    maps.lines()
        .any(|line| line.starts_with(&begin) && line.ends_with("/gpiomem"))
}

/// Reads a GPIO register; without a chip, returns ones, as a floating bus does.
pub(super) fn read(offset: u32) -> u32 {
    machine().as_mut().map_or(u32::MAX, |machine| {
        machine.registers.read(&mut machine.chip, offset)
    })
}

/// Writes a GPIO register; without a chip, does nothing.
pub(super) fn write(offset: u32, value: u32) {
    if let Some(machine) = machine().as_mut() {
        machine.registers.write(&mut machine.chip, offset, value);
    }
}
