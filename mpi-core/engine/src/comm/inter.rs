//! Intercommunicators: two groups that do not overlap, and messages between them (MPI 5.0, section 7.6).
//!
//! To its user an intercommunicator is one context, our group, and the other group, whose ranks messages name.
//! Inside it also has a communicator of its own group alone, by which a group agrees with itself before and after its leader talks to the other leader.
//!
//! Protocol of every way to make one, in hidden conversations:
//! 1. the leaders swap what their groups have to say ([`swap`]) and each tells its group both;
//! 2. each leader's words begin with its name and the first of some numbers for communicators that it has set aside,
//!    or that it has none left ([`context_id`]), which ends the call at all members of both groups;
//!    a leader that cannot reach the other one tells its own group why ([`leader_error`]), which ends the call there;
//! 3. the higher of both is the new communicator's, and the next of each leader's is that of its own group.
//!
//! Where processes of several jobs are among them, both groups show each other their cards first ([`introduce`]).
//!
//! So both groups come to the same result without another word.

use super::create::is_part;
use super::introduce::{self, Introduced};
use super::leader_error::{self, LEADER_ERROR};
use super::u64_buf::U64Buf;
use super::{Comm, CommError, Context, Conversation, LeaderError, SplitKey, context_id};
use crate::Error;
use crate::btl::ProcId;
use crate::engine::Engine;
use crate::group::Group;

/// What the leader of a group says on its behalf.
struct Side {
    /// The first number that the leader has set aside: two for each communicator.
    number: u64,
    /// The rest, which differs by what is being made.
    words: Vec<u64>,
}

/// How many words say which process leads, and which numbers it has set aside.
const HEAD: usize = 2;

/// More words come from no job that there is, which has at most 2^24 ranks.
const MOST_WORDS: usize = 3 << 24;

/// How many words of a split say what one member wants.
const EACH: usize = 3;

/// The way from the leader of a group to the other leader, or why there is none; nothing at the others.
type Link = Option<Result<(Conversation, u32), LeaderError>>;

impl Side {
    /// What the leader tells.
    fn told(engine: &Engine, comms: u32, mixed: bool, words: Vec<u64>) -> Vec<u64> {
        let head = [
            engine.name_of(engine.me()),
            engine.next_numbers(2 * comms, mixed),
        ];
        head.into_iter().chain(words).collect()
    }

    fn from_words(engine: &Engine, words: &[u64]) -> Result<Side, CommError> {
        // Both sides run this library, so the head is there.
        let head = |i: usize| words.get(i).copied().unwrap_or_default();
        let leader = engine.proc_named(head(0))?;
        Ok(Side {
            number: context_id::told(leader, head(1))?,
            words: words.get(HEAD..).unwrap_or_default().to_vec(),
        })
    }

    fn group(&self, engine: &Engine) -> Result<Group, CommError> {
        let procs = self.words.iter().map(|name| engine.proc_named(*name));
        Ok(Group::from_procs(procs.collect::<Result<_, _>>()?))
    }
}

/// Words of a group: the names of its members.
fn names(engine: &Engine, group: &Group) -> Vec<u64> {
    group.iter().map(|proc| engine.name_of(proc)).collect()
}

