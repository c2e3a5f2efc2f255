//! The functions that a debugger calls.
//!
//! An image and a process are the debugger's; of each it keeps a pointer for this library, to callbacks and to a [`Process`].
#![allow(unsafe_code)]

use crate::interface::*;
use crate::process::Process;
use mpi_base::debug_page::{PageError, Queues};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

/// The debugger's general callbacks.
static BASIC: Mutex<Option<BasicCallbacks>> = Mutex::new(None);

/// What this library keeps of a program's file.
struct Image {
    callbacks: ImageCallbacks,
    /// The address of the page, once it was found.
    page: Option<Address>,
}

/// What this library keeps of a process.
struct Debugged {
    callbacks: ProcessCallbacks,
    process: Process,
}

fn basic() -> Option<BasicCallbacks> {
    BASIC.lock().ok().and_then(|basic| *basic)
}

/// Returns what is kept of an image.
///
/// # Safety
/// `image` is one of the debugger's that has passed `mqs_setup_image`.
unsafe fn image_info<'a>(image: *mut c_void) -> Option<&'a mut Image> {
    let get = basic()?.get_image_info;
    // SAFETY: the debugger returns what `mqs_setup_image` has stored, which is null or lives until `mqs_destroy_image_info`; one thread calls.
    unsafe { get(image).cast::<Image>().as_mut() }
}

/// Returns what is kept of a process.
///
/// # Safety
/// `process` is one of the debugger's that has passed `mqs_setup_process`.
unsafe fn process_info<'a>(process: *mut c_void) -> Option<&'a mut Debugged> {
    let get = basic()?.get_process_info;
    // SAFETY: the debugger returns what `mqs_setup_process` has stored, which is null or lives until `mqs_destroy_process_info`; one thread calls.
    unsafe { get(process).cast::<Debugged>().as_mut() }
}

/// Sets the debugger's general callbacks.
///
/// # Safety
/// `callbacks` is null or a table that lives during the call; its functions live as long as this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_setup_basic_callbacks(callbacks: *const BasicCallbacks) {
    // SAFETY: null or a table, by the contract of this function.
    let callbacks = unsafe { callbacks.as_ref() };
    if let Ok(mut basic) = BASIC.lock() {
        *basic = callbacks.copied();
    }
}

/// Names this library and its version.
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

/// The version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn mqs_version_compatibility() -> c_int {
    2
}

/// The size of an address in the rank.
#[unsafe(no_mangle)]
pub extern "C" fn mqs_dll_taddr_width() -> c_int {
    size_of::<Address>() as c_int
}

/// The text of a result of this library.
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

/// Prepares the file of a program.
///
/// # Safety
/// `image` is one of the debugger's; `callbacks` is null or a table that lives during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_setup_image(
    image: *mut c_void,
    callbacks: *const ImageCallbacks,
) -> c_int {
    // SAFETY: null or a table, by the contract of this function.
    let (Some(callbacks), Some(basic)) = (unsafe { callbacks.as_ref() }.copied(), basic()) else {
        return NO_INFORMATION;
    };
    let info = Box::new(Image {
        callbacks,
        page: None,
    });
    // SAFETY: the debugger stores the pointer and passes it to `mqs_destroy_image_info` at the end.
    unsafe { (basic.put_image_info)(image, Box::into_raw(info).cast()) };
    OK
}

/// Returns whether a program's file has queues; `message` gets a text if not.
///
/// # Safety
/// `image` is one of the debugger's that has passed [`mqs_setup_image`]; `message` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_image_has_queues(
    image: *mut c_void,
    message: *mut *const c_char,
) -> c_int {
    // SAFETY: by the contract of this function.
    let found = unsafe { find_page(image) };
    let code = if found.is_some() { OK } else { NO_PAGE };
    // SAFETY: by the contract of this function.
    unsafe { explain(message, code) };
    code
}

