//! Benchmark of an access to a wire of the live board: `cargo bench -p barrier-board --bench live`.
//!
//! This benchmark has one process; `hwbarr live` measures whole barriers between processes.

use barrier_board::live::{Board, Memory, Wires};
use barrier_driver::ToggleBarrier;
use embedded_hal::digital::{InputPin, OutputPin};
use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

/// Calls `body` 2,000,000 times and prints the mean time per call in ns.
fn measure(what: &str, mut body: impl FnMut()) {
    const TIMES: u32 = 2_000_000;
    let start = Instant::now();
    for _ in 0..TIMES {
        body();
    }
    println!(
        "{what:<56} {:>8.1} ns",
        start.elapsed().as_nanos() as f64 / f64::from(TIMES)
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let memory = Memory::create(Board::layout_size(60, 0))?;
    let board = memory.init(60, 0)?;
    let Wires {
        mut out, mut input, ..
    } = board.wires(0, |_| ())?;
    measure("read a wire when nothing has changed", || {
        let _ = black_box(input.is_high());
    });
    measure("write the level that the wire has already", || {
        let _ = black_box(out.set_low());
    });
    let mut high = false;
    measure("change a wire", || {
        high = !high;
        let _ = black_box(out.set_state(high.into()));
    });
    measure("change a wire, then read one (steps the model)", || {
        high = !high;
        let _ = black_box(out.set_state(high.into()));
        let _ = black_box(input.is_high());
    });
    measure("look at the whole board", || {
        black_box(board.snapshot());
    });
    let alone = Memory::create(Board::layout_size(1, 0))?;
    let Wires { out, input, .. } = alone.init(1, 0)?.wires(0, |_| ())?;
    let mut barrier = ToggleBarrier::open(out, input, || Ok::<_, Infallible>(()))?;
    measure(
        "a barrier of one node (three clock edges are 119 ns)",
        || {
            let _ = black_box(barrier.enter());
            while !matches!(barrier.poll(), Ok(state) if state.is_ready()) {}
        },
    );
    Ok(())
}
