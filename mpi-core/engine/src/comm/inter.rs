//! Creation of intercommunicators, which have two disjoint groups and messages between them (MPI 5.0, section 7.6).
//!
//! An intercommunicator has one context, the local group, and the remote group; the ranks in messages are those of the remote group.
//! It also has an internal intracommunicator of the local group, for steps before and after its leader communicates with the other leader.
//!
//! Every function that creates an intercommunicator follows this protocol, in internal conversations:
//! 1. the leaders exchange the contributions of their groups ([`exchange`]), and each broadcasts both to its group ([`swap`]);
//! 2. a contribution begins with the leader's name and the first of the context ids that the leader has reserved,
//!    or `NONE_LEFT` ([`context_id`]), with which the call fails on all members of both groups;
//!    a leader that cannot reach the other one broadcasts the reason to its own group ([`leader_error`]), on which the call then fails;
//!    a leader whose own group has failed sends an error code instead of its contribution;
//! 3. the new communicator's id is the higher of both leaders' first ids; the id after a leader's first id is that of its own group.
//!
//! If the groups have processes of several jobs, the leaders also exchange endpoint addresses ([`introduce`]).
//!
//! So both groups compute the same communicator without further messages.

use super::create::is_part;
use super::introduce::{self, Introduced};
use super::leader_error::{self, LEADER_ERROR};
use super::u64_buf::U64Buf;
use super::{Comm, CommError, Context, Conversation, LeaderError, SplitKey, context_id};
use crate::Error;
use crate::btl::ProcId;
use crate::engine::Engine;
use crate::group::Group;
use std::future::{Future, poll_fn};
use std::task::Poll;

/// The contribution of one group to the creation, which its leader sends.
struct Side {
    /// The first of the context ids that the leader has reserved, two for each communicator to be created.
    number: u64,
    /// The words after the header; their meaning depends on the call.
    words: Vec<u64>,
}

/// Number of words of the header: the leader, and the first reserved id.
const HEAD: usize = 2;

const EACH: usize = 3;

const MOST_RANKS: usize = 1 << 24;

/// On the leader, its conversation with the other leader, or the error; `None` on other members.
type Link = Option<Result<(Conversation, u32), LeaderError>>;

impl Side {
    /// Returns the contribution that the leader sends to the other leader.
    fn told(engine: &Engine, comms: u32, mixed: bool, words: Vec<u64>) -> Vec<u64> {
        let head = [
            engine.peers().name_of(engine.me()),
            engine.context_ids().next(2 * comms, mixed),
        ];
        head.into_iter().chain(words).collect()
    }

    fn from_words(engine: &Engine, words: &[u64]) -> Result<Side, CommError> {
        // The other side uses the same library, so the header is complete.
        let head = |i: usize| words.get(i).copied().unwrap_or_default();
        let leader = engine.peers().proc_named(head(0))?;
        Ok(Side {
            number: context_id::told(leader, head(1))?,
            words: words.get(HEAD..).unwrap_or_default().to_vec(),
        })
    }

    fn group(&self, engine: &Engine) -> Result<Group, CommError> {
        let procs = self
            .words
            .iter()
            .map(|name| engine.peers().proc_named(*name));
        Ok(Group::from_procs(procs.collect::<Result<_, _>>()?))
    }
}

fn names(engine: &Engine, group: &Group) -> Vec<u64> {
    group
        .iter()
        .map(|proc| engine.peers().name_of(proc))
        .collect()
}

struct Met {
    words: U64Buf,
    /// Number of words that the other leader announced; if it is more than any operation sends, `words` is empty.
    len: u64,
    /// True if a process of another job is in the other leader's group.
    is_mixed: bool,
}

