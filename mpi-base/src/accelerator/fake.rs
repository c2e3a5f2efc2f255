//! An accelerator for tests, whose device memory is memory of the process.
//! An asynchronous copy is made when its end is queried, so tests notice data that are not in place then.

use super::{Accelerator, AcceleratorError, Direction, Flight, Memory, Strip};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The start of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    pub direction: Direction,
    pub device: usize,
    host: usize,
    pub len: usize,
    /// The result of the function `look` of [`Fake::new`] when the copy started.
    pub seen: u8,
}

pub struct Fake {
    look: Box<dyn Fn() -> u8 + Send + Sync>,
    started: Mutex<Vec<Started>>,
    in_flight: Mutex<BTreeMap<usize, Started>>,
    pub fails: AtomicBool,
    pub is_synchronous: AtomicBool,
}

/// The properties of all device memory.
pub const MEMORY: Memory = Memory {
    is_managed: false,
    context: 1,
    device: 0,
};

impl Fake {
    /// Creates an accelerator that lives until the process ends. `look` is called at the start of each copy.
    pub fn leaked(look: impl Fn() -> u8 + Send + Sync + 'static) -> &'static Fake {
        Box::leak(Box::new(Fake {
            look: Box::new(look),
            started: Mutex::default(),
            in_flight: Mutex::default(),
            fails: AtomicBool::new(false),
            is_synchronous: AtomicBool::new(false),
        }))
    }

    /// Returns the copies that were started since the last call.
    pub fn take_started(&self) -> Vec<Started> {
        std::mem::take(&mut self.started.lock().expect("no panic"))
    }

    /// Returns the number of copies in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.lock().expect("no panic").len()
    }

    fn start(&self, direction: Direction, strip: Strip) -> Started {
        let started = Started {
            direction,
            device: strip.device.expose_provenance(),
            host: strip.host.expose_provenance(),
            len: strip.len,
            seen: (self.look)(),
        };
        self.started.lock().expect("no panic").push(started);
        started
    }

    fn make(&self, copy: Started) -> Result<(), AcceleratorError> {
        if self.fails.load(Relaxed) {
            return Err(self.has_no("working copies"));
        }
        let [device, host] =
            [copy.device, copy.host].map(std::ptr::with_exposed_provenance_mut::<u8>);
        // SAFETY: a test passes valid and separate memory for both sides, which outlives the copy.
        unsafe {
            match copy.direction {
                Direction::ToHost => host.copy_from_nonoverlapping(device, copy.len),
                Direction::ToDevice => device.copy_from_nonoverlapping(host, copy.len),
            }
        }
        Ok(())
    }
}

impl Accelerator for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn title(&self) -> &'static str {
        "Fake"
    }

    fn recognise(&self, _at: *const u8) -> Option<Memory> {
        None
    }

    unsafe fn copy(
        &self,
        _memory: &Memory,
        direction: Direction,
        strips: &mut dyn Iterator<Item = Strip>,
    ) -> Result<(), AcceleratorError> {
        for strip in strips {
            self.make(self.start(direction, strip))?;
        }
        Ok(())
    }

    unsafe fn pin(&self, _memory: &Memory, _at: *mut u8, _len: usize) -> bool {
        false
    }

    fn has_flights(&self) -> bool {
        !self.is_synchronous.load(Relaxed)
    }

    unsafe fn begin(
        &self,
        _memory: &Memory,
        direction: Direction,
        strip: Strip,
    ) -> Result<Flight, AcceleratorError> {
        let started = self.start(direction, strip);
        let mut all = self.in_flight.lock().expect("no panic");
        let event = all.last_key_value().map_or(1, |(last, _)| last + 1);
        all.insert(event, started);
        Ok(Flight {
            event,
            context: 1,
            mapping: 0,
        })
    }

    fn end(&self, flight: Flight, waits: bool) -> Option<Result<(), AcceleratorError>> {
        let mut all = self.in_flight.lock().expect("no panic");
        // The device is slow: a copy ends only when a caller waits for it.
        if !waits {
            return None;
        }
        let copy = all.remove(&flight.event)?;
        Some(self.make(copy))
    }
}
