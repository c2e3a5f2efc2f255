//! The C functions of the message-queue interface, which a debugger calls.
//!
//! The debugger owns the data structures of program files (*images*) and of processes.
//! For each, the debugger stores a pointer to an [`Image`] or [`Debugged`] of this library.
#![allow(unsafe_code)]

use crate::interface::*;
use crate::process::Process;
use mpi_base::debug_page::{PageError, Queues};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

/// The debugger's general callbacks; `None` until [`mqs_setup_basic_callbacks`].
static BASIC: Mutex<Option<BasicCallbacks>> = Mutex::new(None);

/// This library's data about a program file.
struct Image {
    callbacks: ImageCallbacks,
    /// The address of the debug page; `None` until it has been found.
    page: Option<Address>,
}

/// This library's data about a process.
struct Debugged {
    callbacks: ProcessCallbacks,
    process: Process,
}

fn basic() -> Option<BasicCallbacks> {
    BASIC.lock().ok().and_then(|basic| *basic)
}

/// Returns this library's data about an image.
///
/// # Safety
/// `image` is an image of the debugger that was passed to `mqs_setup_image`.
unsafe fn image_info<'a>(image: *mut c_void) -> Option<&'a mut Image> {
    let get = basic()?.get_image_info;
    // SAFETY: `mqs_setup_image` stored the pointer. The debugger makes all calls from one thread.
    // The pointer is null or valid until `mqs_destroy_image_info`.
    unsafe { get(image).cast::<Image>().as_mut() }
}

/// Returns this library's data about a process.
///
/// # Safety
/// `process` is a process of the debugger that was passed to `mqs_setup_process`.
unsafe fn process_info<'a>(process: *mut c_void) -> Option<&'a mut Debugged> {
    let get = basic()?.get_process_info;
    // SAFETY: `mqs_setup_process` stored the pointer. The debugger makes all calls from one thread.
    // The pointer is null or valid until `mqs_destroy_process_info`.
    unsafe { get(process).cast::<Debugged>().as_mut() }
}

/// Stores the debugger's general callbacks.
///
/// # Safety
/// `callbacks` is null or a table that is valid during the call.
/// The callbacks are valid until this library is unloaded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_setup_basic_callbacks(callbacks: *const BasicCallbacks) {
    // SAFETY: the pointer is null or a valid table, by the contract of this function.
    let callbacks = unsafe { callbacks.as_ref() };
    if let Ok(mut basic) = BASIC.lock() {
        *basic = callbacks.copied();
    }
}

/// Returns the name and version of this library.
#[unsafe(no_mangle)]
pub extern "C" fn mqs_version_string() -> *const c_char {
    concat!(
        "Portcullis message queues, ",
        env!("CARGO_PKG_VERSION"),
        "\0"
    )
    .as_ptr()
    .cast()
}

/// Returns the version of the debugger interface.
#[unsafe(no_mangle)]
pub extern "C" fn mqs_version_compatibility() -> c_int {
    2
}

/// Returns the size of an address in the rank, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn mqs_dll_taddr_width() -> c_int {
    size_of::<Address>() as c_int
}

/// Returns the message text for a result code of this library.
#[unsafe(no_mangle)]
pub extern "C" fn mqs_dll_error_string(code: c_int) -> *const c_char {
    let text = match code {
        OK => c"no error",
        NO_INFORMATION => c"there is no information",
        END_OF_LIST => c"the end of the list",
        NO_PAGE => c"the program does not use this MPI library (it has no portcullis_debug_page)",
        NOT_READ => {
            c"the rank has not waited for long in MPI yet, or its memory cannot be read; let it run for a moment"
        }
        _ => c"an unknown error",
    };
    text.as_ptr()
}

/// Allocates this library's data about a program file.
///
/// # Safety
/// `image` is an image of the debugger.
/// `callbacks` is null or a table that is valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_setup_image(
    image: *mut c_void,
    callbacks: *const ImageCallbacks,
) -> c_int {
    // SAFETY: the pointer is null or a valid table, by the contract of this function.
    let (Some(callbacks), Some(basic)) = (unsafe { callbacks.as_ref() }.copied(), basic()) else {
        return NO_INFORMATION;
    };
    let info = Box::new(Image {
        callbacks,
        page: None,
    });
    // SAFETY: the debugger stores the pointer, and later passes it to `mqs_destroy_image_info`.
    unsafe { (basic.put_image_info)(image, Box::into_raw(info).cast()) };
    OK
}

