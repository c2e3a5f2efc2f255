//! Progress hooks: component callbacks that run whenever this process progresses, in any MPI call.
//!
//! Active operations are polled as requests ([`Operations::start`](super::Operations::start)).
//! A hook is different: it never completes.
//! Its component must answer other members' messages at any time.
//!
//! Guarantee: every hook is called after each completed request, and repeatedly in a long wait.
//! A hook is removed when its owner drops it.

use std::cell::{Cell, RefCell};
use std::rc::Weak;

/// The reason for calling a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A request of this process has completed, possibly a request of the component's message.
    Completion,
    /// A long wait is about to sleep.
    Time,
}

/// A component that answers messages of other members at any time.
pub trait ProgressHook {
    /// Called inside progress; must not wait.
    fn attend(&self, occasion: Occasion);
}

/// The hooks of one process.
#[derive(Default)]
pub(super) struct Hooks {
    all: RefCell<Vec<Weak<dyn ProgressHook>>>,
    /// True if any hook exists.
    any: Cell<bool>,
}

impl Hooks {
    #[inline]
    pub fn are_any(&self) -> bool {
        self.any.get()
    }

    pub fn add(&self, hook: Weak<dyn ProgressHook>) {
        self.all.borrow_mut().push(hook);
        self.any.set(true);
    }

    pub fn ask(&self, occasion: Occasion) {
        let mut all = self.all.take();
        all.retain(|hook| {
            let hook = hook.upgrade();
            if let Some(hook) = &hook {
                hook.attend(occasion);
            }
            hook.is_some()
        });
        // Hooks that were added meanwhile follow the earlier ones.
        let mut list = self.all.borrow_mut();
        all.append(&mut list);
        self.any.set(!all.is_empty());
        *list = all;
    }
}
