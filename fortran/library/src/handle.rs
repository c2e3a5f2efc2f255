//! Handles, which are INTEGERs in Fortran and pointers in C.
#![allow(unsafe_code)]

use crate::bodies::Ptr;
use std::marker::PhantomData;
use std::ptr::{null_mut, without_provenance_mut};

/// The first value above the predefined handles, whose values are equal in both languages.
const PREDEFINED: usize = 4096;

/// A handle type, such as communicator, with its conversion functions in the C library.
pub trait Kind {
    /// Converts an INTEGER to a C handle. The C library rejects the handle of an invalid INTEGER.
    fn from_int(number: i32) -> Ptr;
    /// # Safety
    /// The C library has returned the handle.
    unsafe fn to_int(handle: Ptr) -> i32;
}

macro_rules! kinds {
    ($($kind:ident: $from:ident, $to:ident, $c2f:ident, $f2c:ident;)*) => {
        unsafe extern "C" {
            $(fn $from(number: i32) -> Ptr; fn $to(handle: Ptr) -> i32;)*
        }
        $(
            pub struct $kind;
            impl Kind for $kind {
                fn from_int(number: i32) -> Ptr {
                    // SAFETY: the C function accepts any number and dereferences no pointer.
                    unsafe { $from(number) }
                }
                unsafe fn to_int(handle: Ptr) -> i32 {
                    // SAFETY: the C library has returned this handle (contract of `Kind::to_int`).
                    unsafe { $to(handle) }
                }
            }
            /// Converts a handle to an INTEGER, for C programs.
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $c2f(handle: Ptr) -> i32 {
                // SAFETY: C programs pass a handle that the C library has returned.
                unsafe { number::<$kind>(handle) }
            }
            /// Converts an INTEGER to a handle, for C programs.
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $f2c(number: i32) -> Ptr {
                // SAFETY: `number` is a local variable.
                unsafe { input::<$kind>(&raw const number) }
            }
        )*
    };
}

kinds! {
    Comm: MPI_Comm_fromint, MPI_Comm_toint, MPI_Comm_c2f, MPI_Comm_f2c;
    Datatype: MPI_Type_fromint, MPI_Type_toint, MPI_Type_c2f, MPI_Type_f2c;
    Errhandler: MPI_Errhandler_fromint, MPI_Errhandler_toint, MPI_Errhandler_c2f, MPI_Errhandler_f2c;
    File: MPI_File_fromint, MPI_File_toint, MPI_File_c2f, MPI_File_f2c;
    Group: MPI_Group_fromint, MPI_Group_toint, MPI_Group_c2f, MPI_Group_f2c;
    Info: MPI_Info_fromint, MPI_Info_toint, MPI_Info_c2f, MPI_Info_f2c;
    Message: MPI_Message_fromint, MPI_Message_toint, MPI_Message_c2f, MPI_Message_f2c;
    Op: MPI_Op_fromint, MPI_Op_toint, MPI_Op_c2f, MPI_Op_f2c;
    Request: MPI_Request_fromint, MPI_Request_toint, MPI_Request_c2f, MPI_Request_f2c;
    Session: MPI_Session_fromint, MPI_Session_toint, MPI_Session_c2f, MPI_Session_f2c;
    Win: MPI_Win_fromint, MPI_Win_toint, MPI_Win_c2f, MPI_Win_f2c;
}

/// Returns the C handle for the INTEGER of a Fortran handle.
///
/// # Safety
/// `argument` points to an INTEGER.
#[inline(always)]
pub unsafe fn input<K: Kind>(argument: *const i32) -> Ptr {
    // SAFETY: `argument` points to an INTEGER by this function's contract.
    unsafe {
        let number = *argument;
        if (number as u32 as usize) < PREDEFINED {
            without_provenance_mut(number as u32 as usize)
        } else {
            K::from_int(number)
        }
    }
}

