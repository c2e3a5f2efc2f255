//! The toggle barrier with a glitch filter:
//! a wire's level changes only when several consecutive samples agree.
//!
//! # The filter
//!
//! After the two synchroniser stages each wire has a *held* level and a count of consecutive samples that differ from it.
//! The machine receives the new level at the sample that completes the count, and the held level until then:
//!
//! ```text
//! pin -> stage1 -> stage2 -+-> [count of samples that differ from held] -> full? -+-> machine
//!                          +--------------------- new level ----------------------+
//! ```
//!
//! A shorter pulse, for example of a glitch, crosstalk or contact bounce,
//! does not reach the machine.
//! With `samples` = 1 it behaves exactly as [`ToggleMachine`], edge by edge; each further sample delays a release by one edge.
//!
//! # Pulse length
//!
//! `samples` samples span `samples - 1` periods: a pulse of at most that length never passes, at any phase,
//! and a pulse of at least `samples` periods always passes.
//!
//! The RTL has this filter as `level_filter`, and the parameter `FILTER` of `toggle_barrier`.

use crate::{BadNodeCount, LATENCY_EDGES, Registers, ToggleMachine};
use core::fmt;

/// Maximum number of samples, limited by the eight-bit count: 10 us at 25.175 MHz.
pub const MAX_SAMPLES: u16 = 256;

/// Width of a count in bits. The counts are stored in bit planes:
/// bit `n` of plane `p` is bit `p` of node `n`'s count.
const PLANES: usize = 8;

/// The error for a parameter that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFilter {
    /// A barrier cannot have this number of nodes.
    Nodes(BadNodeCount),
    /// The number of samples, which must be 1 to [`MAX_SAMPLES`].
    Samples(u16),
}

impl fmt::Display for BadFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(bad) => bad.fmt(f),
            Self::Samples(samples) => write!(
                f,
                "a filter of {samples} samples cannot be built: 1 to {MAX_SAMPLES} samples make a level"
            ),
        }
    }
}

impl core::error::Error for BadFilter {}

/// The filter flip-flops of all wires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The filtered level of each wire, as a mask.
    pub held: u64,
    /// For each wire the number of consecutive samples
    /// that have differed from `held`, in bit planes.
    count: [u64; PLANES],
}

impl Filter {
    /// Returns the number of consecutive samples that have differed from the held level of this node's wire.
    pub fn count(&self, node: usize) -> u16 {
        let bits = self.count.iter().enumerate();
        bits.fold(0, |sum, (p, plane)| sum | ((plane >> node & 1) as u16) << p)
    }

    /// Returns the filter after setting the held level and the count of the wire of `node`.
    pub fn with(mut self, node: usize, held: bool, count: u16) -> Self {
        let put = |word: &mut u64, bit: bool| *word = *word & !(1 << node) | u64::from(bit) << node;
        put(&mut self.held, held);
        for (p, plane) in self.count.iter_mut().enumerate() {
            put(plane, count >> p & 1 == 1);
        }
        self
    }

    /// Returns the wires whose count is `full`,
    /// so that one more differing sample changes their level.
    #[inline]
    fn is_full(&self, full: u16) -> u64 {
        let planes = self.count.iter().enumerate();
        planes.fold(u64::MAX, |all, (p, plane)| {
            all & if full >> p & 1 == 1 { *plane } else { !*plane }
        })
    }

    /// Returns the filtered levels that the machine receives for these synchronised levels.
    #[inline]
    pub(crate) fn seen(&self, levels: u64, full: u16) -> u64 {
        let differs = levels ^ self.held;
        self.held ^ differs & self.is_full(full)
    }

    /// Performs one clock edge with these synchronised levels.
    #[inline]
    pub(crate) fn step(&mut self, levels: u64, full: u16) {
        let differs = levels ^ self.held;
        let turns = differs & self.is_full(full);
        // A count increases if the sample differs and does not complete it;
        // otherwise it becomes zero.
        let goes_on = differs & !turns;
        let mut carry = goes_on;
        for plane in &mut self.count {
            let bit = *plane & goes_on;
            *plane = bit ^ carry;
            carry &= bit;
        }
        self.held ^= turns;
    }
}

