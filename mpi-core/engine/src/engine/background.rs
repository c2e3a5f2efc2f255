//! Background operations: no caller waits for them, and progress completes them.
//!
//! A member that failed to make an object completes the object's collective teardown here, so that the members that have the object do not wait for it.

use super::Engine;
use crate::request::{Req, Running};
use std::cell::RefCell;

/// The background operations that have not been finished.
#[derive(Default)]
struct Background(RefCell<Vec<Req>>);

impl Engine {
    /// Runs an operation to completion while this process progresses; its outcome is discarded.
    pub fn run_in_background(&self, running: Running) {
        let Background(all) = self.extension_of_type();
        let requests = self.pml().requests();
        let (ended, mut under_way): (Vec<Req>, Vec<Req>) =
            all.take().into_iter().partition(|req| req.is_complete());
        for req in ended {
            // Its object was freed with it.
            let _ = requests.finish(&req);
        }
        under_way.push(self.start_future(running));
        all.replace(under_way);
    }
}
