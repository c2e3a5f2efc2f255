//! Operations that no caller waits for: progress carries them to their end.
//!
//! A member that could not make an object takes part in the end of that object here, so that the members that have it do not wait for this one.

use super::Engine;
use crate::request::{Req, Running};
use std::cell::RefCell;

/// The operations under way.
#[derive(Default)]
struct Background(RefCell<Vec<Req>>);

impl Engine {
    /// Carries an operation to its end while this process progresses; no caller gets its outcome.
    pub fn run_in_background(&self, running: Running) {
        let Background(all) = self.extension_of_type();
        let requests = self.pml().requests();
        let (ended, mut under_way): (Vec<Req>, Vec<Req>) =
            all.take().into_iter().partition(|req| req.is_complete());
        for req in ended {
            // Its object was freed with it.
            let _ = requests.finish(&req);
        }
        under_way.push(self.spawn(running));
        all.replace(under_way);
    }
}
