//! Models of concurrent updates of the same elements by atomic instructions
//! and by plain loads and stores under a lock (passes): no update is lost.
//!
//! There is no model of three members: two members that wait for the third member's flag would yield
//! to each other indefinitely, which loom's scheduler permits.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::atomic::{AtomicU64, Ordering};
use crate::window::{Stripe, UpdateMode, Updating};

/// A memory of one element, its stripe lock, and the flags of `N` members.
struct Words<const N: usize> {
    mode: UpdateMode,
    stripe: Stripe,
    flags: [Updating; N],
    /// The element. Passes use relaxed loads and stores, so only the protocol orders them.
    element: AtomicU64,
}

impl<const N: usize> Words<N> {
    fn new() -> Arc<Words<N>> {
        Arc::new(Words {
            mode: UpdateMode::new(),
            stripe: Stripe::new(),
            flags: std::array::from_fn(|_| Updating::new()),
            element: AtomicU64::new(0),
        })
    }

    fn add_atomically(&self, me: usize) -> bool {
        self.flags[me].atomically(&self.mode, 0, || {
            self.element.fetch_add(1, Ordering::Relaxed);
        })
    }

    fn add_by_pass(&self) -> bool {
        self.stripe.with(
            0,
            |_| false,
            || {
                if !self.mode.is_stripes() {
                    return false;
                }
                let before = self.element.load(Ordering::Relaxed);
                self.element.store(before + 1, Ordering::Relaxed);
                true
            },
        )
    }

    fn change_to_stripes(&self) {
        let is_raised = || self.flags.iter().any(|flag| flag.is_in(0));
        self.mode.change_to_stripes(is_raised);
    }

    /// Performs a short update, as accumulates of few elements do: by an atomic instruction or a pass.
    fn add_short(&self, me: usize) {
        while !self.add_atomically(me) && !self.add_by_pass() {
            self.change_to_stripes();
        }
    }

    /// Performs a long update, which is always a pass.
    fn add_long(&self) {
        while !self.add_by_pass() {
            self.change_to_stripes();
        }
    }

    fn change_to_atomics(&self) {
        self.stripe
            .with(0, |_| false, || self.mode.change_to_atomics());
    }
}

/// SYNC POINT window.update: a pass excludes updates by atomic instructions before and after it.
#[test]
fn a_pass_and_an_atomic_update_both_count() {
    check(|| {
        let words = Words::<2>::new();
        let other = {
            let words = words.clone();
            thread::spawn(move || {
                words.add_short(1);
                words.add_short(1);
            })
        };
        words.add_long();
        other.join().unwrap();
        assert_eq!(words.element.load(Ordering::Relaxed), 3);
    });
}

/// Two members change from atomics to stripes at the same time, and one changes back:
/// the late end of the first change must not count as the end of the second.
#[test]
fn a_change_back_loses_no_update() {
    check(|| {
        let words = Words::<2>::new();
        let other = {
            let words = words.clone();
            thread::spawn(move || {
                words.add_long();
                words.change_to_atomics();
                words.add_short(1);
            })
        };
        words.add_long();
        other.join().unwrap();
        assert_eq!(words.element.load(Ordering::Relaxed), 3);
    });
}
