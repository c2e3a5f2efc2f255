//! Lanes: independent point-to-point engines of one process, for `MPI_THREAD_MULTIPLE`.
//!
//! With the parameter [`LANES`](crate::params::LANES) above 1, a process has that number of lanes.
//! Lane 0 is the engine of all other modules, under the global lock.
//! Each further lane has an engine, a lock, and a shared-memory segment of its own.
//! A communicator whose members are all on one node belongs to the lane
//! `(chooser + serial number of its context id) mod lanes`, which all members compute alike.
//! In a lane other than 0 it has a [`Twin`], which carries all point-to-point messages of the program on it.
//! Collective operations, windows, files, attributes and error handlers stay in lane 0.
//! So threads whose communicators belong to different lanes exchange messages at the same time.
//!
//! | file | subject |
//! |---|---|
//! | `start` | agreement of the node's ranks, segments and engines, and the end |
//! | `comm_table` | the lane of a communicator's handle, read without a lock |
//! | `twin` | messages of one communicator in its lane |
//! | `objects` | handles of requests and messages of a lane |
//! | `requests` | state and outcome of a lane's requests |
//! | `buffered` | buffered sends, and sends whose requests were freed |
//! | `typed` | messages of derived datatypes, which are packed outside of the lane |
//! | `waiting` | waits in a lane, described for the hang report |
//! | `evidence` | evidence of all lanes that no thread can continue |
//! | `tools` | queues, requests and counters of all lanes, for tools |
//! | `other_lanes` | progress of the other lanes while a thread waits in one |
//!
//! Protocol: the contents of a lane are accessed only under its lock ([`within`]).
//! No thread waits for lock 0 while it holds the lock of another lane.
//! A thread that holds lock 0 may wait for the lock of a lane.
//! No reference count of lane 0 (a datatype, a communicator object) is changed in another lane.
#![allow(unsafe_code)]

mod buffered;
mod comm_table;
mod evidence;
mod objects;
mod other_lanes;
mod requests;
mod start;
mod tools;
mod twin;
mod typed;
mod waiting;

pub use objects::{Object, Pending, Persistent, Transfer, is_free, of_message, of_request};
pub use other_lanes::prepare;
pub use requests::{
    Peeked, Taken, cancel, free, look, peek, start_persistent, take, take_light, to_start, wait_for,
};
pub use start::{WaitsOfInit, are_sent, drain, drain_comm, end, end_on_failure, start};
pub use twin::Twin;
pub use typed::{Landing, Outgoing, Place, ready_place};
pub use waiting::wait_until;

use crate::abi::MPI_Comm;
use crate::error::Failure;
use crate::lock::{GlobalLock, try_acquire, watcher};
use crate::object::comm::CommObject;
use comm_table::CommTable;
use mpi_core::Engine;
use mpi_core::comm::Comm;
use mpi_core::pml::{Context, Message};
use objects::Slab;
use std::cell::{OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// Maximum number of lanes; three bits of a handle name the lane.
pub const MOST: usize = 8;

/// The state of a lane, accessed only under its lock.
pub struct Contents {
    number: usize,
    engine: OnceCell<Engine>,
    twins: RefCell<Vec<Option<Rc<Twin>>>>,
    objects: RefCell<Slab<Object>>,
    messages: RefCell<Slab<(Message, Rc<Twin>)>>,
    buffered: buffered::Sends,
}

impl Contents {
    const fn new(number: usize) -> Contents {
        Contents {
            number,
            engine: OnceCell::new(),
            twins: RefCell::new(Vec::new()),
            objects: RefCell::new(Slab::new()),
            messages: RefCell::new(Slab::new()),
            buffered: buffered::Sends::new(),
        }
    }

    /// Returns the number of the lane.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the engine; every lane in use has one.
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.get()
    }

    /// Returns the twin in a slot, if its communicator has not been freed.
    pub fn twin(&self, slot: usize) -> Option<Rc<Twin>> {
        self.twins.borrow().get(slot)?.clone()
    }

    /// Sends a copy of a message.
    pub fn send_copy(
        &self,
        twin: &Rc<Twin>,
        data: Vec<u8>,
        dest: i32,
        tag: i32,
    ) -> Result<(), Failure> {
        self.buffered.send(twin, data, dest, tag)
    }

    pub fn objects(&self) -> &RefCell<Slab<Object>> {
        &self.objects
    }

    pub fn messages(&self) -> &RefCell<Slab<(Message, Rc<Twin>)>> {
        &self.messages
    }
}

/// One lane. Lanes do not share cache lines.
#[repr(align(128))]
struct Lane {
    lock: GlobalLock,
    /// The number of polls of the lane's engine, modulo 2^32. Only the holder of the lane's lock writes it.
    polls: AtomicU32,
    contents: Contents,
}

// SAFETY: `lock` and `polls` are synchronized themselves.
// `contents` is accessed only by `within` and `within_if_free`, which hold `lock`.
unsafe impl Sync for Lane {}

impl Lane {
    const fn new(number: usize) -> Lane {
        Lane {
            lock: GlobalLock::new(number),
            polls: AtomicU32::new(0),
            contents: Contents::new(number),
        }
    }
}

/// All lanes, in use or not. Of the element 0 only `polls` is used: lane 0 is [`state`](crate::state).
static ALL: [Lane; MOST] = [
    Lane::new(0),
    Lane::new(1),
    Lane::new(2),
    Lane::new(3),
    Lane::new(4),
    Lane::new(5),
    Lane::new(6),
    Lane::new(7),
];

