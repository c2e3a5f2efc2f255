//! Creation of communicators from a communicator (MPI 5.0, section 7.4.2).

use super::u64_buf::U64Buf;
use super::{Comm, CommError, Context, ControlGroup, Conversation, Purpose, context_id};
use crate::Error;
use crate::group::Group;
use crate::pml::Plane;

/// A member's arguments to `MPI_Comm_split`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitKey {
    /// Members with the same colour, which must be below `u64::MAX`, get one communicator; `None` is `MPI_UNDEFINED`.
    pub color: Option<u64>,
    /// Orders the members of a colour; ties keep the order of the parent.
    pub key: i32,
}

impl Comm {
    /// `MPI_Comm_dup`, without attributes: the caller copies those.
    pub async fn dup(&self) -> Result<Comm, Error> {
        self.usable()?;
        if self.is_inter() {
            return self.inter_dup().await;
        }
        let cx = self.hidden();
        let circle = ControlGroup::of(&cx, self.group(), self.rank());
        circle.found(Purpose::Program).await
    }

    /// `MPI_Comm_create`: every member of this communicator calls; members of `group` get the new one.
    pub async fn create(&self, group: &Group) -> Result<Option<Comm>, Error> {
        self.usable()?;
        if self.is_inter() {
            return self.inter_create(group).await;
        }
        // Disjoint groups are allowed, each with its own first member; a member of none receives nothing.
        let cx = self.hidden();
        self.check_has(group)?;
        self.found_in(&cx, group, Purpose::Program).await
    }

    /// Checks that all members of a group are members here.
    ///
    /// Each caller checks on its own, without communication: if a group is wrong, no process is certain to take part.
    /// A collective checks only after it has drawn its numbers, so that they agree with those of a member whose group is valid.
    fn check_has(&self, group: &Group) -> Result<(), CommError> {
        is_part(group, "the communicator", self.group())
    }

    /// As [`Comm::create`], for a component that carries out calls of this communicator in steps on parts of it.
    ///
    /// No plugin may serve the parts: a plugin that could would serve this communicator itself, and it uses scarce resources for each communicator it serves.
    pub async fn create_for_steps(&self, group: &Group) -> Result<Option<Comm>, Error> {
        let cx = self.hidden();
        self.found_in(&cx, group, Purpose::Steps).await
    }

    /// `MPI_Comm_create_group`: only members of `group` call; `tag` separates calls that overlap in time.
    pub async fn create_group(&self, group: &Group, tag: i32) -> Result<Option<Comm>, Error> {
        self.only_intra("MPI_Comm_create_group")?;
        self.check_has(group)?;
        let cx = self.group_conversation(tag).among(group);
        self.found_in(&cx, group, Purpose::Program).await
    }

    /// Creates a communicator of the members of `group`, all of which are members of this one; only they take part.
    async fn found_in(
        &self,
        cx: &Conversation,
        group: &Group,
        purpose: Purpose,
    ) -> Result<Option<Comm>, Error> {
        match group.rank_of(self.engine().me()) {
            Some(rank) => {
                let circle = ControlGroup::of(cx, group, rank);
                circle.found(purpose).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// `MPI_Comm_split`.
    pub async fn split(&self, mine: SplitKey) -> Result<Option<Comm>, Error> {
        self.usable()?;
        if self.is_inter() {
            return self.inter_split(mine).await;
        }
        const NO_COLOR: u64 = u64::MAX;
        // Every member sends a number, since it does not know yet whether it will be the leader of its part.
        let number = self.engine().next_numbers(1, self.is_mixed());
        let color = mine.color.unwrap_or(NO_COLOR);
        const EACH: usize = 3;
        let words = self
            .tell_all(&[color, i64::from(mine.key) as u64, number])
            .await?;
        let said = |rank: u32, which: usize| words.get(rank as usize * EACH + which);
        if color == NO_COLOR {
            return Ok(None);
        }
        let mut members: Vec<(i64, u32)> = (0..self.size())
            .filter(|r| said(*r, 0) == color)
            .map(|r| (said(r, 1) as i64, r))
            .collect();
        members.sort_unstable();
        let procs = members
            .iter()
            .filter_map(|(_, r)| self.group().proc(*r))
            .collect();
        let group = Group::from_procs(procs);
        let rank = members
            .iter()
            .position(|(_, r)| *r == self.rank())
            .unwrap_or(0) as u32;
        let leader = members.first().map_or(0, |(_, r)| *r);
        let proc = self.group().proc(leader).unwrap_or(0);
        let context = Context::numbered(context_id::told(proc, said(leader, 2))?);
        let part = Comm::assemble(self.engine(), context, group, rank, String::new());
        self.takes_part(&part);
        let chosen = part.choose_coll().await;
        self.lets_go(&part);
        chosen.map(|()| Some(part))
    }

    /// Allgather of the members' words, in rank order; every member passes the same number of words.
    pub async fn share(&self, mine: &[u64]) -> Result<Vec<u64>, Error> {
        self.usable()?;
        let all = self.tell_all(mine).await?;
        let len = mine.len() * self.size() as usize;
        Ok((0..len).map(|at| all.get(at)).collect())
    }

    /// Allgather of the members' words, in rank order.
    pub(super) async fn tell_all(&self, mine: &[u64]) -> Result<U64Buf, Error> {
        let all = U64Buf::new(mine.len() * self.size() as usize);
        for (i, w) in mine.iter().enumerate() {
            all.set(self.rank() as usize * mine.len() + i, *w);
        }
        let (talk, first) = (self.hidden(), all.recv(0..mine.len()));
        self.engine().coll()?.allgather(&talk, &first).await?;
        Ok(all)
    }

    /// Returns a conversation among some members only, identified by the caller's tag.
    pub fn group_conversation(&self, tag: i32) -> Conversation {
        // Numbered conversations count up from zero, these count down from the maximum; they meet only after two thousand million conversations.
        let tag = i32::MAX - tag.rem_euclid(i32::MAX);
        Conversation::new(self.clone(), Plane::Hidden, tag)
    }

    pub(super) async fn finish(
        &self,
        context: Context,
        group: Group,
        rank: u32,
    ) -> Result<Comm, Error> {
        let name = String::new();
        let comm = Comm::assemble(self.engine(), context, group, rank, name);
        comm.choose_coll().await?;
        Ok(comm)
    }
}

/// Checks that all members of `group` are in `whole`; `called` names `whole` in the error.
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
