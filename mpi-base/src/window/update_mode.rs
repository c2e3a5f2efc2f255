//! The mode of updates: accumulates on a member's memory use either atomic instructions or
//! plain accesses under stripe locks.
//!
//! One atomic instruction updates one element.
//! A pass (a loop of plain loads and stores) updates many elements at a tenth of the cost per element,
//! but must exclude all other accumulates on the same elements.
//! So each member's memory has a mode ([`UpdateMode`]):
//! in the mode *atomics* no member takes a lock;
//! in the mode *stripes* every member first locks a [`Stripe`].
//!
//! For an update by atomic instructions, a process raises its flag ([`Updating`]), reads the mode,
//! updates, and lowers the flag: two stores and a load.
//! The store of the flag and the load of the mode need a fence between them.
//! The member that changes the mode executes this fence for both sides ([`crate::fence`]).
//! The member that begins a change to stripes announces it in the mode.
//! Each member that reads the announcement executes [`crate::fence::heavy`],
//! waits until no process has its flag raised for this memory, and then sets the mode to stripes.
//! So any member can complete the change, and no member waits for a member that has ended.
//! The change back to atomics needs no fence: the change is made while all stripes are locked,
//! and a member reads the mode again after it has locked a stripe.
//! The mode has a version. So the late end of one change is not mistaken for that of a later one.
//!
//! SYNC POINT `window.update`: a member that raises its flag then reads the mode;
//! a member that reads the announcement then reads the flags.
//! At least one of these two members sees the other's store.

use super::Stripe;
use crate::atomic::{AtomicU32, Ordering};
use crate::fence::{heavy, light};

const PHASE: u32 = 3;
const ATOMICS: u32 = 0;
/// Phase of the mode: the change to stripes is announced, and flags may still be raised.
const CHANGING: u32 = 1;
const STRIPES: u32 = 2;
const VERSION: u32 = 4;

/// The mode of updates of one member's memory; zeroed memory is the mode *atomics*.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct UpdateMode(AtomicU32);

#[cfg(not(loom))]
#[allow(unsafe_code)]
// SAFETY: the field is an atomic, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for UpdateMode {}

/// The flag of one process: 0 if it is not raised.
/// Otherwise one plus the number of the memory that the process updates by atomic instructions.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Updating(AtomicU32);

#[cfg(not(loom))]
#[allow(unsafe_code)]
// SAFETY: the field is an atomic, so every bit pattern is valid and every write is atomic.
unsafe impl crate::mem::Shared for Updating {}

impl Updating {
    /// Returns a flag that is not raised.
    pub fn new() -> Updating {
        Updating::default()
    }

    /// Runs `update`, which updates memory number `memory` by atomic instructions,
    /// if the mode is *atomics* (owner only).
    /// Returns true if `update` was run.
    #[inline(always)]
    pub fn atomically(&self, mode: &UpdateMode, memory: u32, update: impl FnOnce()) -> bool {
        let allowed = self.begin(mode, memory);
        if allowed {
            update();
        }
        self.end();
        allowed
    }

    /// Raises the flag. Returns true if atomic instructions may update memory number `memory`.
    /// After either result the caller must call [`Updating::end`] (owner only).
    #[inline(always)]
    pub fn begin(&self, mode: &UpdateMode, memory: u32) -> bool {
        self.0.store(memory + 1, Ordering::Relaxed);
        // SYNC POINT window.update
        light();
        mode.0.load(Ordering::Acquire) & PHASE == ATOMICS
    }

    /// Lowers the flag (owner only).
    #[inline(always)]
    pub fn end(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Returns true if the process may be updating memory number `memory` by atomic instructions.
    #[inline]
    pub fn is_in(&self, memory: u32) -> bool {
        self.0.load(Ordering::Acquire) == memory + 1
    }
}

impl UpdateMode {
    /// Returns the mode *atomics*.
    pub fn new() -> UpdateMode {
        UpdateMode::default()
    }

    /// Returns true if the mode is *stripes*: updates must lock stripes.
    /// A result of true stays valid while the caller holds a stripe.
    #[inline]
    pub fn is_stripes(&self) -> bool {
        self.0.load(Ordering::Acquire) & PHASE == STRIPES
    }

