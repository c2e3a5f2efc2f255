//! Communicators created from groups, without a parent communicator (MPI 5.0, sections 7.4.2 and 7.6.2).
//!
//! The members have no common communicator, so they use the bootstrap communicator: every process of the job knows its context,
//! its ranks are the ranks of the job, and it runs no collectives.
//! The tag of a conversation on it is a hash of the program's string tag and of the kind of object;
//! the standard requires the program to use different strings in calls that overlap in time.

use super::process::Process;
use super::selected::Purpose;
use super::{Comm, CommError, ControlGroup, LeaderError};
use crate::Error;
use crate::btl::ProcId;
use crate::group::Group;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Returns the tag of a conversation; the same in all processes of a job, since all use this library.
fn conversation(purpose: &str, text: &str) -> i32 {
    let mut hasher = DefaultHasher::new();
    (purpose, text).hash(&mut hasher);
    (hasher.finish() & i32::MAX as u64) as i32
}

impl Process<'_> {
    /// `MPI_Comm_create_from_group`; `None` for a process that is not in the group.
    pub async fn comm_from_group(self, group: &Group, text: &str) -> Result<Option<Comm>, Error> {
        let Some(rank) = group.rank_of(self.engine().me()) else {
            return Ok(None);
        };
        if self.engine().place().is_mixed(group) {
            return Err(CommError::Strangers.into());
        }
        let bootstrap = self.bootstrap();
        let conversation = bootstrap
            .internal()
            .group_conversation(conversation("communicator", text));
        let conversation = conversation.among(group);
        let control_group = ControlGroup::of(&conversation, group, rank);
        control_group.found(Purpose::Program).await.map(Some)
    }

    /// `MPI_Intercomm_create_from_groups`; `other`, the leader of the remote group or the error in that argument, is significant on the local leader only.
    pub async fn inter_from_groups(
        self,
        (group, leader): (&Group, u32),
        other: Option<Result<ProcId, LeaderError>>,
        text: &str,
    ) -> Result<Option<Comm>, Error> {
        let bootstrap = self.bootstrap();
        let tag = conversation("intercommunicator", text);
        let made = self.comm_from_group(group, text).await;
        if let (Err(error), Some(Ok(proc))) = (&made, &other) {
            // The leader of the other group waits for this leader, so this leader sends the error.
            bootstrap.inter().refuse(*proc, tag, error);
        }
        let Some(local) = made? else {
            return Ok(None);
        };
        let bridge = other.map(|other| other.map(|proc| (&bootstrap, proc)));
        local.inter().create(leader, bridge, tag).await.map(Some)
    }
}
