//! Firmware of a barrier node on a Raspberry Pi Pico.
//!
//! | pin | function |
//! |---|---|
//! | GP2 | the wire to the barrier, an input with a pull-down until the node opens |
//! | GP3 | the wire from the barrier, pulled down |
//! | GP0, GP1 | the serial line of the ring: GP0 to GP1 of the next node, 115200 baud |
//! | GP25 | the LED: shows the barrier's level during operation, blinks fast after the node has stopped |
//!
//! All levels are 3.3 V, like those of an FPGA: two Picos and an iCE40 need only series resistors between them.
//! `NODE` and `NODES` are environment variables of the build; the defaults are 0 and 2. The build fails if `NODE` is not below `NODES`:
//! `NODE=1 NODES=2 cargo build --release -p rp2040 --target thumbv6m-none-eabi`.

#![no_std]
#![no_main]

use core::time::Duration;
use embedded_hal::delay::DelayNs as _;
use embedded_hal::digital::{OutputPin as _, PinState, StatefulOutputPin as _};
use node::{Chip, Job, environment};
use panic_halt as _;
use rp2040_hal::clocks::{Clock as _, init_clocks_and_plls};
use rp2040_hal::fugit::RateExtU32 as _;
use rp2040_hal::gpio::bank0::{Gpio0, Gpio1};
use rp2040_hal::gpio::{FunctionUart, PullDown};
use rp2040_hal::gpio::{Pin, Pins};
use rp2040_hal::uart::{DataBits, Enabled, StopBits, UartConfig, UartPeripheral};
use rp2040_hal::{Sio, Timer, Watchdog, entry, pac};

/// The second-stage boot loader for the flash chip of a Pico.
#[unsafe(link_section = ".boot2")]
#[used]
pub static BOOT2: [u8; 256] = rp2040_boot2::BOOT_LOADER_W25Q080;

/// The frequency of a Pico's crystal.
const CRYSTAL_HZ: u32 = 12_000_000;
/// This node's number, and the number of nodes.
const PLACE: (u8, u8) = environment::place(option_env!("NODE"), option_env!("NODES"));
/// Time limit for the other nodes to be switched on, and for each barrier.
const LIMIT: Duration = Duration::from_secs(60);

type Wires = (
    Pin<Gpio0, FunctionUart, PullDown>,
    Pin<Gpio1, FunctionUart, PullDown>,
);

struct Pico {
    timer: Timer,
    ring: UartPeripheral<Enabled, pac::UART0, Wires>,
}

impl Chip for Pico {
    fn now(&mut self) -> Duration {
        Duration::from_micros(self.timer.get_counter().ticks())
    }

    fn say(&mut self, byte: u8) {
        // A byte that does not fit into the buffer is dropped; the ring sends it again later.
        let _ = self.ring.write_raw(&[byte]);
    }

    fn receive(&mut self) -> Option<u8> {
        let mut byte = [0];
        // A framing error occurs if the previous node was just switched on; the next byte will be complete.
        matches!(self.ring.read_raw(&mut byte), Ok(1)).then_some(byte[0])
    }
}

#[entry]
fn main() -> ! {
    // `take` fails if a debugger restarted the program without a reset; the node then stops.
    let Some(mut board) = pac::Peripherals::take() else {
        stop()
    };
    let mut watchdog = Watchdog::new(board.WATCHDOG);
    let Ok(clocks) = init_clocks_and_plls(
        CRYSTAL_HZ,
        board.XOSC,
        board.CLOCKS,
        board.PLL_SYS,
        board.PLL_USB,
        &mut board.RESETS,
        &mut watchdog,
    ) else {
        stop()
    };
    let mut timer = Timer::new(board.TIMER, &mut board.RESETS, &clocks);
    let pins = Pins::new(
        board.IO_BANK0,
        board.PADS_BANK0,
        Sio::new(board.SIO).gpio_bank0,
        &mut board.RESETS,
    );
    let mut lamp = pins.gpio25.into_push_pull_output();
    let ring = UartPeripheral::new(
        board.UART0,
        (pins.gpio0.reconfigure(), pins.gpio1.reconfigure()),
        &mut board.RESETS,
    )
    .enable(
        UartConfig::new(115_200.Hz(), DataBits::Eight, None, StopBits::One),
        clocks.peripheral_clock.freq(),
    );
    let Ok(ring) = ring else { stop() };
    // The wire becomes an output at the barrier's level, so its level does not change.
    let mut input = pins.gpio3.into_pull_down_input();
    let level = embedded_hal::digital::InputPin::is_high(&mut input) == Ok(true);
    let out = pins
        .gpio2
        .into_push_pull_output_in_state(PinState::from(level));

    let job = Job {
        me: PLACE.0,
        nodes: PLACE.1,
        barriers: None,
        limit: LIMIT,
    };
    let mut pico = Pico { timer, ring };
    let Err(_stopped) = node::run((out, input), &mut pico, job, |barrier| {
        // The error type of the LED's pin is `Infallible`.
        let Ok(()) = lamp.set_state(barrier.level());
    }) else {
        stop()
    };
    loop {
        let Ok(()) = lamp.toggle();
        timer.delay_ms(60);
    }
}

/// Sleeps until the chip is reset.
fn stop() -> ! {
    loop {
        cortex_m::asm::wfi();
    }
}
