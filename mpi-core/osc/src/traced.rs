//! What a trace is told of windows: which member a call is about, and where.
//!
//! While a trace is written no access takes the short way, so that all of them come here.

use super::target::Target;
use super::win::Win;
use crate::engine::Engine;
use crate::trace::Trace;
use std::rc::Rc;

/// The trace of this process, if one is written.
pub(super) fn trace_of(engine: &Engine) -> Option<Rc<Trace>> {
    engine
        .witness()
        .and_then(|witness| witness.trace())
        .cloned()
}

impl Win {
    /// The call that runs is about a member.
    #[inline]
    pub(super) fn traces(&self, target: &Target) {
        self.traces_access(target, 0, 0);
    }

    /// The call that runs accesses `bytes` bytes at a displacement.
    #[inline]
    pub(super) fn traces_access(&self, target: &Target, disp: i64, bytes: i64) {
        if let Some(trace) = &self.0.trace {
            trace.accesses(self.id(), target.rank, (disp, bytes as u64));
        }
    }
}