    /// Changes from *atomics* to *stripes*, or completes such a change that another member has begun.
    /// `is_raised` must return true while a living member has its flag raised for this memory.
    /// Returns false if the kernel refuses the fence; the mode is then *atomics*.
    #[cold]
    pub fn change_to_stripes(&self, mut is_raised: impl FnMut() -> bool) -> bool {
        let found = self.0.load(Ordering::Acquire);
        let changing = found & !PHASE | CHANGING;
        match found & PHASE {
            STRIPES => return true,
            ATOMICS => {
                let begun =
                    (self.0).compare_exchange(found, changing, Ordering::SeqCst, Ordering::Relaxed);
                if begun.is_err() {
                    // Another member has changed the mode, so the caller must read the mode again.
                    return true;
                }
            }
            _ => {}
        }
        // SYNC POINT window.update
        let ordered = heavy();
        while ordered && is_raised() {
            crate::atomic::spin_loop();
        }
        let next = match ordered {
            true => found & !PHASE | STRIPES,
            false => (found & !PHASE).wrapping_add(VERSION) | ATOMICS,
        };
        // Another member may have completed this change. It may even have begun the next change,
        // which has another version.
        let _ = (self.0).compare_exchange(changing, next, Ordering::AcqRel, Ordering::Relaxed);
        ordered
    }

    /// Changes from *stripes* to *atomics*. The caller holds all stripes.
    pub fn change_to_atomics(&self) {
        let found = self.0.load(Ordering::Relaxed);
        if found & PHASE == STRIPES {
            let next = (found & !PHASE).wrapping_add(VERSION) | ATOMICS;
            // No other member can change the mode now, because the caller holds all stripes.
            self.0.store(next, Ordering::Release);
        }
    }
}

/// Runs `update` while holding those of the `stripes` that `wanted` selects.
/// The stripes are locked in ascending order, so deadlock is impossible.
pub fn under_each<R>(
    stripes: &[Stripe],
    wanted: &dyn Fn(usize) -> bool,
    (me, has_ended): (u32, &dyn Fn(u32) -> bool),
    update: &mut dyn FnMut() -> R,
) -> R {
    fn from<R>(
        first: usize,
        stripes: &[Stripe],
        wanted: &dyn Fn(usize) -> bool,
        (me, has_ended): (u32, &dyn Fn(u32) -> bool),
        update: &mut dyn FnMut() -> R,
    ) -> R {
        match (first..stripes.len()).find(|index| wanted(*index)) {
            None => update(),
            Some(index) => stripes[index].with(me, has_ended, || {
                from(index + 1, stripes, wanted, (me, has_ended), update)
            }),
        }
    }
    from(0, stripes, wanted, (me, has_ended), update)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_change_waits_for_the_flags_of_its_own_memory_and_for_no_member_that_has_ended() {
        if !crate::fence::register() {
            return;
        }
        let (mode, updating) = (UpdateMode::new(), Updating::new());
        assert!(updating.atomically(&mode, 3, || ()));
        // A member that ended during an update of memory 3 has left its flag raised.
        updating.0.store(4, Ordering::Relaxed);
        assert!(updating.is_in(3) && !updating.is_in(2));
        let mut asked = 0;
        let is_raised = || {
            asked += 1;
            let has_ended = asked > 10;
            updating.is_in(3) && !has_ended
        };
        assert!(mode.change_to_stripes(is_raised));
        assert!(mode.is_stripes() && asked == 11);
        assert!(!Updating::new().atomically(&mode, 3, || ()));
    }

    #[test]
    fn a_change_that_another_member_has_begun_is_completed() {
        if !crate::fence::register() {
            return;
        }
        // The member that announced the change has ended before it completed the change.
        let mode = UpdateMode(AtomicU32::new((8 * VERSION) | CHANGING));
        assert!(!mode.is_stripes());
        assert!(!Updating::new().atomically(&mode, 0, || ()));
        assert!(mode.change_to_stripes(|| false));
        assert!(mode.is_stripes());
        mode.change_to_atomics();
        assert_eq!(mode.0.load(Ordering::Relaxed), 9 * VERSION);
        assert!(Updating::new().atomically(&mode, 0, || ()));
    }

    #[test]
    fn stripes_are_locked_in_their_order_and_free_afterwards() {
        let stripes: [Stripe; 4] = std::array::from_fn(|_| Stripe::new());
        let ended = |_| false;
        for _ in 0..2 {
            let sum = under_each(&stripes, &|index| index % 2 == 1, (0, &ended), &mut || {
                // The stripes that were not selected can be locked at the same time.
                under_each(&stripes, &|index| index % 2 == 0, (0, &ended), &mut || 11)
            });
            assert_eq!(sum, 11);
        }
    }
}
