//! The trait of a claimed port, whose lines are read and written by index.

use super::error::Failure;
use super::spec::{LineName, Spec};
use super::{PortError, SERIAL};
use fpga_model::channels::MAX_CHANNELS;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The lines that a port's text requests, in the order of the pins made from them.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub outs: Vec<LineName<'a>>,
    pub ins: Vec<LineName<'a>>,
}

impl<'a> Wanted<'a> {
    /// Returns a request for one line in each direction.
    pub fn pair(spec: &Spec<'a>) -> Result<Self, PortError> {
        Ok(Self {
            outs: vec![spec.line("out")?],
            ins: vec![spec.line("in")?],
        })
    }

    /// Returns a request for the two levels of a node of a register block: that of the node and that of its group.
    pub fn node() -> Self {
        let level = |name| LineName {
            name,
            inverted: false,
        };
        Self {
            outs: vec![level("ARRIVE")],
            ins: vec![level("LEVEL")],
        }
    }

    /// Returns a request for the given numbers of lines in each direction; the text separates the lines by `+`.
    /// For a missing key the lines are those of `usual`, the port's defaults.
    pub fn many(
        spec: &Spec<'a>,
        (outs, ins): (usize, usize),
        usual: Option<(&[&'static str], &[&'static str])>,
    ) -> Result<Self, PortError> {
        Ok(Self {
            outs: spec.lines("out", outs, usual.map(|(outs, _)| outs))?,
            ins: spec.lines("in", ins, usual.map(|(_, ins)| ins))?,
        })
    }

    /// Returns the incoming line whose level is the idle level of an outgoing line.
    /// The other outgoing lines, which carry serial bits, are low at rest.
    pub fn rests_at(&self, out: usize) -> Option<usize> {
        (out < self.ins.len()).then_some(out)
    }
}

/// A claimed port, released by its `Drop`.
///
/// Lines are numbered in the order of the request, and `high` is the level of the wire,
/// after any inversion by the port.
pub(super) trait Claimed: Send + Sync + 'static {
    fn set(&self, out: usize, high: bool) -> Result<(), Failure>;

    fn get(&self, input: usize) -> Result<bool, Failure>;

    /// As [`set`](Self::set), for a process that is ending:
    /// it waits for no lock, because the holder may never run again.
    fn set_at_the_end(&self, out: usize, high: bool) -> Result<(), Failure> {
        self.set(out, high)
    }

    /// Returns true if a change of this incoming line wakes a process that sleeps in the kernel.
    fn wakes_sleepers(&self, _input: usize) -> bool {
        false
    }

    /// Discards all earlier changes of this line.
    fn arm(&self, _input: usize) -> Result<(), Failure> {
        Ok(())
    }

    /// Sleeps for at most `limit` until the line may have become `high` after it was armed; see
    /// [`InputEvents`](crate::InputEvents).
    fn sleep(&self, _input: usize, _high: bool, _limit: Duration) -> Result<(), Failure> {
        Ok(())
    }

    fn out_name(&self, out: usize) -> String;

    fn in_name(&self, input: usize) -> String;
}

/// The lines of barrier version 2 that are not a port of this machine, such as a simulator's.
/// `true` is a high wire.
///
/// The outgoing lines are the arrivals of the five channels, then serial clock, data and select; the incoming lines are the releases.
pub trait Lines: Send + Sync + 'static {
    /// Drives an outgoing line; `None` if the lines have been disconnected.
    fn set(&self, out: usize, high: bool) -> Option<()>;

    /// Returns the level of an incoming line; `None` if the lines have been disconnected.
    fn get(&self, input: usize) -> Option<bool>;
}

/// A port that accesses the caller's [`Lines`].
pub(super) struct Elsewhere<L> {
    pub lines: L,
    pub name: String,
}

impl<L: Lines> Claimed for Elsewhere<L> {
    fn set(&self, out: usize, high: bool) -> Result<(), Failure> {
        self.lines.set(out, high).ok_or(Failure::Gone)
    }

    fn get(&self, input: usize) -> Result<bool, Failure> {
        self.lines.get(input).ok_or(Failure::Gone)
    }

    fn out_name(&self, out: usize) -> String {
        format!("line {out} to {}", self.name)
    }

    fn in_name(&self, input: usize) -> String {
        format!("line {input} from {}", self.name)
    }
}

/// A handle that restores a node's wires to idle without a lock, without allocation,
/// and without knowing the barrier's state:
/// a signal handler and a process that is about to end may use it.
///
/// Clones refer to the same wires and keep the port claimed.
#[derive(Clone)]
pub struct Resting {
    port: Arc<dyn Claimed>,
    /// For each outgoing line, the incoming line that has its idle level; `None` if it idles low.
    outs: Vec<Option<usize>>,
}

/// Maximum number of tries, as in [`ToggleBarrier::close`](crate::ToggleBarrier::close):
/// the barrier may complete once between the read and the write.
const TRIES: u32 = 3;

impl Resting {
    pub(super) fn new(port: &Arc<dyn Claimed>, wanted: &Wanted<'_>) -> Self {
        let outs = 0..wanted.outs.len();
        Self {
            port: port.clone(),
            outs: outs.map(|out| wanted.rests_at(out)).collect(),
        }
    }

    /// Returns the handle for all lines of version 2.
    pub(super) fn of_channels(port: &Arc<dyn Claimed>) -> Self {
        let rests_at = |out| (out < MAX_CHANNELS).then_some(out);
        Self {
            port: port.clone(),
            outs: (0..MAX_CHANNELS + SERIAL).map(rests_at).collect(),
        }
    }

    /// Withdraws every arrival; returns true if all wires are idle afterwards.
    pub fn rest(&self) -> bool {
        // The select line has the last index, so the programming session ends first.
        // After that, the last status line carries releases again.
        let all = self.outs.iter().enumerate().rev();
        all.fold(true, |good, (out, &input)| {
            self.rest_line(out, input) & good
        })
    }

    fn rest_line(&self, out: usize, input: Option<usize>) -> bool {
        let Some(input) = input else {
            return self.port.set_at_the_end(out, false).is_ok();
        };
        (0..TRIES).any(|_| {
            let Ok(idle) = self.port.get(input) else {
                return false;
            };
            self.port.set_at_the_end(out, idle).is_ok()
                && self.port.get(input).is_ok_and(|level| level == idle)
        })
    }
}

impl fmt::Debug for Resting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = (0..self.outs.len()).map(|out| self.port.out_name(out));
        f.debug_set().entries(names).finish()
    }
}
