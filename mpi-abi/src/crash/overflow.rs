//! Detection of a stack overflow of the main thread, whose stack grows up to the limit `ulimit -s`.
//!
//! Overflows of other threads' stacks are not detected, because a signal handler cannot query the sizes of these stacks.

use std::mem::MaybeUninit;

/// The distance between the stack's lowest possible address and the stack pointer at an overflow is at most this.
const SLACK: usize = 64 << 10;

/// The largest frame of a function that is taken for a part of the stack.
const LARGEST_FRAME: usize = 1 << 30;

/// Returns the highest address of the main thread's stack. Allocates memory.
pub fn stack_top() -> Option<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let stack = maps.lines().find(|line| line.ends_with("[stack]"))?;
    let (_, range) = stack.split_whitespace().next()?.split_once('-')?;
    usize::from_str_radix(range, 16).ok()
}

/// Returns the limit in bytes that the main thread's stack has exceeded; `None` if the fault has another cause.
/// Makes only system calls.
pub fn exceeded_limit(top: usize, pointer: usize, fault: usize) -> Option<u64> {
    // SAFETY: `gettid` and `getpid` have no arguments, and `limit` is a local variable.
    let (is_main, limit) = unsafe {
        let mut limit = MaybeUninit::<libc::rlimit>::zeroed().assume_init();
        let is_known = libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) == 0;
        let is_main = libc::gettid() == libc::getpid();
        (is_main && is_known, limit.rlim_cur)
    };
    (is_main && is_below(top, limit, pointer, fault)).then_some(limit)
}

/// Returns true if the stack pointer is below the stack's limit and the fault is at or above the stack pointer.
fn is_below(top: usize, limit: u64, pointer: usize, fault: usize) -> bool {
    let Some(lowest) = usize::try_from(limit)
        .ok()
        .and_then(|limit| top.checked_sub(limit))
    else {
        return false;
    };
    // A call and the red zone access addresses just below the stack pointer.
    let accessed = pointer.saturating_sub(4096)..top;
    (lowest.saturating_sub(LARGEST_FRAME)..lowest + SLACK).contains(&pointer)
        && accessed.contains(&fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_stack_pointer_below_the_limit_is_an_overflow() {
        const TOP: usize = 0x7fff_0000_0000;
        const LIMIT: usize = 8 << 20;
        let found = |pointer, fault| is_below(TOP, LIMIT as u64, pointer, fault);
        // A recursion, and a function with an array of 64 MiB.
        assert!(found(TOP - LIMIT + 100, TOP - LIMIT + 92));
        assert!(found(TOP - (64 << 20), TOP - (64 << 20) + 16));
        // A null pointer, a wild pointer below the stack, and the stack of another thread.
        assert!(!found(TOP - LIMIT + 100, 0));
        assert!(!found(TOP - 4096, TOP - LIMIT - 4096));
        assert!(!found(TOP - (1 << 40), TOP - (1 << 39)));
        assert!(!is_below(TOP, libc::RLIM_INFINITY, TOP - 4096, TOP - 8192));
    }

    #[test]
    fn the_top_of_the_stack_is_above_a_local_variable() {
        let top = stack_top().expect("a stack in the memory map");
        // Tests run in threads, whose stacks are below that of the main thread.
        assert!(top > (&raw const top).addr());
    }
}
