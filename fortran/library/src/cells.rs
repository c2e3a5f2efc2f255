//! The sentinels: constants that are recognised by their addresses.
//!
//! The dynamic linker makes the address equal in the program and here, whichever of the two defines the symbol.
//! `mpif.h` has a COMMON block of all sentinels; the modules have a symbol for each.
#![allow(unsafe_code)]

use crate::bodies::Ptr;
use std::cell::UnsafeCell;
use std::ptr::without_provenance_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A value that is neither 0 nor a small number, so that a program which uses the memory of a sentinel fails visibly.
const POISON: u8 = 0xa5;

// Memory of sentinels. The linker warns of a symbol whose size differs from the program's, and of one with a smaller alignment: each type has the size
// of the program's variable, and the largest alignment that leaves it so.

/// A sentinel of type CHARACTER.
#[repr(C)]
pub struct Byte([u8; 1]);

/// One of type INTEGER.
#[repr(C, align(4))]
pub struct Word([u8; 4]);

/// A status.
#[repr(C, align(32))]
pub struct Status([u8; 32]);

/// The COMMON block.
#[repr(C, align(64))]
pub struct Block([u8; 128]);

/// Defines symbols.
macro_rules! cells {
    ($($name:ident: $of:ident => $value:expr,)*) => {
        $(
            #[allow(non_upper_case_globals)]
            #[unsafe(no_mangle)]
            pub static mut $name: $of = $of([POISON; size_of::<$of>()]);
        )*
        /// The modules' sentinels: (address, address in C).
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
/// Ignored statuses, error codes and arguments: C passes null.
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

/// The sentinels in the COMMON block: (offset, address in C), in the order of the generator's table.
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

/// The number of sentinels.
const COUNT: usize = 22;

/// The first address of a sentinel, and the distance to the last one.
///
/// Not atomic, so that a comparison reads them from memory by itself: every choice buffer is compared.
struct Range(UnsafeCell<(usize, usize)>);

// SAFETY: `note` writes it once, from `.init_array`: the dynamic linker runs that before it returns to code that can call the library's functions, in the
// thread that loads the library.
unsafe impl Sync for Range {}

impl Range {
    #[inline(always)]
    fn first(&self) -> usize {
        // SAFETY: the only write is over when this can be called (`impl Sync`).
        unsafe { (*self.0.get()).0 }
    }

    #[inline(always)]
    fn span(&self) -> usize {
        // SAFETY: the only write is over when this can be called (`impl Sync`).
        unsafe { (*self.0.get()).1 }
    }
}

static RANGE: Range = Range(UnsafeCell::new((0, 0)));

/// The addresses of all sentinels, and their addresses in C.
static ADDRESSES: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];
static VALUES: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];

/// Notes the addresses. Called when the library is loaded.
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

/// Returns true if the argument is certainly no sentinel: it is outside the range of their addresses.
#[inline(always)]
pub fn is_outside<T>(argument: *const T) -> bool {
    let from_first = (argument as usize).wrapping_sub(RANGE.first());
    from_first > RANGE.span()
}

/// The address that C gets for an argument which may be a sentinel.
#[inline(always)]
fn translated(argument: Ptr) -> Ptr {
    if is_outside(argument) {
        return argument;
    }
    compared(argument)
}

/// The same by comparing it with each sentinel.
#[cold]
#[inline(never)]
fn compared(argument: Ptr) -> Ptr {
    let is = |address: &AtomicUsize| address.load(Ordering::Relaxed) == argument as usize;
    match ADDRESSES.iter().position(is) {
        Some(n) => without_provenance_mut(VALUES[n].load(Ordering::Relaxed)),
        None => argument,
    }
}

/// A choice buffer.
#[inline(always)]
pub fn buffer(argument: Ptr) -> Ptr {
    let here = 0u8;
    if (argument as usize).wrapping_sub(&raw const here as usize) < FRAME {
        // SAFETY: the address is on this thread's stack, above a local of this function, where the frames of its callers are: the bytes there are
        // readable even if the buffer is shorter than four of them.
        unsafe { report_if_copy(argument.cast()) };
    }
    translated(argument)
}

/// Where a compiler puts the copy of an argument: this far at most above the frame of the called procedure.
const FRAME: usize = 4096;

/// Reports, once, a buffer with the content of a sentinel: a copy that the compiler has made, whose address is not the sentinel's.
///
/// # Safety
/// Four bytes at the argument are readable.
#[inline(never)]
unsafe fn report_if_copy(argument: *const [u8; 4]) {
    static ONCE: Once = Once::new();
    // SAFETY: four bytes are readable (contract of this function); a byte array has no alignment.
    if unsafe { *argument } == [POISON; 4] {
        ONCE.call_once(|| {
            printable::eprintln!(
                "a buffer is a copy of a constant such as MPI_BOTTOM or MPI_IN_PLACE, which MPI recognises by its address: \
                 pass the constant itself, not in parentheses and not through a dummy argument with VALUE."
            );
        });
    }
}

/// A status, or an array of statuses: in Fortran they have the memory layout of C.
#[inline(always)]
pub fn status(argument: *mut i32) -> Ptr {
    translated(argument.cast())
}

/// The weights of a graph's edges.
pub fn weights(argument: *mut i32) -> Ptr {
    translated(argument.cast())
}

/// Returns true if the argument is a sentinel whose C value is null: an ignored argument.
pub fn is_ignored<T>(argument: *const T) -> bool {
    translated(argument.cast_mut().cast()).is_null() && !argument.is_null()
}

/// Gives MPI_BUFFER_AUTOMATIC, which C has returned as the address of a detached buffer, its address in Fortran.
///
/// # Safety
/// `buffer` points to an address.
pub unsafe fn detached(outcome: i32, buffer: Ptr) {
    let address: *mut Ptr = buffer.cast();
    // SAFETY: the caller states that it is readable and writable.
    unsafe {
        if outcome == 0 && *address as usize == AUTOMATIC {
            *address = (&raw mut mpi_fortran_buffer_automatic).cast();
        }
    }
}

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = {
    extern "C" fn loaded() {
        note();
    }
    loaded
};
