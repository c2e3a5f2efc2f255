//! Catching and raising of exceptions of any language, by a frame with its own personality routine.
//!
//! Protocol: Itanium C++ ABI, exception handling, level I.
//! In the search phase [`personality`] reports that the frame handles the exception.
//! In the cleanup phase the frame continues at `portcullis_caught`, with the exception as result.
//! The unwinder's functions are looked up by name in the process.
//! The library's own copy of the unwinder did not start the unwinding.
//! Without those functions, or on a processor other than x86-64, an exception ends the process.
//! A message is printed if possible.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

/// A function with one pointer parameter that may throw.
pub(super) type Throwing = unsafe extern "C-unwind" fn(*mut c_void);

/// Calls a function. Returns the exception that it has thrown, or null.
pub(super) fn run(function: Throwing, argument: *mut c_void) -> *mut c_void {
    // SAFETY: `portcullis_try` calls the function with the argument.
    // The result is null, or the exception that `personality` put into the result register.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        portcullis_try(function, argument)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // SAFETY: `guarded`, the only caller, passes a function that takes this argument.
        unsafe { function(argument) };
        std::ptr::null_mut()
    }
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C-unwind" {
    fn portcullis_try(function: Throwing, argument: *mut c_void) -> *mut c_void;
    fn portcullis_caught();
}

// The frame of `portcullis_try` has the return address and the saved rbp.
// When `portcullis_try` calls the function, the stack pointer equals rbp.
// `portcullis_caught` starts with these registers and the exception in rax.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.portcullis_try,\"ax\",@progbits",
    ".p2align 4",
    ".globl portcullis_try",
    ".hidden portcullis_try",
    ".type portcullis_try,@function",
    "portcullis_try:",
    ".cfi_startproc",
    // Encoding: pc-relative, four bytes.
    ".cfi_personality 0x1b, {personality}",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "xor eax, eax",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".globl portcullis_caught",
    ".hidden portcullis_caught",
    "portcullis_caught:",
    ".cfi_def_cfa rbp, 16",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size portcullis_try, .-portcullis_try",
    ".popsection",
    personality = sym personality,
);

/// The unwinder functions of the process.
struct Unwinder {
    set_register: unsafe extern "C" fn(*mut c_void, c_int, usize),
    set_address: unsafe extern "C" fn(*mut c_void, usize),
    raise: unsafe extern "C-unwind" fn(*mut c_void) -> c_int,
    delete: unsafe extern "C" fn(*mut c_void),
}

fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `name` is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    Some(found).filter(|found| !found.is_null())
}

fn unwinder() -> Option<&'static Unwinder> {
    static UNWINDER: OnceLock<Option<Unwinder>> = OnceLock::new();
    UNWINDER
        .get_or_init(|| {
            let set_register = find(c"_Unwind_SetGR")?;
            let set_address = find(c"_Unwind_SetIP")?;
            let raise = find(c"_Unwind_RaiseException")?;
            let delete = find(c"_Unwind_DeleteException")?;
            // SAFETY: the Itanium C++ ABI defines these functions with these signatures.
            unsafe {
                Some(Unwinder {
                    set_register: transmute::<
                        *mut c_void,
                        unsafe extern "C" fn(*mut c_void, c_int, usize),
                    >(set_register),
                    set_address: transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, usize)>(
                        set_address,
                    ),
                    raise: transmute::<
                        *mut c_void,
                        unsafe extern "C-unwind" fn(*mut c_void) -> c_int,
                    >(raise),
                    delete: transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(delete),
                })
            }
        })
        .as_ref()
}

/// The personality routine of `portcullis_try`. Handles all exceptions except forced unwinding.
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    _class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    const SEARCH: c_int = 1;
    const HANDLER: c_int = 4;
    const FORCED: c_int = 8;
    const HANDLER_FOUND: c_int = 6;
    const INSTALL_CONTEXT: c_int = 7;
    const CONTINUE: c_int = 8;
    // DWARF number of the register that carries the exception, rax.
    const REGISTER: c_int = 0;
    // Forced unwinding (pthread_exit, pthread_cancel) is not an exception.
    if actions & FORCED != 0 {
        return CONTINUE;
    }
    let Some(unwinder) = unwinder() else {
        end(
            "a function of the program that the library has called throws an exception, and the unwinder of the process cannot be found (is the program linked with -static-libgcc?), so the exception cannot be passed through the library",
        )
    };
    if actions & SEARCH != 0 {
        return HANDLER_FOUND;
    }
    if actions & HANDLER == 0 {
        return CONTINUE;
    }
    // SAFETY: the unwinder passes the context of this frame to be changed.
    // The landing pad is within the function of the frame.
    unsafe {
        (unwinder.set_register)(context, REGISTER, exception.expose_provenance());
        (unwinder.set_address)(context, portcullis_caught as *const () as usize);
    }
    INSTALL_CONTEXT
}

/// Deletes an exception that will not be raised again.
pub(super) fn delete(exception: *mut c_void) {
    if let Some(unwinder) = unwinder() {
        // SAFETY: the exception was caught and is not used after this call.
        unsafe { (unwinder.delete)(exception) };
    }
}

/// Raises an exception in the caller's frame.
pub(super) fn raise(exception: *mut c_void) -> ! {
    if let Some(unwinder) = unwinder() {
        // SAFETY: the exception was caught and is raised once.
        // `raise` returns if no frame of the program catches the exception.
        unsafe { (unwinder.raise)(exception) };
    }
    // Terminates as the C++ library does for an uncaught exception, which prints its type.
    if let (Some(catch), Some(terminate)) = (find(c"__cxa_begin_catch"), find(c"_ZSt9terminatev")) {
        // SAFETY: the C++ ABI gives these names to functions of these signatures.
        unsafe {
            let catch =
                transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> *mut c_void>(catch);
            let terminate = transmute::<*mut c_void, unsafe extern "C" fn()>(terminate);
            catch(exception);
            terminate();
        }
    }
    end(
        "a function of the program that the library has called has thrown an exception that the program does not catch",
    )
}

/// Ends the process with a message.
#[cold]
pub(super) fn end(why: &str) -> ! {
    printable::eprintln!("process {}: {why}", std::process::id());
    std::process::abort()
}
