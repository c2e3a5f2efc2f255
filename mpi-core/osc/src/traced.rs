//! Records of window calls for the trace and the communication matrix: target rank and bytes.
//!
//! While a trace or a matrix is written, no access takes the fast path, so all are recorded.

use super::win::Win;
use crate::engine::Engine;
use crate::matrix::Matrix;
use crate::state::access_kind::AccessKind;
use crate::state::target::Target;
use crate::trace::Trace;
use std::rc::Rc;

/// Returns the trace of this process, if one is written.
pub(crate) fn trace_of(engine: &Engine) -> Option<Rc<Trace>> {
    engine
        .observer()
        .and_then(|observer| observer.trace())
        .cloned()
}

/// Returns the communication matrix of this process, if one is written.
pub(crate) fn matrix_of(engine: &Engine) -> Option<Rc<Matrix>> {
    engine
        .observer()
        .and_then(|observer| observer.matrix())
        .cloned()
}

impl Win {
    /// Returns the trace and matrix records of this window.
    #[inline(always)]
    pub(crate) fn traced(&self) -> TraceRecords<'_> {
        TraceRecords { win: self }
    }
}

/// The trace and matrix records of a window.
#[derive(Clone, Copy)]
pub(crate) struct TraceRecords<'a> {
    win: &'a Win,
}

impl<'a> TraceRecords<'a> {
    /// Records the target of the current call.
    #[inline]
    pub(crate) fn target(self, target: &Target) {
        self.access(target, 0, 0);
    }

    /// Records that the current call accesses `bytes` bytes at displacement `disp`.
    #[inline]
    pub(crate) fn access(self, target: &Target, disp: i64, bytes: i64) {
        if let Some(trace) = self.win.state().trace() {
            trace.accesses(self.win.id(), target.rank, (disp, bytes as u64));
        }
    }

    /// Counts an access of `bytes` bytes in the communication matrix.
    #[inline]
    pub(crate) fn count(self, target: &Target, kind: AccessKind, bytes: i64) {
        if let Some(matrix) = self.win.state().matrix() {
            matrix.accesses(target.proc, kind == AccessKind::Read, bytes);
        }
    }
}
