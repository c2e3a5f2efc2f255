//! Tests of operators: the program's reduction function receives the program's datatype handle.

use super::*;

/// The program's reduction function, with `int` or large counts.
unsafe extern "C-unwind" fn operator<C: Copy + Into<i64>>(
    input: *mut c_void,
    inout: *mut c_void,
    count: *mut C,
    datatype: *mut Handle,
) {
    note_where();
    note!(input.addr(), inout.addr(), (*count).into(), *datatype);
}

macro_rules! check {
    ($name:ident: $count:ty) => {{
        let name = stringify!($name);
        let function: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut $count, *mut Handle) =
            operator::<$count>;
        let mut op = null(Kind::Op).0;
        answer_with(failure().1);
        let code = call!($name(function as usize, 1, &raw mut op));
        answer_with(0);
        assert_eq!(code, failure().0, "{name}: the code");
        assert!(called(), "{name} is not called below");
        arrives!(name; 1);
        assert_eq!(op, made(60).0, "{name}: the operator");
        for datatype in handles(Kind::Datatype, 3) {
            let (input, inout) = (scratch(1).cast(), scratch(2).cast());
            // SAFETY: the last created operator has this count type, and ignores the buffers.
            as_library(|| unsafe { direction::operate(input, inout, <$count>::MAX, datatype.1) });
            arrives!(name; false, scratch(1).addr(), scratch(2).addr(), <$count>::MAX, datatype.0);
        }
    }};
}

pub fn check() {
    direction::take_operator();
    check!(MPI_Op_create: c_int);
    direction::take_operator_c();
    check!(MPI_Op_create_c: i64);
}
