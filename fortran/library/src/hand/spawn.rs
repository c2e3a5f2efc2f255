//! Spawn procedures: only the root reads the commands and their arguments, which are arrays of
//! strings that end with a blank string.
#![allow(unsafe_code)]
// The standard determines the number of arguments.
#![allow(clippy::too_many_arguments)]

use crate::bodies::{Calls, Ptr};
use crate::cells;
use crate::convert::length;
use crate::handle::{self, Many, input, output};
use crate::text;
use std::ffi::CString;
use std::ptr::null_mut;

/// A null-terminated array of C strings.
struct Strings {
    pointers: Vec<*const i8>,
    _texts: Vec<CString>,
}

impl Strings {
    fn new(texts: Vec<CString>) -> Strings {
        let mut pointers: Vec<*const i8> = texts.iter().map(|t| t.as_ptr().cast()).collect();
        pointers.push(std::ptr::null());
        Strings {
            pointers,
            _texts: texts,
        }
    }

    fn as_ptr(&self) -> Ptr {
        self.pointers.as_ptr() as Ptr
    }
}

/// Converts the arguments of a command: strings of `size` characters, `distance` characters apart.
///
/// # Safety
/// `first` is the first string of the array, and one of the strings is blank.
unsafe fn arguments(first: *const u8, size: usize, distance: usize) -> Strings {
    let mut texts = Vec::new();
    loop {
        // SAFETY: no earlier string is blank, so this string exists by the function's contract.
        let characters = unsafe { text::trimmed(first.add(texts.len() * distance), size) };
        if characters.is_empty() {
            return Strings::new(texts);
        }
        // Leading blanks are not part of an argument, as in MPICH's mpif.h.
        let start = characters.iter().position(|c| *c != b' ').unwrap_or(0);
        texts.push(text::to_c(&characters[start..]));
    }
}

/// Returns true if this process is the root, whose arguments are significant.
fn is_root<C: Calls>(comm: Ptr, root: i32) -> bool {
    let mut rank = -1i32;
    // SAFETY: the C library checks the handle, and `rank` is a local variable.
    let outcome = unsafe { C::MPI_Comm_rank(comm, (&raw mut rank).cast()) };
    outcome == 0 && rank == root
}

/// Returns the address of the array of error codes, or null for MPI_ERRCODES_IGNORE.
fn errcodes(array: *mut i32) -> Ptr {
    cells::buffer(array.cast())
}

pub unsafe fn comm_spawn<C: Calls>(
    command: *mut u8,
    argv: *mut u8,
    maxprocs: *mut i32,
    info: *mut i32,
    root: *mut i32,
    comm: *mut i32,
    intercomm: *mut i32,
    array_of_errcodes: *mut i32,
    command_len: usize,
    argv_len: usize,
) -> i32 {
    // SAFETY: the scalars are INTEGERs.
    // At the root, `command` has its passed length, and `argv` is a
    // sentinel or strings of `argv_len` characters up to a blank one (MPI 5.0, section 11.8.2).
    // Other ranks do not read them. The array of codes is a sentinel or has an element per process.
    unsafe {
        let comm = input::<handle::Comm>(comm);
        let at_root = is_root::<C>(comm, *root);
        let command = at_root.then(|| text::input_both_sides(command, command_len));
        let has_arguments = at_root && !cells::is_ignored(argv);
        let argv = has_arguments.then(|| arguments(argv, argv_len, argv_len));
        let mut made: Ptr = null_mut();
        let outcome = C::MPI_Comm_spawn(
            command.as_ref().map_or(null_mut(), |c| c.as_ptr() as Ptr),
            argv.as_ref().map_or(null_mut(), Strings::as_ptr),
            if at_root { *maxprocs } else { 0 },
            if at_root {
                input::<handle::Info>(info)
            } else {
                NO_INFO as Ptr
            },
            *root,
            comm,
            (&raw mut made).cast(),
            errcodes(array_of_errcodes),
        );
        output::<handle::Comm>(intercomm, made);
        outcome
    }
}

/// The value of MPI_INFO_NULL.
const NO_INFO: usize = 304;

pub unsafe fn comm_spawn_multiple<C: Calls>(
    count: *mut i32,
    array_of_commands: *mut u8,
    array_of_argv: *mut u8,
    array_of_maxprocs: *mut i32,
    array_of_info: *mut i32,
    root: *mut i32,
    comm: *mut i32,
    intercomm: *mut i32,
    array_of_errcodes: *mut i32,
    array_of_commands_len: usize,
    array_of_argv_len: usize,
) -> i32 {
    // SAFETY: the scalars are INTEGERs. At the root, arrays have `count` elements, strings have the
    // passed lengths, and `array_of_argv` is a sentinel or each row ends with a blank string
    // (MPI 5.0, section 11.8.3). Other ranks do not read them. The C strings outlive the call.
    unsafe {
        let comm = input::<handle::Comm>(comm);
        let mut made: Ptr = null_mut();
        let outcome = if is_root::<C>(comm, *root) {
            let commands = length(i64::from(*count));
            let names = (0..commands).map(|n| {
                text::input_both_sides(
                    array_of_commands.add(n * array_of_commands_len),
                    array_of_commands_len,
                )
            });
            let names = Strings::new(names.collect());
            // In array_of_argv(count, *), each row has the arguments of one command.
            let rows = !cells::is_ignored(array_of_argv);
            let size = array_of_argv_len;
            let rows: Option<Vec<Strings>> = rows.then(|| {
                let row = |n| arguments(array_of_argv.add(n * size), size, size * commands);
                (0..commands).map(row).collect()
            });
            let pointers: Option<Vec<Ptr>> = rows
                .as_ref()
                .map(|rows| rows.iter().map(Strings::as_ptr).collect());
            let infos = Many::<handle::Info>::input(array_of_info, commands).into_vec();
            C::MPI_Comm_spawn_multiple(
                *count,
                names.as_ptr(),
                pointers.as_ref().map_or(null_mut(), |p| p.as_ptr() as Ptr),
                array_of_maxprocs.cast(),
                infos.as_ptr() as Ptr,
                *root,
                comm,
                (&raw mut made).cast(),
                errcodes(array_of_errcodes),
            )
        } else {
            let none = null_mut();
            let result = (&raw mut made).cast();
            let codes = errcodes(array_of_errcodes);
            C::MPI_Comm_spawn_multiple(0, none, none, none, none, *root, comm, result, codes)
        };
        output::<handle::Comm>(intercomm, made);
        outcome
    }
}
