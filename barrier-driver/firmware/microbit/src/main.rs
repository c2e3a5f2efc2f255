//! Firmware of a barrier node on the Cortex-M0 of a BBC micro:bit, for QEMU, which emulates this board but no Raspberry Pi Pico.
//!
//! The pins and the ring are bytes on the serial line, because QEMU cannot connect a wire to a pin:
//! the program at the other end of the line is the board with the barrier (`barrier-driver/tests/firmware.rs`).
//!
//! | from the node | means | from the board | means |
//! |---|---|---|---|
//! | 0x00, 0x01 | the wire goes low, high | 0x40, 0x41 | the barrier's wire is low, high |
//! | 0x02 | request for the level of the barrier's wire | | |
//! | 0x03 | a barrier was passed | | |
//! | 0x04 | the job is done, the wire at rest | | |
//! | 0x05 | the node has stopped; the error follows as text up to a newline | | |
//! | 0x80 and above | a byte of the ring, less 0x80 | 0x80 and above | a byte of the ring, less 0x80 |
//!
//! The first four bytes from the board are the number of this node,
//! the number of nodes, the number of barriers divided by 100, and the time limit
//! for the other nodes in tenths of a second, where 0 stands for a minute.

#![no_std]
#![no_main]

use core::cell::RefCell;
use core::convert::Infallible;
use core::fmt::{self, Write as _};
use core::time::Duration;
use cortex_m_rt::entry;
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use node::{Chip, Job};

mod nrf51;

const RING: u8 = 0x80;

/// The serial line, and a buffer of the ring bytes that were received while the node waited for an answer of the board.
struct Line {
    ring: [u8; 8],
    held: usize,
}

impl Line {
    /// Returns the next byte that is not a ring byte; ring bytes are kept in the buffer.
    fn answer(&mut self) -> u8 {
        loop {
            match nrf51::receive() {
                Some(byte) if byte >= RING => {
                    // If the buffer is full, the ring byte is dropped: its sender repeats it.
                    if let Some(place) = self.ring.get_mut(self.held) {
                        *place = byte - RING;
                        self.held += 1;
                    }
                }
                Some(byte) => return byte,
                None => (),
            }
        }
    }

    fn heard(&mut self) -> Option<u8> {
        if self.held > 0 {
            let first = self.ring[0];
            self.ring.copy_within(1.., 0);
            self.held -= 1;
            return Some(first);
        }
        // No answer is outstanding, so only ring bytes can arrive.
        nrf51::receive().map(|byte| byte & !RING)
    }
}

struct Out;
struct In<'a>(&'a RefCell<Line>);
struct Microbit<'a>(&'a RefCell<Line>);

impl ErrorType for Out {
    type Error = Infallible;
}

impl OutputPin for Out {
    fn set_low(&mut self) -> Result<(), Infallible> {
        nrf51::send(0);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        nrf51::send(1);
        Ok(())
    }
}

impl ErrorType for In<'_> {
    type Error = Infallible;
}

impl InputPin for In<'_> {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        nrf51::send(2);
        Ok(self.0.borrow_mut().answer() & 1 == 1)
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}

impl Chip for Microbit<'_> {
    fn now(&mut self) -> Duration {
        nrf51::now()
    }

    fn say(&mut self, byte: u8) {
        nrf51::send(RING | byte);
    }

    fn receive(&mut self) -> Option<u8> {
        self.0.borrow_mut().heard()
    }
}

/// Writes text to the serial line.
struct Text;

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(nrf51::send);
        Ok(())
    }
}

#[entry]
fn main() -> ! {
    nrf51::start();
    let mut line = Line {
        ring: [0; 8],
        held: 0,
    };
    let [me, nodes, hundreds, tenths] = [(); 4].map(|()| line.answer());
    let job = Job {
        me,
        nodes,
        barriers: Some(u32::from(hundreds) * 100),
        limit: match tenths {
            0 => Duration::from_secs(60),
            tenths => Duration::from_millis(100) * u32::from(tenths),
        },
    };
    let line = RefCell::new(line);
    let wires = (Out, In(&line));
    match node::run(wires, &mut Microbit(&line), job, |_| nrf51::send(3)) {
        Ok(()) => nrf51::send(4),
        Err(stopped) => {
            nrf51::send(5);
            // Writing to the line cannot fail.
            let _ = writeln!(Text, "{stopped:?}");
        }
    }
    loop {
        cortex_m::asm::wfi();
    }
}

#[panic_handler]
fn panic(panic: &core::panic::PanicInfo) -> ! {
    nrf51::send(5);
    let _ = writeln!(Text, "{}", panic.message());
    loop {
        cortex_m::asm::wfi();
    }
}
