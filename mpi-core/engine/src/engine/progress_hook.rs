//! Components that have to take part in something whenever this process makes progress, whatever it waits for.
//!
//! Operations under way are polled as requests ([`Engine::spawn`]). What is here is no operation and has no end of its own:
//! a component that other members may ask something of at any time.
//!
//! Promise: every component here is asked when a request of this process has completed since it was asked last, and now and then while this process waits long;
//! and goes with its own owner.

use super::Engine;
use std::cell::{Cell, RefCell};
use std::rc::Weak;

/// Why a component is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Some request of this process has completed, perhaps the one of a message of its own.
    Completion,
    /// Some time has passed.
    Time,
}

/// A component that may be asked something by a message.
pub trait ProgressHook {
    /// Called as from inside progress, where nothing may wait.
    fn attend(&self, occasion: Occasion);
}

/// The hooks of one process.
#[derive(Default)]
pub(super) struct Hooks {
    all: RefCell<Vec<Weak<dyn ProgressHook>>>,
    /// Whether there is any.
    any: Cell<bool>,
}

impl Hooks {
    #[inline]
    pub fn are_any(&self) -> bool {
        self.any.get()
    }

    fn add(&self, hook: Weak<dyn ProgressHook>) {
        self.all.borrow_mut().push(hook);
        self.any.set(true);
    }

    fn ask(&self, occasion: Occasion) {
        let mut all = self.all.take();
        all.retain(|hook| {
            let hook = hook.upgrade();
            if let Some(hook) = &hook {
                hook.attend(occasion);
            }
            hook.is_some()
        });
        // Those that were enlisted meanwhile stand behind those that were there.
        let mut list = self.all.borrow_mut();
        all.append(&mut list);
        self.any.set(!all.is_empty());
        *list = all;
    }
}

impl Engine {
    /// From now on `hook` attends, until it is dropped.
    pub fn enlist(&self, hook: Weak<dyn ProgressHook>) {
        self.0.hooks.add(hook);
    }

    /// Asks all.
    pub(super) fn ask_attendants(&self, occasion: Occasion) {
        if !self.0.hooks.are_any() {
            return;
        }
        let nested = self.0.operations.enter();
        self.0.hooks.ask(occasion);
        self.0.operations.leave(nested);
    }
}
