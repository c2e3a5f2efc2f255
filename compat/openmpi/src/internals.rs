//! Symbols inside Open MPI 4.1 that its own Fortran libraries (`libmpi_mpifh.so.40` and those on top of it) ask for.
//!
//! Those libraries turn Fortran's arguments into C's and call the C library, with three liberties:
//! * they read and write fields of the objects that handles are addresses of: the table of attributes of a communicator, the flags of an operator.
//!   So where they are loaded every handle is the address of an object ([`crate::family`]), each word of which is the standard's handle;
//!   a table of attributes is then told by the handle that it is of.
//! * they use functions for attributes, strings and error handlers, which are here;
//! * they look at variables that say how Open MPI itself is doing, which have the values of a library that is initialized and checks nothing.
//!
//! A data representation and an error handler that are written in Fortran are not served: the calls that make them fail with a sentence.
#![allow(unsafe_code, non_upper_case_globals)]
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

use crate::entries::*;
use crate::family::{OpenMpiStatus, handle_of_standard, to_fortran};
use compat::Kind;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// Memory that Open MPI's libraries look at.
#[repr(C, align(16))]
pub struct Room<const SIZE: usize>([u8; SIZE]);

#[unsafe(no_mangle)]
pub static ompi_errcode_intern_lastused: c_int = 0;
#[unsafe(no_mangle)]
pub static ompi_errcodes_intern: Room<256> = Room([0; 256]);
#[unsafe(no_mangle)]
pub static ompi_registered_datareps: Room<256> = Room([0; 256]);
#[unsafe(no_mangle)]
pub static opal_list_item_t_class: Room<256> = Room([0; 256]);
#[unsafe(no_mangle)]
pub static opal_class_init_epoch: c_int = 1;
#[unsafe(no_mangle)]
pub static opal_uses_threads: bool = false;
#[unsafe(no_mangle)]
pub static ompi_mpi_param_check: bool = false;
/// That MPI is initialized.
#[unsafe(no_mangle)]
pub static ompi_mpi_state: c_int = 2;
/// Source and tag are any, nothing was received, no error.
#[unsafe(no_mangle)]
pub static ompi_status_empty: [c_int; 6] = [-1, -1, 0, 0, 0, 0];

const _: () = assert!(size_of::<OpenMpiStatus>() == size_of::<[c_int; 6]>());

/// What Fortran names, as common blocks; a program has its own copies, in front of these.
macro_rules! common_blocks {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        pub static $name: Room<64> = Room([0; 64]);
    )* };
}

common_blocks! {
    mpi_fortran_bottom_ mpi_fortran_in_place_ mpi_fortran_unweighted_ mpi_fortran_weights_empty_
    mpi_fortran_argv_null_ mpi_fortran_argvs_null_ mpi_fortran_errcodes_ignore_
    mpi_fortran_status_ignore_ mpi_fortran_statuses_ignore_
}

/// Errors of this layer, as Open MPI's C code sees them.
const SUCCESS: c_int = 0;
const OUT_OF_MEMORY: c_int = -2;
const INTERN: c_int = 17;

/// What Open MPI's libraries do when an object of theirs is made: only a data representation needs one.
#[unsafe(no_mangle)]
pub extern "C" fn opal_class_initialize(_class: *mut c_void) {
    let _ = writeln!(
        std::io::stderr(),
        "MPI_Register_datarep from Fortran is not served for programs of Open MPI; the process ends"
    );
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}

/// No error handler that is written in Fortran can be made; null says so.
#[unsafe(no_mangle)]
pub extern "C" fn ompi_errhandler_create(
    _object: c_int,
    _function: *const c_void,
    _language: c_int,
) -> usize {
    handle_of_standard(Kind::Errhandler, Kind::Errhandler.null())
}

/// Open MPI's Fortran library reports a failure of its own, after [`ompi_errhandler_create`].
#[unsafe(no_mangle)]
pub extern "C" fn ompi_errhandler_invoke(
    _handler: usize,
    _object: *mut c_void,
    _kind: c_int,
    code: c_int,
    _message: *const c_char,
) -> c_int {
    match code {
        INTERN => {
            let _ = writeln!(
                std::io::stderr(),
                "an error handler that is written in Fortran is not served for programs of Open MPI; the handler is MPI_ERRHANDLER_NULL"
            );
            code
        }
        code => code,
    }
}

