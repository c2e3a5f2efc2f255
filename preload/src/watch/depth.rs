//! A per-thread flag that is set inside a recorded call; nested calls are not recorded.

use std::cell::Cell;

thread_local!(static INSIDE: Cell<bool> = const { Cell::new(false) });

/// Guard of the thread's flag; dropping the guard clears the flag.
pub struct OutermostCall(());

/// Sets the thread's flag; `None` if the flag was already set.
pub fn enter() -> Option<OutermostCall> {
    // A thread that is exiting has destroyed its flag; its calls are not recorded.
    let before = INSIDE.try_with(|inside| inside.replace(true)).ok()?;
    (!before).then_some(OutermostCall(()))
}

impl Drop for OutermostCall {
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