/// Both leaders' words, at every member of both groups: ours first. The processes they name are known at least as long as the third part lives.
async fn swap(
    local: &Comm,
    leader: u32,
    link: Link,
    mine: &[u64],
) -> Result<(Side, Side, Option<Introduced>), Error> {
    let here = local.hidden();
    // Ours and theirs: how many words, and whether a process of another job is among us.
    let lens = U64Buf::new(4);
    match &link {
        Some(Ok((across, peer))) => {
            lens.set(0, mine.len() as u64);
            let mixed = local.is_mixed() || across.comm().is_mixed();
            lens.set(1, mixed.into());
            let (send, recv) = (lens.send(0..2), lens.recv(2..4));
            let met = across.sendrecv(send, *peer, recv, *peer).await;
            if let Err(error) = met {
                // The rest of the group waits for this leader's words.
                let astray = LeaderError::lost(error);
                lens.set(0, LEADER_ERROR);
                local
                    .engine()
                    .coll()?
                    .bcast(&here, &lens.recv(0..4), leader)
                    .await?;
                let told = leader_error::share(local, leader, Some(&astray)).await?;
                return Err(told.into());
            }
        }
        Some(Err(_)) => lens.set(0, LEADER_ERROR),
        None => {}
    }
    let coll = local.engine().coll()?;
    coll.bcast(&here, &lens.recv(0..4), leader).await?;
    if lens.get(0) == LEADER_ERROR {
        let why = link.as_ref().and_then(|link| link.as_ref().err());
        return Err(leader_error::share(local, leader, why).await?.into());
    }
    let mixed = lens.get(1) | lens.get(3) != 0;
    // What is said of a process is at most what a split says of it; more comes from a leader that does something else.
    let most = match mixed {
        true => MOST_WORDS,
        false => HEAD + EACH * local.engine().size() as usize,
    };
    if lens.get(2) > most as u64 {
        let words = lens.get(2);
        return Err(CommError::Strange { words }.into());
    }
    let introduced = match mixed {
        true => {
            let across = link.as_ref().and_then(|link| link.as_ref().ok());
            Some(introduce::show_cards(local, leader, across).await?)
        }
        false => None,
    };
    let (ours, theirs) = (lens.get(0) as usize, lens.get(2) as usize);
    let words = U64Buf::new(ours + theirs);
    if let Some(Ok((across, peer))) = &link {
        for (i, word) in mine.iter().enumerate() {
            words.set(i, *word);
        }
        let (send, recv) = (words.send(0..ours), words.recv(ours..ours + theirs));
        across.sendrecv(send, *peer, recv, *peer).await?;
    }
    let all = words.recv(0..ours + theirs);
    coll.bcast(&here, &all, leader).await?;
    let all: Vec<u64> = (0..ours + theirs).map(|i| words.get(i)).collect();
    let (ours, theirs) = all.split_at(ours);
    let side = |words| Side::from_words(local.engine(), words);
    Ok((side(ours)?, side(theirs)?, introduced))
}

/// The `which`-th communicator of those that two leaders have set numbers aside for.
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
    comm.choose_coll().await?;
    Ok(Some(comm))
}

