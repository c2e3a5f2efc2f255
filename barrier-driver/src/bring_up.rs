//! Bring-up of real wires: tests to run before a barrier uses them.
//!
//! * [`loop_back`]: tests with a plug that joins a node's two wires that each written level is
//!   read back.
//! * [`cost`]: measures the duration of a read and of a write at this port.
//! * [`pair`]: two nodes of one host pass barriers, and their durations are measured.

use crate::{OpenError, PinFault, SelfTest, SelfTestError, ToggleBarrier, WaitError, self_test};
use core::fmt;
use core::time::Duration;
use embedded_hal::digital::{InputPin, OutputPin, PinState};
use std::cell::Cell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// A sorted list of durations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durations(Vec<Duration>);

impl Durations {
    fn sorted(mut all: Vec<Duration>) -> Durations {
        all.sort_unstable();
        Durations(all)
    }

    /// Returns the quantile `part` of the durations, such as the median for 0.5.
    pub fn quantile(&self, part: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        let at = (part.clamp(0.0, 1.0) * last as f64).round() as usize;
        self.0.get(at).copied().unwrap_or_default()
    }

    /// Returns the number of durations.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the list is empty; every quantile is then zero.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The reason why a loop-back test failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopBackError<E> {
    /// A pin could not be read or written.
    Pin(PinFault<E>),
    /// A written level was never read back.
    Lost {
        /// The index of the level written, counted from 1.
        toggle: u32,
        /// The level that was written and not read back.
        written: PinState,
        /// True if an earlier level was read back.
        ever: bool,
        /// The time limit for reading the level back.
        limit: Duration,
    },
}

impl<E: fmt::Debug> fmt::Display for LoopBackError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(fault) => fault.fmt(f),
            Self::Lost {
                toggle,
                written,
                ever,
                limit,
            } => {
                let (written, read) = (crate::error::name(*written), crate::error::name(!*written));
                write!(
                    f,
                    "level {toggle} was written {written} and read {read} for {limit:?}: "
                )?;
                f.write_str(match ever {
                    true => "the plug has a loose contact, or something else drives the wire",
                    false => {
                        "no plug joins the two wires, or one of them is cut, stuck or inverted"
                    }
                })
            }
        }
    }
}

impl<E: fmt::Debug> std::error::Error for LoopBackError<E> {}

/// Writes both levels alternately to wires that a plug joins.
/// Returns the times until each level was read back.
///
/// The first level written is the opposite of the one read, so that a stuck wire fails.
pub fn loop_back<O: OutputPin, I: InputPin<Error = O::Error>>(
    out: &mut O,
    input: &mut I,
    toggles: u32,
    limit: Duration,
) -> Result<Durations, LoopBackError<O::Error>> {
    let read = |input: &mut I| {
        input
            .is_high()
            .map(PinState::from)
            .map_err(|e| LoopBackError::Pin(PinFault::Read(e)))
    };
    let mut level = read(input)?;
    let mut took = Vec::new();
    for toggle in 1..=toggles {
        level = !level;
        out.set_state(level)
            .map_err(|e| LoopBackError::Pin(PinFault::Write(e)))?;
        let start = Instant::now();
        while read(input)? != level {
            if start.elapsed() >= limit {
                return Err(LoopBackError::Lost {
                    toggle,
                    written: level,
                    ever: toggle > 1,
                    limit,
                });
            }
        }
        took.push(start.elapsed());
    }
    Ok(Durations::sorted(took))
}

/// The durations of port accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The durations of reads of the input.
    pub read: Durations,
    /// The durations of writes of the output.
    pub write: Durations,
}

/// Measures the durations of single accesses; the wire keeps its level.
pub fn cost<O: OutputPin, I: InputPin<Error = O::Error>>(
    out: &mut O,
    input: &mut I,
    samples: u32,
) -> Result<Cost, PinFault<O::Error>> {
    let level = input.is_high().map_err(PinFault::Read)?;
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        let start = Instant::now();
        input.is_high().map_err(PinFault::Read)?;
        let middle = Instant::now();
        out.set_state(PinState::from(level))
            .map_err(PinFault::Write)?;
        reads.push(middle - start);
        writes.push(middle.elapsed());
    }
    Ok(Cost {
        read: Durations::sorted(reads),
        write: Durations::sorted(writes),
    })
}

/// The reason why a test of two nodes failed at one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairError<E> {
    /// The node could not open the barrier.
    Open(OpenError<E, core::convert::Infallible>),
    /// The node's self-test failed.
    SelfTest(SelfTestError<E, core::convert::Infallible>),
    /// The node could not enter a barrier.
    Enter(PinFault<E>),
    /// The node entered a barrier that did not release it.
    Wait(WaitError<E>),
}

impl<E: fmt::Debug> fmt::Display for PairError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::SelfTest(error) => error.fmt(f),
            Self::Enter(error) => error.fmt(f),
            Self::Wait(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug> std::error::Error for PairError<E> {}

/// Runs two nodes of one host at a barrier of two nodes: the self-test, then `barriers` barriers.
///
/// Returns the durations of node 0 from entry to release, or an error with the number of the node that detected it.
pub fn pair<O, I>(
    nodes: [(O, I); 2],
    barriers: u32,
    limit: Duration,
) -> Result<Durations, (usize, PairError<O::Error>)>
where
    O: OutputPin + Send,
    I: InputPin<Error = O::Error> + Send,
    O::Error: Send,
{
    let fence = Barrier::new(2);
    let good = AtomicBool::new(true);
    let (fence, good) = (&fence, &good);
    let node = |me: usize, (out, input): (O, I)| {
        let meet = || {
            fence.wait();
            Ok::<_, core::convert::Infallible>(())
        };
        // A node that fails before the fence still calls it,
        // because the other node would otherwise wait there indefinitely.
        let met = Cell::new(false);
        let opened = ToggleBarrier::open(out, input, || {
            met.set(true);
            meet()
        });
        if !met.get() {
            fence.wait();
        }
        good.fetch_and(opened.is_ok(), Ordering::Relaxed);
        fence.wait();
        let mut barrier = opened.map_err(PairError::Open)?;
        if !good.load(Ordering::Relaxed) {
            // The other node reports the error.
            return Ok(Durations::sorted(Vec::new()));
        }
        let test = SelfTest {
            me,
            hold: Duration::from_micros(200),
            limit,
        };
        self_test(&mut barrier, test, 0..2, meet, thread::yield_now)
            .map_err(PairError::SelfTest)?;
        let mut took = Vec::new();
        for _ in 0..barriers {
            let start = Instant::now();
            barrier.go().map_err(PairError::Enter)?;
            barrier
                .wait(thread::yield_now, limit)
                .map_err(PairError::Wait)?;
            took.push(start.elapsed());
        }
        Ok(Durations::sorted(took))
    };
    let [first, second] = nodes;
    thread::scope(|scope| {
        let other = scope.spawn(move || node(1, second));
        let mine = node(0, first).map_err(|e| (0, e));
        match other.join() {
            Ok(theirs) => theirs.map_err(|e| (1, e)).and(mine),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
