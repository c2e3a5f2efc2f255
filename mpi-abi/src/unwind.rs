//! The frames of the calling thread, by the unwinder of the C compiler's library.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

/// Maximum number of stack frames that are returned.
pub const FRAMES: usize = 40;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        take: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// Returns the addresses of the frames of this thread, the innermost first, and their number.
///
/// The first call resolves symbols and allocates memory; later calls do neither.
/// Later calls take no lock if the C library has `_dl_find_object`.
pub fn frames() -> ([usize; FRAMES], usize) {
    struct Collected {
        frames: [usize; FRAMES],
        count: usize,
    }
    unsafe extern "C" fn take(context: *mut c_void, collected: *mut c_void) -> c_int {
        const GO_ON: c_int = 0;
        const END: c_int = 5;
        // SAFETY: `frames` passes a live local.
        let collected = unsafe { &mut *collected.cast::<Collected>() };
        // SAFETY: the unwinder passes its own context.
        let address = unsafe { _Unwind_GetIP(context) };
        match collected.frames.get_mut(collected.count) {
            Some(frame) if address != 0 => {
                *frame = address;
                collected.count += 1;
                GO_ON
            }
            _ => END,
        }
    }
    let mut collected = Collected {
        frames: [0; FRAMES],
        count: 0,
    };
    // SAFETY: `take` has the type of the unwinder's callback, and gets the live local that it expects.
    unsafe { _Unwind_Backtrace(take, (&raw mut collected).cast()) };
    (collected.frames, collected.count)
}
