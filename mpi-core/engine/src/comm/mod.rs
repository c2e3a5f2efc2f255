//! Communicators: a group, a context that no other has, and the collective components chosen for it.
//!
//! A communicator is a counted value.
//! The last reference to go returns its context and takes its components down, so operations under way outlive `MPI_Comm_free` as the standard asks.
//!
//! Its number is chosen by one member (the first of the new group) from that process's own counter and told to the others,
//! by the message that also invites them to agree on components; so numbers do not run out, and cost nothing.

mod agree;
mod collectives;
mod construct;
mod context_id;
mod control_group;
mod conversation;
mod create;
mod end_alike;
mod error;
mod eureka;
mod eureka_word;
mod failures;
mod from_group;
mod inter;
mod introduce;
mod leader_error;
mod p2p;
mod process;
mod replay;
mod shrink;
mod split_type;
mod trouble;
mod u64_buf;

pub use agree::Agreed;
pub use collectives::{Collectives, Framework, Joint, Proposal, Unserved};
pub use control_group::{ControlGroup, FIRST};
pub use conversation::{Conversation, Pending};
pub use create::SplitKey;
pub use error::{CommError, LeaderError};
pub use eureka::{EurekaError, EurekaLine};
pub use failures::Making;
pub use p2p::Probed;
pub use u64_buf::U64Buf;

use crate::btl::ProcId;
use crate::coll::{Call, CallId, CallSignature, FastCall};
use crate::engine::Engine;
use crate::fault::is_about_deaths;
use crate::group::{Comparison, Group};
use crate::pml::Matching;
use crate::pml::{Context, Plane};
use crate::request::Req;
use crate::{Error, Witness};
use eureka::Eureka;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use trouble::Trouble;

/// A counted reference to a communicator.
#[derive(Clone)]
pub struct Comm(Rc<Inner>);

/// A reference that does not keep its communicator.
pub struct WeakComm(Weak<Inner>);

impl WeakComm {
    /// The communicator, if it has not been freed.
    pub fn upgrade(&self) -> Option<Comm> {
        self.0.upgrade().map(Comm)
    }
}

/// What a communicator is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Program,
    /// A component, for steps of its calls on another communicator.
    Steps,
}

struct Inner {
    engine: Engine,
    context: Context,
    group: Group,
    /// The processes that the ranks of messages name: the group, or on an intercommunicator the other one.
    peers: Group,
    /// On an intercommunicator, its own group among itself.
    local: Option<Comm>,
    rank: u32,
    /// Matching state by [`Plane`].
    planes: [Rc<Matching>; 3],
    /// The same of the planes that few programs use, from their first use on: [`Plane::Announce`], [`Plane::Partition`] and [`Plane::Answer`].
    rare_planes: [OnceCell<Rc<Matching>>; 3],
    /// Which component serves which call; set once all members have agreed.
    coll: OnceCell<Chosen>,
    purpose: Cell<Purpose>,
    /// Numbers of the next collective call and of the next hidden conversation; equal at all members.
    next_call: Cell<i32>,
    next_hidden: Cell<i32>,
    /// The next tag of a partition that this process sends.
    next_partition: Cell<i32>,
    name: RefCell<String>,
    /// Its members of other jobs, on both sides.
    foreign: Box<[ProcId]>,
    trouble: Trouble,
    eureka: Eureka,
}

/// What carries out the calls of a communicator.
struct Chosen {
    collectives: Box<dyn Collectives>,
    /// By [`CallId`]: up to how many bytes it takes calls in brief, or [`NOTHING`].
    brief: [i64; CallId::ALL.len()],
}

/// Less than any call has.
const NOTHING: i64 = -1;

impl Chosen {
    fn new(collectives: Box<dyn Collectives>) -> Chosen {
        let most = |most: usize| most.min(i64::MAX as usize) as i64;
        let brief = CallId::ALL.map(|call| collectives.takes_fast_call(call).map_or(NOTHING, most));
        Chosen { collectives, brief }
    }
}

impl Comm {
    /// A communicator whose context all members know; collectives come with [`Comm::choose_coll`].
    pub(crate) fn assemble(
        engine: &Engine,
        context: Context,
        group: Group,
        rank: u32,
        name: String,
    ) -> Comm {
        let peers = group.clone();
        Comm::between(engine, context, (group, rank), (peers, None), name)
    }

    /// What both kinds of communicator are made of: our group and rank in it, and the processes that ranks name.
    fn between(
        engine: &Engine,
        context: Context,
        (group, rank): (Group, u32),
        (peers, local): (Group, Option<Comm>),
        name: String,
    ) -> Comm {
        let plane = |p| engine.pml().matching_among(context.plane(p), &peers);
        let foreign = foreign_members(engine, &group, local.is_some().then_some(&peers));
        let comm = Comm(Rc::new(Inner {
            planes: [
                plane(Plane::User),
                plane(Plane::Collective),
                plane(Plane::Hidden),
            ],
            engine: engine.clone(),
            context,
            group,
            peers,
            local,
            rank,
            coll: OnceCell::new(),
            purpose: Cell::new(Purpose::Program),
            next_call: Cell::new(0),
            next_hidden: Cell::new(0),
            next_partition: Cell::new(0),
            rare_planes: Default::default(),
            name: RefCell::new(name),
            foreign,
            trouble: Trouble::default(),
            eureka: Eureka::default(),
        }));
        comm.hears_of_failures();
        comm
    }

