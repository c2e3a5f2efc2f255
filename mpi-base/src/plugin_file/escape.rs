//! Handling of exceptions that leave a plugin's function: a C++ exception or a panic ends the process.
//!
//! An exception must not unwind the library's frames, which are in the middle of an operation,
//! and a handler in the program could not know which operation the exception interrupted.

use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

/// The component whose function is called; the error text contains its names.
///
/// The guard of a call holds one reference and reads the names only if the function throws,
/// so the names add no cost to a normal call.
pub trait Owner {
    /// The component's name.
    fn component(&self) -> &str;
    /// The path of the component's file, or the library's name.
    fn file(&self) -> &str;
}

/// A component that has not been opened yet: its name and its file.
impl Owner for (&str, &str) {
    fn component(&self) -> &str {
        self.0
    }

    fn file(&self) -> &str {
        self.1
    }
}

/// An owner that guards calls of only one function, known at compile time.
///
/// The guard of a call is then only the reference to the owner; the function's name is a constant
/// in the code that runs if the function throws (`Told::end`).
pub trait Called: Owner {
    /// The function's name.
    const FUNCTION: &'static str;
}

/// An owner together with the function's name, which is known only at the call.
struct Named<'a, O> {
    owner: &'a O,
    function: &'static str,
}

/// The data of a guard; `end` prints the error text with the names in it, and ends the process.
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

/// Prints the error text and ends the process when dropped, which happens only during unwinding.
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
/// libgcc_s searches the stack for a handler, and in the library's frames calls the library's unwinder.
/// The first unwinding in the library fills the unwinder's table of register sizes;
/// a call of the unwinder before that ends the process.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(catch_unwind(|| resume_unwind(Box::new(())))));
}

/// Calls a function of a plugin. Costs nothing unless the function throws.
#[inline(always)]
pub fn guarded<O: Owner, R>(owner: &O, function: &'static str, call: impl FnOnce() -> R) -> R {
    guard(Named { owner, function }, call)
}

/// As [`guarded`], for an owner that guards calls of only one function.
#[inline(always)]
pub fn called<O: Called, R>(owner: &O, call: impl FnOnce() -> R) -> R {
    guard(owner, call)
}

/// Catches exceptions, only for the search phase of unwinding:
/// without a catching frame, C++ would end the process before any frame is unwound.
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
        // Unreachable, because the drop of `Escape` ends the process.
        Err(_) => std::process::abort(),
    }
}
