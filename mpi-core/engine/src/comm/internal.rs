//! Internal operations of a communicator: conversations, and collective operations that use no selected component.

use super::u64_buf::U64Buf;
use super::{Comm, Conversation};
use crate::Error;
use crate::fault::is_about_deaths;
use crate::pml::Plane;
use std::cell::Cell;

/// The kinds of exchanges by fast calls.
const SHARE: u32 = 0x5348_4152;
const FENCE: u32 = 0x4645_4e43;

/// The next tags of internal operations.
#[derive(Default)]
pub(super) struct Numbers {
    /// The tag of the next conversation, the same on all members.
    conversation: Cell<i32>,
    /// The tag of the next partition that this process sends.
    partition: Cell<i32>,
}

/// The internal operations by which the library communicates among the members of a communicator.
#[derive(Clone, Copy)]
pub struct Internal<'a> {
    comm: &'a Comm,
    numbers: &'a Numbers,
}

impl<'a> Internal<'a> {
    pub(super) fn new(comm: &'a Comm, numbers: &'a Numbers) -> Internal<'a> {
        Internal { comm, numbers }
    }

    /// Returns a new conversation; all members must create their conversations in the same order.
    pub fn conversation(self) -> Conversation {
        let tag = self.numbers.conversation.get();
        let next = tag.wrapping_add(1) & i32::MAX;
        self.numbers.conversation.set(next);
        Conversation::new(self.comm.clone(), Plane::Hidden, tag)
    }

    /// Returns a conversation among some members, with a tag that the caller chooses.
    pub fn group_conversation(self, tag: i32) -> Conversation {
        // The tags of numbered conversations count up from 0, these tags down from the maximum.
        // The two ranges collide after 2 * 10^9 conversations.
        let tag = i32::MAX - tag.rem_euclid(i32::MAX);
        Conversation::new(self.comm.clone(), Plane::Hidden, tag)
    }

    /// Reserves consecutive tags. Returns the first; tags repeat after 2 * 10^9 partitions.
    pub(crate) fn next_partitions(self, how_many: u32) -> i32 {
        let first = self.numbers.partition.get();
        let next = |first: i32| {
            i32::try_from(how_many)
                .ok()
                .and_then(|n| first.checked_add(n))
        };
        let (first, next) = match next(first) {
            Some(next) => (first, next),
            None => (0, next(0).unwrap_or(0)),
        };
        self.numbers.partition.set(next);
        first
    }

    /// A barrier that uses no selected component; returns after every member has called it.
    /// It is not defined on an intercommunicator.
    pub async fn fence(self) -> Result<(), Error> {
        let coll = self.comm.engine().process().coll()?;
        coll.barrier(&self.conversation()).await
    }

    /// Returns after every member on both sides has called it; used before disconnecting.
    /// With fault tolerance, only the living members wait for each other.
    pub async fn farewell(self) -> Result<(), Error> {
        match (self.comm.engine().is_fault_tolerant(), self.comm.is_mixed()) {
            (false, _) => self.farewell_of_all().await,
            (true, false) => self.comm.agreement().agree(0).await.map(drop),
            // Another job may run without fault tolerance, so no agreement with its members is possible.
            (true, true) => match self.farewell_of_all().await {
                Err(error) if is_about_deaths(&error) => Ok(()),
                left => left,
            },
        }
    }

    async fn farewell_of_all(self) -> Result<(), Error> {
        let Some(local) = self.comm.within() else {
            return self.fence().await;
        };
        local.internal().fence().await?;
        // Each side has a barrier before and after the message between rank 0 of both sides.
        if self.comm.rank() == 0 {
            let (across, none) = (self.conversation(), U64Buf::new(2));
            across
                .sendrecv(none.send(0..1), 0, none.recv(1..2), 0)
                .await?;
        }
        local.internal().fence().await
    }

    /// Allgather of words in the order of ranks; every member passes the same number of words.
    pub async fn share(self, mine: &[u64]) -> Result<Vec<u64>, Error> {
        self.comm.usable()?;
        let all = self.allgather(mine).await?;
        let len = mine.len() * self.comm.size() as usize;
        Ok((0..len).map(|at| all.get(at)).collect())
    }

    /// Same as [`Internal::share`], but blocks until it is complete.
    ///
    /// Uses a fast call of the communicator's first component where it accepts one: several times faster than messages.
    /// Only on communicators that the library has created for itself:
    /// in a wrong program, a collective call of the program could match the exchange in the same cells.
    pub fn share_now(self, mine: &[u64]) -> Result<Vec<u64>, Error> {
        match self.comm.collectives().try_share(SHARE, mine) {
            Some(all) => all,
            None => self.comm.engine().block_on(self.share(mine)),
        }
    }

    /// Same as [`Internal::fence`], but blocks until it is complete; fast where [`Internal::share_now`] is.
    pub fn fence_now(self) -> Result<(), Error> {
        match self.comm.collectives().try_share(FENCE, &[]) {
            Some(outcome) => outcome.map(drop),
            None => self.comm.engine().block_on(self.fence()),
        }
    }

    /// Same as [`Internal::share`], but also works after a failure.
    pub(super) async fn allgather(self, mine: &[u64]) -> Result<U64Buf, Error> {
        let all = U64Buf::new(mine.len() * self.comm.size() as usize);
        for (i, word) in mine.iter().enumerate() {
            all.set(self.comm.rank() as usize * mine.len() + i, *word);
        }
        let (conversation, first) = (self.conversation(), all.recv(0..mine.len()));
        let coll = self.comm.engine().process().coll()?;
        coll.allgather(&conversation, &first).await?;
        Ok(all)
    }

    /// Logical OR of all members' values; every member calls this function.
    pub async fn any(self, mine: bool) -> Result<bool, Error> {
        let all = self.share(&[mine.into()]).await?;
        Ok(all.contains(&1))
    }
}
