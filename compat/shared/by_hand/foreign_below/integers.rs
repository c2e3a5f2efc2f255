//! Tests of handles as integers. Predefined handles have the standard's integers,
//! dynamic handles those of the backend.

use super::*;

macro_rules! check {
    ($to:ident, $from:ident, $kind:ident) => {{
        for handle in [null(Kind::$kind).0, predefined(Kind::$kind).0] {
            assert_eq!(call!($to(handle)), handle as c_int, "{}", stringify!($to));
            assert_eq!(
                call!($from(handle as c_int)),
                handle,
                "{}",
                stringify!($from)
            );
        }
        for number in [1, 77] {
            let (handle, integer) = (made(number).0, made_as_integer(Kind::$kind, number));
            assert_eq!(call!($to(handle)), integer, "{}", stringify!($to));
            assert_eq!(call!($from(integer)), handle, "{}", stringify!($from));
        }
    }};
}

/// Tests that file handles get consecutive integers in the order of their first conversion.
fn files() {
    let none = null(Kind::File).0 as usize;
    assert_eq!(
        call!(MPI_File_toint(none)),
        none as c_int,
        "MPI_File_toint: null"
    );
    assert_eq!(
        call!(MPI_File_fromint(none as c_int)),
        none,
        "MPI_File_fromint: null"
    );
    let numbers = [1, 2, 1].map(|number| call!(MPI_File_toint(made_file(number).0)));
    assert_eq!(numbers, [0x1000, 0x1001, 0x1000], "MPI_File_toint");
    for number in [1, 2] {
        let file = call!(MPI_File_fromint(0x1000 + number - 1));
        assert_eq!(file, made_file(number as usize).0, "MPI_File_fromint");
    }
    for none_of_them in [0x1002, -1] {
        assert_eq!(
            call!(MPI_File_fromint(none_of_them)),
            none,
            "MPI_File_fromint"
        );
    }
}

pub fn check() {
    check!(MPI_Comm_toint, MPI_Comm_fromint, Comm);
    check!(MPI_Errhandler_toint, MPI_Errhandler_fromint, Errhandler);
    check!(MPI_Group_toint, MPI_Group_fromint, Group);
    check!(MPI_Info_toint, MPI_Info_fromint, Info);
    check!(MPI_Message_toint, MPI_Message_fromint, Message);
    check!(MPI_Op_toint, MPI_Op_fromint, Op);
    check!(MPI_Request_toint, MPI_Request_fromint, Request);
    check!(MPI_Session_toint, MPI_Session_fromint, Session);
    check!(MPI_Type_toint, MPI_Type_fromint, Datatype);
    check!(MPI_Win_toint, MPI_Win_fromint, Win);
    files();
}
