//! The memory of a window's members, as this process reaches it.

use crate::Error;
use crate::error::{OscClass, OscError};
use crate::spec::{Flavor, SharedSegment};
use crate::state::exclusion::Exclusion;
use crate::state::target::{Held, Route, Target};
use crate::win::Win;
use mpi_base::window::{Mode, Stripe};

impl Win {
    /// Returns the memory of its members.
    #[inline(always)]
    pub fn memory(&self) -> WinMemory<'_> {
        WinMemory { win: self }
    }
}

/// The memory of a window's members.
#[derive(Clone, Copy)]
pub struct WinMemory<'a> {
    win: &'a Win,
}

impl<'a> WinMemory<'a> {
    /// Returns the stripe locks of a member's memory.
    pub(crate) fn stripes(self, target: &Target) -> &'a [Stripe] {
        let words = match target.here {
            Some(index) => self.win.state().control().of(index),
            None => self.win.state().control().mine(),
        };
        &words.stripes
    }

    /// Returns how updates of a member's memory exclude each other.
    pub(crate) fn exclusion(self, target: &'a Target) -> Exclusion<'a> {
        let control = self.win.state().control();
        // While this process holds the exclusive lock, and where it is the only member on the node, it makes all updates.
        let alone = target.held.get() == Held::Here(Mode::Exclusive) || control.count() == 1;
        match &target.guard {
            _ if alone => Exclusion::Alone,
            Some(guard) => Exclusion::Guarded(guard, control),
            None => Exclusion::Atomics,
        }
    }

    /// Returns true if all members share this node's memory.
    pub(crate) fn is_all_here(self) -> bool {
        self.win.state().control().count() == self.win.state().targets().len()
    }

    /// Returns the ranks on this node whose memory is outside of the arenas: those whose memory is mapped here, and those whose memory the kernel copies.
    pub fn mapped_and_copied(self) -> (Vec<u32>, Vec<u32>) {
        let ranks = |is: fn(&Route) -> bool| {
            let targets = self.win.state().targets().iter();
            let found = targets.filter(|target| target.size > 0 && is(&target.route));
            found.map(|target| target.rank).collect()
        };
        (
            ranks(|route| matches!(route, Route::Mapped(_))),
            ranks(|route| matches!(route, Route::Process(_))),
        )
    }

    /// Returns the number of bytes of memory that this process gives to the window.
    pub fn own_bytes(self) -> u64 {
        let me = self.win.state().targets().get(self.win.rank() as usize);
        me.map_or(0, |target| target.size)
    }

    /// Returns the start of this process's memory; null for a dynamic window.
    pub fn base(self) -> *mut u8 {
        let me = self.win.state().targets().get(self.win.rank() as usize);
        match me.map(|target| target.route) {
            Some(Route::Here(base)) => base,
            _ => std::ptr::null_mut(),
        }
    }

    /// Returns this process's own index among the members on this node.
    pub(crate) fn my_index(self) -> usize {
        let me = &self.win.state().targets()[self.win.rank() as usize];
        me.here.unwrap_or(0)
    }

    /// Returns the memory of a member that this process can load from and store to; a segment of 0 bytes if it cannot.
    /// For `MPI_PROC_NULL` it is that of the lowest rank with a size above 0.
    pub fn shared_segment(self, rank: i32) -> Result<SharedSegment, Error> {
        if self.win.flavor() == Flavor::Dynamic {
            let sentence = format!(
                "MPI_Win_shared_query is not defined for {}, which is dynamic: its memory is attached, not its own",
                self.win.label()
            );
            return Err(OscError::new(OscClass::Flavor, sentence).into());
        }
        let target = match self.win.target(rank)? {
            Some(target) => Some(target),
            None => self
                .win
                .state()
                .targets()
                .iter()
                .find(|target| target.size > 0),
        };
        let nothing = SharedSegment {
            base: std::ptr::null_mut(),
            size: 0,
            unit: 1,
        };
        Ok(target.map_or(nothing, |target| match target.route {
            // With the hint `noncontiguous` a segment of 0 bytes has no address.
            Route::Here(_) if target.size == 0 && self.win.hints().noncontiguous => SharedSegment {
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