/// A toggle barrier with a filter on each wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilteredMachine {
    wires: u64,
    /// The filter count at which one more differing sample changes the level of a wire.
    full: u16,
    registers: Registers,
    filter: Filter,
}

impl FilteredMachine {
    /// Returns the machine in its state after power-on: every flip-flop is clear.
    pub const fn new(nodes: usize, samples: u16) -> Result<Self, BadFilter> {
        let machine = match ToggleMachine::new(nodes) {
            Ok(machine) => machine,
            Err(bad) => return Err(BadFilter::Nodes(bad)),
        };
        if samples == 0 || samples > MAX_SAMPLES {
            return Err(BadFilter::Samples(samples));
        }
        Ok(Self {
            wires: machine.wires(),
            full: samples - 1,
            registers: machine.registers(),
            filter: Filter {
                held: 0,
                count: [0; PLANES],
            },
        })
    }

    /// Returns the number of samples that must agree.
    pub const fn samples(&self) -> u16 {
        self.full + 1
    }

    /// Returns the number of edges from the last arrival at the pin to the release.
    /// After these edges, constant inputs change nothing.
    pub const fn latency_edges(&self) -> u64 {
        LATENCY_EDGES + self.full as u64
    }

    /// Resets every flip-flop to its power-on level; the number of releases does not change.
    pub fn reset(&mut self) {
        self.registers = Registers {
            releases: self.registers.releases,
            ..Registers::default()
        };
        self.filter = Filter::default();
    }

    /// Performs one rising clock edge with these levels at the input pins; returns the levels at the output pins after it.
    #[inline]
    pub fn step(&mut self, inputs: u64) -> u64 {
        let Self {
            wires,
            full,
            registers: r,
            filter,
        } = self;
        let seen = filter.seen(r.stage2, *full);
        let toggle = u64::from(seen ^ r.output == *wires);
        filter.step(r.stage2, *full);
        r.output ^= toggle.wrapping_neg() & *wires;
        r.releases += toggle;
        r.stage2 = r.stage1;
        r.stage1 = inputs & *wires;
        r.output
    }

    /// Simulates exactly `cycles` steps with constant inputs, but performs at most
    /// [`latency_edges`](Self::latency_edges) of them:
    /// after these, both stages and every held level equal the inputs,
    /// and the machine has toggled if it must.
    pub fn fast_forward(&mut self, inputs: u64, cycles: u64) -> u64 {
        for _ in 0..cycles.min(self.latency_edges()) {
            self.step(inputs);
        }
        self.registers.output
    }

    /// Returns the number of edges after which the output next toggles with constant inputs;
    /// `None` if it never does.
    pub fn edges_to_release(&self, inputs: u64) -> Option<u64> {
        let mut ahead = *self;
        (1..=self.latency_edges()).find(|_| {
            let before = ahead.registers.output;
            ahead.step(inputs) != before
        })
    }

    /// Returns the levels at the output pins: all high or all low.
    pub const fn outputs(&self) -> u64 {
        self.registers.output
    }

    /// Returns the number of times that the output has toggled since power-on.
    pub const fn releases(&self) -> u64 {
        self.registers.releases
    }

    /// Returns the levels that the machine receives at the next edge.
    pub fn seen(&self) -> u64 {
        self.filter.seen(self.registers.stage2, self.full)
    }

    /// Returns the mask of existing wires.
    pub const fn wires(&self) -> u64 {
        self.wires
    }

    /// Returns the flip-flops of the synchronisers and of the machine.
    pub const fn registers(&self) -> Registers {
        self.registers
    }

    /// Returns the flip-flops of the filter.
    pub const fn filter(&self) -> &Filter {
        &self.filter
    }
}
