//! Window creation and `MPI_Win_free`.
//!
//! Creation is collective. The members duplicate the communicator, unless only the caller uses it;
//! the context id of the window's communicator identifies the window on the wire. They exchange the address and size of their memory,
//! and the offset of their control words.
//! A member that cannot allocate its memory reports that in the same exchange.
//! Then all members fail with the same error text.
//! `MPI_Win_allocate` and `MPI_Win_allocate_shared` allocate memory in the node's arenas;
//! without space in the arena, `MPI_Win_allocate` uses heap memory.
#![allow(unsafe_code)]

use super::am::Service;
use super::traced::{matrix_of, trace_of};
use super::win::{Given, Own, Win, WinParts};
use crate::Error;
use crate::btl::Region;
use crate::comm::Comm;
use crate::direct::mapped::{self, Mapped, Offer};
use crate::engine::Engine;
use crate::error::{OscClass, OscError};
use crate::network::keys;
use crate::spec::{Flavor, Spec, is_direct_allowed, is_network_allowed};
use crate::state::control::{self, Control};
use crate::state::exclusion::Guard;
use crate::state::neighbours::{self, Neighbours};
use crate::state::open_accesses::{CHECK, OpenAccesses};
use crate::state::registration::Registration;
use crate::state::target::{Held, Route, Target};
use mpi_base::node::{Node, ShmBlock, ShmOffset};
use std::cell::Cell;

/// The number of 64-bit words that each member contributes to the exchange;
/// the constants below are their indices.
const EACH: usize = 11;
const KIND: usize = 0;
const PLACE: usize = 1;
const ADDRESS: usize = 2;
const SIZE: usize = 3;
const UNIT: usize = 4;
const CONTROL: usize = 5;
/// The offset of the table of [`crate::state::neighbours`]; 0 if there is no table.
const WATCHED: usize = 6;
/// The XPMEM name that [`crate::direct::mapped`] offers; 0 if it offers no memory.
const NAME: usize = 7;
/// 1 if the kernel does not let this member read the memory of another member on this node.
const CANNOT_COPY: usize = 8;
/// 1 if other processes can execute a fence in this member's threads ([`mpi_base::fence`]).
const LENDS_FENCES: usize = 9;
/// The network and the length of this member's key ([`Registration::word`]);
/// 0 if its memory is not registered.
const REGISTERED: usize = 10;

/// The kind of memory that a member contributes.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Memory {
    /// The memory is in an arena of the node.
    Arena = 1,
    /// The memory is outside of the arenas.
    Ordinary = 2,
    /// The member contributes no memory.
    Nothing = 3,
    /// The member could not allocate its memory or control words.
    Lacking = 4,
}

/// This process's memory: its kind, offset in the node's memory, and local address.
struct Part {
    kind: Memory,
    place: u64,
    address: u64,
}

impl Win {
    /// Creates a window; collective over `comm`.
    pub fn new(comm: &Comm, spec: &Spec) -> Result<Win, Error> {
        let own = comm.constructors().dup_now()?;
        let _part = comm.failures().while_making(&own);
        make(comm, own, spec)
    }

    /// Creates a window on a communicator that only the caller uses, without a duplicate; collective.
    /// At most one window uses a communicator in this way, since its context id identifies the window on the wire.
    pub fn on(comm: &Comm, spec: &Spec) -> Result<Win, Error> {
        // A member that fails in a fault-tolerant job still participates in agreements of the window,
        // which must not match agreements of the caller. Only one of two connected jobs may be fault tolerant.
        match comm.engine().is_fault_tolerant() || comm.is_mixed() {
            true => Win::new(comm, spec),
            false => make(comm, comm.clone(), spec),
        }
    }

    /// Discards a window after the creation of its enclosing object failed in this process.
    /// In a fault-tolerant job this process still participates in the collective free.
    pub fn abandon(self) {
        self.service().unregister(&self);
        leave_end_to_others(self.comm().clone(), self);
    }

    /// Frees the window; collective. All operations of all members are complete at the return.
    pub fn free(&self) -> Result<(), Error> {
        end(self, true)
    }

