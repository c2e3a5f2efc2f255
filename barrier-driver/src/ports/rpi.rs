//! A Raspberry Pi's header pins by its GPIO registers, which crate `rppal` maps: no system call for an access.
//!
//! Pins are numbered as the processor numbers them (BCM), not as they stand on the header.
//! A pin that is an output already keeps its level, and any other becomes an output at the barrier's level, which is read first:
//! a wire must not move before [`ToggleBarrier::open`](crate::ToggleBarrier::open) moves it.
//! The output keeps its level when it is given back, so that the wire is at rest until the next job and does not float.
//!
//! The registers are device memory and rppal's accesses are only volatile, so a fence keeps the program's memory accesses
//! on their side of the barrier.

use super::PortKind;

pub(super) const KIND: PortKind = PortKind {
    name: "rppal",
    syntax: "rppal:out=17,in=27",
    help: "two header pins of a Raspberry Pi by its registers; needs /dev/gpiomem, usually by the group gpio; \
           pins have their BCM numbers, and ! inverts",
    open,
};

#[cfg(not(all(target_os = "linux", feature = "rppal")))]
fn open(_: &super::spec::Spec<'_>) -> Result<super::BoxedWires, super::PortError> {
    Err(super::PortError::NotBuilt {
        name: KIND.name,
        needs: "Linux and the cargo feature rppal of crate barrier-driver",
    })
}

#[cfg(all(target_os = "linux", feature = "rppal"))]
use pins::open;

#[cfg(all(target_os = "linux", feature = "rppal"))]
mod pins {
    use super::super::spec::Spec;
    use super::super::{BoxedIn, BoxedOut, BoxedWires, PortError, WireError};
    use core::sync::atomic::{Ordering, fence};
    use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
    use rppal::gpio::{Error, Gpio, Level, Mode, Pin};

    pub(super) fn open(spec: &Spec<'_>) -> Result<BoxedWires, PortError> {
        spec.no_place()?;
        spec.finish(&["out", "in"])?;
        let (out, out_inverted) = spec.numbered("out")?;
        let (input, in_inverted) = spec.numbered("in")?;
        let gpio =
            Gpio::new().map_err(|e| refusal("the Raspberry Pi's GPIO registers".into(), &e))?;
        let take = |pin: u8| -> Result<Pin, PortError> {
            gpio.get(pin).map_err(|e| refusal(name(pin), &e))
        };
        let wire_in = In {
            pin: take(input)?.into_input(),
            inverted: in_inverted,
        };
        let pin = take(out)?;
        let mut driven = if pin.mode() == Mode::Output {
            pin.into_output()
        } else if wire_in.get() != out_inverted {
            pin.into_output_high()
        } else {
            pin.into_output_low()
        };
        driven.set_reset_on_drop(false);
        Ok(BoxedWires {
            input: BoxedIn::new(name(input), wire_in),
            out: BoxedOut::new(
                name(out),
                Out {
                    pin: driven,
                    inverted: out_inverted,
                },
            ),
        })
    }

    fn name(pin: u8) -> String {
        format!("pin BCM {pin} of the Raspberry Pi")
    }

    fn refusal(port: String, error: &Error) -> PortError {
        match error {
            Error::PermissionDenied(_) => PortError::Forbidden {
                port,
                remedy: "the group of /dev/gpiomem, usually gpio",
            },
            Error::UnknownModel => PortError::Absent {
                port,
                sign: "this machine is not a Raspberry Pi that rppal knows",
            },
            Error::PinUsed(_) => PortError::Busy {
                port,
                holder: "this process already",
            },
            Error::PinNotAvailable(_) | Error::Io(_) | Error::ThreadPanic => PortError::Refused {
                port,
                step: "be opened",
                cause: error.to_string(),
            },
        }
    }

    struct Out {
        pin: rppal::gpio::OutputPin,
        inverted: bool,
    }

    struct In {
        pin: rppal::gpio::InputPin,
        inverted: bool,
    }

    impl Out {
        fn set(&mut self, high: bool) {
            // What the program wrote before it entered comes before the wire moves.
            fence(Ordering::SeqCst);
            self.pin.write(Level::from(high != self.inverted));
        }
    }

    impl In {
        fn get(&self) -> bool {
            let high = self.pin.read() == Level::High;
            // What the program reads after it has left comes after the wire was seen.
            fence(Ordering::SeqCst);
            high != self.inverted
        }
    }

    impl ErrorType for Out {
        type Error = WireError;
    }

    impl ErrorType for In {
        type Error = WireError;
    }

    impl OutputPin for Out {
        fn set_low(&mut self) -> Result<(), WireError> {
            self.set(false);
            Ok(())
        }

        fn set_high(&mut self) -> Result<(), WireError> {
            self.set(true);
            Ok(())
        }
    }

    impl InputPin for In {
        fn is_high(&mut self) -> Result<bool, WireError> {
            Ok(self.get())
        }

        fn is_low(&mut self) -> Result<bool, WireError> {
            Ok(!self.get())
        }
    }
}
