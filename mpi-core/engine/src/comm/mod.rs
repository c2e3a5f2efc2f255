//! Communicators: a group, a unique context, and the collective components chosen for it.
//!
//! A communicator is reference counted.
//! Dropping the last reference releases its context and shuts its components down, so active operations outlive `MPI_Comm_free` as the standard requires.
//!
//! The first member of the new group takes the context id from its own counter and sends it to the others,
//! in the message that also starts the agreement on components. So ids do not run out in practice, and cost no message of their own.

mod agree;
mod collectives;
mod construct;
mod context_id;
mod control_group;
mod conversation;
mod create;
mod error;
mod eureka;
mod eureka_word;
mod failure_state;
mod failures;
mod from_group;
mod inter;
pub(crate) mod introduce;
mod leader_error;
mod p2p;
mod process;
mod replay;
mod shrink;
mod split_type;
mod u64_buf;
mod uniform_outcome;

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
use crate::{Error, RunObserver};
use eureka::Eureka;
use failure_state::FailureState;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

/// A counted reference to a communicator.
#[derive(Clone)]
pub struct Comm(Rc<Inner>);

/// A weak reference to a communicator.
pub struct WeakComm(Weak<Inner>);

impl WeakComm {
    /// Returns the communicator, if it has not been freed.
    pub fn upgrade(&self) -> Option<Comm> {
        self.0.upgrade().map(Comm)
    }
}

/// The purpose of a communicator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Program,
    /// Created by a component, for steps of its calls on another communicator.
    Steps,
}

struct Inner {
    engine: Engine,
    context: Context,
    group: Group,
    /// The processes that the ranks of messages name: the group, or on an intercommunicator the remote group.
    peers: Group,
    /// On an intercommunicator, the intracommunicator of the local group.
    local: Option<Comm>,
    rank: u32,
    /// Matching state by [`Plane`].
    planes: [Rc<Matching>; 3],
    /// The matching state of the rarely used planes, created on first use: [`Plane::Announce`], [`Plane::Partition`] and [`Plane::Answer`].
    rare_planes: [OnceCell<Rc<Matching>>; 3],
    /// The components that serve its calls; set once all members have agreed.
    coll: OnceCell<Chosen>,
    purpose: Cell<Purpose>,
    /// The numbers of the next collective call and of the next internal conversation; equal at all members.
    next_call: Cell<i32>,
    next_hidden: Cell<i32>,
    /// The next tag of a partition that this process sends.
    next_partition: Cell<i32>,
    name: RefCell<String>,
    /// The members of other jobs, on both sides.
    foreign: Box<[ProcId]>,
    failure_state: FailureState,
    eureka: Eureka,
}

/// The components that carry out the calls of a communicator.
struct Chosen {
    collectives: Box<dyn Collectives>,
    /// By [`CallId`]: the largest size in bytes of the fast calls that are served, or [`NOTHING`].
    brief: [i64; CallId::ALL.len()],
}

/// Less than the size of any call.
const NOTHING: i64 = -1;

impl Chosen {
    fn new(collectives: Box<dyn Collectives>) -> Chosen {
        let most = |most: usize| most.min(i64::MAX as usize) as i64;
        let brief = CallId::ALL.map(|call| collectives.takes_fast_call(call).map_or(NOTHING, most));
        Chosen { collectives, brief }
    }
}

impl Comm {
    /// Creates a communicator whose context all members know; [`Comm::choose_coll`] installs its collectives.
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

