//! The interface of a kind of port: claimed lines, read and written by index.

use super::error::Failure;
use super::spec::{LineName, Spec};
use super::{PortError, SERIAL};
use fpga_model::channels::MAX_CHANNELS;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The lines that a text requests, in the order of the pins made from them.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub outs: Vec<LineName<'a>>,
    pub ins: Vec<LineName<'a>>,
}

impl<'a> Wanted<'a> {
    /// One line in each direction.
    pub fn pair(spec: &Spec<'a>) -> Result<Self, PortError> {
        Ok(Self {
            outs: vec![spec.line("out")?],
            ins: vec![spec.line("in")?],
        })
    }

    /// The two levels of a node of a register block: its own, and its group's.
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

    /// The requested numbers of lines in each direction, separated by `+`; if the keys are missing, those of `usual`, for ports that have defaults.
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

    /// The incoming line whose level is an outgoing line's idle level; the others, which carry serial bits, are low at rest.
    pub fn rests_at(&self, out: usize) -> Option<usize> {
        (out < self.ins.len()).then_some(out)
    }
}

/// A claimed port, released by its `Drop`.
///
/// Lines are numbered in the order requested, and `high` means a high wire, whatever the port inverts.
pub(super) trait Claimed: Send + Sync + 'static {
    fn set(&self, out: usize, high: bool) -> Result<(), Failure>;

    fn get(&self, input: usize) -> Result<bool, Failure>;

    /// As [`set`](Self::set), but for a process that is ending: it does not wait for a lock, because the holder of the lock may never run again.
    fn set_at_the_end(&self, out: usize, high: bool) -> Result<(), Failure> {
        self.set(out, high)
    }

    /// Returns true if a change of this incoming line wakes a process that sleeps in the kernel.
    fn wakes_sleepers(&self, _input: usize) -> bool {
        false
    }

    /// Discards the changes of this line up to now.
    fn arm(&self, _input: usize) -> Result<(), Failure> {
        Ok(())
    }

    /// Sleeps until the line may have become `high` since it was armed, for at most `limit`; see
    /// [`InputEvents`](crate::InputEvents).
    fn sleep(&self, _input: usize, _high: bool, _limit: Duration) -> Result<(), Failure> {
        Ok(())
    }

    fn out_name(&self, out: usize) -> String;

    fn in_name(&self, input: usize) -> String;
}

/// The lines of version 2 that are not a port of this machine, such as a simulator's; `true` is a high wire.
///
/// The outgoing lines are the arrivals of the five channels, then serial clock, data and select; the incoming lines are the releases.
pub trait Lines: Send + Sync + 'static {
    /// Drives an outgoing line; `None` if the lines have been disconnected.
    fn set(&self, out: usize, high: bool) -> Option<()>;

    /// The level of an incoming line; `None` if the lines have been disconnected.
    fn get(&self, input: usize) -> Option<bool>;
}

/// [`Lines`] as a port.
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

/// Restores a node's wires to idle without a lock, without allocation, and without knowing the barrier's state:
/// a signal handler may call it, and a process that is about to end.
///
/// Clones are the same wires; they keep the port claimed.
#[derive(Clone)]
pub struct Resting {
    port: Arc<dyn Claimed>,
    /// For each outgoing line, the incoming line whose level is its idle level.
    outs: Vec<Option<usize>>,
}

/// As for [`ToggleBarrier::close`](crate::ToggleBarrier::close): the barrier may complete between read and write, once.
const TRIES: u32 = 3;

impl Resting {
    pub(super) fn new(port: &Arc<dyn Claimed>, wanted: &Wanted<'_>) -> Self {
        let outs = 0..wanted.outs.len();
        Self {
            port: port.clone(),
            outs: outs.map(|out| wanted.rests_at(out)).collect(),
        }
    }

    /// All lines of version 2.
    pub(super) fn of_channels(port: &Arc<dyn Claimed>) -> Self {
        let rests_at = |out| (out < MAX_CHANNELS).then_some(out);
        Self {
            port: port.clone(),
            outs: (0..MAX_CHANNELS + SERIAL).map(rests_at).collect(),
        }
    }

    /// Withdraws every arrival; returns true if all wires are idle now.
    pub fn rest(&self) -> bool {
        // Reverse order ends a serial session first, so that the last status line carries a release again.
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