/// Exchanges contributions with the other leader.
/// Neither leader waits for its own group during the exchange,
/// so a failure in one group does not block the other group's leader.
async fn exchange(
    across: Conversation,
    peer: u32,
    mine: Vec<u64>,
    is_mixed: bool,
) -> Result<Met, LeaderError> {
    let lost = LeaderError::lost;
    let lens = U64Buf::of(&[mine.len() as u64, is_mixed.into(), 0, 0]);
    let (send, recv) = (lens.send(0..2), lens.recv(2..4));
    (across.sendrecv(send, peer, recv, peer).await).map_err(lost)?;
    let (len, second) = (lens.get(2), lens.get(3));
    if len == LEADER_ERROR {
        return Err(LeaderError::of_other_leader(second));
    }
    let either_mixed = is_mixed || second != 0;
    let theirs = match len <= most_words(across.engine(), either_mixed) {
        true => len as usize,
        false => 0,
    };
    let (ours, words) = (U64Buf::of(&mine), U64Buf::new(theirs));
    let (send, recv) = (ours.send(0..mine.len()), words.recv(0..theirs));
    if theirs > 0 {
        (across.sendrecv(send, peer, recv, peer).await).map_err(lost)?;
    }
    Ok(Met {
        words,
        len,
        is_mixed: second != 0,
    })
}

/// Returns the maximum number of words of a contribution, which is that of a split.
/// A longer contribution means that the other leader's group has called another function.
fn most_words(engine: &Engine, mixed: bool) -> u64 {
    longest_split(match mixed {
        true => MOST_RANKS,
        false => engine.size() as usize,
    })
}

/// Returns the number of words of the contribution of `ranks` members to a split.
fn longest_split(ranks: usize) -> u64 {
    (HEAD + EACH * ranks) as u64
}

/// Notifies the other leader, without waiting for it, that this leader's group has failed.
fn refuse(across: Conversation, peer: u32, error: &Error) {
    let engine = across.engine().clone();
    let code = LeaderError::code_of(error);
    engine.operations().run_in_background(Box::pin(async move {
        let lens = U64Buf::of(&[LEADER_ERROR, code, 0, 0]);
        let (send, recv) = (lens.send(0..2), lens.recv(2..4));
        across.sendrecv(send, peer, recv, peer).await
    }));
}

/// Exchanges contributions with the other leader. If the local group fails, the exchange ends in the background.
async fn meet_other_leader(
    local: &Comm,
    (across, peer): (Conversation, u32),
    mine: Vec<u64>,
) -> Result<Result<Met, LeaderError>, Error> {
    if let Err(error) = local.usable() {
        refuse(across, peer, &error);
        return Err(error);
    }
    let is_mixed = local.is_mixed() || across.comm().is_mixed();
    let mut under_way = Box::pin(exchange(across.clone(), peer, mine, is_mixed));
    let outcome = poll_fn(|cx| match under_way.as_mut().poll(cx) {
        Poll::Ready(met) => Poll::Ready(Ok(met)),
        Poll::Pending => match local.usable() {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        },
    });
    let outcome = outcome.await;
    if let Err(error) = &outcome {
        let code = LeaderError::code_of(error);
        local
            .engine()
            .operations()
            .run_in_background(Box::pin(async move {
                match under_way.await {
                    Ok(met) if is_mixed || met.is_mixed => {
                        introduce::refuse(&across, peer, code).await
                    }
                    _ => Ok(()),
                }
            }));
    }
    outcome
}

