//! Any GPIO line that Linux knows, by its character device: no root, and a line has one user at a time.
//!
//! Documentation/userspace-api/gpio/chardev.rst of the kernel; crate `gpiocdev` speaks it.
//! An output line has to be requested with a level, so the input is read first and the wire starts at the barrier's level,
//! which is the level that [`ToggleBarrier::open`](crate::ToggleBarrier::open) would write anyway.
//! What happens to the level when the line is given back is the chip's driver's choice; most keep it.

use super::PortKind;

pub(super) const KIND: PortKind = PortKind {
    name: "gpio",
    syntax: "gpio:/dev/gpiochip0,out=17,in=27",
    help: "two lines of a GPIO chip by the kernel's character device; needs the group of /dev/gpiochip0, usually gpio; \
           the lines are the chip's offsets as gpioinfo lists them, and ! inverts",
    open,
};

#[cfg(not(all(target_os = "linux", feature = "gpio")))]
fn open(_: &super::spec::Spec<'_>) -> Result<super::BoxedWires, super::PortError> {
    Err(super::PortError::NotBuilt {
        name: KIND.name,
        needs: "Linux and the cargo feature gpio of crate barrier-driver",
    })
}

#[cfg(all(target_os = "linux", feature = "gpio"))]
use lines::open;

#[cfg(all(target_os = "linux", feature = "gpio"))]
mod lines {
    use super::super::spec::Spec;
    use super::super::{BoxedIn, BoxedOut, BoxedWires, PortError, WireError};
    use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
    use gpiocdev::line::{Offset, Value};
    use gpiocdev::{Chip, Request};
    use std::io::ErrorKind;

    /// The name by which gpioinfo shows who uses a line.
    const CONSUMER: &str = "portcullis";

    pub(super) fn open(spec: &Spec<'_>) -> Result<BoxedWires, PortError> {
        let chip = spec.place("the chip's device file")?;
        spec.finish(&["out", "in"])?;
        let (out, out_inverted) = spec.numbered("out")?;
        let (input, in_inverted) = spec.numbered("in")?;
        check(chip)?;
        let request = |builder: &mut gpiocdev::request::Builder, offset, step| {
            builder
                .on_chip(chip)
                .with_consumer(CONSUMER)
                .with_line(offset)
                .request()
                .map_err(|e| refusal(chip, offset, step, &e))
        };
        let input = Wire {
            name: name(chip, input),
            request: request(Request::builder().as_input(), input, "become an input")?,
            offset: input,
            inverted: in_inverted,
        };
        let level = input.get().map_err(|e| PortError::Refused {
            port: e.wire,
            step: "be read",
            cause: e.cause,
        })?;
        let value = Value::from(level != out_inverted);
        let out = Wire {
            name: name(chip, out),
            request: request(Request::builder().as_output(value), out, "become an output")?,
            offset: out,
            inverted: out_inverted,
        };
        Ok(BoxedWires {
            out: BoxedOut::new(out.name.clone(), out),
            input: BoxedIn::new(input.name.clone(), input),
        })
    }

    fn name(chip: &str, offset: Offset) -> String {
        format!("GPIO line {offset} of {chip}")
    }

    /// Tells a missing right and a missing chip apart before the library hides the kernel's answer in its own.
    fn check(chip: &str) -> Result<(), PortError> {
        let port = format!("the GPIO chip {chip}");
        match std::fs::File::options().read(true).write(true).open(chip) {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(PortError::Forbidden {
                port,
                remedy: "the group of the device file, usually gpio",
            }),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(PortError::Unsupported {
                port,
                needs: "the device file, which the driver of the chip makes",
            }),
            Err(e) => Err(PortError::Refused {
                port,
                step: "be opened",
                cause: e.to_string(),
            }),
        }
    }

    /// Why a line is not ours; the library hides the kernel's EBUSY, and the chip tells whether somebody has the line.
    fn refusal(
        chip: &str,
        offset: Offset,
        step: &'static str,
        error: &gpiocdev::Error,
    ) -> PortError {
        let port = name(chip, offset);
        let info = Chip::from_path(chip).and_then(|chip| chip.line_info(offset));
        if info.is_ok_and(|info| info.used) {
            return PortError::Busy {
                port,
                holder: "another process or driver; gpioinfo shows which",
            };
        }
        let cause = error.to_string();
        PortError::Refused { port, step, cause }
    }

    struct Wire {
        name: String,
        request: Request,
        offset: Offset,
        inverted: bool,
    }

    impl Wire {
        fn failed(&self, error: &gpiocdev::Error) -> WireError {
            WireError {
                wire: self.name.clone(),
                cause: error.to_string(),
            }
        }

        fn get(&self) -> Result<bool, WireError> {
            match self.request.value(self.offset) {
                Ok(value) => Ok((value == Value::Active) != self.inverted),
                Err(e) => Err(self.failed(&e)),
            }
        }

        fn set(&self, high: bool) -> Result<(), WireError> {
            self.request
                .set_value(self.offset, Value::from(high != self.inverted))
                .map(drop)
                .map_err(|e| self.failed(&e))
        }
    }

    impl ErrorType for Wire {
        type Error = WireError;
    }

    impl OutputPin for Wire {
        fn set_low(&mut self) -> Result<(), WireError> {
            self.set(false)
        }

        fn set_high(&mut self) -> Result<(), WireError> {
            self.set(true)
        }
    }

    impl InputPin for Wire {
        fn is_high(&mut self) -> Result<bool, WireError> {
            self.get()
        }

        fn is_low(&mut self) -> Result<bool, WireError> {
            self.get().map(|high| !high)
        }
    }
}
