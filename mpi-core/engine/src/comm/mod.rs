//! Communicators: a group, a unique context, and the collective components selected for them.
//!
//! A communicator is reference counted.
//! When the last reference is dropped, its context and its components are released, so operations in progress outlive `MPI_Comm_free` as the standard requires.
//!
//! [`Comm`] contains the communicator's identity: context, groups, rank and name. The operations are divided into parts, each with a type:
//!
//! | part | file | subject |
//! |---|---|---|
//! | [`P2p`] | `p2p`, `planes` | messages, and the matching state for each plane |
//! | [`Probes`] | `probe` | probes |
//! | [`CollectiveCalls`] | `collective_calls`, `selected`, `construct` | collective operations, and the selection of components |
//! | [`Internal`] | `internal` | messages and collective steps of this library |
//! | [`Constructors`] | `create`, `shrink`, `spares` | new communicators of members |
//! | [`InterConstructors`] | `inter` | intercommunicators |
//! | [`HardwareSplits`] | `split_type` | splits by hardware |
//! | [`Failures`] | `failures`, `failure_state` | deaths of members, and revocation |
//! | [`Agreement`] | `agree`, `uniform_outcome` | agreement of the living members |
//! | [`EurekaCalls`] | `eureka`, `eureka_word` | the eureka line |
//!
//! The first member of the new group takes the context id from its own counter and sends it to the others
//! in the message that also starts the agreement on components. So ids need no additional message, and do not run out in practice.

mod agree;
mod collective_calls;
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
mod internal;
pub(crate) mod introduce;
mod leader_error;
mod p2p;
mod planes;
mod probe;
mod process;
mod replay;
mod selected;
mod shrink;
mod spares;
mod split_type;
mod u64_buf;
mod uniform_outcome;

pub use agree::{Agreed, Agreement};
pub use collective_calls::CollectiveCalls;
pub use collectives::{Collectives, FastCarrier, FastSlot, Framework, Joint, Proposal, Unserved};
pub use context_id::ContextIds;
pub use control_group::{ControlGroup, FIRST};
pub use conversation::{Conversation, Pending};
pub use create::{Constructors, SplitKey};
pub use error::{CommError, LeaderError, name_of_constant};
pub use eureka::{EurekaCalls, EurekaError, EurekaLine};
pub use failures::{Failures, Making};
pub use inter::InterConstructors;
pub(crate) use inter::bridge;
pub use internal::Internal;
pub use p2p::P2p;
pub use probe::{Probed, Probes};
pub use process::Process;
pub use split_type::HardwareSplits;
pub use u64_buf::U64Buf;

use crate::Error;
use crate::btl::ProcId;
use crate::engine::Engine;
use crate::fault::Affected;
use crate::group::{Comparison, Group};
use crate::pml::{Context, Plane};
use collective_calls::Chosen;
use eureka::Eureka;
use failure_state::FailureState;
use internal::Numbers;
use planes::Planes;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// A counted reference to a communicator.
#[derive(Clone)]
pub struct Comm(Rc<Inner>);

/// A weak reference to a communicator, which does not keep it alive.
pub struct WeakComm(Weak<Inner>);

impl WeakComm {
    /// Returns the communicator, if it still exists.
    pub fn upgrade(&self) -> Option<Comm> {
        self.0.upgrade().map(Comm)
    }
}

struct Inner {
    engine: Engine,
    context: Context,
    group: Group,
    /// The group to which source and destination ranks of messages refer: on an intercommunicator the remote group.
    peers: Group,
    /// On an intercommunicator, the intracommunicator of the local group.
    local: Option<Comm>,
    rank: u32,
    name: RefCell<String>,
    /// The members on both sides that belong to other jobs.
    foreign: Box<[ProcId]>,
    planes: Planes,
    chosen: Chosen,
    numbers: Numbers,
    failure_state: FailureState,
    eureka: Eureka,
}

impl Comm {
    /// Creates a communicator whose context id all members know; [`CollectiveCalls::choose`] selects its components later.
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