/// Returns both contributions, the local one first, on every member of both groups.
/// The third value keeps the processes that the contributions name known until it is dropped.
async fn swap(
    local: &Comm,
    leader: u32,
    link: Link,
    mine: Vec<u64>,
) -> Result<(Side, Side, Option<Introduced>), Error> {
    let ours = mine.clone();
    let (across, met) = match link {
        None => (None, None),
        Some(Err(mistake)) => (None, Some(Err(mistake))),
        Some(Ok(link)) => (
            Some(link.clone()),
            Some(meet_other_leader(local, link, mine).await?),
        ),
    };
    // For the local and the remote group: the number of words, and whether a process of another job is involved.
    let lens = U64Buf::new(4);
    match &met {
        Some(Ok(met)) => {
            let across_jobs = |(across, _): &(Conversation, u32)| across.comm().is_mixed();
            let is_mixed = local.is_mixed() || across.as_ref().is_some_and(across_jobs);
            lens.set(0, ours.len() as u64);
            lens.set(1, is_mixed.into());
            lens.set(2, met.len);
            lens.set(3, met.is_mixed.into());
        }
        Some(Err(_)) => lens.set(0, LEADER_ERROR),
        None => {}
    }
    let here = local.internal().conversation();
    let coll = local.engine().process().coll()?;
    let told = coll.bcast(&here, &lens.recv(0..4), leader).await;
    if told.is_ok() && lens.get(0) == LEADER_ERROR {
        let why = met.as_ref().and_then(|met| met.as_ref().err());
        return Err(leader_error::share(local, leader, why).await?.into());
    }
    let mixed = lens.get(1) | lens.get(3) != 0;
    if lens.get(2) > most_words(local.engine(), mixed) {
        let words = lens.get(2);
        return Err(CommError::Strange { words }.into());
    }
    let introduced = if mixed {
        Some(introduce::show_cards(local, leader, across.as_ref(), told).await?)
    } else {
        told?;
        None
    };
    let (own, other) = (lens.get(0) as usize, lens.get(2) as usize);
    let words = U64Buf::new(own + other);
    if let Some(Ok(met)) = &met {
        let words_of_all = ours.into_iter().chain((0..other).map(|i| met.words.get(i)));
        for (i, word) in words_of_all.enumerate() {
            words.set(i, word);
        }
    }
    let all = words.recv(0..own + other);
    coll.bcast(&here, &all, leader).await?;
    let all: Vec<u64> = (0..own + other).map(|i| words.get(i)).collect();
    let (ours, theirs) = all.split_at(own);
    let side = |words| Side::from_words(local.engine(), words);
    Ok((side(ours)?, side(theirs)?, introduced))
}

/// Creates one of the communicators for which the two leaders have reserved ids;
/// `which` is the communicator's index among them.
async fn connect(
    engine: &Engine,
    (ours, group): (&Side, Group),
    (theirs, remote): (&Side, Group),
    which: u32,
) -> Result<Option<Comm>, Error> {
    let Some(rank) = group.rank_of(engine.me()) else {
        return Ok(None);
    };
    if group.size() == 0 || remote.size() == 0 {
        return Ok(None);
    }
    if let Some(proc) = group.iter().find(|p| remote.rank_of(*p).is_some()) {
        return Err(CommError::Overlap { proc }.into());
    }
    let which = 2 * u64::from(which);
    let context = Context::numbered(ours.number.max(theirs.number) + which);
    let inside = Context::numbered(ours.number + which + 1);
    let local = Comm::assemble(engine, inside, group.clone(), rank, String::new());
    let (ours, other) = ((group, rank), (remote, Some(local)));
    let comm = Comm::between(engine, context, ours, other, String::new());
    comm.collectives().choose().await?;
    Ok(Some(comm))
}

/// Creates an intercommunicator of this process and `proc`, with an unused id that both processes know.
pub(crate) fn bridge(engine: &Engine, proc: ProcId, number: u64) -> Result<Comm, CommError> {
    let local = engine
        .process()
        .myself()
        .ok_or_else(|| CommError::Unreachable {
            why: "MPI is not running in this process".into(),
        })?;
    let (own, other) = (Group::range(engine.me(), 1), Group::range(proc, 1));
    let context = Context::numbered(number);
    let name = String::new();
    Ok(Comm::between(
        engine,
        context,
        (own, 0),
        (other, Some(local)),
        name,
    ))
}

/// The functions that create intercommunicators, or communicators from an intercommunicator.
#[derive(Clone, Copy)]
pub struct InterConstructors<'a> {
    comm: &'a Comm,
}

