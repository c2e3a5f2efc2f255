//! Making and freeing windows.
//!
//! Making one is collective: the members duplicate the communicator, whose number names the window on the wire,
//! and tell each other where their memory and their control words lie and how long they are.
//! A member that cannot take part says so in the same words, and all of them fail with a sentence.
//! Memory of `MPI_Win_allocate` and `MPI_Win_allocate_shared` comes from the arenas of the node, and goes back when the window is freed.

use super::accesses::{Accesses, CHECK};
use super::am::Service;
use super::am::remote::Remote;
use super::attached::Attached;
use super::control::{self, Control};
use super::epoch::Epochs;
use super::mapped::{self, Mapped, Offer};
use super::neighbours::{self, Neighbours};
use super::target::{Held, Route, Target};
use super::traced::trace_of;
use super::win::{Given, Inner, Own, Win};
use super::{Flavor, OscClass, OscError, Spec, is_direct_allowed};
use crate::Error;
use crate::comm::Comm;
use crate::engine::Engine;
use mpi_base::node::{ShmBlock, ShmOffset};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Words that members tell each other.
const EACH: usize = 9;
const KIND: usize = 0;
const PLACE: usize = 1;
const ADDRESS: usize = 2;
const SIZE: usize = 3;
const UNIT: usize = 4;
const CONTROL: usize = 5;
/// Where the table of [`super::neighbours`] is, or 0.
const WATCHED: usize = 6;
/// What [`super::mapped`] offers.
const NAME: usize = 7;
/// 1 if the system does not let this member copy the memory of each other member on this node.
const CANNOT_COPY: usize = 8;

/// What a member says of its memory.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Memory {
    /// It lies in an arena of the node.
    Arena = 1,
    /// It does not.
    Ordinary = 2,
    /// There is none.
    Nothing = 3,
    /// The member cannot take part.
    Lacking = 4,
}

/// Where our memory begins, for others and for ourselves.
struct Part {
    kind: Memory,
    place: u64,
    address: u64,
}

impl Win {
    /// Makes a window; every member of `comm` calls it.
    pub fn new(comm: &Comm, spec: &Spec) -> Result<Win, Error> {
        let engine = comm.engine();
        engine.block_on(Win::make(comm, spec))
    }

    async fn make(comm: &Comm, spec: &Spec) -> Result<Win, Error> {
        let own = comm.dup().await?;
        let _part = comm.while_making(&own);
        let mut given = Given::default();
        let made = Win::make_on(own.clone(), &comm.label(), spec, &mut given).await;
        if made.is_err() {
            Service::of(own.engine()).has_gone(own.context().number());
            leave_end_to_others(own, given);
        }
        let (win, by_message) = made?;
        if by_message && let Err(error) = win.0.comm.fence().await {
            win.abandon();
            return Err(error);
        }
        Ok(win)
    }