/// The handler of communicators whose errors are fatal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_mpi_errors_are_fatal_comm_handler(
    comm: *mut Handle,
    code: *mut c_int,
) {
    // SAFETY: arguments of an error handler.
    unsafe { PMPI_Abort(*comm, *code) };
}

/// The type of a class and a size, as a C handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_datatype_match_size(
    size: c_int,
    class: u16,
    datatype: *mut Handle,
) -> c_int {
    // SAFETY: an output argument of the caller.
    unsafe { PMPI_Type_match_size(class.into(), size, datatype) }
}

/// A copy of a Fortran string without the blanks around it, to be given back by `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_fortran_string_f2c(
    text: *const c_char,
    len: c_int,
    copy: *mut *mut c_char,
) -> c_int {
    let len = usize::try_from(len).unwrap_or(0);
    // SAFETY: a string of the caller, of that length.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    let blank = |byte: &u8| *byte == b' ';
    let begin = text.iter().position(|byte| !blank(byte)).unwrap_or(len);
    let end = text
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(begin, |at| at + 1);
    let text = &text[begin..end];
    // SAFETY: memory for the text and its end, an output argument of the caller.
    unsafe {
        let room: *mut u8 = libc::malloc(text.len() + 1).cast();
        if room.is_null() {
            return OUT_OF_MEMORY;
        }
        room.copy_from_nonoverlapping(text.as_ptr(), text.len());
        room.add(text.len()).write(0);
        copy.write(room.cast());
    }
    SUCCESS
}

/// A C string in a Fortran variable, filled up with blanks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_fortran_string_c2f(
    text: *const c_char,
    place: *mut c_char,
    len: c_int,
) -> c_int {
    let len = usize::try_from(len).unwrap_or(0);
    // SAFETY: a C string and a variable of the caller, of that length.
    unsafe {
        let text = std::ffi::CStr::from_ptr(text).to_bytes();
        let here = text.len().min(len);
        place
            .cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), here);
        place.add(here).cast::<u8>().write_bytes(b' ', len - here);
    }
    SUCCESS
}