impl<'a> InterConstructors<'a> {
    pub(super) fn new(comm: &'a Comm) -> InterConstructors<'a> {
        InterConstructors { comm }
    }

    /// Notifies the other leader, which waits on this communicator, that this process's group
    /// has failed and will not call [`InterConstructors::create`].
    pub(super) fn refuse(self, peer: u32, tag: i32, error: &Error) {
        refuse(self.between_leaders(peer, tag), peer, error);
    }

    /// Returns the conversation with rank `peer` of this communicator, the other leader; no other member is involved.
    fn between_leaders(self, peer: u32, tag: i32) -> Conversation {
        let both = self.comm.peers().proc(peer).into_iter();
        let both = both.chain([self.comm.engine().me()]);
        let link = self.comm.internal().group_conversation(tag);
        link.among(&Group::from_procs(both.collect()))
    }

    /// Creates a communicator whose members are members of this communicator.
    /// Its context id is `number`, which all members know.
    /// An intercommunicator also uses the next two ids, for the local groups of the two sides.
    pub(crate) async fn made_again(
        self,
        number: u64,
        group: Group,
        remote: Option<Group>,
    ) -> Result<Comm, Error> {
        let engine = self.comm.engine();
        let number = context_id::told(engine.me(), number)?;
        let context = Context::numbered(number);
        let rank = group.rank_of(engine.me()).unwrap_or(0);
        let Some(remote) = remote else {
            return self.comm.constructors().finish(context, group, rank).await;
        };
        // Both sides compute the same order of the groups from the names of their first members.
        let first = |group: &Group| group.proc(0).map(|proc| engine.peers().name_of(proc));
        let is_first = first(self.comm.group()) < first(self.comm.peers());
        let inside = Context::numbered(number + if is_first { 1 } else { 2 });
        let local = Comm::assemble(engine, inside, group.clone(), rank, String::new());
        let (ours, theirs) = ((group, rank), (remote, Some(local)));
        let comm = Comm::between(engine, context, ours, theirs, String::new());
        comm.collectives().choose().await?;
        Ok(comm)
    }

    /// `MPI_Intercomm_create` on the local communicator. `bridge` is the peer communicator with the rank of the other leader in it,
    /// or the error in these arguments; significant on the local leader only.
    pub async fn create(
        self,
        leader: u32,
        bridge: Option<Result<(&Comm, u32), LeaderError>>,
        tag: i32,
    ) -> Result<Comm, Error> {
        self.comm.only_intra("MPI_Intercomm_create")?;
        let group = self.comm.group().clone();
        let mut mine = Vec::new();
        let mut link = None;
        if self.comm.rank() == leader
            && let Some(bridge) = bridge
        {
            link = Some(bridge.map(|(bridge, peer)| {
                // The ids are random if any member may be in another job, even if only the other leader knows such a member.
                let mixed = self.comm.is_mixed() || bridge.is_mixed();
                mine = Side::told(
                    self.comm.engine(),
                    1,
                    mixed,
                    names(self.comm.engine(), &group),
                );
                (bridge.inter().between_leaders(peer, tag), peer)
            }));
        }
        let (ours, theirs, _introduced) = swap(self.comm, leader, link, mine).await?;
        let remote = theirs.group(self.comm.engine())?;
        let made = connect(self.comm.engine(), (&ours, group), (&theirs, remote), 0).await?;
        // Every caller is a member of its group, and no communicator is empty.
        made.ok_or_else(|| self.comm.p2p().no_rank(i64::from(self.comm.rank())))
    }

    /// Returns the leader's contribution and its conversation with the other leader;
    /// the leader is the first member.
    fn lead(self, link: Conversation, comms: u32, words: Vec<u64>) -> (Vec<u64>, Link) {
        match self.comm.rank() {
            0 => {
                let told = Side::told(self.comm.engine(), comms, self.comm.is_mixed(), words);
                (told, Some(Ok((link, 0))))
            }
            _ => (Vec::new(), None),
        }
    }

    /// `MPI_Comm_dup` of an intercommunicator.
    pub(super) async fn dup(self) -> Result<Comm, Error> {
        let group = self.comm.group().clone();
        let made = self.create_of_part(&group).await?;
        made.ok_or_else(|| self.comm.p2p().no_rank(i64::from(self.comm.rank())))
    }

    /// `MPI_Comm_create` of an intercommunicator: `group` is a subset of the local group.
    ///
    /// Every member checks both contributions, so that an invalid group on one side fails the call on both.
    pub(super) async fn create_of_part(self, group: &Group) -> Result<Option<Comm>, Error> {
        let local = self.comm.local("MPI_Comm_create")?;
        let (mine, link) = self.lead(
            self.comm.internal().conversation(),
            1,
            names(self.comm.engine(), group),
        );
        let (ours, theirs, _introduced) = swap(local, 0, link, mine).await?;
        let remote = theirs.group(self.comm.engine())?;
        let (this, that) = ("this side", "the other side");
        let sides = [
            (&ours.group(self.comm.engine())?, this, self.comm.group()),
            (&remote, that, self.comm.peers()),
            (group, this, self.comm.group()),
        ];
        for (part, called, whole) in sides {
            is_part(part, called, whole)?;
        }
        connect(
            self.comm.engine(),
            (&ours, group.clone()),
            (&theirs, remote),
            0,
        )
        .await
    }

    /// `MPI_Comm_split` of an intercommunicator: the members of one colour on both sides get an intercommunicator.
    pub(super) async fn split(self, mine: SplitKey) -> Result<Option<Comm>, Error> {
        const NO_COLOR: u64 = u64::MAX;
        let local = self.comm.local("MPI_Comm_split")?;
        let hidden = self.comm.internal().conversation();
        let color = mine.color.unwrap_or(NO_COLOR);
        let me = self.comm.engine().peers().name_of(self.comm.engine().me());
        let words_of_all = local
            .internal()
            .share(&[color, i64::from(mine.key) as u64, me])
            .await?;
        // At most as many communicators are created as there are local members.
        let (words, link) = self.lead(hidden, self.comm.size(), words_of_all);
        let (ours, theirs, _introduced) = swap(local, 0, link, words).await?;
        if color == NO_COLOR {
            return Ok(None);
        }
        let members = |side: &Side, color: u64| -> Result<Group, CommError> {
            let of_color = side.words.chunks_exact(EACH).filter(|w| w[0] == color);
            let keyed =
                of_color.map(|w| Ok((w[1] as i64, self.comm.engine().peers().proc_named(w[2])?)));
            let mut keyed: Vec<(i64, ProcId)> = keyed.collect::<Result<_, CommError>>()?;
            // The sort is stable, so members with equal keys keep their order in the parent.
            keyed.sort_by_key(|(key, _)| *key);
            let procs = keyed.into_iter().map(|(_, proc)| proc).collect();
            Ok(Group::from_procs(procs))
        };
        let colors = |side: &Side| -> std::collections::BTreeSet<u64> {
            side.words.chunks_exact(EACH).map(|w| w[0]).collect()
        };
        let (here, there) = (colors(&ours), colors(&theirs));
        let mut common = here.intersection(&there).filter(|c| **c != NO_COLOR);
        let Some(which) = common.position(|c| *c == color) else {
            return Ok(None);
        };
        let pair = (
            (&ours, members(&ours, color)?),
            (&theirs, members(&theirs, color)?),
        );
        connect(self.comm.engine(), pair.0, pair.1, which as u32).await
    }

    /// `MPI_Intercomm_merge`: creates an intracommunicator of both groups; the group whose members pass `high` is the second.
    pub async fn merge(self, high: bool) -> Result<Comm, Error> {
        self.comm.usable()?;
        let local = self.comm.local("MPI_Intercomm_merge")?;
        let (mine, link) = self.lead(self.comm.internal().conversation(), 1, vec![high.into()]);
        let (ours, theirs, _introduced) = swap(local, 0, link, mine).await?;
        let order = |side: &Side| (side.words.first().copied(), side.number);
        let we_first = order(&ours) < order(&theirs);
        let (low, group) = match we_first {
            true => (&ours, self.comm.group().union(self.comm.peers())),
            false => (&theirs, self.comm.peers().union(self.comm.group())),
        };
        let rank = group.rank_of(self.comm.engine().me()).unwrap_or(0);
        let context = Context::numbered(low.number);
        self.comm.constructors().finish(context, group, rank).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_contribution_to_a_split_has_a_header_too() {
        for ranks in [1, MOST_RANKS] {
            assert_eq!(longest_split(ranks), 2 + 3 * ranks as u64);
        }
    }
}
