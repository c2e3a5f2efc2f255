//! Trace records of window calls: the target and the bytes that are accessed.
//!
//! While a trace is written no access takes the fast path, so all of them come here.

use super::target::Target;
use super::win::Win;
use crate::engine::Engine;
use crate::trace::Trace;
use std::rc::Rc;

/// Returns the trace of this process, if one is written.
pub(super) fn trace_of(engine: &Engine) -> Option<Rc<Trace>> {
    engine
        .observer()
        .and_then(|observer| observer.trace())
        .cloned()
}

impl Win {
    /// Records the target of the current call.
    #[inline]
    pub(super) fn traces(&self, target: &Target) {
        self.traces_access(target, 0, 0);
    }

    /// Records that the current call accesses `bytes` bytes at a displacement.
    #[inline]
    pub(super) fn traces_access(&self, target: &Target, disp: i64, bytes: i64) {
        if let Some(trace) = &self.0.trace {
            trace.accesses(self.id(), target.rank, (disp, bytes as u64));
        }
    }
}
