//! The port for real hardware of this machine, such as a parallel port or GPIO lines, given by its name.
//!
//! Each node has its own wire pair, so a host with several ranks needs one port per rank:
//! `{rank}` in the port's name is replaced by the rank's number.

use super::{Fence, Pair, Port, Wire};
use barrier_driver::ToggleBarrier;
use barrier_driver::last_resort::{self, Watch};
use barrier_driver::ports::{self, BoxedWires, PORTS};
use mpi_core::plugin::guest::Comm;

/// A placeholder in the port's name, replaced by the rank's number.
pub const RANK: &str = "{rank}";

pub struct Wired {
    /// The wires, claimed for this process; `None` after the driver has taken them.
    wires: Option<BoxedWires>,
    place: String,
    /// A process that returns the wire to idle even if this process ends abnormally.
    _watch: Option<Watch>,
}

/// Checks that a port's name begins with a known type of port.
pub fn is_known(text: &str) -> Result<(), String> {
    let name = text.split([':', ',']).next().unwrap_or(text).trim();
    if !PORTS.iter().any(|kind| kind.name == name) {
        let known: Vec<_> = PORTS.iter().map(|kind| kind.syntax).collect();
        return Err(format!(
            "coll_hwbarr_port is \"{text}\", but none, sim, sim:tcp://HOST:PORT, rtl, rtl:DIR or a port such as {} is expected",
            known.join(", or ")
        ));
    }
    Ok(())
}

/// Checks whether the port with this name can serve this communicator; needs no communication.
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
    /// Claims the port for this process, without a change of the wire's level.
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
