//! Connecting jobs: `MPI_Open_port`, `MPI_Comm_accept` and `MPI_Comm_connect` (MPI 5.0, section 11.9), which `MPI_Comm_spawn` is made of, too.
//!
//! A port is a number that one process has drawn, and its name says how that process is reached ([`PortName`]).
//! The roots of both groups agree at the port ([`Ports`]) and then have a communicator of two processes between them,
//! over which the groups become an intercommunicator as in `MPI_Intercomm_create`.
//!
//! ```text
//! connecting root                         accepting root
//!   KNOCK    port, call               ->
//!                                     <-  ACCEPT  call        (or REFUSE, where no such port is open)
//!   CONFIRM  call                     ->                      (or WITHDRAW, where no process waits for it any more)
//! ```
//!
//! Promises:
//! * a port that is not open is refused at once, by whatever call of MPI its process is in;
//! * a call whose root fails fails at all members of its group with the same sentence;
//! * no process waits for a root that has given up: an accept goes on to the next caller.

mod port_name;
mod ports;

pub use port_name::{PortName, PortNameError};
pub use ports::Ports;

use crate::Error;
use crate::comm::{Comm, CommError, LeaderError};
use crate::engine::Engine;
use std::time::Duration;

impl Engine {
    /// `MPI_Open_port`.
    pub fn open_port(&self) -> Result<PortName, Error> {
        let ports = self.opened_ports()?;
        let number = ports.open()?;
        let universe = self.universe();
        let name = universe.name(self.me());
        let name = name.ok_or(CommError::Unknown { name: u64::MAX })?;
        Ok(PortName::new(name, number, &universe.own_card()))
    }

    /// No process will ever connect to a port of this process, so what waits there fails, and says why.
    pub fn fail_port(&self, port: &PortName, why: String) {
        if let Some(ports) = self.ports() {
            ports.fail(port.number(), why);
        }
    }

    /// `MPI_Close_port`; false if this process has not opened it. Callers that have not been accepted are refused.
    pub fn close_port(&self, port: &PortName) -> bool {
        let mine = self.universe().name(self.me()) == Some(port.owner());
        let ports = self.ports();
        ports.is_some_and(|ports| mine && ports.close(port.number()))
    }
}

impl Comm {
    /// `MPI_Comm_accept`: `port`, or what was wrong with it, is looked at on the root only; `refused` is the caller's code of an error there.
    pub async fn accept(
        &self,
        root: u32,
        port: Option<Result<PortName, LeaderError>>,
        refused: i32,
    ) -> Result<Comm, Error> {
        let met = match port {
            None => None,
            Some(Err(astray)) => Some(Err(astray)),
            Some(Ok(port)) => Some(self.wait_for_caller(&port, refused).await),
        };
        self.over_bridge(root, met).await
    }

    /// What a member does that has failed before it could accept, when other members of its group may accept: the same end as theirs.
    pub async fn not_accepted(&self, root: u32, error: Error) -> Result<Comm, Error> {
        match self.engine().is_fault_tolerant() {
            true => self.end_alike(root, None, Err(error)).await,
            false => Err(error),
        }
    }

    /// The rest of accept and connect, once the roots have met.
    async fn over_bridge(
        &self,
        root: u32,
        met: Option<Result<Comm, LeaderError>>,
    ) -> Result<Comm, Error> {
        let bridge = met.as_ref().map(|met| met.as_ref());
        let bridge = bridge.map(|met| met.map(|bridge| (bridge, 0)).map_err(Clone::clone));
        let made = self.inter(root, bridge, 0).await;
        match self.engine().is_fault_tolerant() {
            true => self.end_alike(root, met, made).await,
            false => made,
        }
    }

    /// `MPI_Comm_connect`; a port where no process accepts is waited for for `patience`, or without end.
    pub async fn connect(
        &self,
        root: u32,
        port: Option<Result<PortName, LeaderError>>,
        patience: Option<Duration>,
        refused: i32,
    ) -> Result<Comm, Error> {
        let met = match port {
            None => None,
            Some(Err(astray)) => Some(Err(astray)),
            Some(Ok(port)) => Some(self.call_at(&port, patience, refused).await),
        };
        self.over_bridge(root, met).await
    }

    async fn wait_for_caller(&self, port: &PortName, code: i32) -> Result<Comm, LeaderError> {
        let engine = self.engine();
        let failed = |why: String| LeaderError { code, why };
        let ports = engine.opened_ports().map_err(|e| failed(e.to_string()))?;
        let broken = || self.usable().err().map(|error| error.to_string());
        let accepted = ports.accept(engine, port.number(), broken).await;
        let (proc, call) = accepted.map_err(|why| self.own_failure(failed(why)))?;
        let bridge = Comm::bridge(engine, proc, call);
        engine.part_from(&[proc]);
        bridge.map_err(|e| failed(e.to_string()))
    }

    async fn call_at(
        &self,
        port: &PortName,
        patience: Option<Duration>,
        code: i32,
    ) -> Result<Comm, LeaderError> {
        let engine = self.engine();
        let failed = |why: String| LeaderError { code, why };
        let ports = engine.opened_ports().map_err(|e| failed(e.to_string()))?;
        let universe = engine.universe();
        let proc = universe.introduce(port.owner(), port.card().clone());
        let proc = proc.ok_or_else(|| {
            failed("the port is of a process of this job that does not exist".into())
        })?;
        // While it is called, it is known.
        universe.hold([proc].into_iter());
        let broken = || self.usable().err().map(|error| error.to_string());
        let called = (ports.connect(engine, proc, port.number(), patience, broken)).await;
        let bridge = called
            .and_then(|call| Comm::bridge(engine, proc, call).map_err(|error| error.to_string()));
        engine.part_from(&[proc]);
        bridge.map_err(|why| self.own_failure(failed(why)))
    }

    /// Why the root has not met the other one: that its own group has failed, if that is so.
    fn own_failure(&self, otherwise: LeaderError) -> LeaderError {
        self.usable().err().map_or(otherwise, LeaderError::lost)
    }
}