/// Stores the text of a result, or null for a good one.
///
/// # Safety
/// `message` is null or valid for writing.
unsafe fn explain(message: *mut *const c_char, code: c_int) {
    if !message.is_null() {
        let text = match code {
            OK => std::ptr::null(),
            code => mqs_dll_error_string(code),
        };
        // SAFETY: not null, so valid for writing by the contract of this function.
        unsafe { message.write(text) };
    }
}

/// Returns the address of the page, which stays where it is once it was found.
///
/// # Safety
/// `image` is one of the debugger's that has passed [`mqs_setup_image`].
unsafe fn find_page(image: *mut c_void) -> Option<Address> {
    // SAFETY: by the contract of this function.
    let info = unsafe { image_info(image) }?;
    if info.page.is_none() {
        let name = c"portcullis_debug_page".as_ptr().cast_mut();
        let mut at: Address = 0;
        // SAFETY: the debugger's function gets its own image, a text that it only reads, and a place for the address.
        let found = unsafe { (info.callbacks.find_symbol)(image, name, &raw mut at) };
        info.page = (found == OK && at != 0).then_some(at);
    }
    info.page
}

/// Frees what is kept of a file.
///
/// # Safety
/// `info` is null or what [`mqs_setup_image`] has stored, which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_destroy_image_info(info: *mut c_void) {
    if !info.is_null() {
        // SAFETY: made by `Box::into_raw` in `mqs_setup_image`, and freed once, by the contract of this function.
        drop(unsafe { Box::from_raw(info.cast::<Image>()) });
    }
}

/// Prepares a process.
///
/// # Safety
/// `process` is one of the debugger's; `callbacks` is null or a table that lives during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_setup_process(
    process: *mut c_void,
    callbacks: *const ProcessCallbacks,
) -> c_int {
    // SAFETY: null or a table, by the contract of this function.
    let (Some(callbacks), Some(basic)) = (unsafe { callbacks.as_ref() }.copied(), basic()) else {
        return NO_INFORMATION;
    };
    let info = Box::new(Debugged {
        callbacks,
        process: Process::default(),
    });
    // SAFETY: the debugger stores the pointer and passes it to `mqs_destroy_process_info` at the end.
    unsafe { (basic.put_process_info)(process, Box::into_raw(info).cast()) };
    OK
}

/// Returns whether a process shows its queues; `message` gets a text if not.
///
/// # Safety
/// `process` is one of the debugger's that has passed [`mqs_setup_process`]; `message` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_process_has_queues(
    process: *mut c_void,
    message: *mut *const c_char,
) -> c_int {
    // SAFETY: by the contract of this function.
    let code = unsafe { read(process) }.err().unwrap_or(OK);
    // SAFETY: by the contract of this function.
    unsafe { explain(message, code) };
    code
}

/// Frees what is kept of a process.
///
/// # Safety
/// `info` is null or what [`mqs_setup_process`] has stored, which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_destroy_process_info(info: *mut c_void) {
    if !info.is_null() {
        // SAFETY: made by `Box::into_raw` in `mqs_setup_process`, and freed once, by the contract of this function.
        drop(unsafe { Box::from_raw(info.cast::<Debugged>()) });
    }
}

/// Reads the page of a process.
///
/// # Safety
/// `process` is one of the debugger's that has passed [`mqs_setup_process`].
unsafe fn read(process: *mut c_void) -> Result<Queues, c_int> {
    // SAFETY: by the contract of this function.
    let info = unsafe { process_info(process) }.ok_or(NO_INFORMATION)?;
    let ProcessCallbacks {
        get_image,
        fetch_data,
        ..
    } = info.callbacks;
    // SAFETY: the debugger's function gets its own process; its image has passed `mqs_setup_image` before.
    let page = unsafe { find_page(get_image(process)) }.ok_or(NO_PAGE)?;
    let words = |first: usize, count: usize| {
        let mut words = vec![0_u64; count];
        let bytes = c_int::try_from(size_of_val(words.as_slice())).ok()?;
        let at = page.checked_add(8 * first as Address)?;
        // SAFETY: the debugger writes as many bytes as the vector has.
        let result = unsafe { fetch_data(process, at, bytes, words.as_mut_ptr().cast()) };
        (result == OK).then_some(words)
    };
    Queues::read(words).map_err(|error| match error {
        PageError::Version(_) => NO_INFORMATION,
        _ => NOT_READ,
    })
}

