//! The handle of a window at one process: the window's state and its queries.
//!
//! [`Win`] identifies the window. Its operations are methods of view types, one per file.
//! The views access the state through [`WinState`]: `active` and `passive` synchronisation,
//! `accesses`, `accumulates`, `memory` of the members, `attached` memory, `messages` to members
//! on other nodes, requests `served` for them, `waits`, conflict `checks`,
//! and `traced` and `recorded` accesses.

use crate::Error;
use crate::comm::{Comm, Failures};
use crate::direct::last_combine::LastCombine;
use crate::direct::mapped::Mapped;
use crate::engine::Engine;
use crate::error::{OscClass, OscError};
use crate::group::Group;
use crate::matrix::Matrix;
use crate::request::PROC_NULL;
use crate::spec::{Flavor, Hints};
use crate::state::attached_cache::AttachedCache;
use crate::state::control::Control;
use crate::state::epoch::Epochs;
use crate::state::open_accesses::OpenAccesses;
use crate::state::registration::{Keys, Registration};
use crate::state::remote_members::RemoteMembers;
use crate::state::target::Target;
use crate::trace::Trace;
use mpi_base::node::ShmBlock;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// A counted reference to a window, with access to the window's state and operations.
#[derive(Clone)]
pub struct Win(Rc<WinState>);

/// A weak reference to a window.
#[derive(Clone)]
pub(crate) struct WeakWin(Weak<WinState>);

impl WeakWin {
    /// Returns the window unless it has been freed.
    pub fn upgrade(&self) -> Option<Win> {
        self.0.upgrade().map(Win)
    }
}

/// The values from which a window is created.
pub(crate) struct WinParts {
    pub comm: Comm,
    pub flavor: Flavor,
    pub hints: Hints,
    pub targets: Box<[Target]>,
    pub control: Control,
    pub mapped: Mapped,
    pub open_accesses: OpenAccesses,
    pub trace: Option<Rc<Trace>>,
    pub matrix: Option<Rc<Matrix>>,
    /// True if members may send messages to each other; the same on all members.
    pub by_message: bool,
    /// The keys of all members, if the network can access their memory.
    pub keys: Option<Keys>,
    /// This process's contribution; kept until the window is freed.
    pub given: Given,
}

/// The state of a window, shared by all view types.
pub(crate) struct WinState {
    engine: Engine,
    parts: WinParts,
    epochs: Epochs,
    remote: RemoteMembers,
    attached_cache: AttachedCache,
    last_combine: LastCombine,
    name: RefCell<String>,
    no_locks: Cell<bool>,
}

impl WinState {
    #[inline(always)]
    pub fn targets(&self) -> &[Target] {
        &self.parts.targets
    }

    /// Returns the control words of the members on this node.
    #[inline(always)]
    pub fn control(&self) -> &Control {
        &self.parts.control
    }

    #[inline(always)]
    pub fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// Returns the state of accesses to members by messages or by the network.
    #[inline(always)]
    pub fn remote(&self) -> &RemoteMembers {
        &self.remote
    }

    pub fn attached_cache(&self) -> &AttachedCache {
        &self.attached_cache
    }

    /// Returns the XPMEM mappings of other members' memory.
    pub fn mapped(&self) -> &Mapped {
        &self.parts.mapped
    }

    #[inline(always)]
    pub fn open_accesses(&self) -> &OpenAccesses {
        &self.parts.open_accesses
    }

    #[inline(always)]
    pub fn trace(&self) -> Option<&Rc<Trace>> {
        self.parts.trace.as_ref()
    }

    #[inline(always)]
    pub fn matrix(&self) -> Option<&Rc<Matrix>> {
        self.parts.matrix.as_ref()
    }

    /// Returns true if members may send messages to each other; the same on all members.
    pub fn is_by_message(&self) -> bool {
        self.parts.by_message
    }

    #[inline]
    pub fn keys(&self) -> Option<&Keys> {
        self.parts.keys.as_ref()
    }

    /// Ends the registration of this process's memory with the network.
    pub fn withdraw(&self) {
        if let Some(registration) = &self.parts.given.registration {
            registration.withdraw();
        }
    }

    #[inline(always)]
    pub fn last_combine(&self) -> &LastCombine {
        &self.last_combine
    }
}

/// The contribution of this process to a window during its creation.
#[derive(Default)]
pub(crate) struct Given {
    /// The registration of the memory; declared first, so that it is dropped before the memory.
    pub registration: Option<Registration>,
    pub memory: Option<Own>,
    pub control: Option<ShmBlock>,
}