impl Comm {
    /// A communicator between this process and one other, of a number that both know and no other communicator has.
    pub(crate) fn bridge(engine: &Engine, proc: ProcId, number: u64) -> Result<Comm, CommError> {
        let local = engine.myself().ok_or_else(|| CommError::Unreachable {
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

    /// A communicator of members of this one, on whose numbers all of them have agreed: its own, and those of both sides of an intercommunicator.
    pub(crate) async fn made_again(
        &self,
        number: u64,
        group: Group,
        remote: Option<Group>,
    ) -> Result<Comm, Error> {
        let engine = self.engine();
        let number = context_id::told(engine.me(), number)?;
        let context = Context::numbered(number);
        let rank = group.rank_of(engine.me()).unwrap_or(0);
        let Some(remote) = remote else {
            return self.finish(context, group, rank).await;
        };
        // Both sides come to the same order, by the names of their first members.
        let first = |group: &Group| group.proc(0).map(|proc| engine.name_of(proc));
        let is_first = first(self.group()) < first(self.peers());
        let inside = Context::numbered(number + if is_first { 1 } else { 2 });
        let local = Comm::assemble(engine, inside, group.clone(), rank, String::new());
        let (ours, theirs) = ((group, rank), (remote, Some(local)));
        let comm = Comm::between(engine, context, ours, theirs, String::new());
        comm.choose_coll().await?;
        Ok(comm)
    }

    /// On an intercommunicator, its own group among itself; `operation` is for the sentence if there is none.
    pub fn local(&self, operation: &'static str) -> Result<&Comm, Error> {
        let inter = false;
        let local = self.0.local.as_ref();
        local.ok_or_else(|| CommError::Kind { operation, inter }.into())
    }

    /// The error of an operation that intercommunicators do not have.
    pub(super) fn only_intra(&self, operation: &'static str) -> Result<(), Error> {
        let inter = true;
        match self.is_inter() {
            true => Err(CommError::Kind { operation, inter }.into()),
            false => Ok(()),
        }
    }

    /// `MPI_Intercomm_create`: `self` is the local communicator, `bridge` the peer communicator and the rank of the other leader in it,
    /// or what was wrong with them; it is looked at on the local leader only.
    pub async fn inter(
        &self,
        leader: u32,
        bridge: Option<Result<(&Comm, u32), LeaderError>>,
        tag: i32,
    ) -> Result<Comm, Error> {
        self.only_intra("MPI_Intercomm_create")?;
        self.usable()?;
        let group = self.group().clone();
        let mut mine = Vec::new();
        let mut link = None;
        if self.rank() == leader
            && let Some(bridge) = bridge
        {
            link = Some(bridge.map(|(bridge, peer)| {
                // The numbers are random if any member may be of another job, which the other leader may know alone.
                let mixed = self.is_mixed() || bridge.is_mixed();
                mine = Side::told(self.engine(), 1, mixed, names(self.engine(), &group));
                let both = bridge
                    .peers()
                    .proc(peer)
                    .into_iter()
                    .chain([self.engine().me()]);
                let link = bridge.group_conversation(tag);
                (link.among(&Group::from_procs(both.collect())), peer)
            }));
        }
        let (ours, theirs, _introduced) = swap(self, leader, link, &mine).await?;
        let remote = theirs.group(self.engine())?;
        let made = connect(self.engine(), (&ours, group), (&theirs, remote), 0).await?;
        // Every caller is a member of its own group, and no communicator is empty.
        made.ok_or_else(|| self.no_rank(i64::from(self.rank())))
    }

    /// The leader's words and its way to the other leader; the first member of each group leads.
    fn lead(&self, link: Conversation, comms: u32, words: Vec<u64>) -> (Vec<u64>, Link) {
        match self.rank() {
            0 => {
                let told = Side::told(self.engine(), comms, self.is_mixed(), words);
                (told, Some(Ok((link, 0))))
            }
            _ => (Vec::new(), None),
        }
    }

    /// `MPI_Comm_dup` of an intercommunicator.
    pub(super) async fn inter_dup(&self) -> Result<Comm, Error> {
        let group = self.group().clone();
        let made = self.inter_create(&group).await?;
        made.ok_or_else(|| self.no_rank(i64::from(self.rank())))
    }

    /// `MPI_Comm_create` of an intercommunicator: `group` is a part of our own; members of both new groups are connected.
    ///
    /// Every member looks at what both leaders say, so that a wrong group on one side fails on both.
    pub(super) async fn inter_create(&self, group: &Group) -> Result<Option<Comm>, Error> {
        let local = self.local("MPI_Comm_create")?;
        let (mine, link) = self.lead(self.hidden(), 1, names(self.engine(), group));
        let (ours, theirs, _introduced) = swap(local, 0, link, &mine).await?;
        let remote = theirs.group(self.engine())?;
        let (this, that) = ("this side", "the other side");
        let sides = [
            (&ours.group(self.engine())?, this, self.group()),
            (&remote, that, self.peers()),
            (group, this, self.group()),
        ];
        for (part, called, whole) in sides {
            is_part(part, called, whole)?;
        }
        connect(self.engine(), (&ours, group.clone()), (&theirs, remote), 0).await
    }

    /// `MPI_Comm_split` of an intercommunicator: members of one colour on both sides are connected.
    pub(super) async fn inter_split(&self, mine: SplitKey) -> Result<Option<Comm>, Error> {
        const NO_COLOR: u64 = u64::MAX;
        let local = self.local("MPI_Comm_split")?;
        let hidden = self.hidden();
        let color = mine.color.unwrap_or(NO_COLOR);
        let me = self.engine().name_of(self.engine().me());
        let said = local
            .share(&[color, i64::from(mine.key) as u64, me])
            .await?;
        // No more colours can meet than there are members here.
        let (words, link) = self.lead(hidden, self.size(), said);
        let (ours, theirs, _introduced) = swap(local, 0, link, &words).await?;
        if color == NO_COLOR {
            return Ok(None);
        }
        let members = |side: &Side, color: u64| -> Result<Group, CommError> {
            let of_color = side.words.chunks_exact(EACH).filter(|w| w[0] == color);
            let keyed = of_color.map(|w| Ok((w[1] as i64, self.engine().proc_named(w[2])?)));
            let mut keyed: Vec<(i64, ProcId)> = keyed.collect::<Result<_, CommError>>()?;
            // Stable: ties keep the order of the parent.
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
        connect(self.engine(), pair.0, pair.1, which as u32).await
    }

    /// `MPI_Intercomm_merge`: one group of both; that of the side which says `high` comes last.
    pub async fn merge(&self, high: bool) -> Result<Comm, Error> {
        self.usable()?;
        let local = self.local("MPI_Intercomm_merge")?;
        let (mine, link) = self.lead(self.hidden(), 1, vec![high.into()]);
        let (ours, theirs, _introduced) = swap(local, 0, link, &mine).await?;
        let order = |side: &Side| (side.words.first().copied(), side.number);
        let we_first = order(&ours) < order(&theirs);
        let (low, group) = match we_first {
            true => (&ours, self.group().union(self.peers())),
            false => (&theirs, self.peers().union(self.group())),
        };
        let rank = group.rank_of(self.engine().me()).unwrap_or(0);
        let context = Context::numbered(low.number);
        self.finish(context, group, rank).await
    }
}