    /// The window on a communicator of its own, and whether messages for it may come, so that its members must meet before they use it.
    /// What this process gives to the window is in `given` until the window has it.
    async fn make_on(
        own: Comm,
        called: &str,
        spec: &Spec,
        given: &mut Given,
    ) -> Result<(Win, bool), Error> {
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
            // If one member has all members on its node, all have; so all of them come here or none.
            return Err(OscError::new(OscClass::Shared, sentence).into());
        }
        let (memory, part) = match spec.flavor {
            Flavor::Shared if !spec.hints.noncontiguous => {
                contiguous(&engine, &own, spec, &members).await?
            }
            _ => take(&engine, spec),
        };
        given.memory = Some(memory);
        given.control = control::take(engine.node(), members.len(), own.size() as usize);
        let kind = match &given.control {
            Some(_) => part.kind,
            None => Memory::Lacking,
        };
        // A value that cannot be read is reported when the process starts.
        let checks = engine.params().get(&CHECK).unwrap_or(false);
        let table = (checks && members.len() > 1)
            .then(|| neighbours::take(engine.node()))
            .flatten();
        let mut words = [0; EACH];
        words[NAME] = match part.kind {
            _ if members.len() == 1 => 0,
            Memory::Ordinary => {
                mapped::offer(&engine, Some(part.address..part.address + spec.size))
            }
            _ if spec.flavor == Flavor::Dynamic => mapped::offer(&engine, None),
            _ => 0,
        };
        words[CANNOT_COPY] = (!can_copy(&engine, &members)).into();
        words[WATCHED] = table.as_ref().map_or(0, |block| block.place().0);
        words[KIND] = kind as u64;
        words[PLACE] = part.place;
        words[ADDRESS] = part.address;
        words[SIZE] = spec.size;
        words[UNIT] = spec.unit;
        words[CONTROL] = given.control.as_ref().map_or(0, |block| block.place().0);
        let all = own.share(&words).await?;
        let said = |rank: usize, which: usize| all.get(rank * EACH + which).copied().unwrap_or(0);
        let poor = (0..own.size()).find(|r| said(*r as usize, KIND) == Memory::Lacking as u64);
        if let Some(rank) = poor {
            let sentence = format!(
                "rank {rank} of {called} has no shared memory for {} bytes of a window",
                said(rank as usize, SIZE)
            );
            return Err(OscError::new(OscClass::NoMemory, sentence).into());
        }
        let offers = |rank: u32| {
            let said = |which| said(rank as usize, which);
            Offer {
                name: said(NAME),
                address: said(ADDRESS),
                len: said(SIZE),
            }
        };
        let ranks: Vec<u32> = members.iter().map(|(rank, _)| *rank).collect();
        let mapped = Mapped::new(&engine, &own, (spec.flavor, &ranks), offers).await?;
        let places: Vec<(u32, u32, ShmOffset)> = members
            .iter()
            .map(|(rank, place)| (*rank, *place, ShmOffset(said(*rank as usize, CONTROL))))
            .collect();
        let control = Control::find(&engine, &places, own.size() as usize)?;
        let watched =
            |rank: u32| Some(ShmOffset(said(rank as usize, WATCHED))).filter(|at| at.0 != 0);
        let me = own.rank();
        let others = members.iter().filter(|(rank, _)| *rank != me);
        let others = others.filter_map(|(rank, _)| Some((*rank, watched(*rank)?)));
        let neighbours = table.and_then(|block| Neighbours::new(engine.node(), block, others));
        let trace = trace_of(&engine);
        let mut targets = Vec::with_capacity(own.size() as usize);
        for rank in 0..own.size() {
            let words: [u64; EACH] = std::array::from_fn(|which| said(rank as usize, which));
            targets.push(target(
                &engine,
                &own,
                &members,
                rank,
                &words,
                (
                    part.address,
                    checks || trace.is_some() || engine.script().is_some(),
                ),
                &mapped,
            )?);
        }
        // All members read the same words, so all come to the same here.
        let is_copied = |rank: u32| {
            let is_arena = said(rank as usize, KIND) == Memory::Arena as u64;
            !is_arena && !mapped.is_direct(said(rank as usize, NAME))
        };
        let any_cannot_copy = (0..own.size()).any(|rank| said(rank as usize, CANNOT_COPY) != 0);
        let by_message = targets.iter().any(|target| target.here.is_none())
            || any_cannot_copy && (0..own.size()).any(is_copied);
        let win = Win(Rc::new(Inner {
            epochs: Epochs::default(),
            remote: Remote::new(own.size()),
            attached: Attached::new(own.size()),
            mapped,
            accesses: Accesses::new(checks, own.size(), neighbours),
            trace,
            combine: Cell::new(None),
            word: Cell::new(None),
            engine,
            flavor: spec.flavor,
            hints: RefCell::new(spec.hints.clone()),
            targets: targets.into(),
            control,
            name: RefCell::default(),
            _given: std::mem::take(given),
            comm: own,
        }));
        win.register();
        Ok((win, by_message))
    }

    /// Leaves the end of the window to the members that have it, since an object of which it is a part could not be made here.
    pub fn abandon(self) {
        self.unregister();
        leave_end_to_others(self.0.comm.clone(), self);
    }

    /// Frees it; every member calls it. All operations of all members are complete when it returns.
    pub fn free(&self) -> Result<(), Error> {
        let open = self.0.epochs.what_is_open();
        // What was left open because a member has died cannot be closed any more.
        if let Some(what) = open.filter(|_| !self.is_broken()) {
            let sentence = format!("rank {} frees {} while {what}", self.rank(), self.label());
            return Err(OscError::new(OscClass::Sync, sentence).into());
        }
        if self.0.engine.is_fault_tolerant() {
            // The living come together, whichever members have died; what was under way to the dead is lost.
            let outcome = self.flush_remote(None);
            let met = self.0.engine.block_on(self.0.comm.agree(0));
            self.unregister();
            return match self.is_broken() {
                true => met.map(drop),
                false => met.map(drop).and(outcome),
            };
        }
        let outcome = self.flush_remote(None);
        self.0.engine.block_on(self.0.comm.fence())?;
        self.unregister();
        outcome
    }
}

