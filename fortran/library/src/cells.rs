//! The sentinels: constants that the library recognises by their addresses, such as `MPI_BOTTOM`.
//!
//! The dynamic linker gives a symbol the same address in the program and in the library.
//! `mpif.h` has one COMMON block with all sentinels; the modules have a symbol for each.
#![allow(unsafe_code)]

use crate::bodies::Ptr;
use std::cell::UnsafeCell;
use std::ptr::without_provenance_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The fill byte of sentinel memory; a program that uses a sentinel as data then fails visibly.
const POISON: u8 = 0xa5;

// Types of sentinels. The linker warns if a symbol has another size than in the program or less
// alignment. So each type has the program's size and the largest possible alignment.

/// A sentinel of type CHARACTER.
#[repr(C)]
pub struct Byte([u8; 1]);

/// A sentinel of type INTEGER.
#[repr(C, align(4))]
pub struct Word([u8; 4]);

/// A sentinel of type status.
#[repr(C, align(32))]
pub struct Status([u8; 32]);

/// The COMMON block of all sentinels.
#[repr(C, align(64))]
pub struct Block([u8; 128]);

/// Defines the symbols of the sentinels in the modules `mpi` and `mpi_f08`.
macro_rules! cells {
    ($($name:ident: $of:ident => $value:expr,)*) => {
        $(
            #[allow(non_upper_case_globals)]
            #[unsafe(no_mangle)]
            pub static mut $name: $of = $of([POISON; size_of::<$of>()]);
        )*
        /// Returns the address and the C value of each sentinel of the modules.
        fn of_modules() -> Vec<(usize, usize)> {
            vec![$((((&raw const $name) as usize), $value)),*]
        }
    };
}

const BOTTOM: usize = 0;
const IN_PLACE: usize = 1;
const AUTOMATIC: usize = 2;
const UNWEIGHTED: usize = 10;
const WEIGHTS_EMPTY: usize = 11;
/// The C value of the sentinels for ignored statuses, error codes and arguments: null.
const IGNORED: usize = 0;

cells! {
    mpi_fortran_bottom: Word => BOTTOM,
    mpi_fortran_in_place: Word => IN_PLACE,
    mpi_fortran_buffer_automatic: Word => AUTOMATIC,
    mpi_fortran_errcodes_ignore: Word => IGNORED,
    mpi_fortran_unweighted: Word => UNWEIGHTED,
    mpi_fortran_weights_empty: Word => WEIGHTS_EMPTY,
    mpi_fortran_status_ignore: Status => IGNORED,
    mpi_fortran_statuses_ignore: Status => IGNORED,
    mpi_fortran_argv_null: Byte => IGNORED,
    mpi_fortran_argvs_null: Byte => IGNORED,
    mpi_fortran_f08_status_ignore: Status => IGNORED,
    mpi_fortran_f08_statuses_ignore: Status => IGNORED,
}

/// The COMMON block of `mpif.h`.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
pub static mut mpi_fortran_cells_: Block = Block([POISON; 128]);

/// The sentinels in the COMMON block: offset and value in C, in the order of the generator's table.
const IN_BLOCK: &[(usize, usize)] = &[
    (0, BOTTOM),
    (4, IN_PLACE),
    (8, AUTOMATIC),
    (12, IGNORED),
    (16, UNWEIGHTED),
    (20, WEIGHTS_EMPTY),
    (24, IGNORED),
    (56, IGNORED),
    (88, IGNORED),
    (89, IGNORED),
];

/// The number of sentinels in the modules and in the COMMON block together.
const COUNT: usize = 22;

/// The lowest address of all sentinels, and the distance from it to the highest address.
///
/// The fields are not atomic: so the comparison, needed for each buffer, can use memory operands.
struct Range(UnsafeCell<(usize, usize)>);

// SAFETY: only `note` writes the value, once, from `.init_array`. The dynamic linker runs `note` in
// the loading thread, before it returns to code that can call functions of the library.
unsafe impl Sync for Range {}

impl Range {
    #[inline(always)]
    fn first(&self) -> usize {
        // SAFETY: `note` has run before any function of the library can be called (`impl Sync`).
        unsafe { (*self.0.get()).0 }
    }

    #[inline(always)]
    fn span(&self) -> usize {
        // SAFETY: `note` has run before any function of the library can be called (`impl Sync`).
        unsafe { (*self.0.get()).1 }
    }
}

static RANGE: Range = Range(UnsafeCell::new((0, 0)));

