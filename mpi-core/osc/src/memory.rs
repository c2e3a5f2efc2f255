//! The memory of a window's members: locks, addresses and shared segments.

use crate::Error;
use crate::error::{OscClass, OscError};
use crate::spec::{Flavor, SharedSegment};
use crate::state::exclusion::Exclusion;
use crate::state::target::{Held, Route, Target};
use crate::win::Win;
use mpi_base::window::{Mode, Stripe};

impl Win {
    /// Returns the queries on the memory of this window's members.
    #[inline(always)]
    pub fn memory(&self) -> WinMemory<'_> {
        WinMemory { win: self }
    }
}

/// The queries on the memory of a window's members.
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

    /// Returns the method by which an access excludes other updates of a member's memory.
    pub(crate) fn exclusion(self, target: &'a Target) -> Exclusion<'a> {
        let control = self.win.state().control();
        // No other process updates the memory if this process holds its lock exclusively,
        // or if this process is the only member on the node.
        let alone = target.held.get() == Held::Here(Mode::Exclusive) || control.count() == 1;
        match &target.guard {
            _ if alone => Exclusion::Alone,
            Some(guard) => Exclusion::Guarded(guard, control),
            None => Exclusion::Atomics,
        }
    }

    /// Returns true if all members of the window are on this node.
    pub(crate) fn is_all_here(self) -> bool {
        self.win.state().control().count() == self.win.state().targets().len()
    }

    /// Returns the ranks on this node whose memory is outside of the arenas, as two lists:
    /// ranks whose memory this process has mapped, and ranks whose memory the kernel copies.
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

    /// Returns the size in bytes of this process's memory in the window.
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

    /// Returns the index of this process among the members on this node.
    pub(crate) fn my_index(self) -> usize {
        let me = &self.win.state().targets()[self.win.rank() as usize];
        me.here.unwrap_or(0)
    }

    /// Returns a member's memory for direct loads and stores; 0 bytes if these are not possible.
    /// For `MPI_PROC_NULL`, returns the segment of the lowest rank with a size above 0.
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
