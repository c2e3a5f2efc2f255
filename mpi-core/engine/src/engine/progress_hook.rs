//! Progress hooks: functions of components that every progress call of this process may call, in any MPI call.
//!
//! Operations in progress are polled as requests ([`Operations::start`](super::Operations::start)).
//! A hook differs from these because it never completes:
//! its component must reply to other members' messages at any time.
//!
//! Guarantee: every hook is called after each completed request, and repeatedly during a long wait.
//! If its owner drops a hook, it is not called any more.

use std::cell::{Cell, RefCell};
use std::rc::Weak;

/// The reason why a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A request of this process has completed, possibly that of a message of the component.
    Completion,
    /// A wait is about to sleep.
    Time,
}

/// A component that must reply to other members' messages at any time.
pub trait ProgressHook {
    /// Called inside progress; must not wait.
    fn attend(&self, occasion: Occasion);
}

/// The hooks of one process.
#[derive(Default)]
pub(super) struct Hooks {
    all: RefCell<Vec<Weak<dyn ProgressHook>>>,
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
        // Hooks that were added during the calls follow the earlier ones.
        let mut list = self.all.borrow_mut();
        all.append(&mut list);
        self.any.set(!all.is_empty());
        *list = all;
    }
}
