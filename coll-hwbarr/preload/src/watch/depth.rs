//! Whether the calling thread is inside a call that is written down: what comes then comes from the library itself.

use std::cell::Cell;

thread_local!(static INSIDE: Cell<bool> = const { Cell::new(false) });

/// While it lives, the thread is inside.
pub struct Inside(());

/// `None` if the thread is inside already.
pub fn enter() -> Option<Inside> {
    // A thread that is ending has no such word any more, and nothing of it is written down.
    let before = INSIDE.try_with(|inside| inside.replace(true)).ok()?;
    (!before).then_some(Inside(()))
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_inside_a_call_is_known_and_the_next_one_is_not_inside() {
        let first = enter();
        assert!(first.is_some());
        assert!(enter().is_none());
        assert!(std::thread::spawn(|| enter().is_some()).join().unwrap());
        drop(first);
        assert!(enter().is_some());
    }
}
