//! Mutual exclusion of the updates of one member's memory: atomic instructions, or passes under the locks of stripes.
//!
//! The protocol is [`mpi_base::window`]'s; this file decides when the mode changes.
//! A change to stripes costs a system call that interrupts all cores of the job, some microseconds.
//! It is made once this process has updated as many elements by atomic instructions as cost about that much more than by a pass,
//! and the change back once as many short updates in a row as cost that much more under a lock. So both ways cost at most about twice the better one.

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
/// A lock takes some ten nanoseconds, and a pass over this many bytes more than two hundred.
pub(crate) const BLOCK: u64 = 16 * 1024;

/// Accesses of at most this number of elements are short: by atomic instructions they cost no more than by a pass under a lock.
const SHORT: usize = 4;

/// Elements that long accesses update by atomic instructions, at 4 ns or more each, before the mode changes to stripes.
const ELEMENTS_BEFORE_STRIPES: u32 = 512;

/// Short updates in a row under one stripe, which cost some 20 ns more than by an atomic instruction, before the mode changes to atomics.
const SHORTS_BEFORE_ATOMICS: u32 = 128;

/// The exclusion state for one member's memory, as seen by this process.
pub(crate) struct Guard {
    mode: Held<UpdateMode>,
    updating: Held<Updating>,
    /// The member's index among those on this node.
    number: u32,
    /// Elements of long accesses that this process has updated by atomic instructions since the last change.
    by_atomics: Cell<u32>,
}

impl Guard {
    /// Returns the exclusion state (update mode and flag) of the memory of member `index`.
    pub fn new(control: &Control, index: usize) -> Guard {
        Guard {
            mode: control.of(index).update_mode.clone(),
            updating: control.mine().updating.clone(),
            number: index as u32,
            by_atomics: Cell::new(0),
        }
    }

    /// Runs `update`, which updates elements by atomic instructions, unless updates of this memory take locks now.
    /// Returns true if it has run.
    #[inline(always)]
    pub fn atomically(&self, update: impl FnOnce()) -> bool {
        self.updating.atomically(&self.mode, self.number, update)
    }

    /// Raises this process's flag. Returns true if the caller may update elements by atomic instructions until it calls [`Guard::end`], which it does in any case.
    #[inline(always)]
    pub fn begin(&self) -> bool {
        self.updating.begin(&self.mode, self.number)
    }

    /// Lowers this process's flag.
    #[inline(always)]
    pub fn end(&self) {
        self.updating.end();
    }

    /// Returns true if an access of `elements` elements that finds the mode with atomics should change it.
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

/// How an update that excludes all others of its elements is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Each element by an atomic instruction.
    Atomics,
    /// By plain loads and stores: no other member updates these elements meanwhile.
    Pass,
}

/// The exclusion of other updates of one member's memory, as an access uses it.
#[derive(Clone, Copy)]
pub(crate) enum Exclusion<'a> {
    /// Atomic instructions only.
    Atomics,
    /// No other process updates the memory now.
    Alone,
    /// Other processes update the memory too.
    Guarded(&'a Guard, &'a Control),
}

impl Exclusion<'_> {
    /// Updates `elements` elements in the bytes `span` of the owner's address space. `update` is run once.
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
        // At least one block, also for an access of no elements.
        let blocks = (span.end.saturating_sub(1) / BLOCK).saturating_sub(first);
        let wanted = |stripe: usize| {
            // The number of blocks from the first one to the next block of this stripe.
            let distance = (stripe as u64).wrapping_sub(first) % STRIPES as u64;
            distance <= blocks
        };
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
                // The system refuses what the change needs.
                guard.by_atomics.set(u32::MAX);
            }
        }
    }
}

/// Returns true while the flag of a living member is up.
fn is_raised(members: &[MemberWords], number: u32, node: Option<&Node>, polls: &mut u32) -> bool {
    /// Polls before each yield, and before each test whether the members live.
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
