//! Concurrent MPI calls from several threads of a rank.

use super::{MpiError, World};

/// A reference to a [`World`] that several threads use concurrently.
struct Shared<'a>(&'a World<'a>);

// SAFETY: `in_threads` creates this value only if the library has granted MPI_THREAD_MULTIPLE.
// All fields of a `World` are read-only.
unsafe impl Sync for Shared<'_> {}
// SAFETY: the value is a shared reference, so `Send` holds by the same argument as `Sync`.
unsafe impl Send for Shared<'_> {}

impl World<'_> {
    /// Returns true if the library has granted `MPI_THREAD_MULTIPLE`.
    pub fn has_threads(&self) -> bool {
        self.threads
    }

    /// Runs `body(world, thread)` in `threads` threads and joins them; returns the first error.
    pub fn in_threads(
        &self,
        threads: usize,
        body: impl Fn(&World<'_>, usize) -> Result<(), MpiError> + Sync,
    ) -> Result<(), MpiError> {
        if !self.threads {
            return (0..threads).try_for_each(|thread| body(self, thread));
        }
        let shared = Shared(self);
        let (shared, body) = (&shared, &body);
        std::thread::scope(|scope| {
            let run = |thread| scope.spawn(move || body(shared.0, thread));
            let running: Vec<_> = (0..threads).map(run).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            running.into_iter().map(join).fold(Ok(()), Result::and)
        })
    }
}
