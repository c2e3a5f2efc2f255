//! Handling of exceptions that leave a plugin's function: a C++ exception or a panic ends the process.
//!
//! The library's frames cannot be left in the middle of a call,
//! and a handler above them could not know which operation the exception interrupted.

use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

/// The component whose functions are called; the error text has its names.
///
/// The guard of a call has one reference and reads the names only if the function throws,
/// so the names cost a normal call nothing.
pub trait Owner {
    /// The component's name.
    fn component(&self) -> &str;
    /// The component's file, or the library.
    fn file(&self) -> &str;
}

/// The name and the file of a component that has not been opened yet.
impl Owner for (&str, &str) {
    fn component(&self) -> &str {
        self.0
    }

    fn file(&self) -> &str {
        self.1
    }
}

/// An owner whose guards are for one function.
///
/// The guard of a call is then one reference, and the name of the function is in the code that runs if the function throws.
pub trait Called: Owner {
    /// The function's name.
    const FUNCTION: &'static str;
}

/// The owner of a function that is named when it is called.
struct Named<'a, O> {
    owner: &'a O,
    function: &'static str,
}

/// The owner that a guard names if the function throws.
trait Told {
    fn end(&self) -> !;
}

impl<O: Owner> Told for Named<'_, O> {
    #[inline(always)]
    fn end(&self) -> ! {
        end(self.owner.component(), self.owner.file(), self.function)
    }
}

impl<O: Called> Told for &O {
    #[inline(always)]
    fn end(&self) -> ! {
        end(self.component(), self.file(), O::FUNCTION)
    }
}

/// Prints the error text and ends the process when it is dropped, which happens only during unwinding.
struct Escape<T: Told>(T);

impl<T: Told> Drop for Escape<T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cold]
#[inline(never)]
fn end(component: &str, file: &str, function: &str) -> ! {
    printable::eprintln!(
        "process {}: the component {component} from {file} threw an exception out of its function {function}, which a plugin must not do, so this process ends",
        std::process::id()
    );
    std::process::abort();
}

/// Prepares this library's unwinder for exceptions of other languages;
/// called before the first plugin file is opened.
///
/// This library contains an unwinder, and libgcc_s contains another one, which raises C++ exceptions.
/// libgcc_s searches the stack for a handler, and calls the library's unwinder for the library's frames.
/// The first unwinding of the library fills its table of register sizes;
/// before that, such a call ends the process.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(catch_unwind(|| resume_unwind(Box::new(())))));
}

/// Calls a function of a plugin. Costs nothing unless the function throws.
#[inline(always)]
pub fn guarded<O: Owner, R>(owner: &O, function: &'static str, call: impl FnOnce() -> R) -> R {
    guard(Named { owner, function }, call)
}

/// The same for an owner of one function.
#[inline(always)]
pub fn called<O: Called, R>(owner: &O, call: impl FnOnce() -> R) -> R {
    guard(owner, call)
}

/// The frame that catches exists for the search phase of unwinding: if no frame catches, C++ ends the process before any frame of the library has run.
#[inline(always)]
fn guard<T: Told, R>(told: T, call: impl FnOnce() -> R) -> R {
    let guarded = || {
        let escape = Escape(told);
        let result = call();
        forget(escape);
        result
    };
    match catch_unwind(AssertUnwindSafe(guarded)) {
        Ok(result) => result,
        // This is never reached, because the drop of `Escape` ends the process.
        Err(_) => std::process::abort(),
    }
}