/// The addresses of all sentinels, and their values in C.
static ADDRESSES: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];
static VALUES: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];

/// Records the addresses of the sentinels. Called once, when the library is loaded.
fn note() {
    let block = (&raw const mpi_fortran_cells_) as usize;
    let in_block = IN_BLOCK
        .iter()
        .map(|(offset, value)| (block + offset, *value));
    let all: Vec<(usize, usize)> = of_modules().into_iter().chain(in_block).collect();
    for (n, (address, value)) in all.iter().enumerate().take(COUNT) {
        ADDRESSES[n].store(*address, Ordering::Relaxed);
        VALUES[n].store(*value, Ordering::Relaxed);
    }
    let first = all.iter().map(|(a, _)| *a).min().unwrap_or(0);
    let last = all.iter().map(|(a, _)| *a).max().unwrap_or(0);
    // SAFETY: `.init_array` runs this once, before other functions of the library can be called (`impl Sync for Range`).
    unsafe { *RANGE.0.get() = (first, last - first) };
}

/// Returns true if the address is outside of the range of sentinels, so it is no sentinel.
#[inline(always)]
pub fn is_outside<T>(argument: *const T) -> bool {
    let from_first = (argument as usize).wrapping_sub(RANGE.first());
    from_first > RANGE.span()
}

/// Returns the C value for an argument that may be a sentinel.
#[inline(always)]
fn translated(argument: Ptr) -> Ptr {
    if is_outside(argument) {
        return argument;
    }
    compared(argument)
}

/// Returns the C value of an argument after comparing it with each sentinel.
#[cold]
#[inline(never)]
fn compared(argument: Ptr) -> Ptr {
    let is = |address: &AtomicUsize| address.load(Ordering::Relaxed) == argument as usize;
    match ADDRESSES.iter().position(is) {
        Some(n) => without_provenance_mut(VALUES[n].load(Ordering::Relaxed)),
        None => argument,
    }
}

/// Returns the C value of a choice buffer.
#[inline(always)]
pub fn buffer(argument: Ptr) -> Ptr {
    let here = 0u8;
    if (argument as usize).wrapping_sub(&raw const here as usize) < FRAME {
        // SAFETY: the address is on this thread's stack above a local, in the frames of callers.
        // So at least 4 bytes at this address are readable, even if the buffer is shorter.
        unsafe { report_if_copy(argument.cast()) };
    }
    translated(argument)
}

/// The maximum distance in bytes from the frame of [`buffer`] to a compiler's copy in a caller.
const FRAME: usize = 4096;

/// Prints a warning, once, if the argument is a compiler's copy of a sentinel: a copy has the
/// sentinel's contents but not its address.
///
/// # Safety
/// 4 bytes at `argument` are readable.
#[inline(never)]
unsafe fn report_if_copy(argument: *const [u8; 4]) {
    static ONCE: Once = Once::new();
    // SAFETY: 4 bytes are readable (contract), and a byte array needs no alignment.
    if unsafe { *argument } == [POISON; 4] {
        ONCE.call_once(|| {
            printable::eprintln!(
                "a buffer is a copy of a constant such as MPI_BOTTOM or MPI_IN_PLACE, which MPI recognises by its address: \
                 pass the constant itself, not in parentheses and not through a dummy argument with VALUE."
            );
        });
    }
}

/// Returns the C value of a status or an array of statuses; Fortran and C have the same layout.
#[inline(always)]
pub fn status(argument: *mut i32) -> Ptr {
    translated(argument.cast())
}

/// Returns the C value of the edge weights of a graph.
pub fn weights(argument: *mut i32) -> Ptr {
    translated(argument.cast())
}

/// Returns true if the argument is a sentinel for an ignored argument, which is null in C.
pub fn is_ignored<T>(argument: *const T) -> bool {
    translated(argument.cast_mut().cast()).is_null() && !argument.is_null()
}

/// Replaces C's MPI_BUFFER_AUTOMATIC, if it is the detached buffer, by the Fortran sentinel.
///
/// # Safety
/// `buffer` points to an address.
pub unsafe fn detached(outcome: i32, buffer: Ptr) {
    let address: *mut Ptr = buffer.cast();
    // SAFETY: `buffer` points to a readable and writable address by this function's contract.
    unsafe {
        if outcome == 0 && *address as usize == AUTOMATIC {
            *address = (&raw mut mpi_fortran_buffer_automatic).cast();
        }
    }
}

/// The initialisation function, which runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = {
    extern "C" fn loaded() {
        note();
    }
    loaded
};