/// Takes part in the end of a window that this process does not have, or does not use, and keeps what it has given to it until then:
/// where deaths are survived, other members may have made the window and use it, and wait for each living member when they free it.
fn leave_end_to_others(comm: Comm, given: impl Sized + 'static) {
    let engine = comm.engine().clone();
    if engine.is_fault_tolerant() {
        engine.run_in_background(Box::pin(async move {
            let met = comm.agree(0).await;
            drop(given);
            met.map(drop)
        }));
    }
}

/// The members on this node that are reached through its memory: rank and place of each.
fn here(engine: &Engine, comm: &Comm, flavor: Flavor) -> Vec<(u32, u32)> {
    let me = engine.node().rank();
    let direct = flavor == Flavor::Shared || is_direct_allowed(engine.params());
    let all = engine.members_here(comm.group());
    let mut here: Vec<_> = all.filter(|(_, place)| direct || *place == me).collect();
    here.sort_unstable();
    here
}

/// Whether the system lets this process copy the memory of all these members, where that memory is not shared;
/// of those whose memory it may copy, this process can tell from now on whether they have ended ([`mpi_base::node::Node::has_ended`]).
fn can_copy(engine: &Engine, members: &[(u32, u32)]) -> bool {
    let node = engine.node();
    let mut others = members.iter().filter(|(_, place)| *place != node.rank());
    others.all(|(_, place)| node.readable_pid(*place).is_some())
}

/// Memory of our own, or what the program gives.
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
            // A member without memory of its own has an address all the same.
            if let Some(block) = node.alloc_large(len.max(1), spec.hints.alignment) {
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

/// Zeroed memory for as many bytes, if there is.
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

/// Memory for all members in one piece, rank by rank, from the arena of rank 0.
async fn contiguous(
    engine: &Engine,
    comm: &Comm,
    spec: &Spec,
    members: &[(u32, u32)],
) -> Result<(Own, Part), Error> {
    debug_assert_eq!(members.len(), comm.size() as usize);
    let sizes = comm.share(&[spec.size]).await?;
    let total = sizes
        .iter()
        .try_fold(0u64, |sum, size| sum.checked_add(*size));
    let total = total.and_then(|total| usize::try_from(total).ok());
    let block = match (comm.rank(), total) {
        (0, Some(total)) => engine
            .node()
            .alloc_large(total.max(1), spec.hints.alignment),
        _ => None,
    };
    let place = block.as_ref().map_or(0, |block| block.place().0);
    let first = comm.share(&[place]).await?.first().copied().unwrap_or(0);
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
        // Place 0 is the head of the node's memory and in no arena.
        (0, _) | (_, None) => part.kind = Memory::Lacking,
        (_, Some(here)) => part.address = here.expose_provenance() as u64,
    }
    Ok((block.map_or(Own::Given, Own::Block), part))
}

/// What this process makes of a member's words.
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
        Some(index) => match (mapped.part(index), node.readable_pid(members[index].1)) {
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
        held: Cell::new(Held::Nothing),
        started: Cell::new(false),
    })
}
