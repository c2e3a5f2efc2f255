//! A window as this process has it: its state, and what can be asked of it.

use super::accesses::Accesses;
use super::am::remote::Remote;
use super::apply::Combine;
use super::attached::Attached;
use super::control::Control;
use super::epoch::Epochs;
use super::mapped::Mapped;
use super::target::{Route, Target};
use super::word::Word;
use super::{Flavor, Hints, OscClass, OscError, SharedSegment};
use crate::Error;
use crate::comm::Comm;
use crate::engine::Engine;
use crate::group::Group;
use crate::request::PROC_NULL;
use crate::trace::Trace;
use mpi_base::node::ShmBlock;
use mpi_base::window::Stripe;
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
    pub combine: Cell<Option<Combine>>,
    pub word: Cell<Option<Word>>,
    pub name: RefCell<String>,
    /// Kept until the window goes.
    pub _given: Given,
}

/// What this process gives to a window, as far as it has it.
#[derive(Default)]
pub(super) struct Given {
    pub memory: Option<Own>,
    pub control: Option<ShmBlock>,
}

/// The memory that this process gives to a window.
pub(super) enum Own {
    /// The program's memory, or none.
    Given,
    Block(#[allow(dead_code)] ShmBlock),
    /// Where the arena has no room.
    Heap(#[allow(dead_code)] Box<[u64]>),
}

impl Win {
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

    /// Whether a member has died, who may hold what others wait for, or the window is revoked.
    pub fn is_broken(&self) -> bool {
        self.0.comm.usable().is_err()
    }

    /// The locks of updates of a member's memory.
    pub(super) fn stripes(&self, target: &Target) -> &[Stripe] {
        let words = match target.here {
            Some(index) => self.0.control.of(index),
            None => self.0.control.mine(),
        };
        &words.stripes
    }

    /// Whether all members share this node's memory.
    pub(super) fn is_all_here(&self) -> bool {
        self.0.control.count() == self.0.targets.len()
    }

    /// What keeps it from being freed now: an epoch that is open.
    pub fn what_is_open(&self) -> Option<&'static str> {
        self.0.epochs.what_is_open()
    }

    /// A sentence about a call that does not fit the epoch.
    #[cold]
    pub(super) fn misfit(&self, call: &str, why: &str) -> Error {
        let sentence = format!(
            "rank {} calls {call} on {}, but {why}",
            self.rank(),
            self.label()
        );
        OscError::new(OscClass::Sync, sentence).into()
    }

    /// The record of a rank; nothing for `MPI_PROC_NULL`.
    #[inline]
    pub(super) fn target(&self, rank: i32) -> Result<Option<&Target>, OscError> {
        match usize::try_from(rank)
            .ok()
            .and_then(|rank| self.0.targets.get(rank))
        {
            Some(target) => Ok(Some(target)),
            None if rank == PROC_NULL => Ok(None),
            None => Err(self.no_such_rank(rank)),
        }
    }

    #[cold]
    fn no_such_rank(&self, rank: i32) -> OscError {
        let sentence = format!(
            "{rank} is no rank of {}, whose ranks are 0 to {}",
            self.label(),
            self.0.targets.len() - 1
        );
        OscError::new(OscClass::Rank, sentence)
    }

    /// The neighbours whose memory the program got elsewhere: those of which it is mapped all the same, and those of which the system copies it.
    pub fn mapped_and_copied(&self) -> (Vec<u32>, Vec<u32>) {
        let ranks = |is: fn(&Route) -> bool| {
            let targets = self.0.targets.iter();
            let found = targets.filter(|target| target.size > 0 && is(&target.route));
            found.map(|target| target.rank).collect()
        };
        (
            ranks(|route| matches!(route, Route::Mapped(_))),
            ranks(|route| matches!(route, Route::Process(_))),
        )
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
        if let Some(trace) = &self.0.trace {
            trace.names_window(self.id(), name);
        }
    }

    /// What sentences call it.
    pub fn label(&self) -> String {
        let name = self.name();
        match name.is_empty() {
            false => printable::name(&name).to_string(),
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