    /// What is wrong with it.
    #[inline(always)]
    fn trouble(&self) -> &Trouble {
        &self.0.trouble
    }

    /// What it knows of its eureka line.
    fn eureka(&self) -> &Eureka {
        &self.0.eureka
    }

    /// On an intercommunicator, its own group among itself.
    pub(crate) fn within(&self) -> Option<&Comm> {
        self.0.local.as_ref()
    }

    /// For those that the communicator owns.
    pub fn downgrade(&self) -> WeakComm {
        WeakComm(Rc::downgrade(&self.0))
    }

    /// Whether this is `MPI_COMM_WORLD`, which components may ask before the engine has it.
    pub fn is_world(&self) -> bool {
        self.0.context == Context::new(0, context_id::WORLD)
    }

    /// The engine that made it, which lives as long.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// What its messages are told apart by: the same at all members, and no other living communicator's.
    pub fn context(&self) -> Context {
        self.0.context
    }

    /// Its members; of an intercommunicator those on this side (MPI 5.0, section 7.6).
    pub fn group(&self) -> &Group {
        &self.0.group
    }

    /// This process's rank in [`Comm::group`].
    #[inline]
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// How many members [`Comm::group`] has: on an intercommunicator only those on this side.
    #[inline]
    pub fn size(&self) -> u32 {
        self.0.group.size()
    }

    /// As `MPI_Comm_get_name` tells it (MPI 5.0, section 7.8); empty until the program gives it one, but for the predefined ones.
    pub fn name(&self) -> String {
        self.0.name.borrow().clone()
    }

    /// What sentences call it: its name, or without one how many members it has.
    pub fn label(&self) -> String {
        let name = self.name();
        if !name.is_empty() {
            // The program has chosen it, and labels stand in sentences.
            return printable::name(&name).to_string();
        }
        match self.is_inter() {
            true => {
                let (here, there) = (self.size(), self.peers().size());
                format!("an intercommunicator of {here} and {there} processes")
            }
            false => format!("a communicator of {} processes", self.size()),
        }
    }

    /// As `MPI_Comm_set_name`: for this process alone, and for the reports that name the communicator.
    pub fn set_name(&self, name: &str) {
        *self.0.name.borrow_mut() = name.to_owned();
    }

    /// The processes that the ranks of messages name: the members, or on an intercommunicator those of the remote group.
    pub fn peers(&self) -> &Group {
        &self.0.peers
    }

    /// Whether messages go from one group to another.
    pub fn is_inter(&self) -> bool {
        self.0.local.is_some()
    }

    /// Whether some members, on either side, are of other jobs.
    pub fn is_mixed(&self) -> bool {
        !self.0.foreign.is_empty()
    }

    /// The remote group of an intercommunicator.
    pub fn remote_group(&self) -> Option<&Group> {
        self.is_inter().then_some(&self.0.peers)
    }

    /// Whether two references mean one communicator, or how their groups compare.
    pub fn compare(&self, other: &Comm) -> Comparison {
        if Rc::ptr_eq(&self.0, &other.0) {
            return Comparison::Identical;
        }
        if self.is_inter() != other.is_inter() {
            return Comparison::Unequal;
        }
        // Both groups of an intercommunicator count, and the less alike pair decides.
        let compared = self.group().compare(other.group());
        match compared.max(self.peers().compare(other.peers())) {
            Comparison::Identical => Comparison::Congruent,
            c => c,
        }
    }

    /// Which component serves which call, once chosen.
    pub fn coll(&self) -> Option<&dyn Collectives> {
        self.0.coll.get().map(|chosen| &*chosen.collectives)
    }

    fn served(&self, call: CallId) -> Result<&dyn Collectives, Error> {
        self.coll().ok_or_else(|| Unserved::on(self, call))
    }

    /// Carries out a collective operation.
    #[inline]
    pub fn collective(&self, call: Call) -> Result<(), Error> {
        self.usable()?;
        let (number, state) = (self.next_call(), self.engine().state());
        // What components call on communicators of their own is a part of what the program called.
        let outermost = !state.is_inside();
        if outermost {
            self.publish_collective(number, &call);
            state.inside(true);
        }
        let served = self.served(call.id());
        let outcome = served.and_then(|coll| coll.carry_out(self, number, &call));
        if outermost {
            state.inside(false);
        }
        outcome
    }