/// Returns OK if a program file has a debug page. Otherwise stores an error message in `message`.
///
/// # Safety
/// `image` is an image of the debugger that was passed to [`mqs_setup_image`].
/// `message` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_image_has_queues(
    image: *mut c_void,
    message: *mut *const c_char,
) -> c_int {
    // SAFETY: `image` was passed to `mqs_setup_image`, by the contract of this function.
    let found = unsafe { find_page(image) };
    let code = if found.is_some() { OK } else { NO_PAGE };
    // SAFETY: `message` is null or valid for writing, by the contract of this function.
    unsafe { explain(message, code) };
    code
}

/// Stores the message text for a result code, or null for OK.
///
/// # Safety
/// `message` is null or valid for writing.
unsafe fn explain(message: *mut *const c_char, code: c_int) {
    if !message.is_null() {
        let text = match code {
            OK => std::ptr::null(),
            code => mqs_dll_error_string(code),
        };
        // SAFETY: `message` is not null, so by contract it is valid for writing.
        unsafe { message.write(text) };
    }
}

/// Returns the address of the debug page; finds it once and stores it in the image's data.
///
/// # Safety
/// `image` is an image of the debugger that was passed to [`mqs_setup_image`].
unsafe fn find_page(image: *mut c_void) -> Option<Address> {
    // SAFETY: `image` was passed to `mqs_setup_image`, by the contract of this function.
    let info = unsafe { image_info(image) }?;
    if info.page.is_none() {
        let name = c"portcullis_debug_page".as_ptr().cast_mut();
        let mut at: Address = 0;
        // SAFETY: `find_symbol` receives an image of its debugger,
        // a C string that it only reads, and a place for the address.
        let found = unsafe { (info.callbacks.find_symbol)(image, name, &raw mut at) };
        info.page = (found == OK && at != 0).then_some(at);
    }
    info.page
}

/// Frees this library's data about a program file.
///
/// # Safety
/// `info` is null or the pointer stored by [`mqs_setup_image`], which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_destroy_image_info(info: *mut c_void) {
    if !info.is_null() {
        // SAFETY: the pointer comes from `Box::into_raw` in `mqs_setup_image`,
        // and by the contract of this function the box is freed only once.
        drop(unsafe { Box::from_raw(info.cast::<Image>()) });
    }
}

/// Allocates this library's data about a process.
///
/// # Safety
/// `process` is a process of the debugger. `callbacks` is null or a table valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_setup_process(
    process: *mut c_void,
    callbacks: *const ProcessCallbacks,
) -> c_int {
    // SAFETY: the pointer is null or a valid table, by the contract of this function.
    let (Some(callbacks), Some(basic)) = (unsafe { callbacks.as_ref() }.copied(), basic()) else {
        return NO_INFORMATION;
    };
    let info = Box::new(Debugged {
        callbacks,
        process: Process::default(),
    });
    // SAFETY: the debugger stores the pointer, and later passes it to `mqs_destroy_process_info`.
    unsafe { (basic.put_process_info)(process, Box::into_raw(info).cast()) };
    OK
}

/// Returns OK if the queues of a process can be read.
/// Otherwise stores an error message in `message`.
///
/// # Safety
/// `process` is a process of the debugger that was passed to [`mqs_setup_process`].
/// `message` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_process_has_queues(
    process: *mut c_void,
    message: *mut *const c_char,
) -> c_int {
    // SAFETY: `process` was passed to `mqs_setup_process`, by the contract of this function.
    let code = unsafe { read(process) }.err().unwrap_or(OK);
    // SAFETY: `message` is null or valid for writing, by the contract of this function.
    unsafe { explain(message, code) };
    code
}

/// Frees this library's data about a process.
///
/// # Safety
/// `info` is null or the pointer stored by [`mqs_setup_process`], which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_destroy_process_info(info: *mut c_void) {
    if !info.is_null() {
        // SAFETY: the pointer comes from `Box::into_raw` in `mqs_setup_process`,
        // and by the contract of this function the box is freed only once.
        drop(unsafe { Box::from_raw(info.cast::<Debugged>()) });
    }
}

/// Reads the debug page of a process.
///
/// # Safety
/// `process` is a process of the debugger that was passed to [`mqs_setup_process`].
unsafe fn read(process: *mut c_void) -> Result<Queues, c_int> {
    // SAFETY: `process` was passed to `mqs_setup_process`, by the contract of this function.
    let info = unsafe { process_info(process) }.ok_or(NO_INFORMATION)?;
    let ProcessCallbacks {
        get_image,
        fetch_data,
        ..
    } = info.callbacks;
    // SAFETY: `get_image` receives a process of its debugger.
    // The image of the process was passed to `mqs_setup_image` before.
    let page = unsafe { find_page(get_image(process)) }.ok_or(NO_PAGE)?;
    let words = |first: usize, count: usize| {
        let mut words = vec![0_u64; count];
        let bytes = c_int::try_from(size_of_val(words.as_slice())).ok()?;
        let at = page.checked_add(8 * first as Address)?;
        // SAFETY: `fetch_data` writes `bytes` bytes, which is the size of the vector.
        let result = unsafe { fetch_data(process, at, bytes, words.as_mut_ptr().cast()) };
        (result == OK).then_some(words)
    };
    Queues::read(words).map_err(|error| match error {
        PageError::Version(_) => NO_INFORMATION,
        _ => NOT_READ,
    })
}

