//! `hwbarr watch`: shows which nodes are in the barrier of a live board, which nodes are late, and
//! the barriers per second.
//!
//! The board is served, or in shared memory: that of `hwbarr live`,
//! or of an MPI job that uses the simulated barrier. Watching does not change the board:
//! a served board is queried, and shared memory is mapped read-only.
//!
//! | file | contents |
//! |---|---|
//! | `source` | finding and opening the board |
//! | `history` | the history of the board, from samples: phases, rates, late nodes |
//! | `text` | output for scripts: the whole board once, a line per sample, or JSON |
//! | `screen` | the board as a screen on a terminal |

mod history;
mod screen;
mod source;
mod text;

use crate::{Failure, say};
use barrier_simulator::virtual_time::Time;
use clap::Args;
use history::History;
use source::{BoardName, Source};
use std::io::{IsTerminal, stdout};
use std::time::Duration;

/// Watch a live board: its nodes, their wires, late nodes, barriers per second.
#[derive(Args)]
pub struct Watch {
    /// The board: sim:tcp://HOST:PORT for a served one, or the number of a process that has one in shared memory,
    /// as `hwbarr live` or `mpirun`. Without it, the only one on this host.
    #[arg(value_name = "BOARD")]
    board: Option<BoardName>,
    /// Print the board as it is now, and end.
    #[arg(long, conflicts_with_all = ["plain", "looks"])]
    once: bool,
    /// With --once, for programs: JSON.
    #[arg(long, requires = "once")]
    json: bool,
    /// Print one line per sample instead of a screen; the default if the output is no terminal.
    #[arg(long)]
    plain: bool,
    /// Time between two samples.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    every: Time,
    /// End after this number of samples.
    #[arg(long, value_name = "LOOKS")]
    looks: Option<u64>,
}

impl Watch {
    pub fn execute(self) -> Result<(), Failure> {
        let mut source = Source::open(self.board.as_ref())?;
        let first = source.look()?;
        let mut history = History::new(source.to_string(), first);
        if self.once {
            return match self.json {
                true => say(&printable::json(&format!("{}\n", text::json(&history)))),
                false => say(&text::picture(&history)),
            };
        }
        let every = Duration::from_nanos(self.every.ns()).max(Duration::from_millis(1));
        if !self.plain && stdout().is_terminal() {
            return screen::run(&mut source, &mut history, every, self.looks);
        }
        for look in 1.. {
            say(&text::line(&history))?;
            if self.looks.is_some_and(|looks| look >= looks) {
                break;
            }
            std::thread::sleep(every);
            history.observe(source.look()?);
        }
        Ok(())
    }
}
