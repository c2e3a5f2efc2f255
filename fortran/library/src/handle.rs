//! Handles: INTEGERs in Fortran, pointers in C.
#![allow(unsafe_code)]

use crate::bodies::Ptr;
use std::marker::PhantomData;
use std::ptr::{null_mut, without_provenance_mut};

/// Values below this are predefined handles, which are the same number in both languages.
const PREDEFINED: usize = 4096;

/// A kind of handle: the C library's conversions.
pub trait Kind {
    /// Converts a number; one that is no handle becomes a handle that the C library rejects.
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
                    // SAFETY: the C function takes any number and dereferences nothing.
                    unsafe { $from(number) }
                }
                unsafe fn to_int(handle: Ptr) -> i32 {
                    // SAFETY: the C library has returned this handle (contract of `Kind::to_int`).
                    unsafe { $to(handle) }
                }
            }
            /// The conversion for C programs of a handle to an INTEGER.
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $c2f(handle: Ptr) -> i32 {
                // SAFETY: a C program calls it with a handle that the C library has returned.
                unsafe { number::<$kind>(handle) }
            }
            /// The conversion for C programs of an INTEGER to a handle.
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

/// A handle for C.
///
/// # Safety
/// `argument` points to an INTEGER.
#[inline(always)]
pub unsafe fn input<K: Kind>(argument: *const i32) -> Ptr {
    // SAFETY: the caller states that the argument is readable.
    unsafe {
        let number = *argument;
        if (number as u32 as usize) < PREDEFINED {
            without_provenance_mut(number as u32 as usize)
        } else {
            K::from_int(number)
        }
    }
}

/// Returns true if all handles are predefined: the same numbers in both languages.
///
/// It is their sum that is compared, which costs an instruction less than their union of bits. A sum below the limit has only terms below it; the largest
/// predefined handle is 0x2eb, so the sum of five is below it too.
#[inline(always)]
pub fn are_predefined<const N: usize>(numbers: [i32; N]) -> bool {
    sum(numbers) < PREDEFINED
}

/// Returns true if all handles are predefined and the optional argument is absent. No argument has an address that small.
#[inline(always)]
pub fn are_predefined_without<const N: usize>(numbers: [i32; N], argument: *const i32) -> bool {
    sum(numbers).wrapping_add(argument as usize) < PREDEFINED
}

#[inline(always)]
fn sum<const N: usize>(numbers: [i32; N]) -> usize {
    numbers.iter().map(|n| *n as u32 as usize).sum()
}

/// The handle in C of a predefined one.
#[inline(always)]
pub fn predefined(number: i32) -> Ptr {
    without_provenance_mut(number as u32 as usize)
}

/// The number of a handle of C.
///
/// # Safety
/// The C library has returned the handle.
#[inline(always)]
pub unsafe fn number<K: Kind>(handle: Ptr) -> i32 {
    if (handle as usize) < PREDEFINED {
        handle as usize as i32
    } else {
        // SAFETY: the caller states that it is a handle.
        unsafe { K::to_int(handle) }
    }
}

/// Returns a handle to Fortran, unless C has set none.
///
/// # Safety
/// `argument` points to an INTEGER, and the handle is null or one of the C library.
#[inline(always)]
pub unsafe fn output<K: Kind>(argument: *mut i32, handle: Ptr) {
    if !handle.is_null() {
        // SAFETY: `argument` points to an INTEGER, and a handle that is not null is one of the C library (contract of this function).
        unsafe { *argument = number::<K>(handle) }
    }
}

/// The number of handles that need no allocation.
const FEW: usize = 32;

/// An array of handles for C.
pub struct Many<K> {
    few: [Ptr; FEW],
    many: Vec<Ptr>,
    count: usize,
    kind: PhantomData<K>,
}

impl<K: Kind> Many<K> {
    /// An array that C sets.
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

    /// The handles of an array of INTEGERs.
    ///
    /// # Safety
    /// `numbers` has `count` elements.
    #[inline(always)]
    pub unsafe fn input(numbers: *const i32, count: usize) -> Many<K> {
        let mut handles = Many::<K>::empty(count);
        for n in 0..count {
            // SAFETY: `n` is below the count that the caller states.
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

    /// The handles.
    pub fn into_vec(mut self) -> Vec<Ptr> {
        self.slice().to_vec()
    }

    /// Returns the handles to Fortran.
    ///
    /// # Safety
    /// `numbers` has the elements that the array was made with.
    #[inline(always)]
    pub unsafe fn output(&mut self, numbers: *mut i32) {
        for (n, handle) in self.slice().iter().enumerate() {
            // SAFETY: `n` is below the length of the array.
            unsafe { output::<K>(numbers.add(n), *handle) }
        }
    }
}
