//! Conversion of handles to Fortran integers and back (section 20.4).

use crate::abi::*;
use crate::handle::{from_int, to_int};
use std::ffi::c_int;

pub fn MPI_Comm_toint(comm: MPI_Comm) -> c_int {
    to_int(comm.0)
}
pub fn MPI_Comm_fromint(comm: c_int) -> MPI_Comm {
    MPI_Comm(from_int(comm))
}
pub fn MPI_Errhandler_toint(errhandler: MPI_Errhandler) -> c_int {
    to_int(errhandler.0)
}
pub fn MPI_Errhandler_fromint(errhandler: c_int) -> MPI_Errhandler {
    MPI_Errhandler(from_int(errhandler))
}
pub fn MPI_File_toint(file: MPI_File) -> c_int {
    to_int(file.0)
}
pub fn MPI_File_fromint(file: c_int) -> MPI_File {
    MPI_File(from_int(file))
}
pub fn MPI_Group_toint(group: MPI_Group) -> c_int {
    to_int(group.0)
}
pub fn MPI_Group_fromint(group: c_int) -> MPI_Group {
    MPI_Group(from_int(group))
}
pub fn MPI_Info_toint(info: MPI_Info) -> c_int {
    to_int(info.0)
}
pub fn MPI_Info_fromint(info: c_int) -> MPI_Info {
    MPI_Info(from_int(info))
}
pub fn MPI_Message_toint(message: MPI_Message) -> c_int {
    to_int(message.0)
}
pub fn MPI_Message_fromint(message: c_int) -> MPI_Message {
    MPI_Message(from_int(message))
}
pub fn MPI_Op_toint(op: MPI_Op) -> c_int {
    to_int(op.0)
}
pub fn MPI_Op_fromint(op: c_int) -> MPI_Op {
    MPI_Op(from_int(op))
}
pub fn MPI_Request_toint(request: MPI_Request) -> c_int {
    to_int(request.0)
}
pub fn MPI_Request_fromint(request: c_int) -> MPI_Request {
    MPI_Request(from_int(request))
}
pub fn MPI_Session_toint(session: MPI_Session) -> c_int {
    to_int(session.0)
}
pub fn MPI_Session_fromint(session: c_int) -> MPI_Session {
    MPI_Session(from_int(session))
}
pub fn MPI_Type_toint(datatype: MPI_Datatype) -> c_int {
    to_int(datatype.0)
}
pub fn MPI_Type_fromint(datatype: c_int) -> MPI_Datatype {
    MPI_Datatype(from_int(datatype))
}
pub fn MPI_Win_toint(win: MPI_Win) -> c_int {
    to_int(win.0)
}
pub fn MPI_Win_fromint(win: c_int) -> MPI_Win {
    MPI_Win(from_int(win))
}
