//! How both groups of a connection come to the same end, though members die while they connect.
//!
//! A member that fails does not have the new communicator, so no member can hear of it there.
//! Protocol, once a group has connected or failed to, where deaths are survived:
//! 1. the members of each group agree on whether all that live have the communicator;
//! 2. the roots exchange the outcome, over their bridge, if both jobs survive deaths;
//! 3. each root tells its group, in another agreement.
//!
//! Promise: the members of a group fail alike.
//! A root that dies between the steps leaves its group without a word from the other one; then the group fails, and each member that has the communicator revokes it,
//! so that no process of the other side waits in it.

use super::{Agreed, Comm, LeaderError, U64Buf};
use crate::Error;
use crate::fault::FaultError;

const YES: u32 = 1;

impl Comm {
    /// The end of a connection of this group, whose root has met the other one at `bridge`.
    pub(crate) async fn end_alike(
        &self,
        root: u32,
        bridge: Option<Result<Comm, LeaderError>>,
        made: Result<Comm, Error>,
    ) -> Result<Comm, Error> {
        if let (Err(_), Some(Ok(bridge))) = (&made, &bridge) {
            // The other root may wait for words that this one does not say any more.
            bridge.revoke();
        }
        let ours = self.agree(made.is_ok().into()).await?;
        let both = match &bridge {
            _ if self.rank() != root => true,
            Some(Ok(bridge)) if is_alike(bridge) => tell(bridge, ours.flag == YES).await,
            Some(Ok(_)) => ours.flag == YES,
            _ => false,
        };
        let Agreed { flag, error, .. } = self.agree(both.into()).await?;
        let root_lives = self.group().proc(root).is_some_and(|proc| {
            let faults = self.engine().faults();
            faults.is_none_or(|faults| !faults.deaths().is_dead(proc))
        });
        match made {
            Ok(comm) if flag == YES && root_lives => Ok(comm),
            Ok(comm) => {
                comm.revoke();
                Err(error.unwrap_or_else(|| {
                    let why = "a process of the other group has failed while both connected";
                    FaultError::failed(&self.label(), &[why.into()], 0).into()
                }))
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether the other root's job survives deaths, too, so that it ends a connection in the same way.
fn is_alike(bridge: &Comm) -> bool {
    let other = bridge.peers().proc(0);
    other.is_some_and(|proc| bridge.engine().other_survives_deaths(proc))
}

/// Tells the other root whether this group has the communicator; answers whether both have.
async fn tell(bridge: &Comm, ours: bool) -> bool {
    let words = U64Buf::new(2);
    words.set(0, ours.into());
    let (send, recv) = (words.send(0..1), words.recv(1..2));
    let told = bridge.hidden().sendrecv(send, 0, recv, 0).await;
    ours && told.is_ok() && words.get(1) == 1
}
