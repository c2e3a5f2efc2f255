//! Collectives with a datatype per block (`alltoallw`), among all ranks and among neighbours.
//!
//! The backend may read the arrays of a nonblocking or persistent operation until completion.
//! So converted arrays are kept with the request.

use super::Foreign;
use super::kept_buffers::{Life, keep};
use crate::convert::code_out;
use crate::family::{IN_PLACE, Kind};
use crate::{backend, blocks};
use std::ffi::{c_int, c_void};

/// The datatypes converted for the backend, or `None` if the program passed no array.
struct Types<B>(Option<Vec<B>>);

impl<B> Types<B> {
    fn argument(&self) -> *const B {
        self.0
            .as_ref()
            .map_or(std::ptr::null(), |list| list.as_ptr())
    }
}

// SAFETY: handles are integers or addresses that are never dereferenced here.
unsafe impl<B> Send for Types<B> {}

unsafe fn types<F: Foreign>(from: *const usize, count: c_int) -> Types<F::Below> {
    if from.is_null() {
        return Types(None);
    }
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: `i < count`, and the program's array has `count` elements.
    let list = (0..count).map(|i| F::handle_in(Kind::Datatype, unsafe { from.add(i).read() }));
    Types(Some(list.collect()))
}

macro_rules! blocks {
    ($name:ident<F: Foreign>, $count:ty, $displacement:ty, $lengths:ident $(, info $info:ident)? $(, request $request:ident $life:ident)?) => {
        pub unsafe fn $name<F: Foreign>(
            sendbuf: *const c_void,
            sendcounts: *const $count,
            sdispls: *const $displacement,
            sendtypes: *const usize,
            recvbuf: *mut c_void,
            recvcounts: *const $count,
            rdispls: *const $displacement,
            recvtypes: *const usize,
            comm: usize,
            $($info: usize,)?
            $($request: *mut usize,)?
        ) -> c_int {
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            unsafe {
                let comm = F::handle_in(Kind::Comm, comm);
                let (send, receive) = match blocks::known::<F>(comm) {
                    true => blocks::$lengths::<F>(comm),
                    false => (0, 0),
                };
                let send = if sendbuf.addr() == IN_PLACE { 0 } else { send };
                let sendtypes = types::<F>(sendtypes, send);
                let recvtypes = types::<F>(recvtypes, receive);
                $(let mut made = (F::null(Kind::Request), $request);)?
                let code = (backend::$name::<F>())(
                    F::buffer_in(sendbuf.cast_mut()).cast_const(),
                    sendcounts,
                    sdispls,
                    sendtypes.argument(),
                    F::buffer_in(recvbuf),
                    recvcounts,
                    rdispls,
                    recvtypes.argument(),
                    comm,
                    $(F::handle_in(Kind::Info, $info),)?
                    $(if $request.is_null() { std::ptr::null_mut() } else { &raw mut made.0 },)?
                );
                $(
                    if code == 0 {
                        keep::<F>(made.0, Life::$life, Box::new((sendtypes, recvtypes)));
                    }
                    if !$request.is_null() {
                        made.1.write(F::handle_out(Kind::Request, made.0));
                    }
                )?
                code_out::<F>(code)
            }
        }
    };
}

blocks!(MPI_Alltoallw<F: Foreign>, c_int, c_int, all_ranks);
blocks!(MPI_Alltoallw_c<F: Foreign>, i64, isize, all_ranks);
blocks!(MPI_Ialltoallw<F: Foreign>, c_int, c_int, all_ranks, request request Once);
blocks!(MPI_Ialltoallw_c<F: Foreign>, i64, isize, all_ranks, request request Once);
blocks!(MPI_Alltoallw_init<F: Foreign>, c_int, c_int, all_ranks, info info, request request Persistent);
blocks!(MPI_Alltoallw_init_c<F: Foreign>, i64, isize, all_ranks, info info, request request Persistent);
blocks!(MPI_Neighbor_alltoallw<F: Foreign>, c_int, isize, neighbours);
blocks!(MPI_Neighbor_alltoallw_c<F: Foreign>, i64, isize, neighbours);
blocks!(MPI_Ineighbor_alltoallw<F: Foreign>, c_int, isize, neighbours, request request Once);
blocks!(MPI_Ineighbor_alltoallw_c<F: Foreign>, i64, isize, neighbours, request request Once);
blocks!(MPI_Neighbor_alltoallw_init<F: Foreign>, c_int, isize, neighbours, info info, request request Persistent);
blocks!(MPI_Neighbor_alltoallw_init_c<F: Foreign>, i64, isize, neighbours, info info, request request Persistent);
