//! What computes the board's edges: the model, or gates that were put in its place.
//!
//! The model knows that constant inputs change nothing after [`fpga_model::LATENCY_EDGES`] edges.
//! Of gates nothing is known but that they are a synchronous machine: an edge that changes no flip-flop is, with the same
//! inputs, followed only by edges like it. So gates are run until they rest, and a long time costs them no more than the model.

use fpga_model::channels::{ChannelGates, ChannelMachine, Pins};
use fpga_model::{Gates, Registers, ToggleMachine};

/// So many edges gates may take to come to rest.
/// The clock of gates that never do so stands still between two touches of the board, after this many edges;
/// otherwise a machine that oscillates would have to be simulated faster than its clock.
const PATIENCE: u64 = 64;

/// Steps machines; every process of a board has the same.
#[derive(Clone, Copy, Default)]
pub(super) struct Engine<'m>(Option<&'m dyn Gates>);

impl<'m> Engine<'m> {
    pub(super) fn of(gates: &'m dyn Gates) -> Self {
        Self(Some(gates))
    }

    /// So many edges with constant inputs; `on_release(edge, outputs)`, the first edge being number 1.
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

    /// The number of edges after which the output next toggles if the inputs stay as they are.
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

    /// Whether no number of further edges changes anything while the inputs stay as they are.
    #[inline]
    pub(super) fn is_settled(self, machine: &ToggleMachine, inputs: u64) -> bool {
        match self.0 {
            None => machine.is_settled(inputs),
            Some(gates) => step(gates, *machine, inputs) == *machine,
        }
    }
}

/// Steps machines of version 2, in the same way; a line is filtered, answered and released in fewer edges than the patience.
#[derive(Clone, Copy, Default)]
pub(super) struct ChannelEngine<'m>(Option<&'m dyn ChannelGates>);

impl<'m> ChannelEngine<'m> {
    pub(super) fn of(gates: &'m dyn ChannelGates) -> Self {
        Self(Some(gates))
    }

    /// So many edges with constant pins.
    ///
    /// While nothing but counters moves, gates are taken to count as the model does.
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
