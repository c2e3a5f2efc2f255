//! Drivers of the two nRF51 devices that the node uses, a serial line and a timer.
//!
//! Names and addresses are those of the chip's reference manual.
//! The chip has one core and no interrupt is enabled, so no other code accesses the devices.

use core::ptr::{read_volatile, write_volatile};
use core::time::Duration;

const UART: usize = 0x4000_2000;
const TIMER: usize = 0x4000_8000;

const UART_STARTRX: usize = UART;
const UART_STARTTX: usize = UART + 0x008;
const UART_RXDRDY: usize = UART + 0x108;
const UART_TXDRDY: usize = UART + 0x11c;
const UART_ENABLE: usize = UART + 0x500;
const UART_PSELTXD: usize = UART + 0x50c;
const UART_PSELRXD: usize = UART + 0x514;
const UART_RXD: usize = UART + 0x518;
const UART_TXD: usize = UART + 0x51c;
const UART_BAUDRATE: usize = UART + 0x524;

const TIMER_START: usize = TIMER;
const TIMER_CAPTURE: usize = TIMER + 0x040;
const TIMER_BITMODE: usize = TIMER + 0x508;
const TIMER_PRESCALER: usize = TIMER + 0x510;
const TIMER_CC: usize = TIMER + 0x540;

fn write(register: usize, value: u32) {
    // SAFETY: all callers pass one of the device registers above, which are aligned words and not part of Rust's memory.
    unsafe { write_volatile(register as *mut u32, value) }
}

fn read(register: usize) -> u32 {
    // SAFETY: all callers pass one of the device registers above, which are aligned words and not part of Rust's memory.
    unsafe { read_volatile(register as *const u32) }
}

/// Starts both devices: the serial line of a micro:bit's USB at 115200 baud,
/// and a timer in microseconds.
pub fn start() {
    write(UART_PSELTXD, 24);
    write(UART_PSELRXD, 25);
    write(UART_BAUDRATE, 0x01d7_e000);
    write(UART_ENABLE, 4);
    write(UART_STARTTX, 1);
    write(UART_STARTRX, 1);
    // A 32-bit timer that counts at 16 MHz / 2^4 = 1 MHz.
    write(TIMER_BITMODE, 3);
    write(TIMER_PRESCALER, 4);
    write(TIMER_START, 1);
}

/// Sends a byte and waits until it has been transmitted.
pub fn send(byte: u8) {
    write(UART_TXDRDY, 0);
    write(UART_TXD, u32::from(byte));
    while read(UART_TXDRDY) == 0 {}
}

/// Returns the oldest received byte; `None` if no byte is waiting.
pub fn receive() -> Option<u8> {
    if read(UART_RXDRDY) == 0 {
        return None;
    }
    write(UART_RXDRDY, 0);
    Some(read(UART_RXD) as u8)
}

/// Returns the time since [`start`]. It wraps around after 71 minutes, but the node runs for a shorter time.
pub fn now() -> Duration {
    write(TIMER_CAPTURE, 1);
    Duration::from_micros(u64::from(read(TIMER_CC)))
}