    /// As [`Win::free`], for members that have all completed their accesses and have then exchanged words:
    /// without another barrier if the members send no messages to each other.
    pub fn free_after_agreement(&self) -> Result<(), Error> {
        end(self, self.state().is_by_message())
    }
}

/// Frees a window, after a barrier if `has_barrier`; all members pass the same value.
fn end(win: &Win, has_barrier: bool) -> Result<(), Error> {
    let open = win.what_is_open();
    // If a member has died, its epochs cannot be closed, so an open epoch is no error.
    if let Some(what) = open.filter(|_| !win.is_broken()) {
        let sentence = format!("rank {} frees {} while {what}", win.rank(), win.label());
        return Err(OscError::new(OscClass::Sync, sentence).into());
    }
    if win.engine().is_fault_tolerant() {
        // `agree` synchronises the living members. Accesses to dead members are lost.
        let outcome = win.messages().flush(None);
        let synchronised = win.engine().block_on(win.comm().agreement().agree(0));
        win.service().unregister(win);
        win.state().withdraw();
        return match win.is_broken() {
            true => synchronised.map(drop),
            false => synchronised.map(drop).and(outcome),
        };
    }
    let outcome = win.messages().flush(None);
    if has_barrier {
        // Unlike the barrier of `MPI_Win_fence`, so that the two do not match in an erroneous program.
        win.comm().internal().fence_now()?;
    }
    win.service().unregister(win);
    win.state().withdraw();
    outcome
}

/// Creates a window for the members of `comm` on `own`, which no other window uses.
fn make(comm: &Comm, own: Comm, spec: &Spec) -> Result<Win, Error> {
    let mut given = Given::default();
    let made = make_on(own.clone(), &comm.label(), spec, &mut given);
    if made.is_err() {
        Service::of(own.engine()).forget_window(own.context().number());
        leave_end_to_others(own, given);
    }
    let win = made?;
    if win.state().is_by_message()
        && let Err(error) = win.comm().internal().fence_now()
    {
        win.abandon();
        return Err(error);
    }
    Ok(win)
}

