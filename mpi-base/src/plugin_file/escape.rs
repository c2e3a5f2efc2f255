//! The end of a process whose plugin throws: a C++ exception or a panic that leaves a function of a plugin.
//!
//! The library's frames cannot be left in the middle of a call, and a handler above them could not know what the exception has interrupted.

use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Prints the sentence and ends the process when it is dropped, which only unwinding does.
struct Escape<'a> {
    component: &'a str,
    file: &'a str,
    function: &'static str,
}

impl Drop for Escape<'_> {
    fn drop(&mut self) {
        let Escape {
            component,
            file,
            function,
        } = self;
        printable::eprintln!(
            "process {}: the component {component} from {file} threw an exception out of its function {function}, which a plugin must not do, so this process ends",
            std::process::id()
        );
        std::process::abort();
    }
}

/// Calls a function of a plugin. Costs nothing unless the function throws.
///
/// The frame that catches exists for the search that precedes unwinding: if no frame catches, C++ ends the process before any frame of the library has run.
/// In a whole process an exception of C++ was seen to end it without the sentence all the same; mpirun then names the call and the function.
#[inline(always)]
pub fn guarded<R>(
    component: &str,
    file: &str,
    function: &'static str,
    call: impl FnOnce() -> R,
) -> R {
    let guarded = || {
        let escape = Escape {
            component,
            file,
            function,
        };
        let result = call();
        forget(escape);
        result
    };
    match catch_unwind(AssertUnwindSafe(guarded)) {
        Ok(result) => result,
        // The drop of `Escape` has ended the process.
        Err(_) => std::process::abort(),
    }
}
