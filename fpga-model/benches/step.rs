//! Throughput of the model in clock cycles per second on random stimulus: `cargo bench -p fpga-model --bench step`.
//!
//! In each cycle every node that has not arrived arrives with probability 1/2,
//! so barriers complete at random intervals and no branch is predictable.

use fpga_model::{CLOCK_HZ, ToggleMachine};
use std::{hint::black_box, time::Instant};

fn main() {
    const CYCLES: u64 = 200_000_000;
    println!(
        "{:>5} {:>14} {:>12} {:>14}",
        "nodes", "M cycles/s", "real time", "releases"
    );
    for nodes in [2, 7, 60, 64] {
        let Ok(mut machine) = ToggleMachine::new(black_box(nodes)) else {
            continue;
        };
        let (mut inputs, mut random) = (0u64, 0x9e37_79b9_7f4a_7c15u64);
        let start = Instant::now();
        for _ in 0..CYCLES {
            // Xorshift64 (Marsaglia 2003): random numbers cost only three shifts per cycle.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            inputs ^= random & !(inputs ^ machine.outputs());
            machine.step(inputs);
        }
        let rate = CYCLES as f64 / start.elapsed().as_secs_f64();
        println!(
            "{nodes:>5} {:>14.1} {:>11.1}x {:>14}",
            rate / 1e6,
            rate / CLOCK_HZ as f64,
            black_box(&machine).releases()
        );
    }
}