/// Returns true if all handles are predefined, so they are equal in both languages.
///
/// Comparing the sum costs one instruction less than comparing the bitwise OR. If the sum is below
/// 4096, so is each handle. The sum of five predefined handles, each at most 0x2eb, is below 4096.
#[inline(always)]
pub fn are_predefined<const N: usize>(numbers: [i32; N]) -> bool {
    sum(numbers) < PREDEFINED
}

/// Returns true if all handles are predefined and the optional argument is absent (null).
#[inline(always)]
pub fn are_predefined_without<const N: usize>(numbers: [i32; N], argument: *const i32) -> bool {
    sum(numbers).wrapping_add(argument as usize) < PREDEFINED
}

#[inline(always)]
fn sum<const N: usize>(numbers: [i32; N]) -> usize {
    numbers.iter().map(|n| *n as u32 as usize).sum()
}

/// Returns the C handle of a predefined handle, which has the same value.
#[inline(always)]
pub fn predefined(number: i32) -> Ptr {
    without_provenance_mut(number as u32 as usize)
}

/// Converts a C handle to an INTEGER.
///
/// # Safety
/// The C library has returned the handle.
#[inline(always)]
pub unsafe fn number<K: Kind>(handle: Ptr) -> i32 {
    if (handle as usize) < PREDEFINED {
        handle as usize as i32
    } else {
        // SAFETY: the C library has returned `handle` by this function's contract.
        unsafe { K::to_int(handle) }
    }
}

/// Stores a handle in an INTEGER, unless C has set no handle (null).
///
/// # Safety
/// `argument` points to an INTEGER; `handle` is null or a handle of the C library.
#[inline(always)]
pub unsafe fn output<K: Kind>(argument: *mut i32, handle: Ptr) {
    if !handle.is_null() {
        // SAFETY: `argument` points to an INTEGER (contract), and `handle` is not null.
        unsafe { *argument = number::<K>(handle) }
    }
}

/// The number of handles that [`Many`] stores without a heap allocation.
const FEW: usize = 32;

/// An array of C handles.
pub struct Many<K> {
    few: [Ptr; FEW],
    many: Vec<Ptr>,
    count: usize,
    kind: PhantomData<K>,
}

impl<K: Kind> Many<K> {
    /// Creates an array of `count` elements, to which C writes handles.
    pub fn empty(count: usize) -> Many<K> {
        Many {
            few: [null_mut(); FEW],
            many: if count > FEW {
                vec![null_mut(); count]
            } else {
                Vec::new()
            },
            count,
            kind: PhantomData,
        }
    }

    /// Converts an array of INTEGERs to an array of C handles.
    ///
    /// # Safety
    /// `numbers` has `count` elements.
    #[inline(always)]
    pub unsafe fn input(numbers: *const i32, count: usize) -> Many<K> {
        let mut handles = Many::<K>::empty(count);
        for n in 0..count {
            // SAFETY: `n` is below `count`, the number of elements by this function's contract.
            handles.slice()[n] = unsafe { input::<K>(numbers.add(n)) };
        }
        handles
    }

    fn slice(&mut self) -> &mut [Ptr] {
        if self.count > FEW {
            &mut self.many
        } else {
            &mut self.few[..self.count]
        }
    }

    pub fn as_mut_ptr(&mut self) -> *mut Ptr {
        self.slice().as_mut_ptr()
    }

    /// Returns the handles as a vector.
    pub fn into_vec(mut self) -> Vec<Ptr> {
        self.slice().to_vec()
    }

    /// Stores the handles in an array of INTEGERs.
    ///
    /// # Safety
    /// `numbers` has as many elements as this array.
    #[inline(always)]
    pub unsafe fn output(&mut self, numbers: *mut i32) {
        for (n, handle) in self.slice().iter().enumerate() {
            // SAFETY: `n` is below the number of elements by this function's contract.
            unsafe { output::<K>(numbers.add(n), *handle) }
        }
    }
}
