//! `MPIX_Comm_shrink`: a new communicator of the living members.
//!
//! Protocol, repeated until all living members have the communicator:
//! 1. the living members agree on the dead members, and on one of the context ids that each has proposed;
//! 2. the living members create the communicator in the usual way;
//! 3. they agree on whether all of them have it;
//!    if not, another member has died, and they start again.

use super::{Comm, Constructors};
use crate::Error;
use crate::fault::is_about_deaths;
use crate::group::Group;
use mpi_transport::btl::ProcId;

/// The flag of an attempt that succeeded on a member.
const MADE: u32 = 1;

/// Number of context ids: one for the communicator and, for an intercommunicator, one for each side's local communicator.
const NUMBERS: u32 = 3;

impl Constructors<'_> {
    /// Returns a communicator of the living members, in their order; never fails because of a death.
    pub async fn shrink(self) -> Result<Comm, Error> {
        let engine = self.comm().engine();
        let mixed = self.comm().is_mixed();
        loop {
            let proposed = engine.context_ids().next(NUMBERS, mixed);
            let (agreed, dead) = self.comm().agreement().agree_on(u32::MAX, proposed).await?;
            let made = self.of_living(agreed.number, &dead).await;
            let flag = if made.is_ok() { MADE } else { 0 };
            let (all, _) = self.comm().agreement().agree_on(flag, 0).await?;
            match made {
                Ok(comm) if all.flag & MADE != 0 => return Ok(comm),
                // No member has died, so another attempt would fail in the same way.
                Err(error) if all.error.is_none() && !is_about_deaths(&error) => return Err(error),
                _ => {}
            }
        }
    }

    async fn of_living(self, number: u64, dead: &[ProcId]) -> Result<Comm, Error> {
        let part = |group: &Group| {
            Group::from_procs(group.iter().filter(|proc| !dead.contains(proc)).collect())
        };
        let group = part(self.comm().group());
        let remote = self.comm().is_inter().then(|| part(self.comm().peers()));
        self.comm().inter().made_again(number, group, remote).await
    }
}