    /// Carries out a call in brief, if the component that is asked first takes it; else nothing has happened.
    ///
    /// Only for calls of the program: what components call is a part of those.
    #[inline(always)]
    pub fn try_fast_call(&self, brief: &FastCall<'_>) -> Option<Result<(), Error>> {
        let (engine, chosen) = (self.engine(), self.0.coll.get()?);
        if brief.bytes() as i64 > chosen.brief[brief.id() as usize] {
            return None;
        }
        if engine.witness().is_some() || !self.0.trouble.is_none() {
            return None;
        }
        let (number, state) = (self.next_call(), engine.state());
        let (comm, round) = (self.context().number(), number as u64 + 1);
        state.collective(comm, self.size(), round, brief.said().words());
        state.inside(true);
        let outcome = chosen.collectives.carry_out_fast_call(self, brief);
        state.inside(false);
        Some(outcome)
    }

    /// Starts a collective operation; the request completes as the engine progresses.
    pub fn icollective(&self, call: Call) -> Result<Req, Error> {
        self.usable()?;
        let number = self.next_call();
        self.publish_collective(number, &call);
        let running = self.served(call.id())?.begin(self, number, call)?;
        Ok(self.engine().spawn(running))
    }

    /// Whether it was made by a component for steps of its calls on another communicator.
    pub fn is_for_steps(&self) -> bool {
        self.0.purpose.get() == Purpose::Steps
    }

    /// Returns after every member has called it; for the library's own ends, no component has a part in it.
    /// On an intercommunicator it is not defined.
    pub async fn fence(&self) -> Result<(), Error> {
        self.engine().coll()?.barrier(&self.hidden()).await
    }

    /// What comes before a communicator is left for good: returns after every member, on both sides, has called it.
    /// Where deaths are survived the living leave it among themselves.
    pub async fn farewell(&self) -> Result<(), Error> {
        match (self.engine().is_fault_tolerant(), self.is_mixed()) {
            (false, _) => self.farewell_of_all().await,
            (true, false) => self.agree(0).await.map(drop),
            // Another job may not survive deaths, so its members do not agree.
            (true, true) => match self.farewell_of_all().await {
                Err(error) if is_about_deaths(&error) => Ok(()),
                left => left,
            },
        }
    }

    async fn farewell_of_all(&self) -> Result<(), Error> {
        let Some(local) = &self.0.local else {
            return self.fence().await;
        };
        local.fence().await?;
        // The first of each side tells the other one's, and each then tells its own side.
        if self.rank() == 0 {
            let (across, none) = (self.hidden(), U64Buf::new(2));
            across
                .sendrecv(none.send(0..1), 0, none.recv(1..2), 0)
                .await?;
        }
        local.fence().await
    }

    /// A conversation in the hidden plane; members must begin them in the same order.
    pub fn hidden(&self) -> Conversation {
        let tag = self.0.next_hidden.get();
        self.0.next_hidden.set(tag.wrapping_add(1) & i32::MAX);
        Conversation::new(self.clone(), Plane::Hidden, tag)
    }

    /// Sets as many tags in a row aside; they come round after two thousand million partitions.
    pub(crate) fn next_partitions(&self, how_many: u32) -> i32 {
        let first = self.0.next_partition.get();
        let next = |first: i32| {
            i32::try_from(how_many)
                .ok()
                .and_then(|n| first.checked_add(n))
        };
        let (first, next) = match next(first) {
            Some(next) => (first, next),
            None => (0, next(0).unwrap_or(0)),
        };
        self.0.next_partition.set(next);
        first
    }

    #[cold]
    fn rare_plane(&self, plane: Plane) -> &Rc<Matching> {
        let slot = &self.0.rare_planes[plane as usize - Plane::Announce as usize];
        slot.get_or_init(|| {
            let context = self.context().plane(plane);
            self.engine().pml().matching_among(context, self.peers())
        })
    }

    /// Writes into the state page which collective operation begins; people count from one.
    #[inline]
    fn publish_collective(&self, number: i32, call: &Call) {
        let said = CallSignature::of(call);
        let (comm, round) = (self.context().number(), number as u64 + 1);
        if let Some(trace) = self.engine().witness().and_then(Witness::trace) {
            trace.rounds(comm, round, &said);
        }
        self.engine()
            .state()
            .collective(comm, self.size(), round, said.words());
    }

    fn next_call(&self) -> i32 {
        let tag = self.0.next_call.get();
        self.0.next_call.set(tag.wrapping_add(1) & i32::MAX);
        tag
    }
}

/// The members of other jobs, which the new communicator holds from now on.
fn foreign_members(engine: &Engine, group: &Group, remote: Option<&Group>) -> Box<[ProcId]> {
    let universe = engine.universe();
    let both = group.iter().chain(remote.into_iter().flat_map(Group::iter));
    let foreign: Box<[ProcId]> = both.filter(|proc| universe.is_foreign(*proc)).collect();
    universe.hold(foreign.iter().copied());
    foreign
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(chosen) = self.coll.get() {
            chosen.collectives.disable();
        }
        if let Some(faults) = self.engine.faults() {
            faults.forget(self.context.number());
        }
        if self.context == Context::new(0, context_id::MEETING) {
            // Others may have come to the meeting place already for what this process will join after its rest.
            return;
        }
        for plane in Plane::ALL {
            self.engine.pml().forget(self.context.plane(plane));
        }
        if !self.foreign.is_empty() {
            self.engine.part_from(&self.foreign);
        }
    }
}