/// Reads the queues of a process. The other functions return the result of the last read.
///
/// # Safety
/// `process` is a process of the debugger that was passed to [`mqs_setup_process`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_update_communicator_list(process: *mut c_void) -> c_int {
    // SAFETY: `process` was passed to `mqs_setup_process`, by the contract of this function.
    match (unsafe { read(process) }, unsafe { process_info(process) }) {
        (Ok(queues), Some(info)) => {
            info.process.set(queues);
            OK
        }
        (Err(code), _) => code,
        (Ok(_), None) => NO_INFORMATION,
    }
}

/// Starts the iteration over communicators at the first one.
///
/// # Safety
/// `process` is a process of the debugger that was passed to [`mqs_setup_process`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_setup_communicator_iterator(process: *mut c_void) -> c_int {
    // SAFETY: `process` was passed to `mqs_setup_process`, by the contract of this function.
    let info = unsafe { process_info(process) };
    info.map_or(NO_INFORMATION, |info| info.process.begin_comms())
}

/// Stores the current communicator of the iteration in `to`.
///
/// # Safety
/// `process` is a process of the debugger that was passed to [`mqs_setup_process`].
/// `to` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_get_communicator(
    process: *mut c_void,
    to: *mut Communicator,
) -> c_int {
    // SAFETY: `process` was passed to `mqs_setup_process`, by the contract of this function.
    let comm = unsafe { process_info(process) }.and_then(|info| info.process.communicator());
    match comm {
        Some(comm) if !to.is_null() => {
            // SAFETY: `to` is not null, so by contract it is valid for writing.
            unsafe { to.write(comm) };
            OK
        }
        _ => NO_INFORMATION,
    }
}

/// Stores the members of the current communicator in `to`, as ranks in `MPI_COMM_WORLD`.
///
/// # Safety
/// `process` is a process of the debugger that was passed to [`mqs_setup_process`].
/// `to` is null or has one element per member of the communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_get_comm_group(process: *mut c_void, to: *mut c_int) -> c_int {
    // SAFETY: `process` was passed to `mqs_setup_process`, by the contract of this function.
    let info = unsafe { process_info(process) };
    let Some(members) = info.and_then(|info| info.process.group()) else {
        return NO_INFORMATION;
    };
    if to.is_null() {
        return NO_INFORMATION;
    }
    for (at, member) in members.enumerate() {
        // SAFETY: `at` is below the number of members of the communicator,
        // and `to` has an element for each of them by the contract of this function.
        unsafe { to.add(at).write(member) };
    }
    OK
}

/// Advances the iteration to the next communicator.
///
/// # Safety
/// `process` is a process of the debugger that was passed to [`mqs_setup_process`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_next_communicator(process: *mut c_void) -> c_int {
    // SAFETY: `process` was passed to `mqs_setup_process`, by the contract of this function.
    let info = unsafe { process_info(process) };
    info.map_or(NO_INFORMATION, |info| info.process.next_comm())
}

/// Starts the iteration over the operations of the current communicator.
/// `kind` selects sends (0), receives (1) or unexpected messages (2).
///
/// # Safety
/// `process` is a process of the debugger that was passed to [`mqs_setup_process`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_setup_operation_iterator(process: *mut c_void, kind: c_int) -> c_int {
    // SAFETY: `process` was passed to `mqs_setup_process`, by the contract of this function.
    let info = unsafe { process_info(process) };
    info.map_or(NO_INFORMATION, |info| info.process.begin_operations(kind))
}

/// Stores the next operation of the iteration in `to`.
///
/// # Safety
/// `process` is a process of the debugger that was passed to [`mqs_setup_process`].
/// `to` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_next_operation(
    process: *mut c_void,
    to: *mut PendingOperation,
) -> c_int {
    // SAFETY: `process` was passed to `mqs_setup_process`, by the contract of this function.
    let next = unsafe { process_info(process) }.and_then(|info| info.process.next_operation());
    match next {
        Some(next) if !to.is_null() => {
            // SAFETY: `to` is not null, so by contract it is valid for writing.
            unsafe { to.write(next) };
            OK
        }
        _ => END_OF_LIST,
    }
}
