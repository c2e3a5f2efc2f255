//! The simulated machine of version 1, with the filter of its wires.

use super::{FlipFlops, Machine};
use fpga_model::filter::{BadFilter, FilteredMachine};

#[derive(Debug)]
pub(super) struct Toggle {
    machine: FilteredMachine,
    /// Levels at the board's pins.
    inputs: u64,
}

impl Toggle {
    pub(super) fn new(pins: usize, filter: u16) -> Result<Self, BadFilter> {
        let machine = FilteredMachine::new(pins, filter)?;
        Ok(Self { machine, inputs: 0 })
    }
}

impl Machine for Toggle {
    fn set(&mut self, pin: usize, _line: usize, high: bool) {
        self.inputs = self.inputs & !(1 << pin) | u64::from(high) << pin;
    }

    fn run(&mut self, edges: u64) {
        self.machine.fast_forward(self.inputs, edges);
    }

    fn edges_to_change(&self) -> Option<u64> {
        self.machine.edges_to_release(self.inputs)
    }

    fn latency_edges(&self) -> u64 {
        self.machine.latency_edges()
    }

    fn output(&self, _pin: usize, _line: usize) -> bool {
        self.machine.outputs() != 0
    }

    fn levels(&self) -> u64 {
        u64::from(self.machine.outputs() != 0)
    }

    fn all_at(&self, high: bool) -> u64 {
        u64::from(high)
    }

    fn releases(&self) -> u64 {
        self.machine.releases()
    }

    fn reset(&mut self) {
        self.machine.reset();
    }

    fn flip_flops(&self) -> Option<FlipFlops> {
        let registers = self.machine.registers();
        Some(FlipFlops {
            stage1: registers.stage1,
            stage2: registers.stage2,
            seen: self.machine.seen(),
            output: registers.output,
        })
    }
}