    /// Creates an intra- or intercommunicator from the local group with this process's rank in it, and the group to which the ranks in messages refer.
    fn between(
        engine: &Engine,
        context: Context,
        (group, rank): (Group, u32),
        (peers, local): (Group, Option<Comm>),
        name: String,
    ) -> Comm {
        let planes = Planes::new(engine, context, &peers);
        let foreign = foreign_members(engine, &group, local.is_some().then_some(&peers));
        let comm = Comm(Rc::new(Inner {
            engine: engine.clone(),
            context,
            group,
            peers,
            local,
            rank,
            name: RefCell::new(name),
            foreign,
            planes,
            chosen: Chosen::default(),
            numbers: Numbers::default(),
            failure_state: FailureState::default(),
            eureka: Eureka::default(),
        }));
        let affected: Weak<dyn Affected> = Rc::<Inner>::downgrade(&comm.0);
        comm.failures().register(affected);
        comm
    }

    /// Returns the point-to-point operations of this communicator.
    #[inline(always)]
    pub fn p2p(&self) -> P2p<'_> {
        P2p::new(self, &self.0.planes)
    }

    /// Returns the probes of this communicator.
    #[inline(always)]
    pub fn probes(&self) -> Probes<'_> {
        Probes::new(self, &self.0.planes)
    }

    /// Returns the collective operations of this communicator.
    #[inline(always)]
    pub fn collectives(&self) -> CollectiveCalls<'_> {
        CollectiveCalls::new(self, &self.0.chosen)
    }

    /// Returns the internal operations among the members of this communicator.
    pub fn internal(&self) -> Internal<'_> {
        Internal::new(self, &self.0.numbers)
    }

    /// Returns the functions that create a communicator from this one.
    pub fn constructors(&self) -> Constructors<'_> {
        Constructors::new(self)
    }

    /// Returns the functions that create an intercommunicator from this one,
    /// or a communicator from an intercommunicator.
    pub fn inter(&self) -> InterConstructors<'_> {
        InterConstructors::new(self)
    }

    /// Returns the functions that split this communicator by hardware.
    pub fn hardware(&self) -> HardwareSplits<'_> {
        HardwareSplits::new(self)
    }

    /// Returns the functions for failures of this communicator: deaths of members, and revocation.
    #[inline]
    pub fn failures(&self) -> Failures<'_> {
        Failures::new(self, &self.0.failure_state)
    }

    /// Returns the functions with which the living members of this communicator agree on a value
    /// (`MPIX_Comm_agree`); they also work after deaths of members and after revocation.
    pub fn agreement(&self) -> Agreement<'_> {
        Agreement::new(self, &self.0.failure_state)
    }

    /// Returns the functions of this communicator's eureka line (`MPIX_Eureka_...`).
    pub fn eureka(&self) -> EurekaCalls<'_> {
        EurekaCalls::new(self, &self.0.eureka)
    }

    #[inline(always)]
    fn is_sound(&self) -> bool {
        self.0.failure_state.is_none()
    }

    /// Returns an error if an operation of all members cannot complete: a member is known to be dead, or the communicator has been revoked.
    #[inline]
    pub fn usable(&self) -> Result<(), Error> {
        match self.is_sound() {
            true => Ok(()),
            false => self.failures().error_of_all(),
        }
    }

    /// Returns an intercommunicator's intracommunicator of the local group.
    pub(crate) fn within(&self) -> Option<&Comm> {
        self.0.local.as_ref()
    }

    /// Returns a weak reference, for values that the communicator itself owns.
    pub fn downgrade(&self) -> WeakComm {
        WeakComm(Rc::downgrade(&self.0))
    }

    /// Returns true if this is `MPI_COMM_WORLD`; also works before the engine knows its world.
    pub fn is_world(&self) -> bool {
        self.0.context == Context::new(0, context_id::WORLD)
    }

    /// Returns the engine that created this communicator; it lives at least as long.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Returns the context: the same on all members, and unique among existing communicators.
    pub fn context(&self) -> Context {
        self.0.context
    }

    /// Returns the members; for an intercommunicator, the local group (MPI 5.0, section 7.6).
    pub fn group(&self) -> &Group {
        &self.0.group
    }

    /// Returns this process's rank in [`Comm::group`].
    #[inline]
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// Returns the number of members of [`Comm::group`]; for an intercommunicator, of the local group only.
    #[inline]
    pub fn size(&self) -> u32 {
        self.0.group.size()
    }

    /// `MPI_Comm_get_name` (MPI 5.0, section 7.8); empty until the program sets it, except for the predefined communicators.
    pub fn name(&self) -> String {
        self.0.name.borrow().clone()
    }

    /// Returns a label for messages to the user: the name, or the number of members.
    pub fn label(&self) -> String {
        let name = self.name();
        if !name.is_empty() {
            // The name is the program's text, so control characters are escaped.
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

    /// `MPI_Comm_set_name`: sets the name on this process only, for its reports.
    pub fn set_name(&self, name: &str) {
        *self.0.name.borrow_mut() = name.to_owned();
    }

    /// Returns the group to which source and destination ranks of messages refer: the members, or on an intercommunicator the remote group.
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

    /// Implements `MPI_Comm_compare`.
    pub fn compare(&self, other: &Comm) -> Comparison {
        if Rc::ptr_eq(&self.0, &other.0) {
            return Comparison::Identical;
        }
        if self.is_inter() != other.is_inter() {
            return Comparison::Unequal;
        }
        // For intercommunicators, both groups are compared, and the less similar pair is the result.
        let compared = self.group().compare(other.group());
        match compared.max(self.peers().compare(other.peers())) {
            Comparison::Identical => Comparison::Congruent,
            c => c,
        }
    }

    /// Returns the intracommunicator of an intercommunicator's local group; if there is none, the error names `operation`.
    pub fn local(&self, operation: &'static str) -> Result<&Comm, Error> {
        let inter = false;
        self.within()
            .ok_or_else(|| CommError::Kind { operation, inter }.into())
    }

    fn only_intra(&self, operation: &'static str) -> Result<(), Error> {
        let inter = true;
        match self.is_inter() {
            true => Err(CommError::Kind { operation, inter }.into()),
            false => Ok(()),
        }
    }

    fn has_member(&self, proc: ProcId) -> bool {
        self.0.has_member(proc)
    }

    /// Returns all members of both sides, in the same order on every member.
    fn all_procs(&self) -> Vec<ProcId> {
        let mut all: Vec<ProcId> = self.group().iter().collect();
        if self.is_inter() {
            all.extend(self.peers().iter());
            all.sort_by_key(|proc| self.engine().peers().name_of(*proc));
        }
        all
    }
}

impl Affected for Inner {
    fn has_member(&self, proc: ProcId) -> bool {
        self.group.rank_of(proc).is_some() || self.peers.rank_of(proc).is_some()
    }

    fn loses_member(self: Rc<Self>) {
        Comm(self).failures().lost_member();
    }

    fn is_revoked_by_peer(self: Rc<Self>) {
        Comm(self).failures().revoked_by_peer();
    }

    fn members_of_several_jobs(self: Rc<Self>) -> Vec<ProcId> {
        let comm = Comm(self);
        match comm.is_mixed() {
            true => comm.all_procs(),
            false => Vec::new(),
        }
    }
}

/// Returns the members in other jobs, and adds a reference to each of them for the new communicator.
fn foreign_members(engine: &Engine, group: &Group, remote: Option<&Group>) -> Box<[ProcId]> {
    let universe = engine.universe();
    let both = group.iter().chain(remote.into_iter().flat_map(Group::iter));
    let foreign: Box<[ProcId]> = both.filter(|proc| universe.is_foreign(*proc)).collect();
    universe.hold(foreign.iter().copied());
    foreign
}

impl Drop for Inner {
    fn drop(&mut self) {
        let is_revoked = self.failure_state.has(FailureState::REVOKED);
        self.chosen.end(&self.engine, is_revoked);
        if let Some(faults) = self.engine.faults() {
            faults.forget(self.context.number());
        }
        if self.context == Context::new(0, context_id::BOOTSTRAP) {
            // Messages for a later call on the bootstrap communicator may be queued, so its matching state is kept.
            return;
        }
        for plane in Plane::ALL {
            self.engine.pml().forget(self.context.plane(plane));
        }
        if !self.foreign.is_empty() {
            self.engine.peers().disconnect(&self.foreign);
        }
    }
}
