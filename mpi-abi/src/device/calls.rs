//! The staged buffers of the active MPI calls of a thread.
//!
//! A callback of the program may call MPI within a call, so each thread has a stack of calls.
//! If a C++ exception unwinds a call, the call's entry stays on the stack and only occupies memory.

use super::staged::{DeviceError, Staged};
use std::cell::RefCell;
use std::ops::Range;

thread_local! {
    static CALLS: RefCell<Vec<Vec<Staged>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `use_it` with the stack of calls.
/// During thread exit the stack no longer exists, so calls of exit handlers get the default.
fn with<R: Default>(use_it: impl FnOnce(&mut Vec<Vec<Staged>>) -> R) -> R {
    let used = CALLS.try_with(|calls| use_it(&mut calls.borrow_mut()));
    used.unwrap_or_default()
}

/// Pushes an entry for a new call.
pub fn enter() {
    with(|calls| calls.push(Vec::new()));
}

/// Returns true within a call that can hold staged buffers.
pub fn is_open() -> bool {
    with(|calls| !calls.is_empty())
}

/// Pops the entry of the innermost call.
pub fn leave() {
    // The entry is dropped after the borrow has ended.
    let _ended = with(Vec::pop);
}

/// Holds a staged buffer until the innermost call ends.
pub fn keep(staged: Staged) {
    with(|calls| {
        if let Some(call) = calls.last_mut() {
            call.push(staged);
        }
    });
}

/// Takes the staged buffers of the innermost call.
pub fn take() -> Views {
    let views = with(|calls| calls.last_mut().map(std::mem::take));
    Views(views.unwrap_or_default())
}

/// Sets the length of the message that the innermost call has received.
#[cold]
pub fn received(bytes: u64) {
    with(|calls| {
        let staged = calls.last().into_iter().flatten();
        staged.for_each(|staged| staged.set_received(i64::try_from(bytes).unwrap_or(i64::MAX)));
    });
}

/// The staged buffers of an operation.
#[derive(Default)]
pub struct Views(Vec<Staged>);

impl Views {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the operation writes to one of the buffers.
    pub fn are_written(&self) -> bool {
        self.0.iter().any(Staged::is_written)
    }

    /// Leaks the host memory if the operation may still use it.
    /// Messages of an operation that failed by the death of a rank may arrive later.
    pub fn keep_if(self, is_in_use: bool) {
        if is_in_use {
            std::mem::forget(self);
        }
    }

    /// Copies the data that the operation may read to host memory.
    pub fn fill(&self) -> Result<(), DeviceError> {
        self.0.iter().try_for_each(Staged::fill)
    }

    /// Copies a partition, the elements in the range `elements` of all buffers, to host memory,
    /// unless the engine copies it during its send.
    pub fn fill_elements(&self, elements: &Range<i64>) -> Result<(), DeviceError> {
        let mut all = self.0.iter();
        all.try_for_each(|staged| staged.fill_elements(elements.clone()))
    }

    /// Copies the data that the operation has written to device memory.
    /// All buffers are copied, even after a failure.
    pub fn land(&self) -> Result<(), DeviceError> {
        let copied = self.0.iter().map(Staged::land);
        copied.fold(Ok(()), Result::and)
    }

    /// Copies a partition that has arrived, the elements in the range `elements` of all buffers, to device memory.
    /// `end` is the length of the whole message in bytes.
    pub fn land_elements(&self, elements: &Range<i64>, end: u64) -> Result<(), DeviceError> {
        let mut all = self.0.iter();
        all.try_for_each(|staged| staged.land_elements(elements.clone(), end))
    }

    /// Sets the length of a received message.
    pub fn set_received(&self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.0.iter().for_each(|staged| staged.set_received(bytes));
    }
}
