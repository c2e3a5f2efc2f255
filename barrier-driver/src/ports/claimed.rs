//! What a kind of port has to bring: lines that it has claimed, read and written by number.

use super::error::Failure;
use super::spec::{LineName, Spec};
use super::{PortError, SERIAL};
use fpga_model::channels::MAX_CHANNELS;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The lines that a text asks for, in the order in which pins are made of them.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub outs: Vec<LineName<'a>>,
    pub ins: Vec<LineName<'a>>,
}

impl<'a> Wanted<'a> {
    /// One line each way.
    pub fn pair(spec: &Spec<'a>) -> Result<Self, PortError> {
        Ok(Self {
            outs: vec![spec.line("out")?],
            ins: vec![spec.line("in")?],
        })
    }

    /// So many lines each way, separated by `+`; without the keys those of `usual`, for ports that have such.
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

    /// The inward line at whose level an outward line rests; the others, which carry serial bits, rest low.
    pub fn rests_at(&self, out: usize) -> Option<usize> {
        (out < self.ins.len()).then_some(out)
    }
}

/// A claimed port, given back by its `Drop`.
///
/// Lines are numbered as they were wanted, and high is a high wire, whatever the port inverts.
pub(super) trait Claimed: Send + Sync + 'static {
    fn set(&self, out: usize, high: bool) -> Result<(), Failure>;

    fn get(&self, input: usize) -> Result<bool, Failure>;

    /// As [`set`](Self::set) where the process ends: it waits for no lock, because its holder may never go on.
    fn set_at_the_end(&self, out: usize, high: bool) -> Result<(), Failure> {
        self.set(out, high)
    }

    /// Whether a change of this inward line wakes a process that sleeps in the kernel.
    fn wakes_sleepers(&self, _input: usize) -> bool {
        false
    }

    /// Forgets the changes of this line up to now.
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

/// The lines of version 2 where they belong to no port of this machine, such as a simulator's: high is a high wire.
///
/// Outward they are the arrivals of the five channels, then serial clock, data and select; inward the releases.
pub trait Lines: Send + Sync + 'static {
    /// Drives an outward line; `None` if the lines are gone.
    fn set(&self, out: usize, high: bool) -> Option<()>;

    /// The level of an inward line; `None` if the lines are gone.
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

/// Puts a node's wires back to idle without a lock, without memory, and without knowing of the barrier's state:
/// it may be called by a signal handler, and by a process that has no time left.
///
/// Clones are the same wires; they keep the port claimed.
#[derive(Clone)]
pub struct Resting {
    port: Arc<dyn Claimed>,
    /// For each outward line, the inward line whose level is idle.
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

    /// The lines of version 2.
    pub(super) fn of_channels(port: &Arc<dyn Claimed>) -> Self {
        let rests_at = |out| (out < MAX_CHANNELS).then_some(out);
        Self {
            port: port.clone(),
            outs: (0..MAX_CHANNELS + SERIAL).map(rests_at).collect(),
        }
    }

    /// Withdraws every arrival; whether all wires are idle now.
    pub fn rest(&self) -> bool {
        // A serial session ends first, so that the last status line carries a release again.
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
