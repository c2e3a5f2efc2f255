//! Creation of communicators from a communicator (MPI 5.0, section 7.4.2).

use super::selected::Purpose;
use super::{Comm, CommError, Context, ControlGroup, Conversation, context_id, spares};
use crate::Error;
use crate::group::Group;

/// A member's arguments of `MPI_Comm_split`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitKey {
    /// Members with the same colour, which must be below `u64::MAX`, get one communicator; `None` is `MPI_UNDEFINED`.
    pub color: Option<u64>,
    /// Orders the members of a colour; members with equal keys keep their order in the parent.
    pub key: i32,
}

/// The functions that create communicators of some or all members of a communicator.
#[derive(Clone, Copy)]
pub struct Constructors<'a> {
    comm: &'a Comm,
}

impl<'a> Constructors<'a> {
    pub(super) fn new(comm: &'a Comm) -> Constructors<'a> {
        Constructors { comm }
    }

    pub(super) fn comm(self) -> &'a Comm {
        self.comm
    }

    /// `MPI_Comm_dup` without the attributes, which the caller copies.
    pub async fn dup(self) -> Result<Comm, Error> {
        self.comm.usable()?;
        if self.comm.is_inter() {
            return self.comm.inter().dup().await;
        }
        let conversation = self.comm.internal().conversation();
        let control_group = ControlGroup::of(&conversation, self.comm.group(), self.comm.rank());
        control_group.found(Purpose::Program).await
    }

    /// As [`Constructors::dup`], for a caller that waits for the duplicate.
    pub fn dup_now(self) -> Result<Comm, Error> {
        self.comm.usable()?;
        let engine = self.comm.engine();
        if !spares::are_used(self.comm) {
            return engine.block_on(self.dup());
        }
        if let Some(duplicate) = spares::duplicate(self.comm, Purpose::Program)? {
            return Ok(duplicate);
        }
        let duplicate = engine.block_on(self.dup())?;
        // Spares are numbered in the order of creation, which is the same on all members only among duplicates of one communicator.
        if self.comm.is_world() {
            spares::keep_when_freed(&duplicate);
        }
        Ok(duplicate)
    }

    /// `MPI_Comm_create`: every member of this communicator calls it;
    /// the members of `group` get the new communicator.
    pub async fn create(self, group: &Group) -> Result<Option<Comm>, Error> {
        self.comm.usable()?;
        if self.comm.is_inter() {
            return self.comm.inter().create_of_part(group).await;
        }
        // Disjoint groups are allowed; a process in no group gets no communicator.
        let conversation = self.comm.internal().conversation();
        self.check_has(group)?;
        self.found_in(&conversation, group, Purpose::Program).await
    }

    /// Returns an error if a group has a member that is not in this communicator.
    ///
    /// Each caller checks locally: with an invalid group, the set of callers is unknown.
    /// A collective call checks after it has drawn its conversation's tag,
    /// so the tags stay equal on all members.
    fn check_has(self, group: &Group) -> Result<(), CommError> {
        is_part(group, "the communicator", self.comm.group())
    }

    /// Same as [`Constructors::create`], for a component that carries out a call on this
    /// communicator in steps, which are calls on communicators of some of its members.
    ///
    /// Plugins are not used on communicators for steps:
    /// they use scarce resources, and could carry out the calls on this communicator itself.
    pub async fn create_for_steps(self, group: &Group) -> Result<Option<Comm>, Error> {
        let conversation = self.comm.internal().conversation();
        self.found_in(&conversation, group, Purpose::Steps).await
    }

    /// `MPI_Comm_create_group`: only the members of `group` call it;
    /// `tag` separates calls that overlap in time.
    pub async fn create_group(self, group: &Group, tag: i32) -> Result<Option<Comm>, Error> {
        self.comm.only_intra("MPI_Comm_create_group")?;
        self.check_has(group)?;
        let conversation = self.comm.internal().group_conversation(tag).among(group);
        self.found_in(&conversation, group, Purpose::Program).await
    }

    /// Creates a communicator of the members of `group`, all of which are members of this one;
    /// no other member is involved.
    async fn found_in(
        self,
        conversation: &Conversation,
        group: &Group,
        purpose: Purpose,
    ) -> Result<Option<Comm>, Error> {
        match group.rank_of(self.comm.engine().me()) {
            Some(rank) => {
                let control_group = ControlGroup::of(conversation, group, rank);
                control_group.found(purpose).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Implements `MPI_Comm_split`.
    pub async fn split(self, mine: SplitKey) -> Result<Option<Comm>, Error> {
        self.comm.usable()?;
        if self.comm.is_inter() {
            return self.comm.inter().split(mine).await;
        }
        const NO_COLOR: u64 = u64::MAX;
        // Every member sends a context id, since it does not know yet whether it will be rank 0 of a part.
        let number = self
            .comm
            .engine()
            .context_ids()
            .next(1, self.comm.is_mixed());
        let color = mine.color.unwrap_or(NO_COLOR);
        const EACH: usize = 3;
        let words = self
            .comm
            .internal()
            .allgather(&[color, i64::from(mine.key) as u64, number])
            .await?;
        let word_of = |rank: u32, which: usize| words.get(rank as usize * EACH + which);
        if color == NO_COLOR {
            return Ok(None);
        }
        let mut members: Vec<(i64, u32)> = (0..self.comm.size())
            .filter(|r| word_of(*r, 0) == color)
            .map(|r| (word_of(r, 1) as i64, r))
            .collect();
        members.sort_unstable();
        let procs = members
            .iter()
            .filter_map(|(_, r)| self.comm.group().proc(*r))
            .collect();
        let group = Group::from_procs(procs);
        let rank = members
            .iter()
            .position(|(_, r)| *r == self.comm.rank())
            .unwrap_or(0) as u32;
        let leader = members.first().map_or(0, |(_, r)| *r);
        let proc = self.comm.group().proc(leader).unwrap_or(0);
        let context = Context::numbered(context_id::told(proc, word_of(leader, 2))?);
        let part = Comm::assemble(self.comm.engine(), context, group, rank, String::new());
        self.comm.failures().takes_part(&part);
        let chosen = part.collectives().choose().await;
        self.comm.failures().lets_go(&part);
        chosen.map(|()| Some(part))
    }

    pub(super) async fn finish(
        self,
        context: Context,
        group: Group,
        rank: u32,
    ) -> Result<Comm, Error> {
        let name = String::new();
        let comm = Comm::assemble(self.comm.engine(), context, group, rank, name);
        comm.collectives().choose().await?;
        Ok(comm)
    }
}

/// Returns an error if a member of `group` is not in `whole`, which the error text calls `called`.
pub(super) fn is_part(group: &Group, called: &'static str, whole: &Group) -> Result<(), CommError> {
    match group.outsider(whole) {
        None => Ok(()),
        Some((rank, proc)) => Err(CommError::Outsider {
            rank,
            proc,
            whole: called,
            size: whole.size(),
        }),
    }
}
