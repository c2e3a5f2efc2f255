//! Handles as integers (`MPI_X_toint`, `MPI_X_fromint`).
//! Predefined handles have the standard's integers, dynamic handles the backend's.

use super::Foreign;
use crate::family::{FIRST_DYNAMIC, Kind};
use crate::lock::lock;
use std::ffi::c_int;

macro_rules! integers {
    ($to:ident<F: Foreign>, $from:ident<F: Foreign>, $kind:ident) => {
        pub unsafe fn $to<F: Foreign>(handle: usize) -> c_int {
            if handle < FIRST_DYNAMIC {
                return handle as c_int;
            }
            F::integer_of(Kind::$kind, F::handle_in(Kind::$kind, handle))
        }

        pub unsafe fn $from<F: Foreign>(integer: c_int) -> usize {
            if let Ok(small @ ..FIRST_DYNAMIC) = usize::try_from(integer) {
                return small;
            }
            F::handle_out(Kind::$kind, F::of_integer(Kind::$kind, integer))
        }
    };
}

integers!(MPI_Comm_toint<F: Foreign>, MPI_Comm_fromint<F: Foreign>, Comm);
integers!(MPI_Errhandler_toint<F: Foreign>, MPI_Errhandler_fromint<F: Foreign>, Errhandler);
integers!(MPI_Group_toint<F: Foreign>, MPI_Group_fromint<F: Foreign>, Group);
integers!(MPI_Info_toint<F: Foreign>, MPI_Info_fromint<F: Foreign>, Info);
integers!(MPI_Message_toint<F: Foreign>, MPI_Message_fromint<F: Foreign>, Message);
integers!(MPI_Op_toint<F: Foreign>, MPI_Op_fromint<F: Foreign>, Op);
integers!(MPI_Request_toint<F: Foreign>, MPI_Request_fromint<F: Foreign>, Request);
integers!(MPI_Session_toint<F: Foreign>, MPI_Session_fromint<F: Foreign>, Session);
integers!(MPI_Type_toint<F: Foreign>, MPI_Type_fromint<F: Foreign>, Datatype);
integers!(MPI_Win_toint<F: Foreign>, MPI_Win_fromint<F: Foreign>, Win);

/// File handles (pointers) that were converted to integers: the integer is 0x1000 plus the index.
static FILES: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());

pub unsafe fn MPI_File_toint<F: Foreign>(file: usize) -> c_int {
    if file < FIRST_DYNAMIC {
        return file as c_int;
    }
    let mut files = lock(&FILES);
    let known = files.iter().position(|known| *known == file);
    let index = known.unwrap_or_else(|| {
        files.push(file);
        files.len() - 1
    });
    c_int::try_from(FIRST_DYNAMIC + index).unwrap_or(Kind::File.null() as c_int)
}

pub unsafe fn MPI_File_fromint<F: Foreign>(integer: c_int) -> usize {
    let Ok(number) = usize::try_from(integer) else {
        return Kind::File.null();
    };
    if number < FIRST_DYNAMIC {
        return number;
    }
    let files = lock(&FILES);
    files
        .get(number - FIRST_DYNAMIC)
        .copied()
        .unwrap_or(Kind::File.null())
}
