//! Components that have to take part in something whenever this process makes progress, whatever it waits for.
//!
//! Operations under way are polled as requests ([`Engine::spawn`]). What is here is no operation and has no end of its own:
//! a component that other members may ask something of at any time.
//!
//! Promise: every component here is asked when a request of this process has completed since it was asked last, and now and then while this process waits long;
//! and goes with its own owner.

use super::Engine;
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

impl Engine {
    /// From now on `who` attends, until it is dropped.
    pub fn enlist(&self, who: Weak<dyn ProgressHook>) {
        self.0.attendants.borrow_mut().push(who);
        self.0.attended.set(true);
    }

    /// Asks all.
    pub(super) fn ask_attendants(&self, occasion: Occasion) {
        if !self.0.attended.get() {
            return;
        }
        let nested = self.0.progressing.replace(true);
        let mut all = self.0.attendants.take();
        all.retain(|who| {
            let who = who.upgrade();
            if let Some(who) = &who {
                who.attend(occasion);
            }
            who.is_some()
        });
        // Those that were enlisted meanwhile stand behind those that were there.
        let mut list = self.0.attendants.borrow_mut();
        all.append(&mut list);
        self.0.attended.set(!all.is_empty());
        *list = all;
        self.0.progressing.set(nested);
    }
}
