//! Emulation of `ioperm`, `in` and `out` with the installed parallel ports.

use super::Rights;
use crate::parallel::{ParallelPort, Register};
use core::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

/// An installed port; dropping it removes the port.
#[derive(Debug)]
pub struct Plugged {
    base: u16,
}

impl Drop for Plugged {
    fn drop(&mut self) {
        ports_mut(|ports| ports.remove(&self.base));
    }
}

/// An installed port, which the signal handlers of all threads access.
type Shared = Arc<Mutex<ParallelPort>>;

static PORTS: LazyLock<RwLock<HashMap<u16, Shared>>> = LazyLock::new(RwLock::default);

thread_local! {
    /// The error number that `ioperm` returns on this thread; 0 for success.
    static ANSWER: Cell<i32> = const { Cell::new(0) };
    /// The I/O ports that this thread may use: the first port, and their number.
    static PERMITTED: Cell<(u16, u16)> = const { Cell::new((0, 0)) };
}

/// Installs a port at the I/O address `base`, or replaces the port there.
pub fn plug(base: u16, port: ParallelPort) -> Plugged {
    let port = Arc::new(Mutex::new(port));
    ports_mut(|ports| ports.insert(base, port));
    Plugged { base }
}

/// Sets the result of `ioperm` on this thread.
pub(super) fn answer(rights: Rights) {
    // The table is initialised here, because the signal handler must not initialise it.
    LazyLock::force(&PORTS);
    ANSWER.set(match rights {
        Rights::Granted => 0,
        Rights::Refused(errno) => errno.raw_os_error(),
    });
}

fn ports_mut<T>(change: impl FnOnce(&mut HashMap<u16, Shared>) -> T) -> T {
    change(&mut PORTS.write().unwrap_or_else(PoisonError::into_inner))
}

/// Answers `ioperm(from, count, on)` with 0 or an error number.
pub(super) fn ioperm(from: i64, count: i64, on: i64) -> i32 {
    match (ANSWER.get(), u16::try_from(from), u16::try_from(count)) {
        (0, Ok(from), Ok(count)) if from.checked_add(count).is_some() => {
            PERMITTED.set(if on != 0 { (from, count) } else { (0, 0) });
            0
        }
        (0, _, _) => libc::EINVAL,
        (refusal, _, _) => refusal,
    }
}

/// Executes `in` or `out` of one byte with the port in DX and the value in AL,
/// as the driver uses them.
///
/// Returns the new RAX, or `None` for other instructions and for ports without permission.
pub(super) fn execute(opcode: u8, port: u16, rax: i64) -> Option<i64> {
    match opcode {
        0xec if permits(port) => Some(rax & !0xff | i64::from(input(port))),
        0xee if permits(port) => {
            output(port, rax as u8);
            Some(rax)
        }
        _ => None,
    }
}

fn permits(port: u16) -> bool {
    let (first, count) = PERMITTED.get();
    port.checked_sub(first)
        .is_some_and(|distance| distance < count)
}

fn input(port: u16) -> u8 {
    const FLOATING: u8 = 0xff;
    at(port, |device, register| device.read(register)).unwrap_or(FLOATING)
}

fn output(port: u16, value: u8) {
    at(port, |device, register| device.write(register, value));
}

/// Calls `access` with the port and the register at this I/O address;
/// `None` if no port is installed there.
fn at<T>(port: u16, access: impl FnOnce(&mut ParallelPort, Register) -> T) -> Option<T> {
    let (device, register) = {
        let ports = PORTS.read().unwrap_or_else(PoisonError::into_inner);
        (0..).zip(Register::ALL).find_map(|(distance, register)| {
            let device = ports.get(&port.checked_sub(distance)?)?;
            Some((device.clone(), register))
        })?
    };
    let mut device = device.lock().unwrap_or_else(PoisonError::into_inner);
    Some(access(&mut device, register))
}
