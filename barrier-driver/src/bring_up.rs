//! Tests of real wires, to be run before a barrier uses them.
//!
//! * [`loop_back`]: checks that each written level is read back, with a plug that connects a node's
//!   two wires.
//! * [`cost`]: measures the duration of a read and of a write at a port.
//! * [`pair`]: runs two nodes on one host, and measures the duration of their barriers.

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

    /// Returns the quantile `part` of the durations: 0.5 gives the median.
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
        /// The number of the written level; the first has number 1.
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

/// Writes both levels alternately to a wire that a plug connects to this node's input.
/// Returns, for each written level, the time until it was read back.
///
/// The first written level is the opposite of the present one, so the test fails if the wire is stuck.
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

/// Measures the durations of single reads and writes; writes do not change the wire's level.
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

/// The reason why [`pair`] failed at one of its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairError<E> {
    /// The node could not open the barrier.
    Open(OpenError<E, core::convert::Infallible>),
    /// The node's self-test failed.
    SelfTest(SelfTestError<E, core::convert::Infallible>),
    /// The node could not enter a barrier.
    Enter(PinFault<E>),
    /// The node entered a barrier and was not released.
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

/// Runs two nodes on one host: the self-test, then `barriers` barriers.
///
/// Returns, for each barrier, the time from node 0's entry to its release.
/// Otherwise returns an error and the number of the node that detected the error.
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
            // The other node has failed and returns its error.
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