/// The memory that this process contributes to a window.
pub(crate) enum Own {
    /// The program's memory, memory that rank 0 has allocated, or no memory.
    Given,
    Block(#[allow(dead_code)] ShmBlock),
    /// Heap memory, used if the arena has no space.
    Heap(#[allow(dead_code)] Box<[u64]>),
}

impl Win {
    /// Creates the handle and the state of a window.
    pub(crate) fn of(parts: WinParts) -> Win {
        let size = parts.comm.size();
        Win(Rc::new(WinState {
            engine: parts.comm.engine().clone(),
            epochs: Epochs::default(),
            remote: RemoteMembers::new(size),
            attached_cache: AttachedCache::new(size),
            last_combine: LastCombine::default(),
            name: RefCell::default(),
            no_locks: Cell::new(parts.hints.no_locks),
            parts,
        }))
    }

    /// Returns the state that all view types share.
    #[inline(always)]
    pub(crate) fn state(&self) -> &WinState {
        &self.0
    }

    /// Returns a weak reference, which does not keep the window allocated.
    pub(crate) fn downgrade(&self) -> WeakWin {
        WeakWin(Rc::downgrade(&self.0))
    }

    /// Returns the communicator of the window's members on which no other window is.
    pub(crate) fn comm(&self) -> &Comm {
        &self.0.parts.comm
    }

    /// Returns the failure operations (`MPIX_Win_revoke`, `_is_revoked`, `_get_failed`).
    /// After a revocation, synchronisation calls fail at this member and soon at all members.
    pub fn failures(&self) -> Failures<'_> {
        self.comm().failures()
    }

    /// Returns true if the window is revoked or a member has failed.
    /// A failed member may hold a lock that other members wait for.
    pub fn is_broken(&self) -> bool {
        self.comm().usable().is_err()
    }

    /// Returns the reason why the window cannot be freed now: an open epoch.
    pub fn what_is_open(&self) -> Option<&'static str> {
        self.0.epochs.what_is_open()
    }

    /// Returns the error of a call that the current epoch does not allow.
    #[cold]
    pub(crate) fn misfit(&self, call: &str, why: &str) -> Error {
        let sentence = format!(
            "rank {} calls {call} on {}, but {why}",
            self.rank(),
            self.label()
        );
        OscError::new(OscClass::Sync, sentence).into()
    }

    /// Returns the record of a rank. Returns `None` for `MPI_PROC_NULL`.
    #[inline]
    pub(crate) fn target(&self, rank: i32) -> Result<Option<&Target>, OscError> {
        match usize::try_from(rank)
            .ok()
            .and_then(|rank| self.0.parts.targets.get(rank))
        {
            Some(target) => Ok(Some(target)),
            None if rank == PROC_NULL => Ok(None),
            None => Err(no_such_rank(self, rank)),
        }
    }

    /// Returns the engine on which the window was created.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub fn flavor(&self) -> Flavor {
        self.0.parts.flavor
    }

    /// Returns the group of the window's members.
    pub fn group(&self) -> &Group {
        self.comm().group()
    }

    /// Returns this process's rank in the window.
    pub fn rank(&self) -> u32 {
        self.comm().rank()
    }

    pub(crate) fn id(&self) -> u64 {
        self.comm().context().number()
    }

    /// Implements `MPI_Win_get_name`.
    pub fn name(&self) -> String {
        self.0.name.borrow().clone()
    }

    /// Implements `MPI_Win_set_name`.
    pub fn set_name(&self, name: &str) {
        *self.0.name.borrow_mut() = name.to_owned();
        if let Some(trace) = &self.0.parts.trace {
            trace.names_window(self.id(), name);
        }
    }

    /// Describes the window for error texts: its name, or its number of members.
    pub fn label(&self) -> String {
        let name = self.name();
        match name.is_empty() {
            false => printable::name(&name).to_string(),
            true => format!("a window of {} processes", self.0.parts.targets.len()),
        }
    }

    /// Returns the hints that the window uses.
    pub fn hints(&self) -> Hints {
        Hints {
            no_locks: self.has_no_locks(),
            ..self.0.parts.hints.clone()
        }
    }

    /// Returns true if the program uses no passive epochs.
    pub(crate) fn has_no_locks(&self) -> bool {
        self.0.no_locks.get()
    }

    /// Sets the hint `no_locks`: true if the program uses no passive epochs.
    pub fn set_no_locks(&self, no_locks: bool) {
        self.0.no_locks.set(no_locks);
    }

    /// Returns true if a target is this process.
    pub(crate) fn is_me(&self, target: &Target) -> bool {
        target.rank == self.rank()
    }
}

#[cold]
fn no_such_rank(win: &Win, rank: i32) -> OscError {
    let sentence = format!(
        "{rank} is no rank of {}, whose ranks are 0 to {}",
        win.label(),
        win.state().targets().len() - 1
    );
    OscError::new(OscClass::Rank, sentence)
}