/// Reads the queues of a process again. All other functions show what was read then.
///
/// # Safety
/// `process` is one of the debugger's that has passed [`mqs_setup_process`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_update_communicator_list(process: *mut c_void) -> c_int {
    // SAFETY: by the contract of this function.
    match (unsafe { read(process) }, unsafe { process_info(process) }) {
        (Ok(queues), Some(info)) => {
            info.process.set(queues);
            OK
        }
        (Err(code), _) => code,
        (Ok(_), None) => NO_INFORMATION,
    }
}

/// Begins the iteration over communicators.
///
/// # Safety
/// `process` is one of the debugger's that has passed [`mqs_setup_process`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_setup_communicator_iterator(process: *mut c_void) -> c_int {
    // SAFETY: by the contract of this function.
    let info = unsafe { process_info(process) };
    info.map_or(NO_INFORMATION, |info| info.process.begin_comms())
}

/// Stores the current communicator.
///
/// # Safety
/// `process` is one of the debugger's that has passed [`mqs_setup_process`]; `to` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_get_communicator(
    process: *mut c_void,
    to: *mut Communicator,
) -> c_int {
    // SAFETY: by the contract of this function.
    let comm = unsafe { process_info(process) }.and_then(|info| info.process.communicator());
    match comm {
        Some(comm) if !to.is_null() => {
            // SAFETY: not null, so valid for writing by the contract of this function.
            unsafe { to.write(comm) };
            OK
        }
        _ => NO_INFORMATION,
    }
}

/// Stores the ranks in `MPI_COMM_WORLD` of the members of the current communicator.
///
/// # Safety
/// `process` is one of the debugger's that has passed [`mqs_setup_process`]; `to` is null or has space for the size of the communicator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_get_comm_group(process: *mut c_void, to: *mut c_int) -> c_int {
    // SAFETY: by the contract of this function.
    let info = unsafe { process_info(process) };
    let Some(members) = info.and_then(|info| info.process.group()) else {
        return NO_INFORMATION;
    };
    if to.is_null() {
        return NO_INFORMATION;
    }
    for (at, member) in members.enumerate() {
        // SAFETY: there are as many members as the communicator's size, for which `to` has space by the contract of this function.
        unsafe { to.add(at).write(member) };
    }
    OK
}

/// Goes to the next communicator.
///
/// # Safety
/// `process` is one of the debugger's that has passed [`mqs_setup_process`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_next_communicator(process: *mut c_void) -> c_int {
    // SAFETY: by the contract of this function.
    let info = unsafe { process_info(process) };
    info.map_or(NO_INFORMATION, |info| info.process.next_comm())
}

/// Begins the iteration over the sends (0), receives (1) or unexpected messages (2) of the current communicator.
///
/// # Safety
/// `process` is one of the debugger's that has passed [`mqs_setup_process`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_setup_operation_iterator(process: *mut c_void, kind: c_int) -> c_int {
    // SAFETY: by the contract of this function.
    let info = unsafe { process_info(process) };
    info.map_or(NO_INFORMATION, |info| info.process.begin_operations(kind))
}

/// Stores the next operation.
///
/// # Safety
/// `process` is one of the debugger's that has passed [`mqs_setup_process`]; `to` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mqs_next_operation(
    process: *mut c_void,
    to: *mut PendingOperation,
) -> c_int {
    // SAFETY: by the contract of this function.
    let next = unsafe { process_info(process) }.and_then(|info| info.process.next_operation());
    match next {
        Some(next) if !to.is_null() => {
            // SAFETY: not null, so valid for writing by the contract of this function.
            unsafe { to.write(next) };
            OK
        }
        _ => END_OF_LIST,
    }
}
