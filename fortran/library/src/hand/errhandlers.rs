//! Error handlers: C passes the address of a handle; Fortran expects an INTEGER.
#![allow(unsafe_code)]

use crate::bodies::{Calls, Ptr};
use crate::handle::{self, number, output};
use crate::pool::{self, Pool};
use std::ptr::null_mut;

/// The type of an error handler in Fortran.
type Fortran = unsafe extern "C" fn(*mut i32, *mut i32);
/// The type of the C functions of the pool. They ignore further arguments of an error handler.
type Slot = unsafe extern "C" fn(*mut Ptr, *mut i32);

macro_rules! errhandlers {
    ($($name:ident $c:ident $pool:ident, $slots:ident, $slot:ident, $kind:ident;)*) => {
        $(
            static $pool: Pool = Pool::new();

            unsafe extern "C" fn $slot<const N: usize>(object: *mut Ptr, code: *mut i32) {
                // SAFETY: C gets function N only after `enter` has stored a function of this type.
                // C passes the addresses of a handle and of a code.
                unsafe {
                    let function: Fortran = std::mem::transmute($pool.at(N));
                    let (mut object, mut code) = (number::<handle::$kind>(*object), *code);
                    function(&raw mut object, &raw mut code);
                }
            }

            static $slots: [[Slot; 16]; 16] = instances!($slot);

            pub unsafe fn $name<C: Calls>(function: Ptr, errhandler: *mut i32) -> i32 {
                // SAFETY: `errhandler` is an INTEGER in Fortran's interface; `made` is a local.
                unsafe {
                    let Some(place) = $pool.enter(function as usize) else {
                        return pool::full(stringify!($c));
                    };
                    let function = $slots[place / 16][place % 16] as usize as Ptr;
                    let mut made: Ptr = null_mut();
                    let outcome = C::$c(function, (&raw mut made).cast());
                    output::<handle::Errhandler>(errhandler, made);
                    outcome
                }
            }
        )*
    };
}

errhandlers! {
    comm_create_errhandler MPI_Comm_create_errhandler COMM, COMM_SLOTS, comm_slot, Comm;
    file_create_errhandler MPI_File_create_errhandler FILE, FILE_SLOTS, file_slot, File;
    session_create_errhandler MPI_Session_create_errhandler SESSION, SESSION_SLOTS, session_slot, Session;
    win_create_errhandler MPI_Win_create_errhandler WIN, WIN_SLOTS, win_slot, Win;
}
