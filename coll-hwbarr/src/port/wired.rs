//! A real port of this machine, opened by its text: a parallel port, a line of GPIO.
//!
//! Each node has its own wire pair, so a port serves the ranks of a host only if each gets one of its own:
//! `{rank}` in the text is the rank's number, for hosts with several ports.

use super::{Fence, Pair, Port, Wire};
use barrier_driver::ToggleBarrier;
use barrier_driver::last_resort::{self, Watch};
use barrier_driver::ports::{self, BoxedWires, PORTS};
use mpi_core::plugin::guest::Comm;

/// What stands for the rank in a port's text.
pub const RANK: &str = "{rank}";

pub struct Wired {
    /// Claimed until the driver takes them.
    wires: Option<BoxedWires>,
    place: String,
    /// The wire goes back to idle also if the process ends without us.
    _watch: Option<Watch>,
}

/// Whether there is such a port.
pub fn is_known(text: &str) -> Result<(), String> {
    let name = text.split([':', ',']).next().unwrap_or(text).trim();
    if !PORTS.iter().any(|kind| kind.name == name) {
        let known: Vec<_> = PORTS.iter().map(|kind| kind.syntax).collect();
        return Err(format!(
            "coll_hwbarr_port is \"{text}\", and there are none, sim, and ports such as {}",
            known.join("  ")
        ));
    }
    Ok(())
}

/// Whether the text, of a port that there is, can be meant for this communicator. Local.
pub fn suits(text: &str, comm: &Comm) -> Result<(), String> {
    let here = comm.node_ranks();
    if here.len() > 1 && !text.contains(RANK) {
        return Err(format!(
            "\"{text}\" is one port, and {} ranks run on the host of rank {}; with a port for each, write {RANK} for its number",
            here.len(),
            comm.rank()
        ));
    }
    Ok(())
}

impl Wired {
    /// Claims the port for this process; the level that is on the wire stays there.
    pub fn attach(text: &str, comm: &Comm) -> Result<Wired, String> {
        let place = text.replace(RANK, &comm.rank().to_string());
        let wires = ports::open(&place).map_err(|e| e.to_string())?;
        Ok(Wired {
            wires: Some(wires),
            place,
            _watch: None,
        })
    }
}

impl Pair for Wired {
    fn open(&mut self, fence: Fence) -> Result<Box<dyn Wire>, String> {
        let BoxedWires {
            out,
            input,
            resting,
        } = self
            .wires
            .take()
            .ok_or_else(|| format!("{} has been opened already", self.place))?;
        self._watch = last_resort::watch(resting);
        let barrier =
            ToggleBarrier::open(out, input, fence).map_err(|e| format!("{}: {e}", self.place))?;
        Ok(Box::new(barrier))
    }
}

impl Port for Wired {}
