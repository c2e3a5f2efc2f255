//! Tests of the syntax and of errors, which need no hardware; package `barrier-emulation` tests open ports on emulated hardware.

use super::parallel::{INPUTS, Lines, OUTPUTS, Registers, claimed as port};
use super::*;
use crate::InputEvents;
use embedded_hal::digital::{InputPin, OutputPin, PinState};
use rustix::io::Errno;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Returns the error message of `open` for a text.
fn said(text: &str) -> String {
    match open(text) {
        Ok(wires) => panic!("{text} was opened: {wires:?}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn an_unknown_port_is_answered_with_those_there_are() {
    assert_eq!(
        said("lpt1:0x378"),
        "there is no port \"lpt1\"; there are parport, ppdev, gpio, rppal, uio, mem"
    );
}

#[test]
fn a_text_that_is_wrong_is_refused_with_the_reason_and_the_syntax() {
    for (text, reason) in [
        ("parport", "out= is missing"),
        ("parport:out=D0,in=PE", "it does not give the I/O address"),
        (
            "parport:0x378,out=D0+D1,in=PE",
            "out=D0+D1 is none of D0, D1",
        ),
        ("parport:0x378", "out= is missing"),
        ("parport:0x378,out=D0", "in= is missing"),
        ("parport:0x378,out=D8,in=nACK", "out=D8 is none of D0, D1"),
        (
            "parport:0x378,out=D0,in=ACK",
            "in=ACK is none of nERROR, SELECT, PE, nACK, BUSY",
        ),
        ("parport:0x378,out=D0,in=nACK,to=PE", "it has no key \"to\""),
        ("parport:0x378,out=D0,out=D1,in=PE", "out is given twice"),
        ("parport:0x378,D0,in=PE", "\"D0\" is not key=value"),
        (
            "parport:LPT1,out=D0,in=PE",
            "\"LPT1\" is not an I/O address",
        ),
        ("parport:0,out=D0,in=PE", "\"0\" is not an I/O address"),
        (
            "parport:0xfffe,out=D0,in=PE",
            "\"0xfffe\" is not an I/O address",
        ),
        ("ppdev:out=D0,in=PE", "it does not give the device file"),
    ] {
        let said = said(text);
        let begin = format!("the port \"{text}\" cannot be understood: {reason}");
        assert!(said.starts_with(&begin), "{said}");
        assert!(said.contains("; it is written p"), "{said}");
    }
}

#[cfg(not(feature = "gpio"))]
#[test]
fn a_port_that_this_build_lacks_says_what_it_needs() {
    let said = said("gpio:/dev/gpiochip0,out=17,in=27");
    assert!(said.contains("the cargo feature gpio"), "{said}");
}

#[cfg(feature = "gpio")]
#[test]
fn gpio_lines_are_numbers_and_a_missing_chip_is_named() {
    assert!(
        said("gpio:/dev/gpiochip0,out=D0,in=27").contains("out=D0 is not the number of a line")
    );
    let said = said("gpio:/no/such/gpiochip,out=17,in=27");
    assert!(
        said.starts_with("the kernel gives no access to the GPIO chip /no/such/gpiochip"),
        "{said}"
    );
}

#[cfg(feature = "rppal")]
#[test]
fn the_only_raspberry_pi_of_a_machine_has_no_place() {
    assert!(said("rppal:/dev/gpiomem,out=17,in=27").contains("\"/dev/gpiomem\" is not key=value"));
}

#[test]
fn a_missing_device_file_names_the_modules_that_make_it() {
    assert_eq!(
        said("ppdev:/no/such/parport0,out=D0,in=nACK"),
        "the kernel gives no access to the parallel port /no/such/parport0: \
         it lacks the device file, which the kernel's modules ppdev and parport_pc make"
    );
}

#[test]
fn a_file_that_is_no_port_is_refused() {
    let said = said("ppdev:/dev/null,out=D0,in=nACK");
    assert!(
        said.starts_with(
            "the parallel port /dev/null cannot be used, it refused to be asked for alone:"
        ),
        "{said}"
    );
}

/// Two registers that store the last value written.
#[derive(Clone, Default)]
struct Latches {
    data: Arc<AtomicU8>,
    status: Arc<AtomicU8>,
    /// The limit that the last sleep was called with.
    slept: Arc<Mutex<Option<Duration>>>,
}

impl Registers for Latches {
    fn data(&self) -> Result<u8, Errno> {
        Ok(self.data.load(Ordering::Relaxed))
    }

    fn set_data(&self, value: u8) -> Result<(), Errno> {
        self.data.store(value, Ordering::Relaxed);
        Ok(())
    }

    fn status(&self) -> Result<u8, Errno> {
        Ok(self.status.load(Ordering::Relaxed))
    }

    fn has_interrupts(&self) -> bool {
        true
    }

    fn sleep_until_interrupt(&self, limit: Duration) -> Result<(), Errno> {
        *self.slept.lock().expect("no thread panics") = Some(limit);
        Ok(())
    }
}

fn over(latches: &Latches, text: &str) -> BoxedWires {
    let spec = Spec::parse(text, "").expect("a text");
    let wanted = Wanted::pair(&spec).expect("two lines");
    let lines = Lines::of(&spec, &wanted).expect("two lines");
    let port = port(latches.clone(), "a test".into(), lines).expect("latches never refuse");
    BoxedWires {
        out: BoxedOut::of(&port, 0),
        input: BoxedIn::of(&port, 0),
        resting: Resting::new(&port, &wanted),
    }
}

#[test]
fn each_output_moves_its_own_bit_and_no_other() {
    for line in OUTPUTS {
        let latches = Latches::default();
        latches.data.store(0b1010_0101, Ordering::Relaxed);
        let mut out = over(&latches, &format!("t:out={},in=PE", line.name)).out;
        assert_eq!(
            latches.data().ok(),
            Some(0b1010_0101),
            "opening moves nothing"
        );
        out.set_high().expect("latches never refuse");
        assert_eq!(latches.data().ok(), Some(0b1010_0101 | line.mask()));
        out.set_low().expect("latches never refuse");
        assert_eq!(latches.data().ok(), Some(0b1010_0101 & !line.mask()));
    }
}

#[test]
fn high_is_high_at_the_connector_whatever_the_port_inverts() {
    for line in INPUTS {
        let latches = Latches::default();
        let mut plain = over(&latches, &format!("t:out=D0,in={}", line.name)).input;
        let mut inverted = over(&latches, &format!("t:out=!D0,in=!{}", line.name)).input;
        for bit in [false, true] {
            // All other bits of the register have the opposite value.
            let status = if bit { line.mask() } else { !line.mask() };
            latches.status.store(status, Ordering::Relaxed);
            let high = bit != (line.name == "BUSY");
            assert_eq!(plain.is_high(), Ok(high), "{}", line.name);
            assert_eq!(plain.is_low(), Ok(!high), "{}", line.name);
            assert_eq!(inverted.is_high(), Ok(!high), "!{}", line.name);
        }
    }
}

#[test]
fn the_edge_without_an_interrupt_is_slept_for_briefly() {
    let long = Duration::from_secs(60);
    for (input, rising) in [("nACK", PinState::High), ("!nACK", PinState::Low)] {
        let latches = Latches::default();
        let mut input = over(&latches, &format!("t:out=D0,in={input}")).input;
        assert!(input.wakes_sleepers());
        for (awaited, briefly) in [(rising, false), (!rising, true)] {
            input.sleep_until_edge(awaited, long).expect("a sleep");
            let slept = latches.slept.lock().expect("no thread panics").take();
            assert_eq!(slept < Some(long), briefly, "{input:?} {awaited:?}");
        }
    }
}

#[test]
fn a_line_without_an_interrupt_wakes_no_sleeper() {
    for line in INPUTS {
        let latches = Latches::default();
        let mut input = over(&latches, &format!("t:out=D0,in={}", line.name)).input;
        assert_eq!(input.wakes_sleepers(), line.name == "nACK", "{input:?}");
    }
}