/// The number of lanes in use, including lane 0.
static COUNT: AtomicUsize = AtomicUsize::new(1);

static COMMS: CommTable = CommTable::new();

/// Returns the number of lanes in use, including lane 0.
pub fn count() -> usize {
    COUNT.load(Relaxed)
}

/// Returns true if messages have lanes other than 0.
pub fn are_in_use() -> bool {
    count() > 1
}

/// Releases the lock of a lane, also if the call panics.
struct Visit(&'static Lane);

impl Drop for Visit {
    fn drop(&mut self) {
        watcher::leave(&self.0.lock);
        self.0.lock.release();
    }
}

/// Runs `f` with the contents of a lane, under its lock.
#[inline]
pub fn within<R>(lane: usize, f: impl FnOnce(&'static Contents) -> R) -> R {
    let lane = &ALL[lane % MOST];
    lane.lock.acquire();
    let visit = Visit(lane);
    let result = f(&lane.contents);
    drop(visit);
    result
}

/// Runs `f` with the contents of a lane, if no thread is inside or waits for the lock.
fn within_if_free(lane: usize, f: impl FnOnce(&'static Contents)) -> bool {
    let lane = &ALL[lane % MOST];
    let taken = try_acquire(&lane.lock);
    if taken {
        f(&lane.contents);
        lane.lock.release();
    }
    taken
}

/// A communicator's lane, and its slot there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub lane: usize,
    pub slot: usize,
}

/// Returns the lane of a communicator, or `None` if it belongs to lane 0.
#[inline]
pub fn of_comm(comm: MPI_Comm) -> Option<Address> {
    COMMS.find(comm.0)
}

/// Returns the lane of the communicators with this context, the same on all members.
fn lane_of_context(context: Context, lanes: usize) -> usize {
    let (chooser, serial) = Context::chosen(context.number());
    (chooser as usize + serial as usize) % lanes
}

/// Returns true if messages on a communicator can have a lane: all members are on this node.
fn is_eligible(comm: &Comm) -> bool {
    let here = comm.engine().place().neighbours();
    !comm.is_inter()
        && !comm.is_mixed()
        && !comm.context().is_random()
        && comm.group().iter().all(|proc| here.contains(&proc))
}

/// Creates the twin of a new communicator, if it belongs to a lane other than 0.
/// The caller holds lock 0, and no other thread knows the handle yet.
pub fn comm_made(object: &CommObject) {
    let lanes = count();
    // Communicators of sessions may have members whose lanes have not started.
    if lanes == 1 || object.session.is_some() || !is_eligible(&object.comm) {
        return;
    }
    let comm = &object.comm;
    let lane = lane_of_context(comm.context(), lanes);
    if lane == 0 {
        return;
    }
    let procs: Box<[_]> = comm.group().iter().collect();
    let (context, rank, handle) = (comm.context(), comm.rank(), object.handle());
    let slot = within(lane, |contents| {
        let engine = contents.engine()?.clone();
        let twin = Rc::new(Twin::new((lane, engine), context, rank, procs, handle));
        let mut twins = contents.twins.borrow_mut();
        let slot = twins.iter().position(Option::is_none);
        let slot = slot.unwrap_or_else(|| {
            twins.push(None);
            twins.len() - 1
        });
        twins[slot] = Some(twin);
        Some(slot)
    });
    if let Some(slot) = slot {
        COMMS.set(handle.0, Address { lane, slot });
    }
}

/// A freed communicator, and its lane and twin, which operations in progress keep alive.
type Leaving = (Rc<CommObject>, usize, Weak<Twin>);

/// Freed communicators whose error handlers operations in progress may need.
struct AllLeaving(RefCell<Vec<Leaving>>);

// SAFETY: only `comm_freed` uses the value, under lock 0.
unsafe impl Sync for AllLeaving {}

static LEAVING: AllLeaving = AllLeaving(RefCell::new(Vec::new()));

/// Frees the twin of a communicator that is being freed. Operations in progress keep both alive.
/// The caller holds lock 0.
pub fn comm_freed(object: &Rc<CommObject>) {
    let handle = object.handle();
    if count() == 1 {
        return;
    }
    let Some(Address { lane, slot }) = of_comm(handle) else {
        return;
    };
    COMMS.remove(handle.0);
    let twin = within(lane, |contents| {
        let twin = contents.twins.borrow_mut().get_mut(slot)?.take()?;
        (Rc::strong_count(&twin) > 1).then(|| Rc::downgrade(&twin))
    });
    let mut all = LEAVING.0.take();
    all.extend(twin.map(|twin| (object.clone(), lane, twin)));
    // The reference counts of a twin are used only in its lane.
    let (kept, gone): (Vec<Leaving>, Vec<Leaving>) = all
        .into_iter()
        .partition(|(_, lane, twin)| within(*lane, |_| twin.strong_count() > 0));
    LEAVING.0.replace(kept);
    for (object, lane, twin) in gone {
        within(lane, |_| drop(twin));
        drop(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_communicators_of_one_chooser_have_all_lanes_in_turn() {
        let lanes: Vec<usize> = (3..9)
            .map(|serial| lane_of_context(Context::new(2, serial), 4))
            .collect();
        assert_eq!(lanes, [1, 2, 3, 0, 1, 2]);
    }
}
