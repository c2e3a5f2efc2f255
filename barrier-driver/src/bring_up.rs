//! Bringing real wires up: what to try before a barrier is trusted to them.
//!
//! * [`loop_back`] with a plug that joins a node's two wires: is what is written what is read, in both directions?
//! * [`cost`]: how long do an IN and an OUT take at this port?
//! * [`pair`]: two nodes of one host at the barrier: do they meet, and how long does it take?

use crate::{OpenError, PinFault, SelfTest, SelfTestError, ToggleBarrier, WaitError, self_test};
use core::fmt;
use core::time::Duration;
use embedded_hal::digital::{InputPin, OutputPin, PinState};
use std::cell::Cell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Durations, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durations(Vec<Duration>);

impl Durations {
    fn sorted(mut all: Vec<Duration>) -> Durations {
        all.sort_unstable();
        Durations(all)
    }

    /// The duration that this part of all does not exceed: 0.5 for the median.
    pub fn quantile(&self, part: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        let at = (part.clamp(0.0, 1.0) * last as f64).round() as usize;
        self.0.get(at).copied().unwrap_or_default()
    }

    /// How many were measured.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none was; every quantile is zero then.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Why a plug does not give back what is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopBackError<E> {
    /// A pin could not be read or written.
    Pin(PinFault<E>),
    /// The level never came back.
    Lost {
        /// Which of the levels that were written, counted from 1.
        toggle: u32,
        /// The level that was to come back.
        written: PinState,
        /// Whether any level before it came back.
        ever: bool,
        /// How long it was waited for.
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

/// Writes both levels in turn to wires that a plug joins; how long each took to come back.
///
/// The first level written is the one that is not there, so that a stuck wire does not pass.
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

/// What an access costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// Of the input.
    pub read: Durations,
    /// Of the output.
    pub write: Durations,
}

/// Times single accesses; the wire keeps the level it has.
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

/// What went wrong with one of two nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairError<E> {
    /// It could not be opened.
    Open(OpenError<E, core::convert::Infallible>),
    /// It was opened, but the self-test found something.
    SelfTest(SelfTestError<E, core::convert::Infallible>),
    /// A barrier could not be entered.
    Enter(PinFault<E>),
    /// A barrier was entered and not left.
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

/// Two nodes of one host at one barrier of two nodes: the self-test, then so many barriers.
///
/// The durations are those of node 0 from entry to release; an error comes with the number of the node that saw it.
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
        // A node that fails before the fence meets the other one there all the same, or that one would wait for ever.
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
            // The other one says why.
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
