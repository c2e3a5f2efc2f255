//! Windows: making and freeing them, and what can be asked of them.
//!
//! Making one is collective: the members duplicate the communicator, whose number names the window on the wire,
//! and tell each other where their memory and their control words lie and how long they are.
//! A member that cannot take part says so in the same words, and all of them fail with a sentence.
//! Memory of `MPI_Win_allocate` and `MPI_Win_allocate_shared` comes from the arenas of the node, and goes back when the window is freed.

use super::am::Remote;
use super::attach::Attached;
use super::check::{Accesses, CHECK};
use super::control::{self, Control};
use super::epoch::Epochs;
use super::mapped::{self, Mapped, Offer};
use super::neighbours::{self, Neighbours};
use super::target::{Held, Route, Target};
use super::{Flavor, Hints, OscClass, OscError, SharedSegment, Spec, is_direct_allowed};
use crate::Error;
use crate::comm::Comm;
use crate::engine::Engine;
use crate::group::Group;
use crate::trace::Trace;
use mpi_base::node::{ShmBlock, ShmOffset};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A counted reference to a window.
#[derive(Clone)]
pub struct Win(pub(super) Rc<Inner>);

pub(super) struct Inner {
    pub engine: Engine,
    pub comm: Comm,
    pub flavor: Flavor,
    pub hints: RefCell<Hints>,
    pub targets: Box<[Target]>,
    pub control: Control,
    pub epochs: Epochs,
    pub remote: Remote,
    pub attached: Attached,
    pub mapped: Mapped,
    pub accesses: Accesses,
    pub trace: Option<Rc<Trace>>,
    /// Operators as they were used last.
    pub combine: Cell<Option<super::apply::Combine>>,
    pub word: Cell<Option<super::word::Word>>,
    name: RefCell<String>,
    _memory: Own,
    _control: ShmBlock,
}

/// What this process gives to a window.
enum Own {
    /// The program's memory, or none.
    Given,
    Block(#[allow(dead_code)] ShmBlock),
    /// Where the arena has no room.
    Heap(#[allow(dead_code)] Box<[u64]>),
}

/// Words that members tell each other.
const EACH: usize = 8;
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
        let engine = comm.engine().clone();
        let own = comm.dup().await?;
        super::am::Service::of(&engine);
        let members: Vec<(u32, u32)> = here(&engine, &own, spec.flavor);
        if spec.flavor == Flavor::Shared && members.len() < own.size() as usize {
            let sentence = format!(
                "MPI_Win_allocate_shared needs all members of {} on one node, but only {} of {} share the memory of rank {}; MPI_Comm_split_type with MPI_COMM_TYPE_SHARED makes such communicators",
                comm.label(),
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
        let control = control::take(engine.node(), members.len(), own.size() as usize);
        let kind = match &control {
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
        words[WATCHED] = table.as_ref().map_or(0, |block| block.place().0);
        words[KIND] = kind as u64;
        words[PLACE] = part.place;
        words[ADDRESS] = part.address;
        words[SIZE] = spec.size;
        words[UNIT] = spec.unit;
        words[CONTROL] = control.as_ref().map_or(0, |block| block.place().0);
        let all = own.share(&words).await?;
        let said = |rank: usize, which: usize| all.get(rank * EACH + which).copied().unwrap_or(0);
        let poor = (0..own.size()).find(|r| said(*r as usize, KIND) == Memory::Lacking as u64);
        let (Some(block), None) = (control, poor) else {
            let rank = poor.unwrap_or(own.rank());
            let sentence = format!(
                "rank {rank} of {} has no shared memory for {} bytes of a window",
                comm.label(),
                said(rank as usize, SIZE)
            );
            return Err(OscError::new(OscClass::NoMemory, sentence).into());
        };
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
        let trace = super::traced::trace_of(&engine);
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
        let any_far = targets.iter().any(|target| target.here.is_none());
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
            _memory: memory,
            _control: block,
            comm: own,
        }));
        win.register();
        if any_far {
            // Messages for the window may come from now on.
            win.0.comm.fence().await?;
        }
        Ok(win)
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

    /// `MPIX_Win_revoke`: what synchronises fails from now on, here and soon at all members.
    pub fn revoke(&self) {
        self.0.comm.revoke();
    }

    /// `MPIX_Win_is_revoked`, as far as this process knows.
    pub fn is_revoked(&self) -> bool {
        self.0.comm.is_revoked()
    }

    /// `MPIX_Win_get_failed`: the members that this process knows to be dead.
    pub fn get_failed(&self) -> Group {
        self.0.comm.get_failed()
    }

    /// The engine that made it.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub fn flavor(&self) -> Flavor {
        self.0.flavor
    }

    /// Its members.
    pub fn group(&self) -> &Group {
        self.0.comm.group()
    }

    /// This process's rank among them.
    pub fn rank(&self) -> u32 {
        self.0.comm.rank()
    }

    pub(super) fn id(&self) -> u64 {
        self.0.comm.context().number()
    }

    /// Where this process's part begins; null for a dynamic window.
    pub fn base(&self) -> *mut u8 {
        match self.0.targets.get(self.rank() as usize).map(|t| t.route) {
            Some(Route::Here(base)) => base,
            _ => std::ptr::null_mut(),
        }
    }

    /// As `MPI_Win_get_name` tells it.
    pub fn name(&self) -> String {
        self.0.name.borrow().clone()
    }

    /// As `MPI_Win_set_name`.
    pub fn set_name(&self, name: &str) {
        *self.0.name.borrow_mut() = name.to_owned();
        self.traces_name();
    }

    /// What sentences call it.
    pub fn label(&self) -> String {
        let name = self.name();
        match name.is_empty() {
            false => name,
            true => format!("a window of {} processes", self.0.targets.len()),
        }
    }

    /// What was asserted or asked for, as it is in force.
    pub fn hints(&self) -> Hints {
        self.0.hints.borrow().clone()
    }

    /// Says from now on that there are, or are not, passive epochs.
    pub fn set_no_locks(&self, no_locks: bool) {
        self.0.hints.borrow_mut().no_locks = no_locks;
    }

    /// The part of a member that this process can load from and store to; one of no bytes where it cannot.
    /// Of `MPI_PROC_NULL` it is that of the lowest rank that has any bytes.
    pub fn shared_segment(&self, rank: i32) -> Result<SharedSegment, Error> {
        if self.0.flavor == Flavor::Dynamic {
            let sentence = format!(
                "MPI_Win_shared_query is not defined for {}, which is dynamic: its memory is attached, not its own",
                self.label()
            );
            return Err(OscError::new(OscClass::Flavor, sentence).into());
        }
        let target = match self.target(rank)? {
            Some(target) => Some(target),
            None => self.0.targets.iter().find(|target| target.size > 0),
        };
        let nothing = SharedSegment {
            base: std::ptr::null_mut(),
            size: 0,
            unit: 1,
        };
        Ok(target.map_or(nothing, |target| match target.route {
            // Where parts need not follow each other, one of no bytes is nowhere.
            Route::Here(_) if target.size == 0 && self.hints().noncontiguous => SharedSegment {
                unit: target.unit,
                ..nothing
            },
            Route::Here(base) => SharedSegment {
                base,
                size: target.size,
                unit: target.unit,
            },
            _ => SharedSegment {
                unit: target.unit,
                ..nothing
            },
        }))
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
