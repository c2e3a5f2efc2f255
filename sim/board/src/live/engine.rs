//! The engine that computes the board's clock edges: the model, or gates that replace it.
//!
//! In the model, constant inputs change nothing after [`fpga_model::LATENCY_EDGES`] edges.
//! Gates are only known to be a synchronous machine: after an edge that changes no flip-flop,
//! no further edge with the same inputs changes any flip-flop. So gates are stepped only until
//! they are stable, and a long interval costs no more than with the model.

use fpga_model::channels::{ChannelGates, ChannelMachine, Pins};
use fpga_model::{Gates, Registers, ToggleMachine};

/// Maximum number of edges for which gates are stepped with constant inputs until they are stable.
/// For gates that never become stable, the clock stops after this number of edges between two
/// accesses to the board; otherwise an oscillating machine would have to be simulated faster
/// than its clock.
const PATIENCE: u64 = 64;

/// The model, or gates that replace it; every process of a board must use the same engine.
#[derive(Clone, Copy, Default)]
pub(super) struct Engine<'m>(Option<&'m dyn Gates>);

impl<'m> Engine<'m> {
    pub(super) fn of(gates: &'m dyn Gates) -> Self {
        Self(Some(gates))
    }

    /// Steps by `edges` edges with constant inputs.
    /// Calls `on_release(edge, outputs)` at each release; the first edge has number 1.
    pub(super) fn run(
        self,
        machine: &mut ToggleMachine,
        inputs: u64,
        edges: u64,
        mut on_release: impl FnMut(u64, u64),
    ) {
        let Some(gates) = self.0 else {
            machine.fast_forward_with(inputs, edges, on_release);
            return;
        };
        for edge in 1..=edges.min(PATIENCE) {
            let before = machine.registers();
            let after = step(gates, *machine, inputs);
            if after.registers() == before {
                break;
            }
            *machine = after;
            if after.releases() != before.releases {
                on_release(edge, after.outputs());
            }
        }
    }

    /// Returns the number of edges after which the output next toggles with constant inputs.
    pub(super) fn edges_to_release(self, machine: &ToggleMachine, inputs: u64) -> Option<u64> {
        if self.0.is_none() {
            return machine.edges_to_release(inputs);
        }
        let mut first = None;
        self.run(&mut machine.clone(), inputs, PATIENCE, |edge, _| {
            first = first.or(Some(edge));
        });
        first
    }

    /// Returns true if further edges with constant inputs change nothing.
    #[inline]
    pub(super) fn is_settled(self, machine: &ToggleMachine, inputs: u64) -> bool {
        match self.0 {
            None => machine.is_settled(inputs),
            Some(gates) => step(gates, *machine, inputs) == *machine,
        }
    }
}

/// Like [`Engine`], for the machine of version 2 boards.
/// The filter, the serial reply and the release of a line take fewer edges than [`PATIENCE`].
#[derive(Clone, Copy, Default)]
pub(super) struct ChannelEngine<'m>(Option<&'m dyn ChannelGates>);

impl<'m> ChannelEngine<'m> {
    pub(super) fn of(gates: &'m dyn ChannelGates) -> Self {
        Self(Some(gates))
    }

    /// Steps by `edges` edges with constant pins.
    ///
    /// While only counters change, gates are assumed to count like the model.
    pub(super) fn run(self, machine: &mut ChannelMachine, pins: &Pins, edges: u64) {
        match self.0 {
            None => machine.fast_forward(pins, edges),
            Some(gates) => machine.fast_forward_by(edges, PATIENCE, |machine| {
                *machine = gates.edge(machine, pins);
            }),
        }
    }
}

fn step(gates: &dyn Gates, machine: ToggleMachine, inputs: u64) -> ToggleMachine {
    let before = machine.registers();
    let after = machine.load(gates.edge(before, inputs)).registers();
    machine.load(Registers {
        releases: before.releases + u64::from(after.output != before.output),
        ..after
    })
}