/// Creates the window on a communicator that no other window uses.
/// If members may send messages to each other, all members must synchronise before the first use of the window.
/// `given` owns this process's contribution until the window owns it.
fn make_on(own: Comm, called: &str, spec: &Spec, given: &mut Given) -> Result<Win, Error> {
    let engine = own.engine().clone();
    Service::of(&engine);
    let members: Vec<(u32, u32)> = here(&engine, &own, spec.flavor);
    if spec.flavor == Flavor::Shared && members.len() < own.size() as usize {
        let sentence = format!(
            "MPI_Win_allocate_shared needs all members of {} on one node, but only {} of {} share the memory of rank {}; MPI_Comm_split_type with MPI_COMM_TYPE_SHARED makes such communicators",
            called,
            members.len(),
            own.size(),
            own.rank()
        );
        // The members are on more than one node, so each of them finds this and returns the error.
        return Err(OscError::new(OscClass::Shared, sentence).into());
    }
    let (memory, part) = match spec.flavor {
        Flavor::Shared if !spec.hints.noncontiguous => contiguous(&engine, &own, spec, &members)?,
        _ => take(&engine, spec),
    };
    given.memory = Some(memory);
    given.control = control::take(engine.node(), members.len(), own.size() as usize);
    let kind = match &given.control {
        Some(_) => part.kind,
        None => Memory::Lacking,
    };
    // Startup has already reported an invalid value.
    let checks = engine.params().get(&CHECK).unwrap_or(false);
    let table = (checks && members.len() > 1)
        .then(|| neighbours::take(engine.node()))
        .flatten();
    let region = Region {
        address: part.address,
        len: spec.size,
    };
    let may_register = spec.flavor != Flavor::Dynamic && part.kind != Memory::Lacking;
    if may_register && is_network_allowed(engine.params()) {
        // SAFETY: the memory outlives the registration: `Given` drops library memory later,
        // and MPI requires the program to keep its own memory until the window is freed.
        given.registration = unsafe { keys::register(&engine, &own, &members, region) };
    }
    let mut words = [0; EACH];
    words[REGISTERED] = given.registration.as_ref().map_or(0, Registration::word);
    words[NAME] = match part.kind {
        _ if members.len() == 1 => 0,
        Memory::Ordinary => mapped::offer(&engine, Some(part.address..part.address + spec.size)),
        _ if spec.flavor == Flavor::Dynamic => mapped::offer(&engine, None),
        _ => 0,
    };
    words[LENDS_FENCES] = mpi_base::fence::register().into();
    words[CANNOT_COPY] = (!can_copy(&engine, &members)).into();
    words[WATCHED] = table.as_ref().map_or(0, |block| block.place().0);
    words[KIND] = kind as u64;
    words[PLACE] = part.place;
    words[ADDRESS] = part.address;
    words[SIZE] = spec.size;
    words[UNIT] = spec.unit;
    words[CONTROL] = given.control.as_ref().map_or(0, |block| block.place().0);
    let all = own.internal().share_now(&words)?;
    let word_of = |rank: usize, which: usize| all.get(rank * EACH + which).copied().unwrap_or(0);
    let poor = (0..own.size()).find(|r| word_of(*r as usize, KIND) == Memory::Lacking as u64);
    if let Some(rank) = poor {
        let sentence = format!(
            "rank {rank} of {called} has no shared memory for {} bytes of a window",
            word_of(rank as usize, SIZE)
        );
        return Err(OscError::new(OscClass::NoMemory, sentence).into());
    }
    let offers = |rank: u32| {
        let word_of = |which| word_of(rank as usize, which);
        Offer {
            name: word_of(NAME),
            address: word_of(ADDRESS),
            len: word_of(SIZE),
        }
    };
    let registered: Vec<u64> = (0..own.size() as usize)
        .map(|rank| word_of(rank, REGISTERED))
        .collect();
    let member_keys = keys::exchange(&own, given.registration.as_ref(), &registered)?;
    if member_keys.is_none() {
        given.registration = None;
    }
    let ranks: Vec<u32> = members.iter().map(|(rank, _)| *rank).collect();
    let mapped = Mapped::new(&engine, &own, (spec.flavor, &ranks), offers)?;
    let places: Vec<(u32, u32, ShmOffset)> = members
        .iter()
        .map(|(rank, place)| (*rank, *place, ShmOffset(word_of(*rank as usize, CONTROL))))
        .collect();
    let control = Control::find(&engine, &places, own.size() as usize)?;
    let watched =
        |rank: u32| Some(ShmOffset(word_of(rank as usize, WATCHED))).filter(|at| at.0 != 0);
    let me = own.rank();
    let others = members.iter().filter(|(rank, _)| *rank != me);
    let others = others.filter_map(|(rank, _)| Some((*rank, watched(*rank)?)));
    let neighbours = table.and_then(|block| Neighbours::new(engine.node(), block, others));
    let (trace, matrix) = (trace_of(&engine), matrix_of(&engine));
    // All members have received the same words, so all members of a node choose the same methods.
    let all_lend_fences =
        (members.iter()).all(|(rank, _)| word_of(*rank as usize, LENDS_FENCES) != 0);
    let mut targets = Vec::with_capacity(own.size() as usize);
    for rank in 0..own.size() {
        let words: [u64; EACH] = std::array::from_fn(|which| word_of(rank as usize, which));
        targets.push(target(
            &engine,
            &own,
            &members,
            rank,
            &words,
            (
                part.address,
                checks || trace.is_some() || matrix.is_some() || engine.script().is_some(),
            ),
            &mapped,
        )?);
        if let (true, Some(target)) = (all_lend_fences, targets.last_mut()) {
            target.guard = target.here.map(|index| Guard::new(&control, index));
        }
    }
    // All members have received the same words, so all compute the same value.
    let is_copied = |rank: u32| {
        let is_arena = word_of(rank as usize, KIND) == Memory::Arena as u64;
        !is_arena && !mapped.is_direct(word_of(rank as usize, NAME))
    };
    let any_cannot_copy = (0..own.size()).any(|rank| word_of(rank as usize, CANNOT_COPY) != 0);
    let by_message = targets.iter().any(|target| target.here.is_none())
        || any_cannot_copy && (0..own.size()).any(is_copied);
    let win = Win::of(WinParts {
        flavor: spec.flavor,
        hints: spec.hints.clone(),
        targets: targets.into(),
        control,
        mapped,
        open_accesses: OpenAccesses::new(checks, own.size(), neighbours),
        trace,
        matrix,
        by_message,
        keys: member_keys,
        given: std::mem::take(given),
        comm: own,
    });
    win.service().register(&win);
    Ok(win)
}

