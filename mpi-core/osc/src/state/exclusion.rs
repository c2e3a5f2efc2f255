//! Mutual exclusion of updates of one member's memory.
//! An update uses atomic instructions, or a pass of plain loads and stores under stripe locks.
//!
//! [`mpi_base::window`] has the protocol; this file decides when the mode changes.
//! A change to stripes needs a fence on all cores ([`mpi_base::fence`]):
//! a system call that interrupts the cores for some microseconds.
//! A process changes to stripes after [`ELEMENTS_BEFORE_STRIPES`] updates by atomic instructions.
//! The extra time of these updates then equals about the cost of the change.
//! By the same rule, [`SHORTS_BEFORE_ATOMICS`] consecutive short updates change the mode back.
//! So updates take at most about twice the time that they would take in the better mode.

#[cfg(test)]
mod tests;

use crate::state::control::{Control, MemberWords, STRIPES};
use mpi_base::mem::Held;
use mpi_base::node::Node;
use mpi_base::window::{Stripe, UpdateMode, Updating, under_each};
use std::cell::Cell;
use std::ops::Range;

/// Bytes of contiguous memory under one stripe lock, for elements that atomic instructions can update.
///
/// A lock takes about 10 ns, and a pass over this number of bytes more than 200 ns.
pub(crate) const BLOCK: u64 = 16 * 1024;

/// The maximum number of elements of a short access.
/// Atomic instructions for a short access cost no more than a pass under a lock.
const SHORT: usize = 4;

/// The number of elements that long accesses update
/// by atomic instructions before a change to stripes. Each element costs at least 4 ns.
const ELEMENTS_BEFORE_STRIPES: u32 = 512;

/// The number of consecutive short updates under one stripe lock before a change to atomics.
/// Each of these updates costs about 20 ns more than an atomic instruction.
const SHORTS_BEFORE_ATOMICS: u32 = 128;

/// The exclusion state of one member's memory at this process.
pub(crate) struct Guard {
    mode: Held<UpdateMode>,
    updating: Held<Updating>,
    /// The member's index among the members on this node.
    number: u32,
    /// Elements that long accesses have updated by atomic instructions since the last change;
    /// `u32::MAX` after the kernel has refused the fence of a change to stripes.
    by_atomics: Cell<u32>,
}

impl Guard {
    /// Returns the exclusion state (update mode and flag) for the memory of member `index`.
    pub fn new(control: &Control, index: usize) -> Guard {
        Guard {
            mode: control.of(index).update_mode.clone(),
            updating: control.mine().updating.clone(),
            number: index as u32,
            by_atomics: Cell::new(0),
        }
    }

    /// Runs `update`, which uses atomic instructions, unless updates of this memory take locks now.
    /// Returns true if `update` has run.
    #[inline(always)]
    pub fn atomically(&self, update: impl FnOnce()) -> bool {
        self.updating.atomically(&self.mode, self.number, update)
    }

    /// Raises the flag that announces updates by this process's atomic instructions.
    /// Returns true if the caller may use atomic instructions until [`Guard::end`].
    /// The caller must call `end` in both cases.
    #[inline(always)]
    pub fn begin(&self) -> bool {
        self.updating.begin(&self.mode, self.number)
    }

    /// Lowers the flag that [`Guard::begin`] has raised.
    #[inline(always)]
    pub fn end(&self) {
        self.updating.end();
    }

    /// Returns true if an access of `elements` elements should change the mode to stripes.
    fn wants_stripes(&self, elements: usize) -> bool {
        let before = self.by_atomics.get();
        if elements <= SHORT || before == u32::MAX {
            return false;
        }
        let elements = u32::try_from(elements).unwrap_or(u32::MAX);
        let all = before.saturating_add(elements).min(u32::MAX - 1);
        self.by_atomics.set(all);
        all >= ELEMENTS_BEFORE_STRIPES
    }
}

/// The instructions with which an update changes its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Each element is updated by an atomic instruction.
    Atomics,
    /// Plain loads and stores update the elements, while no other member updates them.
    Pass,
}

