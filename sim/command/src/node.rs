//! The node process of `hwbarr live`: it opens its wires,
//! passes barriers and reports their duration.
//!
//! For each software fence the node writes [`FENCE`] to its parent and waits for one byte;
//! at the end it writes [`ELAPSED`] and the duration in nanoseconds as eight bytes.
//! The board is in inherited memory, or is served by another process, possibly on another host.

use crate::Failure;
use barrier_board::live::{self, Marks, Memory};
use barrier_board::served::{self, Address};
use barrier_driver::{Eureka, Found, SelfTest, ToggleBarrier, self_test};
use clap::Args;
use embedded_hal::digital::{InputPin, OutputPin};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io::{Read, Write, stdin, stdout};
use std::task::Poll;
use std::time::{Duration, Instant};

/// Byte to the parent: the node has entered the fence.
pub const FENCE: u8 = b'.';
/// Byte to the parent: the node has passed all barriers; nanoseconds follow.
pub const ELAPSED: u8 = b'T';

/// Time limit of a barrier, far longer than a barrier takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// One process of `live`.
#[derive(Args)]
pub struct Node {
    /// The inherited descriptor of the board's memory.
    #[arg(long, required_unless_present = "board")]
    fd: Option<i32>,
    /// The served board.
    #[arg(long, conflicts_with = "fd")]
    board: Option<Address>,
    /// How many nodes the board has.
    #[arg(long)]
    nodes: usize,
    /// Which node this is.
    #[arg(long)]
    node: usize,
    /// How many barriers it passes.
    #[arg(long)]
    barriers: u64,
    /// Test the wires first.
    #[arg(long)]
    self_test: bool,
    /// Search before each barrier: the nodes find it in turn.
    #[arg(long)]
    eureka: bool,
}

/// Callback that records that the program enters the barrier (true) or leaves it (false).
type Mark<'a> = &'a mut dyn FnMut(bool);

impl Node {
    pub fn execute(self) -> Result<(), Failure> {
        // Without its parent this node would poll indefinitely in a barrier,
        // so the kernel kills the node when the parent ends.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Nodes yield between polls and never sleep, so `ring` has nothing to do.
        match (&self.board, self.fd) {
            (Some(server), _) => {
                let wires = served::Wires::connect(server, self.node, self.nodes, || ())?;
                let line = self.eureka.then_some(wires.eureka);
                let mut line = line
                    .map(|line| Eureka::open(line.out, line.found, line.first, fence))
                    .transpose()?;
                let search = &mut |round| self.search(line.as_mut(), round);
                self.live(wires.out, wires.input, search, &mut |_| ())
            }
            (None, Some(fd)) => {
                // The file is opened through /proc because a `File`
                // from a descriptor's number would need `unsafe`.
                let file = std::fs::File::options()
                    .read(true)
                    .write(true)
                    .open(format!("/proc/self/fd/{fd}"))?;
                let memory = Memory::map(file.into())?;
                let board = memory.attach()?;
                let live::Wires {
                    out,
                    input,
                    mut marks,
                } = board.wires(self.node, |_| ())?;
                let line = self.eureka.then(|| board.eureka(self.node, |_| ()));
                let line = line.transpose()?;
                let mut line = line
                    .map(|line| Eureka::open(line.out, line.found, line.first, fence))
                    .transpose()?;
                let search = &mut |round| self.search(line.as_mut(), round);
                self.live(out, input, search, &mut |inside| match inside {
                    true => Marks::enter(&mut marks),
                    false => Marks::leave(&mut marks),
                })
            }
            (None, None) => Err("a node needs a board".into()),
        }
    }

    /// Opens the barrier, passes all barriers, and restores the wires.
    fn live<O: OutputPin, I: InputPin<Error = O::Error>>(
        &self,
        out: O,
        input: I,
        search: &mut dyn FnMut(u64) -> Result<(), Failure>,
        mark: Mark,
    ) -> Result<(), Failure>
    where
        O::Error: 'static,
    {
        let mut barrier = ToggleBarrier::open(out, input, fence)?;
        if self.self_test {
            let test = SelfTest {
                me: self.node,
                hold: Duration::from_micros(50),
                limit: LIMIT,
            };
            let late = [0, self.nodes - 1];
            self_test(&mut barrier, test, late, fence, std::thread::yield_now)?;
        }
        fence()?;
        let start = Instant::now();
        for round in 0..self.barriers {
            search(round)?;
            mark(true);
            barrier.enter()?;
            barrier.wait(std::thread::yield_now, LIMIT)?;
            mark(false);
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

impl Node {
    /// Performs one round of the search: one node raises the eureka line,
    /// and all nodes wait until they read it high.
    fn search<O: OutputPin, I: InputPin<Error = O::Error>>(
        &self,
        line: Option<&mut Eureka<O, I>>,
        round: u64,
    ) -> Result<(), Failure>
    where
        O::Error: 'static,
    {
        let Some(line) = line else {
            return Ok(());
        };
        let me = self.node;
        let finder = round % self.nodes as u64 == me as u64;
        if finder {
            line.announce()?;
        }
        let begin = Instant::now();
        let Found { first } = loop {
            match line.poll()? {
                Poll::Ready(found) => break found,
                Poll::Pending if begin.elapsed() > LIMIT => {
                    return Err(format!(
                        "node {me} has heard nothing over the eureka line for {LIMIT:?} in round {round}"
                    )
                    .into());
                }
                Poll::Pending => std::thread::yield_now(),
            }
        };
        if first != finder {
            let (found, told) = match finder {
                true => ("found it", "another node was"),
                false => ("found nothing", "it was"),
            };
            return Err(format!(
                "node {me} {found} in round {round}, and the eureka line says that {told} the first"
            )
            .into());
        }
        Ok(line.rest()?)
    }
}

/// A software fence of all nodes, through pipes to the parent process.
fn fence() -> std::io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(&[FENCE])?;
    out.flush()?;
    stdin().lock().read_exact(&mut [0])
}
