//! Uniform outcome of connecting two groups, even if members die during the connection.
//!
//! A member that fails has no new communicator on which it could notify the others.
//! Protocol with fault tolerance, after a group has tried to connect:
//! 1. the members of each group agree on whether all its living members have the communicator;
//! 2. the roots exchange these outcomes over the bridge (their communicator), if both jobs are fault tolerant;
//! 3. each root distributes the result in its group by another agreement.
//!
//! Guarantee: all members of a group succeed, or all fail.
//! If a root dies between the steps, its group gets no outcome of the other group. The group then fails,
//! and each member that has the communicator revokes it,
//! so that no process of the other side waits on it.

use super::{Agreed, Agreement, Comm, LeaderError, U64Buf};
use crate::Error;
use crate::fault::FaultError;

const YES: u32 = 1;

impl Agreement<'_> {
    /// Agrees on the outcome of this group's connection; on the root, `bridge` is the communicator with the other root.
    pub(crate) async fn uniform_outcome(
        self,
        root: u32,
        bridge: Option<Result<Comm, LeaderError>>,
        made: Result<Comm, Error>,
    ) -> Result<Comm, Error> {
        if let (Err(_), Some(Ok(bridge))) = (&made, &bridge) {
            // The other root may wait for a message that this root will not send.
            bridge.failures().revoke();
        }
        let ours = self.agree(made.is_ok().into()).await?;
        let both = match &bridge {
            _ if self.comm().rank() != root => true,
            Some(Ok(bridge)) if is_fault_tolerant(bridge) => {
                exchange_outcome(bridge, ours.flag == YES).await
            }
            Some(Ok(_)) => ours.flag == YES,
            _ => false,
        };
        let Agreed { flag, error, .. } = self.agree(both.into()).await?;
        let root_lives = self.comm().group().proc(root).is_some_and(|proc| {
            let faults = self.comm().engine().faults();
            faults.is_none_or(|faults| !faults.deaths().is_dead(proc))
        });
        match made {
            Ok(comm) if flag == YES && root_lives => Ok(comm),
            Ok(comm) => {
                comm.failures().revoke();
                Err(error.unwrap_or_else(|| {
                    let why = "a process of the other group has failed while both connected";
                    FaultError::failed(&self.comm().label(), &[why.into()], 0).into()
                }))
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns true if the other root's job is fault tolerant too.
fn is_fault_tolerant(bridge: &Comm) -> bool {
    let other = bridge.peers().proc(0);
    other.is_some_and(|proc| bridge.engine().peers().other_survives_deaths(proc))
}

/// Exchanges with the other root whether all of the group have the communicator. Returns true if this holds for both groups.
async fn exchange_outcome(bridge: &Comm, ours: bool) -> bool {
    let words = U64Buf::new(2);
    words.set(0, ours.into());
    let (send, recv) = (words.send(0..1), words.recv(1..2));
    let exchanged = bridge
        .internal()
        .conversation()
        .sendrecv(send, 0, recv, 0)
        .await;
    ours && exchanged.is_ok() && words.get(1) == 1
}