    /// Creates either kind of communicator from the local group, this process's rank in it, and the processes that ranks name.
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
            failure_state: FailureState::default(),
            eureka: Eureka::default(),
        }));
        comm.hears_of_failures();
        comm
    }

    /// The state of its failures.
    #[inline(always)]
    fn failure_state(&self) -> &FailureState {
        &self.0.failure_state
    }

    /// The state of its eureka line.
    fn eureka(&self) -> &Eureka {
        &self.0.eureka
    }

    /// On an intercommunicator, the intracommunicator of the local group.
    pub(crate) fn within(&self) -> Option<&Comm> {
        self.0.local.as_ref()
    }

    /// Returns a weak reference, for values that the communicator owns.
    pub fn downgrade(&self) -> WeakComm {
        WeakComm(Rc::downgrade(&self.0))
    }

    /// Returns true if this is `MPI_COMM_WORLD`; components may call it before the engine has the world.
    pub fn is_world(&self) -> bool {
        self.0.context == Context::new(0, context_id::WORLD)
    }

    /// Returns the engine that created it, which lives at least as long.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Returns its context: the same at all members, and different from that of any other living communicator.
    pub fn context(&self) -> Context {
        self.0.context
    }

    /// Returns its members; on an intercommunicator, the local group (MPI 5.0, section 7.6).
    pub fn group(&self) -> &Group {
        &self.0.group
    }

    /// This process's rank in [`Comm::group`].
    #[inline]
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// Returns the number of members of [`Comm::group`]; on an intercommunicator, of the local group only.
    #[inline]
    pub fn size(&self) -> u32 {
        self.0.group.size()
    }

    /// `MPI_Comm_get_name` (MPI 5.0, section 7.8); empty until the program sets it, except for the predefined communicators.
    pub fn name(&self) -> String {
        self.0.name.borrow().clone()
    }

    /// Returns its name for messages to the user: its name, or if it has none the number of its members.
    pub fn label(&self) -> String {
        let name = self.name();
        if !name.is_empty() {
            // The name is the program's, so it is made printable.
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

    /// `MPI_Comm_set_name`: for this process alone, and for the reports that name the communicator.
    pub fn set_name(&self, name: &str) {
        *self.0.name.borrow_mut() = name.to_owned();
    }

    /// Returns the processes that the ranks of messages name: the members, or on an intercommunicator the remote group.
    pub fn peers(&self) -> &Group {
        &self.0.peers
    }

    /// Returns true if this is an intercommunicator.
    pub fn is_inter(&self) -> bool {
        self.0.local.is_some()
    }

    /// Returns true if some members, on either side, are of other jobs.
    pub fn is_mixed(&self) -> bool {
        !self.0.foreign.is_empty()
    }

    /// Returns the remote group of an intercommunicator.
    pub fn remote_group(&self) -> Option<&Group> {
        self.is_inter().then_some(&self.0.peers)
    }

    /// `MPI_Comm_compare`.
    pub fn compare(&self, other: &Comm) -> Comparison {
        if Rc::ptr_eq(&self.0, &other.0) {
            return Comparison::Identical;
        }
        if self.is_inter() != other.is_inter() {
            return Comparison::Unequal;
        }
        // On an intercommunicator both groups are compared, and the less similar pair decides.
        let compared = self.group().compare(other.group());
        match compared.max(self.peers().compare(other.peers())) {
            Comparison::Identical => Comparison::Congruent,
            c => c,
        }
    }

    /// Returns the components that serve its calls, once chosen.
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
        // A component's calls on communicators of its own are part of the program's call.
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

    /// Carries out a fast call, if the first component in order accepts it; otherwise has no effect and returns `None`.
    ///
    /// Only for calls of the program: a component's calls are part of those.
    #[inline(always)]
    pub fn try_fast_call(&self, brief: &FastCall<'_>) -> Option<Result<(), Error>> {
        let (engine, chosen) = (self.engine(), self.0.coll.get()?);
        if brief.bytes() as i64 > chosen.brief[brief.id() as usize] {
            return None;
        }
        if engine.observer().is_some() || !self.0.failure_state.is_none() {
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
        Ok(self.engine().start_future(running))
    }

    /// Returns true if a component created it for steps of its calls on another communicator.
    pub fn is_for_steps(&self) -> bool {
        self.0.purpose.get() == Purpose::Steps
    }

    /// An internal barrier, without any component; returns after every member has called it.
    /// It is not defined on an intercommunicator.
    pub async fn fence(&self) -> Result<(), Error> {
        self.engine().coll()?.barrier(&self.hidden()).await
    }

    /// Precedes disconnecting: returns after every member, on both sides, has called it.
    /// With fault tolerance, the living members leave together.
    pub async fn farewell(&self) -> Result<(), Error> {
        match (self.engine().is_fault_tolerant(), self.is_mixed()) {
            (false, _) => self.farewell_of_all().await,
            (true, false) => self.agree(0).await.map(drop),
            // Another job may not be fault tolerant, so its members do not take part in the agreement.
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
        // The first members of both sides notify each other, and each then notifies its own side.
        if self.rank() == 0 {
            let (across, none) = (self.hidden(), U64Buf::new(2));
            across
                .sendrecv(none.send(0..1), 0, none.recv(1..2), 0)
                .await?;
        }
        local.fence().await
    }

    /// Returns a new internal conversation; members must create them in the same order.
    pub fn hidden(&self) -> Conversation {
        let tag = self.0.next_hidden.get();
        self.0.next_hidden.set(tag.wrapping_add(1) & i32::MAX);
        Conversation::new(self.clone(), Plane::Hidden, tag)
    }

    /// Reserves consecutive tags. Returns the first; tags repeat after two thousand million partitions.
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

    /// Publishes on the state page which collective operation begins; rounds are counted from one.
    #[inline]
    fn publish_collective(&self, number: i32, call: &Call) {
        let said = CallSignature::of(call);
        let (comm, round) = (self.context().number(), number as u64 + 1);
        if let Some(trace) = self.engine().observer().and_then(RunObserver::trace) {
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

/// Returns the members of other jobs, which the new communicator references from now on.
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
            // Messages for a later call of this process may have arrived on the bootstrap communicator already.
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
