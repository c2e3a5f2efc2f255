//! Connection of jobs: `MPI_Open_port`, `MPI_Comm_accept` and `MPI_Comm_connect` (MPI 5.0, section 11.9), which `MPI_Comm_spawn` uses too.
//!
//! A port is identified by a random number in one process; its name contains the number and the endpoint address of that process ([`PortName`]).
//! The roots of both groups exchange messages about the port ([`Ports`]).
//! Then they have a communicator of two processes, the bridge,
//! over which the groups create an intercommunicator, as in `MPI_Intercomm_create`.
//!
//! ```text
//! connecting root                         accepting root
//!   KNOCK    port, call               ->
//!                                     <-  ACCEPT  call        (or REFUSE, if no such port is open)
//!   CONFIRM  call                     ->                      (or WITHDRAW, if the connect has been cancelled)
//! ```
//!
//! Guarantees:
//! * a closed port refuses immediately, even if its process is in another MPI call;
//! * if the root's call fails, the call fails on all members of its group with the same error;
//! * no process waits for a root that has cancelled its call: an accept continues with the next caller.

pub(crate) mod port_name;
mod ports;

pub use port_name::{PortName, PortNameError};
pub use ports::{Ports, ProcessPorts};

use crate::Error;
use crate::comm::bridge;
use crate::comm::{Comm, CommError, LeaderError};
use std::time::Duration;

impl ProcessPorts<'_> {
    /// Implements `MPI_Open_port`.
    pub fn open(self) -> Result<PortName, Error> {
        let number = self.opened()?.open()?;
        let universe = self.engine.universe();
        let name = universe.name(self.engine.me());
        let name = name.ok_or(CommError::Unknown { name: u64::MAX })?;
        Ok(PortName::new(name, number, &universe.own_card()))
    }

    /// Fails accepts on a port of this process with the text `why`, because no process will ever connect to the port.
    pub fn fail(self, port: &PortName, why: String) {
        if let Some(ports) = self.known() {
            ports.fail(port.number(), why);
        }
    }

    /// `MPI_Close_port`: refuses all callers that have not been accepted.
    /// Returns false if this process has not opened the port.
    pub fn close(self, port: &PortName) -> bool {
        let engine = self.engine;
        let mine = engine.universe().name(engine.me()) == Some(port.owner());
        let ports = self.known();
        ports.is_some_and(|ports| mine && ports.close(port.number()))
    }
}

impl Comm {
    /// Returns the functions that connect the communicator's members with another job.
    pub fn ports(&self) -> PortCalls<'_> {
        PortCalls { comm: self }
    }
}

/// The functions that connect the members of a communicator with another job.
#[derive(Clone, Copy)]
pub struct PortCalls<'a> {
    comm: &'a Comm,
}

impl PortCalls<'_> {
    /// `MPI_Comm_accept`: `port`, or the error in that argument, is significant on the root only; `refused` is the code of a refusal.
    pub async fn accept(
        self,
        root: u32,
        port: Option<Result<PortName, LeaderError>>,
        refused: i32,
    ) -> Result<Comm, Error> {
        let met = match port {
            None => None,
            Some(Err(error)) => Some(Err(error)),
            Some(Ok(port)) => Some(self.wait_for_caller(&port, refused).await),
        };
        self.over_bridge(root, met).await
    }

    /// Called by a member that failed before it could call `accept`: takes part in the group's agreement.
    pub async fn not_accepted(self, root: u32, error: Error) -> Result<Comm, Error> {
        match self.comm.engine().is_fault_tolerant() {
            true => {
                self.comm
                    .agreement()
                    .uniform_outcome(root, None, Err(error))
                    .await
            }
            false => Err(error),
        }
    }

    /// Completes an accept or connect after the roots have connected.
    async fn over_bridge(
        self,
        root: u32,
        met: Option<Result<Comm, LeaderError>>,
    ) -> Result<Comm, Error> {
        let bridge = met.as_ref().map(|met| met.as_ref());
        let bridge = bridge.map(|met| met.map(|bridge| (bridge, 0)).map_err(Clone::clone));
        let made = self.comm.inter().create(root, bridge, 0).await;
        match self.comm.engine().is_fault_tolerant() {
            true => self.comm.agreement().uniform_outcome(root, met, made).await,
            false => made,
        }
    }

    /// `MPI_Comm_connect`; waits for an accept at most `patience`, or without a limit if that is `None`.
    pub async fn connect(
        self,
        root: u32,
        port: Option<Result<PortName, LeaderError>>,
        patience: Option<Duration>,
        refused: i32,
    ) -> Result<Comm, Error> {
        let met = match port {
            None => None,
            Some(Err(error)) => Some(Err(error)),
            Some(Ok(port)) => Some(self.call_at(&port, patience, refused).await),
        };
        self.over_bridge(root, met).await
    }

    async fn wait_for_caller(self, port: &PortName, code: i32) -> Result<Comm, LeaderError> {
        let engine = self.comm.engine();
        let failed = |why: String| LeaderError { code, why };
        let ports = engine.ports().opened().map_err(|e| failed(e.to_string()))?;
        let broken = || self.comm.usable().err().map(|error| error.to_string());
        let accepted = ports.accept(engine, port.number(), broken).await;
        let (proc, call) = accepted.map_err(|why| self.own_failure(failed(why)))?;
        let bridge = bridge(engine, proc, call);
        engine.peers().disconnect(&[proc]);
        bridge.map_err(|e| failed(e.to_string()))
    }

    async fn call_at(
        self,
        port: &PortName,
        patience: Option<Duration>,
        code: i32,
    ) -> Result<Comm, LeaderError> {
        let engine = self.comm.engine();
        let failed = |why: String| LeaderError { code, why };
        let ports = engine.ports().opened().map_err(|e| failed(e.to_string()))?;
        let universe = engine.universe();
        let proc = universe.introduce(port.owner(), port.card().clone());
        let proc = proc.ok_or_else(|| {
            failed("the port is of a process of this job that does not exist".into())
        })?;
        // A reference to the process keeps it known during the connection.
        universe.hold([proc].into_iter());
        let broken = || self.comm.usable().err().map(|error| error.to_string());
        let called = (ports.connect(engine, proc, port.number(), patience, broken)).await;
        let bridge =
            called.and_then(|call| bridge(engine, proc, call).map_err(|error| error.to_string()));
        engine.peers().disconnect(&[proc]);
        bridge.map_err(|why| self.own_failure(failed(why)))
    }

    /// Returns the failure of the root's own group if that has failed, otherwise the error `otherwise`.
    fn own_failure(self, otherwise: LeaderError) -> LeaderError {
        self.comm
            .usable()
            .err()
            .map_or(otherwise, LeaderError::lost)
    }
}
