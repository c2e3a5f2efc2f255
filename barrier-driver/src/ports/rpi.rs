//! GPIO pins of a Raspberry Pi's header through the GPIO registers, which crate `rppal` maps: an access needs no system call.
//!
//! Pins have the processor's numbers (BCM), not their positions on the header.
//! A pin that is already an output keeps its level, and any other becomes an output at the barrier's level, which is read first:
//! a wire must not change before [`ToggleBarrier::open`](crate::ToggleBarrier::open) changes it.
//! The output keeps its level when it is released, so the wire stays at rest until the next job and does not float.
//!
//! The registers are device memory and rppal's accesses are only volatile, so a fence orders the program's memory accesses
//! against them.

use super::PortKind;

pub(super) const KIND: PortKind = PortKind {
    name: "rppal",
    syntax: "rppal:out=17,in=27",
    channels_syntax: "rppal:out=2+3+4+5+6+7+8+9,in=10+11+12+13+14",
    help: "two header pins of a Raspberry Pi by its registers; needs /dev/gpiomem, usually by the group gpio; \
           pins have their BCM numbers, and ! inverts",
    usual: None,
    options: &[],
    claim: open,
};

#[cfg(not(all(target_os = "linux", feature = "rppal")))]
fn open(
    _: &super::spec::Spec<'_>,
    _: &super::claimed::Wanted<'_>,
) -> Result<std::sync::Arc<dyn super::claimed::Claimed>, super::PortError> {
    Err(super::PortError::NotBuilt {
        name: KIND.name,
        needs: "Linux and the cargo feature rppal of crate barrier-driver",
    })
}

#[cfg(all(target_os = "linux", feature = "rppal"))]
use pins::open;

#[cfg(all(target_os = "linux", feature = "rppal"))]
mod pins {
    use super::super::PortError;
    use super::super::claimed::{Claimed, Wanted};
    use super::super::error::Failure;
    use super::super::spec::Spec;
    use core::sync::atomic::{Ordering, fence};
    use rppal::gpio::{Error, Gpio, Level, Mode, Pin};
    use std::sync::{Arc, Mutex, PoisonError, TryLockError};

    struct Pins {
        outs: Vec<Out>,
        ins: Vec<In>,
    }

    /// A pin for output. Writing requires exclusive access to rppal's pin; its lock is contended only when the process ends.
    struct Out {
        pin: Mutex<rppal::gpio::OutputPin>,
        number: u8,
        inverted: bool,
    }

    struct In {
        pin: rppal::gpio::InputPin,
        inverted: bool,
    }

    pub(super) fn open(
        spec: &Spec<'_>,
        wanted: &Wanted<'_>,
    ) -> Result<Arc<dyn Claimed>, PortError> {
        spec.no_place()?;
        let numbers = |key, lines: &[_]| {
            let all = lines.iter().map(|&line| spec.number::<u8>(key, line));
            all.collect::<Result<Vec<_>, _>>()
        };
        let (outs, ins) = (numbers("out", &wanted.outs)?, numbers("in", &wanted.ins)?);
        let gpio =
            Gpio::new().map_err(|e| refusal("the Raspberry Pi's GPIO registers".into(), &e))?;
        let take = |pin: u8| -> Result<Pin, PortError> {
            gpio.get(pin).map_err(|e| refusal(name(pin), &e))
        };
        let input = |(number, inverted)| {
            let pin = take(number)?.into_input();
            Ok(In { pin, inverted })
        };
        let ins: Vec<In> = ins.into_iter().map(input).collect::<Result<_, _>>()?;
        let output = |(out, (number, inverted)): (usize, (u8, bool))| {
            let level = wanted.rests_at(out).is_some_and(|input| ins[input].get());
            let pin = take(number)?;
            let mut pin = if pin.mode() == Mode::Output {
                pin.into_output()
            } else if level != inverted {
                pin.into_output_high()
            } else {
                pin.into_output_low()
            };
            pin.set_reset_on_drop(false);
            Ok(Out {
                pin: Mutex::new(pin),
                number,
                inverted,
            })
        };
        let outs = outs.into_iter().enumerate().map(output);
        let outs = outs.collect::<Result<_, _>>()?;
        Ok(Arc::new(Pins { outs, ins }))
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

    impl Out {
        fn write(&self, pin: &mut rppal::gpio::OutputPin, high: bool) {
            // Orders the program's stores before this entry ahead of the change of the wire.
            fence(Ordering::SeqCst);
            pin.write(Level::from(high != self.inverted));
        }
    }

    impl In {
        fn get(&self) -> bool {
            let high = self.pin.read() == Level::High;
            // Orders the read of the wire ahead of the program's loads after the barrier.
            fence(Ordering::SeqCst);
            high != self.inverted
        }
    }

    impl Claimed for Pins {
        fn set(&self, out: usize, high: bool) -> Result<(), Failure> {
            let out = &self.outs[out];
            out.write(
                &mut out.pin.lock().unwrap_or_else(PoisonError::into_inner),
                high,
            );
            Ok(())
        }

        fn get(&self, input: usize) -> Result<bool, Failure> {
            Ok(self.ins[input].get())
        }

        fn set_at_the_end(&self, out: usize, high: bool) -> Result<(), Failure> {
            let out = &self.outs[out];
            match out.pin.try_lock() {
                Ok(mut pin) => out.write(&mut pin, high),
                Err(TryLockError::Poisoned(poisoned)) => {
                    out.write(&mut poisoned.into_inner(), high);
                }
                // The process is ending, and interrupted a thread that writes to this pin.
                Err(TryLockError::WouldBlock) => return Err(Failure::InUse),
            }
            Ok(())
        }

        fn out_name(&self, out: usize) -> String {
            name(self.outs[out].number)
        }

        fn in_name(&self, input: usize) -> String {
            name(self.ins[input].pin.pin())
        }
    }
}