/// Participates in the collective free of a window that this process could not create or discards,
/// and keeps this process's contributed memory until the free completes.
/// Only in fault-tolerant jobs: other members may have created and used the window,
/// and their `MPI_Win_free` waits for each living member.
fn leave_end_to_others(comm: Comm, given: impl Sized + 'static) {
    let engine = comm.engine().clone();
    if engine.is_fault_tolerant() {
        engine.operations().run_in_background(Box::pin(async move {
            let met = comm.agreement().agree(0).await;
            drop(given);
            met.map(drop)
        }));
    }
}

/// Returns the members whose memory this process may access directly:
/// the rank in the window and the rank on the node of each.
fn here(engine: &Engine, comm: &Comm, flavor: Flavor) -> Vec<(u32, u32)> {
    let me = engine.node().rank();
    let direct = flavor == Flavor::Shared || is_direct_allowed(engine.params());
    let all = engine.place().members_here(comm.group());
    let mut here: Vec<_> = all.filter(|(_, place)| direct || *place == me).collect();
    here.sort_unstable();
    here
}

/// Returns true if the kernel lets this process copy the memory of all these members.
/// The test also lets [`mpi_base::node::Node::has_ended`] detect later that a member has ended.
fn can_copy(engine: &Engine, members: &[(u32, u32)]) -> bool {
    let node = engine.node();
    let mut others = members.iter().filter(|(_, place)| *place != node.rank());
    others.all(|(_, place)| node.processes().readable_pid(*place).is_some())
}

/// Allocates this process's memory, or uses the program's memory.
fn take(engine: &Engine, spec: &Spec) -> (Own, Part) {
    let node = engine.node();
    let nothing = Part {
        kind: Memory::Nothing,
        place: 0,
        address: 0,
    };
    let len = usize::try_from(spec.size).unwrap_or(usize::MAX);
    match spec.flavor {
        Flavor::Dynamic => (Own::Given, nothing),
        Flavor::Create => {
            let address = spec.base.expose_provenance();
            let place = node.place_of(address, len.max(1));
            let kind = match place {
                Some(_) => Memory::Arena,
                None => Memory::Ordinary,
            };
            let part = Part {
                kind,
                place: place.map_or(0, |place| place.0),
                address: address as u64,
            };
            (Own::Given, part)
        }
        Flavor::Allocate | Flavor::Shared => {
            // A member with size 0 gets an address, too.
            if let Some(block) = alloc(node, len, spec) {
                return of_block(block);
            }
            let heap = match spec.flavor {
                Flavor::Allocate => zeroed(len),
                _ => None,
            };
            match heap {
                None => {
                    let part = Part {
                        kind: Memory::Lacking,
                        ..nothing
                    };
                    (Own::Given, part)
                }
                Some(mut heap) => {
                    let part = Part {
                        kind: Memory::Ordinary,
                        place: 0,
                        address: heap.as_mut_ptr().expose_provenance() as u64,
                    };
                    (Own::Heap(heap), part)
                }
            }
        }
    }
}

/// Allocates a window's memory in this rank's shared memory.
fn alloc(node: &Node, len: usize, spec: &Spec) -> Option<ShmBlock> {
    node.alloc_with(len.max(1), spec.hints.alignment, spec.hints.contents)
}