/// The method by which an access excludes other updates of one member's memory.
#[derive(Clone, Copy)]
pub(crate) enum Exclusion<'a> {
    /// All updates use atomic instructions.
    Atomics,
    /// No other process updates the memory during the access.
    Alone,
    /// Other processes may update the memory; a guard selects atomic instructions or stripe locks.
    Guarded(&'a Guard, &'a Control),
}

impl Exclusion<'_> {
    /// Updates `elements` elements in the bytes `span` of the owner's address space.
    /// Calls `update` exactly once.
    pub fn run(
        self,
        (stripes, node): (&[Stripe], Option<&Node>),
        elements: usize,
        span: &Range<u64>,
        update: &mut dyn FnMut(Way),
    ) {
        let way = match elements <= SHORT {
            true => Way::Atomics,
            false => Way::Pass,
        };
        let (guard, control) = match self {
            Exclusion::Atomics => return update(Way::Atomics),
            Exclusion::Alone => return update(way),
            Exclusion::Guarded(guard, control) => (guard, control),
        };
        let me = node.map_or(0, Node::rank);
        let has_ended = |place| node.is_some_and(|node| node.processes().has_ended(place));
        let first = span.start / BLOCK;
        // An access of no elements counts as one block.
        let blocks = (span.end.saturating_sub(1) / BLOCK).saturating_sub(first);
        let wanted = |stripe: usize| {
            // The number of blocks from `first` to the next block of this stripe.
            let distance = (stripe as u64).wrapping_sub(first) % STRIPES as u64;
            distance <= blocks
        };
        if way == Way::Pass && blocks == 0 && guard.mode.is_stripes() {
            // Most long updates are in one block, and follow each other in this mode.
            let stripe = &stripes[first as usize % STRIPES];
            let passed = stripe.with(me, has_ended, || {
                let allowed = guard.mode.is_stripes();
                if allowed {
                    stripe.note(false);
                    update(way);
                }
                allowed
            });
            if passed {
                guard.by_atomics.set(0);
                return;
            }
        }
        loop {
            if !guard.wants_stripes(elements) && guard.atomically(|| update(Way::Atomics)) {
                return;
            }
            let under_locks = &mut || {
                let allowed = guard.mode.is_stripes();
                if allowed {
                    let held = (0..STRIPES).filter(|stripe| wanted(*stripe));
                    held.for_each(|stripe| stripes[stripe].note(way == Way::Atomics));
                    update(way);
                }
                allowed
            };
            if under_each(stripes, &wanted, (me, &has_ended), under_locks) {
                guard.by_atomics.set(0);
                let stripe = first as usize % STRIPES;
                if way == Way::Atomics && stripes[stripe].shorts() >= SHORTS_BEFORE_ATOMICS {
                    let change = &mut || {
                        guard.mode.change_to_atomics();
                        stripes.iter().for_each(|stripe| stripe.note(false));
                    };
                    under_each(stripes, &|_| true, (me, &has_ended), change);
                }
                return;
            }
            let mut polls = 0;
            let is_raised = || is_raised(control.all(), guard.number, node, &mut polls);
            if !guard.mode.change_to_stripes(is_raised) {
                // The kernel refuses the fence that a change to stripes needs, so the mode is *atomics*.
                // With `u32::MAX`, `wants_stripes` does not ask for the change again.
                guard.by_atomics.set(u32::MAX);
            }
        }
    }
}

/// Returns true while a living member updates the memory of member `number` by atomic instructions.
fn is_raised(members: &[MemberWords], number: u32, node: Option<&Node>, polls: &mut u32) -> bool {
    /// The number of polls between yields, and between tests for dead members.
    const POLLS: u32 = 64;
    *polls += 1;
    let is_late = (*polls).is_multiple_of(POLLS);
    if is_late {
        // The member may need this core to lower its flag.
        mpi_base::yield_now::yield_now();
    }
    let has_ended = |place| is_late && node.is_some_and(|node| node.processes().has_ended(place));
    let mut raised = members.iter().filter(|words| words.updating.is_in(number));
    raised.any(|words| !has_ended(words.place))
}
