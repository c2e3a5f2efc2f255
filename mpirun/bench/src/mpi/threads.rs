//! Several threads of a rank that call at once.

use super::{MpiError, World};

/// A world that threads may use together.
struct Shared<'a>(&'a World<'a>);

// SAFETY: made only where the library has granted MPI_THREAD_MULTIPLE; everything else in a world is never written.
unsafe impl Sync for Shared<'_> {}
// SAFETY: as above.
unsafe impl Send for Shared<'_> {}

impl World<'_> {
    /// Whether the library lets several threads call at once.
    pub fn has_threads(&self) -> bool {
        self.threads
    }

    /// Runs `body(world, thread)` in as many threads and waits for all of them; the first error is the answer.
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
