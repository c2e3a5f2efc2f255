//! The port for any GPIO line of Linux, through the GPIO character device:
//! needs no root, and has exclusive use of its lines.
//!
//! Documentation/userspace-api/gpio/chardev.rst of the kernel describes the interface; crate `gpiocdev` implements it.
//! An output line must be requested with a level, so the inputs are read first and each wire starts at its barrier's level,
//! which is the level that [`ToggleBarrier::open`](crate::ToggleBarrier::open) would write anyway.
//! The chip's driver determines the level after the line is released; most drivers keep the level.
//!
//! # Sleeping until an edge
//!
//! The first call of `wakes_sleepers` reconfigures an input to report both edges, permanently:
//! from then on each edge costs an interrupt, so a process that only spins does not make this call.
//! If the chip has no interrupt for the line, the request fails,
//! and the line stays an input without events.
//! Reading all events arms the input, and `poll` on the request's file returns when there is an
//! event.

use super::PortKind;

pub(super) const KIND: PortKind = PortKind {
    name: "gpio",
    syntax: "gpio:/dev/gpiochip0,out=17,in=27",
    channels_syntax: "gpio:/dev/gpiochip0,out=2+3+4+5+6+7+8+9,in=10+11+12+13+14",
    help: "two lines of a GPIO chip by the kernel's character device; needs the group of /dev/gpiochip0, usually gpio; \
           the lines are the chip's offsets as gpioinfo lists them, and ! inverts; \
           both edges wake a process that sleeps, if the chip has interrupts",
    usual: None,
    options: &[],
    claim: open,
};

#[cfg(not(all(target_os = "linux", feature = "gpio")))]
fn open(
    _: &super::spec::Spec<'_>,
    _: &super::claimed::Wanted<'_>,
) -> Result<std::sync::Arc<dyn super::claimed::Claimed>, super::PortError> {
    Err(super::PortError::NotBuilt {
        name: KIND.name,
        needs: "Linux and the cargo feature gpio of crate barrier-driver",
    })
}

#[cfg(all(target_os = "linux", feature = "gpio"))]
use lines::open;

#[cfg(all(target_os = "linux", feature = "gpio"))]
mod lines {
    use super::super::PortError;
    use super::super::claimed::{Claimed, Wanted};
    use super::super::error::Failure;
    use super::super::sleep::until_readable;
    use super::super::spec::Spec;
    use gpiocdev::line::{EdgeDetection, Offset, Value};
    use gpiocdev::{Chip, Request};
    use std::io::ErrorKind;
    use std::sync::{Arc, OnceLock};
    use std::time::Duration;

    /// The consumer name: gpioinfo prints it for the lines that a program uses.
    const CONSUMER: &str = "portcullis";

    /// Maximum number of events that `arm` reads:
    /// a line with more pending events changes too often for a sleep.
    const MOST_EVENTS: usize = 64;

    /// The lines of one chip, each requested separately, so an access changes only one line.
    struct Lines {
        chip: String,
        outs: Vec<Line>,
        ins: Vec<Line>,
    }

    struct Line {
        request: Request,
        offset: Offset,
        inverted: bool,
        /// True if the chip reports the edges of this input; set when first needed.
        has_edges: OnceLock<bool>,
    }

    pub(super) fn open(
        spec: &Spec<'_>,
        wanted: &Wanted<'_>,
    ) -> Result<Arc<dyn Claimed>, PortError> {
        let chip = spec.place("the chip's device file")?;
        let outs: Vec<_> = numbers(spec, "out", &wanted.outs)?;
        let ins: Vec<_> = numbers(spec, "in", &wanted.ins)?;
        check(chip)?;
        let request = |offset, step, direct: &dyn Fn(&mut gpiocdev::request::Builder)| {
            let mut builder = Request::builder();
            direct(builder.on_chip(chip).with_consumer(CONSUMER));
            let request = builder.with_line(offset).request();
            request.map_err(|e| refusal(chip, offset, step, &e))
        };
        let input = |(offset, inverted)| {
            let request = request(offset, "become an input", &|b| {
                b.as_input();
            })?;
            Ok(Line {
                request,
                offset,
                inverted,
                has_edges: OnceLock::new(),
            })
        };
        let ins: Vec<Line> = ins.into_iter().map(input).collect::<Result<_, _>>()?;
        let output = |(out, (offset, inverted)): (usize, (Offset, bool))| {
            let level = match wanted.rests_at(out) {
                None => false,
                Some(input) => ins[input].get().map_err(|e| PortError::Refused {
                    port: name(chip, ins[input].offset),
                    step: "be read",
                    cause: e.to_string(),
                })?,
            };
            let request = request(offset, "become an output", &|b| {
                b.as_output(Value::from(level != inverted));
            })?;
            Ok(Line {
                request,
                offset,
                inverted,
                has_edges: OnceLock::new(),
            })
        };
        let outs = outs.into_iter().enumerate().map(output);
        let outs = outs.collect::<Result<_, _>>()?;
        let chip = chip.to_owned();
        Ok(Arc::new(Lines { chip, outs, ins }))
    }

    fn numbers(
        spec: &Spec<'_>,
        key: &str,
        lines: &[super::super::spec::LineName<'_>],
    ) -> Result<Vec<(Offset, bool)>, PortError> {
        lines.iter().map(|&line| spec.number(key, line)).collect()
    }

    fn name(chip: &str, offset: Offset) -> String {
        format!("GPIO line {offset} of {chip}")
    }

    /// Distinguishes a missing permission from a missing chip, because the error of `gpiocdev` does not contain the kernel's error.
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

    /// Returns the reason why a line could not be requested.
    /// The library hides the kernel's EBUSY, so this function reads from the chip whether another program uses the
    /// line.
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

    impl Line {
        fn get(&self) -> Result<bool, Failure> {
            let value = self.request.value(self.offset).map_err(Failure::Gpio)?;
            Ok((value == Value::Active) != self.inverted)
        }

        /// Makes the chip report both edges permanently; returns true on success.
        fn has_edges(&self) -> bool {
            *self.has_edges.get_or_init(|| {
                let mut config = self.request.config();
                config
                    .with_line(self.offset)
                    .with_edge_detection(EdgeDetection::BothEdges);
                self.request.reconfigure(&config).is_ok()
            })
        }

        /// Reads and discards all earlier events.
        fn forget_edges(&self) -> Result<(), Failure> {
            for _ in 0..MOST_EVENTS {
                if !until_readable(&self.request, Duration::ZERO)? {
                    break;
                }
                self.request.read_edge_event().map_err(Failure::Gpio)?;
            }
            Ok(())
        }
    }

    impl Claimed for Lines {
        fn set(&self, out: usize, high: bool) -> Result<(), Failure> {
            let line = &self.outs[out];
            line.request
                .set_value(line.offset, Value::from(high != line.inverted))
                .map(drop)
                .map_err(Failure::Gpio)
        }

        fn get(&self, input: usize) -> Result<bool, Failure> {
            self.ins[input].get()
        }

        fn wakes_sleepers(&self, input: usize) -> bool {
            self.ins[input].has_edges()
        }

        fn arm(&self, input: usize) -> Result<(), Failure> {
            self.ins[input].forget_edges()
        }

        fn sleep(&self, input: usize, _high: bool, limit: Duration) -> Result<(), Failure> {
            Ok(until_readable(&self.ins[input].request, limit).map(drop)?)
        }

        fn out_name(&self, out: usize) -> String {
            name(&self.chip, self.outs[out].offset)
        }

        fn in_name(&self, input: usize) -> String {
            name(&self.chip, self.ins[input].offset)
        }
    }
}