/// Allocates zeroed memory of `len` bytes.
fn zeroed(len: usize) -> Option<Box<[u64]>> {
    let words = len.div_ceil(size_of::<u64>()).max(1);
    let mut heap = Vec::new();
    heap.try_reserve_exact(words).ok()?;
    heap.resize(words, 0);
    Some(heap.into())
}

fn of_block(block: ShmBlock) -> (Own, Part) {
    let part = Part {
        kind: Memory::Arena,
        place: block.place().0,
        address: block.as_ptr().expose_provenance() as u64,
    };
    (Own::Block(block), part)
}

/// Allocates the contiguous memory of a shared window from the arena of rank 0, in rank order.
fn contiguous(
    engine: &Engine,
    comm: &Comm,
    spec: &Spec,
    members: &[(u32, u32)],
) -> Result<(Own, Part), Error> {
    debug_assert_eq!(members.len(), comm.size() as usize);
    let sizes = comm.internal().share_now(&[spec.size])?;
    let total = sizes
        .iter()
        .try_fold(0u64, |sum, size| sum.checked_add(*size));
    let total = total.and_then(|total| usize::try_from(total).ok());
    let block = match (comm.rank(), total) {
        (0, Some(total)) => alloc(engine.node(), total, spec),
        _ => None,
    };
    let place = block.as_ref().map_or(0, |block| block.place().0);
    let places = comm.internal().share_now(&[place])?;
    let first = places.first().copied().unwrap_or(0);
    let before: u64 = sizes[..comm.rank() as usize].iter().sum();
    let mut part = Part {
        kind: Memory::Arena,
        place: first + before,
        address: 0,
    };
    let here = engine
        .node()
        .resolve(ShmOffset(part.place), spec.size as usize);
    match (first, here) {
        // Offset 0 is the head of the node's memory, which is not in an arena.
        (0, _) | (_, None) => part.kind = Memory::Lacking,
        (_, Some(here)) => part.address = here.expose_provenance() as u64,
    }
    Ok((block.map_or(Own::Given, Own::Block), part))
}

/// Creates the record of a member from the words that the member sent in the exchange.
fn target(
    engine: &Engine,
    comm: &Comm,
    members: &[(u32, u32)],
    rank: u32,
    words: &[u64; EACH],
    (my_address, looks_on): (u64, bool),
    mapped: &Mapped,
) -> Result<Target, Error> {
    let here = members.iter().position(|(member, _)| *member == rank);
    let node = engine.node();
    let is_arena = words[KIND] == Memory::Arena as u64;
    let route = match here {
        _ if rank == comm.rank() => {
            Route::Here(std::ptr::with_exposed_provenance_mut(my_address as usize))
        }
        None => Route::Message,
        Some(_) if is_arena => {
            let found = node.resolve(ShmOffset(words[PLACE]), words[SIZE] as usize);
            Route::Here(found.ok_or_else(|| {
                let sentence = format!(
                    "rank {rank} named {} bytes for its part of a window that are not all inside the node's memory",
                    words[SIZE]
                );
                OscError::new(OscClass::NoMemory, sentence)
            })?)
        }
        Some(index) => match (
            mapped.part(index),
            node.processes().readable_pid(members[index].1),
        ) {
            (Some(base), _) => Route::Mapped(base),
            (None, Some(pid)) => Route::Process(pid),
            (None, None) => Route::Message,
        },
    };
    let plain = match route {
        Route::Here(base) | Route::Mapped(base) if !looks_on => base,
        _ => std::ptr::null_mut(),
    };
    Ok(Target {
        plain,
        rank,
        proc: comm.group().proc(rank).unwrap_or(0),
        route,
        address: words[ADDRESS],
        size: words[SIZE],
        unit: words[UNIT],
        locked: here.is_some() && !is_arena && !mapped.is_direct(words[NAME]) && members.len() > 1,
        here,
        guard: None,
        held: Cell::new(Held::Nothing),
        started: Cell::new(false),
    })
}
