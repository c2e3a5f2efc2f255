//! One process of `hwbarr live`: a node that opens its wires, passes barriers and reports how long they took.
//!
//! Towards its parent it writes [`FENCE`] and reads one byte back for each software fence,
//! and at the end [`ELAPSED`] with nanoseconds as eight bytes.

use crate::Failure;
use barrier_driver::{SelfTest, ToggleBarrier, self_test};
use clap::Args;
use sim::live::{Memory, Wires};
use std::io::{Read, Write, stdin, stdout};
use std::time::{Duration, Instant};

/// The node is in the fence.
pub const FENCE: u8 = b'.';
/// The node has passed all barriers; nanoseconds follow.
pub const ELAPSED: u8 = b'T';

/// Far longer than a barrier may take on the busiest machine.
const LIMIT: Duration = Duration::from_secs(60);

/// One process of `live`.
#[derive(Args)]
pub struct Node {
    /// The inherited descriptor of the board's memory.
    #[arg(long)]
    fd: i32,
    /// Which node this is.
    #[arg(long)]
    node: usize,
    /// How many barriers it passes.
    #[arg(long)]
    barriers: u64,
    /// Test the wires first.
    #[arg(long)]
    self_test: bool,
}

impl Node {
    pub fn execute(self) -> Result<(), Failure> {
        // Opening through /proc needs no `unsafe` promise that the number is a descriptor of ours.
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/self/fd/{}", self.fd))?;
        let memory = Memory::map(file.into())?;
        let board = memory.attach()?;
        // Nobody sleeps here: a node yields between polls, so there is nobody to ring.
        let Wires {
            out,
            input,
            mut marks,
        } = board.wires(self.node, |_| ())?;
        let mut barrier = ToggleBarrier::open(out, input, fence)?;
        if self.self_test {
            let test = SelfTest {
                me: self.node,
                hold: Duration::from_micros(50),
                limit: LIMIT,
            };
            let late = [0, board.nodes() - 1];
            self_test(&mut barrier, test, late, fence, std::thread::yield_now)?;
        }
        fence()?;
        let start = Instant::now();
        for _ in 0..self.barriers {
            marks.enter();
            barrier.enter()?;
            barrier.wait(std::thread::yield_now, LIMIT)?;
            marks.leave();
        }
        let ns = start.elapsed().as_nanos() as u64;
        let mut out = stdout().lock();
        out.write_all(&[ELAPSED])?;
        out.write_all(&ns.to_le_bytes())?;
        out.flush()?;
        barrier.close()?;
        Ok(())
    }
}

/// Meets all nodes in the parent.
fn fence() -> std::io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(&[FENCE])?;
    out.flush()?;
    stdin().lock().read_exact(&mut [0])
}