/// C strings of Fortran's, one every `advance` bytes, with null behind the last: `count` of them, or up to the first that is blank.
unsafe fn strings(
    mut text: *const c_char,
    count: Option<c_int>,
    len: c_int,
    advance: c_int,
) -> Result<*mut *mut c_char, c_int> {
    let mut all: Vec<*mut c_char> = Vec::new();
    while count.is_none_or(|count| all.len() < usize::try_from(count).unwrap_or(0)) {
        let mut one = std::ptr::null_mut();
        // SAFETY: the next string of the caller; the copy is a C string.
        let blank = unsafe {
            match ompi_fortran_string_f2c(text, len, &raw mut one) {
                SUCCESS => {}
                error => return Err(error),
            }
            one.read() == 0
        };
        if blank && count.is_none() {
            // SAFETY: the copy of a moment ago.
            unsafe { libc::free(one.cast()) };
            break;
        }
        all.push(one);
        // SAFETY: the caller's strings follow one another so.
        text = unsafe { text.offset(advance as isize) };
    }
    all.push(std::ptr::null_mut());
    // SAFETY: memory for so many pointers, which `opal_argv_free` gives back.
    unsafe {
        let room: *mut *mut c_char = libc::malloc(size_of_val(&all[..])).cast();
        if room.is_null() {
            return Err(OUT_OF_MEMORY);
        }
        room.copy_from_nonoverlapping(all.as_ptr(), all.len());
        Ok(room)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_fortran_argv_blank_f2c(
    array: *const c_char,
    len: c_int,
    advance: c_int,
    argv: *mut *mut *mut c_char,
) -> c_int {
    // SAFETY: arguments of the caller.
    unsafe { give(argv, strings(array, None, len, advance)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_fortran_argv_count_f2c(
    array: *const c_char,
    count: c_int,
    len: c_int,
    advance: c_int,
    argv: *mut *mut *mut c_char,
) -> c_int {
    // SAFETY: arguments of the caller.
    unsafe { give(argv, strings(array, Some(count), len, advance)) }
}

/// Arguments of several commands: those of one stand `commands` strings apart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_fortran_multiple_argvs_f2c(
    commands: c_int,
    array: *const c_char,
    len: c_int,
    argvs: *mut *mut *mut *mut c_char,
) -> c_int {
    let count = usize::try_from(commands).unwrap_or(0);
    // SAFETY: arguments of the caller; memory for as many pointers.
    unsafe {
        let all: *mut *mut *mut c_char =
            libc::malloc(count.max(1) * size_of::<*mut *mut c_char>()).cast();
        if all.is_null() {
            return OUT_OF_MEMORY;
        }
        for command in 0..count {
            let first = array.add(command * usize::try_from(len).unwrap_or(0));
            let one = give(all.add(command), strings(first, None, len, len * commands));
            if one != SUCCESS {
                libc::free(all.cast());
                return one;
            }
        }
        argvs.write(all);
    }
    SUCCESS
}

unsafe fn give(place: *mut *mut *mut c_char, made: Result<*mut *mut c_char, c_int>) -> c_int {
    match made {
        Ok(made) => {
            // SAFETY: an output argument of the caller.
            unsafe { place.write(made) };
            SUCCESS
        }
        Err(error) => error,
    }
}

/// Gives back what `strings` made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opal_argv_free(argv: *mut *mut c_char) {
    if argv.is_null() {
        return;
    }
    // SAFETY: made by `strings`: strings and a null behind them.
    unsafe {
        let mut next = argv;
        while !next.read().is_null() {
            libc::free(next.read().cast());
            next = next.add(1);
        }
        libc::free(argv.cast());
    }
}

/// What an attribute belongs to, by Open MPI's numbers.
const OF_COMM: c_int = 1;
const OF_TYPE: c_int = 2;
const OF_WIN: c_int = 3;

/// The functions of a key that Fortran has made, and its extra state; lives to the end of the process, as copies of the key may.
struct FortranKey {
    kind: Kind,
    copy: usize,
    delete: usize,
    extra: isize,
    /// Whether values are `INTEGER`s, as before MPI-2, and not addresses.
    short: bool,
}

type CopyShort = unsafe extern "C" fn(
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
);
type CopyLong = unsafe extern "C" fn(
    *mut c_int,
    *mut c_int,
    *mut isize,
    *mut isize,
    *mut isize,
    *mut c_int,
    *mut c_int,
);
type DeleteShort = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_int);
type DeleteLong = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut isize, *mut isize, *mut c_int);

/// The C function that calls a key's copy function in Fortran.
unsafe extern "C" fn copy_in_fortran(
    object: Handle,
    mut key: c_int,
    extra: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the extra state of a key is the one that it was made with.
    let made = unsafe { &*extra.cast::<FortranKey>() };
    let (mut object, mut code, mut yes) = (to_fortran(made.kind, object), SUCCESS, 0);
    let value = value.addr() as isize;
    // SAFETY: the program's function of this form, and places for its results.
    unsafe {
        let result = if made.short {
            let function: CopyShort = std::mem::transmute(made.copy);
            let (mut extra, mut value, mut result) = (made.extra as c_int, value as c_int, 0);
            function(
                &mut object,
                &mut key,
                &mut extra,
                &mut value,
                &mut result,
                &mut yes,
                &mut code,
            );
            result as isize
        } else {
            let function: CopyLong = std::mem::transmute(made.copy);
            let (mut extra, mut value, mut result) = (made.extra, value, 0);
            function(
                &mut object,
                &mut key,
                &mut extra,
                &mut value,
                &mut result,
                &mut yes,
                &mut code,
            );
            result
        };
        flag.write((yes != 0).into());
        copied.cast::<isize>().write(result);
    }
    code
}

/// The same of its delete function.
unsafe extern "C" fn delete_in_fortran(
    object: Handle,
    mut key: c_int,
    value: *mut c_void,
    extra: *mut c_void,
) -> c_int {
    // SAFETY: as above.
    let made = unsafe { &*extra.cast::<FortranKey>() };
    let (mut object, mut code) = (to_fortran(made.kind, object), SUCCESS);
    let value = value.addr() as isize;
    // SAFETY: the program's function of this form.
    unsafe {
        if made.short {
            let function: DeleteShort = std::mem::transmute(made.delete);
            let (mut extra, mut value) = (made.extra as c_int, value as c_int);
            function(&mut object, &mut key, &mut value, &mut extra, &mut code);
        } else {
            let function: DeleteLong = std::mem::transmute(made.delete);
            let (mut extra, mut value) = (made.extra, value);
            function(&mut object, &mut key, &mut value, &mut extra, &mut code);
        }
    }
    code
}

unsafe fn create_key(
    of: c_int,
    copy: usize,
    delete: usize,
    key: *mut c_int,
    extra: isize,
    short: bool,
) -> c_int {
    let kind = match of {
        OF_COMM => Kind::Comm,
        OF_TYPE => Kind::Datatype,
        _ => Kind::Win,
    };
    let made = Box::leak(Box::new(FortranKey {
        kind,
        copy,
        delete,
        extra,
        short,
    }));
    let extra = std::ptr::from_mut(made).cast::<c_void>();
    let (copy, delete) = (
        copy_in_fortran as *const c_void as usize,
        delete_in_fortran as *const c_void as usize,
    );
    // SAFETY: an output argument of the caller.
    let (code, key) = unsafe {
        let code = match of {
            OF_COMM => PMPI_Comm_create_keyval(copy, delete, key, extra),
            OF_TYPE => PMPI_Type_create_keyval(copy, delete, key, extra),
            _ => PMPI_Win_create_keyval(copy, delete, key, extra),
        };
        (code, key.read())
    };
    if code == SUCCESS {
        let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(key, of);
    }
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_attr_create_keyval_fint(
    of: c_int,
    copy: usize,
    delete: usize,
    key: *mut c_int,
    extra: c_int,
    _flags: c_int,
    _bindings: *mut c_void,
) -> c_int {
    // SAFETY: passed on.
    unsafe { create_key(of, copy, delete, key, extra as isize, true) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_attr_create_keyval_aint(
    of: c_int,
    copy: usize,
    delete: usize,
    key: *mut c_int,
    extra: isize,
    _flags: c_int,
    _bindings: *mut c_void,
) -> c_int {
    // SAFETY: passed on.
    unsafe { create_key(of, copy, delete, key, extra, false) }
}

unsafe fn set(of: c_int, object: Handle, key: c_int, value: isize) -> c_int {
    let value = std::ptr::without_provenance_mut(value as usize);
    // SAFETY: a value is not looked at.
    unsafe {
        match of {
            OF_COMM => PMPI_Comm_set_attr(object, key, value),
            OF_TYPE => PMPI_Type_set_attr(object, key, value),
            OF_WIN => PMPI_Win_set_attr(object, key, value),
            _ => INTERN,
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_attr_set_fint(
    of: c_int,
    object: Handle,
    _table: *mut c_void,
    key: c_int,
    value: c_int,
    _predefined: bool,
) -> c_int {
    // SAFETY: passed on.
    unsafe { set(of, object, key, value as isize) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_attr_set_aint(
    of: c_int,
    object: Handle,
    _table: *mut c_void,
    key: c_int,
    value: isize,
    _predefined: bool,
) -> c_int {
    // SAFETY: passed on.
    unsafe { set(of, object, key, value) }
}

/// The value of an attribute; `table` is what a field of an object holds: the standard's handle of the object.
unsafe fn get(table: usize, key: c_int, flag: *mut c_int) -> (c_int, isize) {
    let mut value: *mut c_void = std::ptr::null_mut();
    let place = (&raw mut value).cast::<c_void>();
    // SAFETY: places for results.
    unsafe {
        flag.write(0);
        let code = match kind_of_key(key) {
            OF_TYPE => {
                PMPI_Type_get_attr(handle_of_standard(Kind::Datatype, table), key, place, flag)
            }
            OF_WIN => PMPI_Win_get_attr(handle_of_standard(Kind::Win, table), key, place, flag),
            _ => PMPI_Comm_get_attr(handle_of_standard(Kind::Comm, table), key, place, flag),
        };
        let found = flag.read() != 0 && !value.is_null();
        // Of predefined keys C has the address of the value, but of a window's base the base.
        let value = match key {
            FIRST_KEY..=LAST_OF_COMMS | DISP_UNIT..=LAST_KEY if found => {
                value.cast::<c_int>().read() as isize
            }
            WIN_SIZE if found => value.cast::<isize>().read(),
            _ => value.addr() as isize,
        };
        (code, value)
    }
}

/// Open MPI's numbers of the predefined keys: `MPI_TAG_UB` to `MPI_UNIVERSE_SIZE`, then `MPI_WIN_BASE` to `MPI_WIN_MODEL`.
const FIRST_KEY: c_int = 0;
const LAST_OF_COMMS: c_int = 6;
const WIN_SIZE: c_int = 8;
const DISP_UNIT: c_int = 9;
const LAST_KEY: c_int = 11;

/// The keys that Fortran has made for types and windows; the handle in a table does not say what it is of.
static KEYS: Mutex<BTreeMap<c_int, c_int>> = Mutex::new(BTreeMap::new());

fn kind_of_key(key: c_int) -> c_int {
    match key {
        FIRST_KEY..=LAST_OF_COMMS => OF_COMM,
        ..=LAST_KEY => OF_WIN,
        _ => {
            let keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
            keys.get(&key).copied().unwrap_or(OF_COMM)
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_attr_get_fint(
    table: usize,
    key: c_int,
    value: *mut c_int,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: output arguments of the caller.
    unsafe {
        let (code, found) = get(table, key, flag);
        if flag.read() != 0 {
            value.write(found as c_int);
        }
        code
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_attr_get_aint(
    table: usize,
    key: c_int,
    value: *mut isize,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: output arguments of the caller.
    unsafe {
        let (code, found) = get(table, key, flag);
        if flag.read() != 0 {
            value.write(found);
        }
        code
    }
}

/// What Fortran programs name: functions that leave an attribute behind, that copy it as it is, and that do nothing.
macro_rules! attribute_functions_of_fortran {
    ($($value:ty: $null_copy:ident $null_delete:ident $dup:ident;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $null_copy(
            _object: *const c_int,
            _key: *const c_int,
            _extra: *const $value,
            _value: *const $value,
            _copied: *mut $value,
            flag: *mut c_int,
            code: *mut c_int,
        ) {
            // SAFETY: output arguments of a copy function.
            unsafe {
                flag.write(0);
                code.write(SUCCESS);
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $dup(
            _object: *const c_int,
            _key: *const c_int,
            _extra: *const $value,
            value: *const $value,
            copied: *mut $value,
            flag: *mut c_int,
            code: *mut c_int,
        ) {
            // SAFETY: arguments of a copy function.
            unsafe {
                copied.write(value.read());
                flag.write(1);
                code.write(SUCCESS);
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $null_delete(
            _object: *const c_int,
            _key: *const c_int,
            _value: *const $value,
            _extra: *const $value,
            code: *mut c_int,
        ) {
            // SAFETY: an output argument of a delete function.
            unsafe { code.write(SUCCESS) };
        }
    )* };
}

attribute_functions_of_fortran! {
    c_int: mpi_null_copy_fn_ mpi_null_delete_fn_ mpi_dup_fn_;
    isize: mpi_comm_null_copy_fn_ mpi_comm_null_delete_fn_ mpi_comm_dup_fn_;
    isize: mpi_type_null_copy_fn_ mpi_type_null_delete_fn_ mpi_type_dup_fn_;
    isize: mpi_win_null_copy_fn_ mpi_win_null_delete_fn_ mpi_win_dup_fn_;
}

/// `MPI_CONVERSION_FN_NULL`, of which only the address counts.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_conversion_fn_null_() {}

#[unsafe(no_mangle)]
pub extern "C" fn mpi_wtime_f90_() -> f64 {
    // SAFETY: takes nothing.
    unsafe { PMPI_Wtime() }
}

#[unsafe(no_mangle)]
pub extern "C" fn mpi_wtick_f90_() -> f64 {
    // SAFETY: takes nothing.
    unsafe { PMPI_Wtick() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_aint_add_f90_(
    base: *const isize,
    displacement: *const isize,
) -> isize {
    // SAFETY: arguments of Fortran.
    unsafe { base.read().wrapping_add(displacement.read()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mpi_aint_diff_f90_(first: *const isize, second: *const isize) -> isize {
    // SAFETY: arguments of Fortran.
    unsafe { first.read().wrapping_sub(second.read()) }
}

/// What Open MPI's library of the C++ bindings, which MPI 3.0 has removed, asks for; programs that are only linked to it run.
fn no_cxx(what: &str) {
    let _ = writeln!(
        std::io::stderr(),
        "{what} of the C++ bindings, which MPI 3.0 has removed, are not served for programs of Open MPI"
    );
}

#[unsafe(no_mangle)]
pub extern "C" fn ompi_attr_create_keyval(
    _of: c_int,
    _copy: usize,
    _delete: usize,
    _key: *mut c_int,
    _extra: *mut c_void,
    _flags: c_int,
    _bindings: *mut c_void,
) -> c_int {
    no_cxx("attributes");
    INTERN
}

#[unsafe(no_mangle)]
pub extern "C" fn ompi_op_set_cxx_callback(_op: usize, _function: usize) {
    no_cxx("operators of the program");
    // SAFETY: ends the process, which would combine with a function that does not exist.
    unsafe { libc::abort() }
}
