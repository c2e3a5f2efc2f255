//! Tests of error handlers: the backend calls the program's handler.
//!
//! The handler receives the program's handle and error code.
//! The backend receives the error code that the handler stores.

use super::*;

/// The program's error handler, which replaces the code of [`failure`] by another code.
unsafe extern "C-unwind" fn handler<H: Copy + TryInto<u64>>(object: *mut H, code: *mut c_int) {
    note_where();
    note!((*object).try_into().unwrap_or(0), *code);
    if *code == failure().0 {
        *code = other_failure().0;
    }
}

macro_rules! check {
    ($name:ident: $handle:ty, $below:ty, $of:expr, $objects:expr) => {{
        let name = stringify!($name);
        let function: unsafe extern "C-unwind" fn(*mut $handle, *mut c_int) = handler::<$handle>;
        direction::take_handler($of);
        let mut made_here = null(Kind::Errhandler).0;
        answer_with(failure().1);
        let code = call!($name(function as usize, &raw mut made_here));
        answer_with(0);
        assert_eq!(code, failure().0, "{name}: the code");
        assert!(called(), "{name} is not called below");
        assert_eq!(made_here, made(61).0, "{name}: the handler");
        for (object, object_below) in $objects {
            for (found, left) in [(failure(), other_failure()), (other_failure(), other_failure())] {
                let (mut object_below, mut code) = (object_below as $below, found.1);
                // SAFETY: the backend received a function for handles of this type.
                // Both addresses are those of local variables.
                as_library(|| unsafe { direction::handle(&raw mut object_below, &raw mut code) });
                arrives!(name; false, object, found.0);
                assert_eq!(code, left.1, "{name}: the code that the handler leaves");
            }
        }
    }};
}

pub fn check() {
    use direction::Of;
    check!(MPI_Comm_create_errhandler: Handle, Below, Of::Comm, [predefined(Kind::Comm), made(8)]);
    check!(MPI_Win_create_errhandler: Handle, Below, Of::Win, [null(Kind::Win), made(8)]);
    check!(MPI_Session_create_errhandler: Handle, Below, Of::Session, [null(Kind::Session), made(8)]);
    let no_file = null(Kind::File);
    let no_file = (no_file.0 as usize, no_file.1 as usize);
    check!(MPI_File_create_errhandler: usize, usize, Of::File, [no_file, made_file(8)]);
}
