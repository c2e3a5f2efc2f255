//! Keyvals: the callbacks that copy and delete attributes.
//!
//! The extra state for C is a pointer to a `State`, which has both Fortran functions and their extra state.
//! A `State` is never freed, because objects with attributes may outlive the keyval.
#![allow(unsafe_code)]

use super::attributes::{loaded, stored};
use super::predefined;
use crate::bodies::{Calls, Ptr};
use crate::convert::logical;
use crate::handle::{self, Kind, number};

/// The integer type of attribute values in the callbacks' arguments.
trait Width: Copy {
    fn of(value: i64) -> Self;
    fn value(self) -> i64;
}

impl Width for i64 {
    fn of(value: i64) -> i64 {
        value
    }
    fn value(self) -> i64 {
        self
    }
}

impl Width for i32 {
    fn of(value: i64) -> i32 {
        value as i32
    }
    fn value(self) -> i64 {
        i64::from(self)
    }
}

type Copy_<W> =
    unsafe extern "C" fn(*mut i32, *mut i32, *mut W, *mut W, *mut W, *mut i32, *mut i32);
type Delete<W> = unsafe extern "C" fn(*mut i32, *mut i32, *mut W, *mut W, *mut i32);

struct State<W> {
    copy: usize,
    delete: usize,
    extra: W,
}

unsafe extern "C" fn copy<K: Kind, W: Width>(
    object: Ptr,
    mut keyval: i32,
    state: Ptr,
    from: Ptr,
    to: *mut Ptr,
    flag: *mut i32,
) -> i32 {
    // SAFETY: C passes the state of `functions`, which is never freed; its copy function has
    // this interface. `to` and `flag` are result variables of C; Fortran gets addresses of locals.
    unsafe {
        let state: *mut State<W> = state.cast();
        let function: Copy_<W> = std::mem::transmute((*state).copy);
        let mut object = number::<K>(object);
        let mut old = W::of(loaded(from));
        let (mut new, mut copied, mut outcome) = (W::of(0), 0i32, 0i32);
        function(
            &raw mut object,
            &raw mut keyval,
            &raw mut (*state).extra,
            &raw mut old,
            &raw mut new,
            &raw mut copied,
            &raw mut outcome,
        );
        *flag = logical(&raw const copied);
        if *flag != 0 {
            *to = stored(new.value());
        }
        outcome
    }
}

unsafe extern "C" fn delete<K: Kind, W: Width>(
    object: Ptr,
    mut keyval: i32,
    value: Ptr,
    state: Ptr,
) -> i32 {
    // SAFETY: C passes the state of `functions`, which is never freed; its delete function has
    // this interface. The Fortran function gets local variables by address.
    unsafe {
        let state: *mut State<W> = state.cast();
        let function: Delete<W> = std::mem::transmute((*state).delete);
        let mut object = number::<K>(object);
        let mut value = W::of(loaded(value));
        let mut outcome = 0i32;
        function(
            &raw mut object,
            &raw mut keyval,
            &raw mut value,
            &raw mut (*state).extra,
            &raw mut outcome,
        );
        outcome
    }
}

/// Returns the copy function, the delete function and the extra state for C. A predefined function
/// becomes its C constant, any other one of the functions above; the extra state is a leaked `State`.
fn functions<K: Kind, W: Width>(copy_fn: Ptr, delete_fn: Ptr, extra: W) -> (Ptr, Ptr, Ptr) {
    let state = Box::leak(Box::new(State {
        copy: copy_fn as usize,
        delete: delete_fn as usize,
        extra,
    }));
    let copies = copy::<K, W> as *const () as Ptr;
    let deletes = delete::<K, W> as *const () as Ptr;
    (
        predefined::constant(copy_fn).unwrap_or(copies),
        predefined::constant(delete_fn).unwrap_or(deletes),
        (&raw mut *state).cast(),
    )
}

macro_rules! keyvals {
    ($($name:ident $c:ident $kind:ident;)*) => {
        $(
            pub unsafe fn $name<C: Calls>(
                copy_fn: Ptr,
                delete_fn: Ptr,
                keyval: *mut i32,
                extra_state: *mut i64,
            ) -> i32 {
                // SAFETY: `keyval` and `extra_state` are INTEGERs of these kinds in Fortran.
                unsafe {
                    let (copy, delete, state) =
                        functions::<handle::$kind, i64>(copy_fn, delete_fn, *extra_state);
                    C::$c(copy, delete, keyval.cast(), state as usize as i64)
                }
            }
        )*
    };
}

keyvals! {
    comm_create_keyval MPI_Comm_create_keyval Comm;
    type_create_keyval MPI_Type_create_keyval Datatype;
    win_create_keyval MPI_Win_create_keyval Win;
}

/// MPI_KEYVAL_CREATE: the deprecated form of MPI_COMM_CREATE_KEYVAL, with INTEGER values.
pub unsafe fn keyval_create<C: Calls>(
    copy_fn: Ptr,
    delete_fn: Ptr,
    keyval: *mut i32,
    extra_state: *mut i32,
) -> i32 {
    // SAFETY: `keyval` and `extra_state` are INTEGERs in Fortran's interface.
    unsafe {
        let (copy, delete, state) =
            functions::<handle::Comm, i32>(copy_fn, delete_fn, *extra_state);
        C::MPI_Comm_create_keyval(copy, delete, keyval.cast(), state as usize as i64)
    }
}
