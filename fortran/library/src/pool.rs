//! Pools of C functions, each of which calls one Fortran function: for callbacks without an
//! extra-state argument.
//!
//! The n-th C function of a pool calls the n-th Fortran function that the pool stores.
//! A pool stores each function once, so only the number of different functions is limited.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of different functions in a pool.
pub const SIZE: usize = 256;

/// The Fortran functions of one callback interface that the program has passed so far.
pub struct Pool {
    functions: [AtomicUsize; SIZE],
}

impl Pool {
    pub const fn new() -> Pool {
        Pool {
            functions: [const { AtomicUsize::new(0) }; SIZE],
        }
    }

    /// Stores the address of a function, once. Returns its index, or `None` if the pool is full.
    pub fn enter(&self, function: usize) -> Option<usize> {
        self.functions.iter().position(|place| {
            match place.compare_exchange(0, function, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => true,
                Err(there) => there == function,
            }
        })
    }

    /// Returns the address of the Fortran function with index `place`.
    pub fn at(&self, place: usize) -> usize {
        self.functions[place].load(Ordering::Acquire)
    }
}

/// Returns the `SIZE` instances of a function with a constant parameter: index N has constant N.
#[macro_export]
macro_rules! instances {
    ($function:ident) => {{
        macro_rules! row {
            ($r:literal) => {
                [
                    $function::<{ $r * 16 }>,
                    $function::<{ $r * 16 + 1 }>,
                    $function::<{ $r * 16 + 2 }>,
                    $function::<{ $r * 16 + 3 }>,
                    $function::<{ $r * 16 + 4 }>,
                    $function::<{ $r * 16 + 5 }>,
                    $function::<{ $r * 16 + 6 }>,
                    $function::<{ $r * 16 + 7 }>,
                    $function::<{ $r * 16 + 8 }>,
                    $function::<{ $r * 16 + 9 }>,
                    $function::<{ $r * 16 + 10 }>,
                    $function::<{ $r * 16 + 11 }>,
                    $function::<{ $r * 16 + 12 }>,
                    $function::<{ $r * 16 + 13 }>,
                    $function::<{ $r * 16 + 14 }>,
                    $function::<{ $r * 16 + 15 }>,
                ]
            };
        }
        [
            row!(0),
            row!(1),
            row!(2),
            row!(3),
            row!(4),
            row!(5),
            row!(6),
            row!(7),
            row!(8),
            row!(9),
            row!(10),
            row!(11),
            row!(12),
            row!(13),
            row!(14),
            row!(15),
        ]
    }};
}

/// Prints an error: the program passes too many different functions. Returns the error code.
pub fn full(what: &str) -> i32 {
    const ERR_INTERN: i32 = 17;
    printable::eprintln!(
        "{what}: this process has passed {SIZE} different functions already, which is the limit of the Fortran interface; \
         pass fewer different functions, for example module procedures instead of internal ones."
    );
    ERR_INTERN
}
