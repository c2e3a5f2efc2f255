//! A node's program for a virtual machine: opens a port, runs the self-test, passes barriers;
//! a serial line synchronises the nodes.
//!
//! ```text
//! guest PORT LINE ME NODES BARRIERS
//! ```
//!
//! For a fence, each node writes one byte to the line and then waits for one byte;
//! the line's other end sends that byte to every node when all nodes have written theirs.
//! `cargo xtask nightly-qemu` boots virtual machines that run this program.

use barrier_driver::{SelfTest, ToggleBarrier, ports, self_test};
use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// Time limit, far longer than a barrier of emulated machines takes.
const LIMIT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [port, line, me, nodes, barriers] = arguments.as_slice() else {
        return Err("guest PORT LINE ME NODES BARRIERS".into());
    };
    let (me, nodes, barriers): (usize, usize, u32) =
        (me.parse()?, nodes.parse()?, barriers.parse()?);
    let mut line = File::options().read(true).write(true).open(line)?;
    let mut fence = || -> std::io::Result<()> {
        line.write_all(b".")?;
        line.read_exact(&mut [0])
    };
    let wires = ports::open(port)?;
    let mut barrier = ToggleBarrier::open(wires.out, wires.input, &mut fence)?;
    let test = SelfTest {
        me,
        hold: Duration::from_millis(2),
        limit: LIMIT,
    };
    self_test(&mut barrier, test, 0..nodes, &mut fence, yield_now)?;
    let start = Instant::now();
    for _ in 0..barriers {
        barrier.enter()?;
        barrier.wait(yield_now, LIMIT)?;
    }
    let each = start.elapsed() / barriers.max(1);
    barrier.close()?;
    println!("node {me} passed {barriers} barriers over {port}, {each:.1?} each");
    Ok(())
}
