//! Tests of collectives with one datatype per block.
//! The number of blocks depends on the communicator's size or topology.

use super::*;

/// A communicator of the mock, with the numbers of blocks that each rank sends and receives.
#[derive(Clone, Copy)]
struct Shape {
    /// True for the null communicator. The library must not query its size or topology.
    null: bool,
    inter: c_int,
    size: c_int,
    remote_size: c_int,
    topology: &'static str,
    neighbours: (c_int, c_int),
    in_place: bool,
    send: usize,
    receive: usize,
}

const PLAIN: Shape = Shape {
    null: false,
    inter: 0,
    size: 3,
    remote_size: 5,
    topology: "MPI_CART",
    neighbours: (0, 0),
    in_place: false,
    send: 3,
    receive: 3,
};

const NULL: Shape = Shape {
    null: true,
    send: 0,
    receive: 0,
    ..PLAIN
};

thread_local! {
    static SHAPE: std::cell::Cell<Shape> = const { std::cell::Cell::new(PLAIN) };
}

fn comm() -> (Handle, Below) {
    match SHAPE.get().null {
        true => null(Kind::Comm),
        false => predefined(Kind::Comm),
    }
}

/// The index at which `see` records the communicator whose size or topology is queried.
const ASKED: usize = 40;
/// The value that `forget` stores at [`ASKED`]. It remains if the library makes no query.
const NOT_ASKED: u64 = 0xdead;

unsafe extern "C-unwind" fn test_inter(comm: Below, flag: *mut c_int) -> c_int {
    see(ASKED, comm as u64);
    *flag = SHAPE.get().inter;
    0
}

unsafe extern "C-unwind" fn size(comm: Below, size: *mut c_int) -> c_int {
    see(ASKED, comm as u64);
    *size = SHAPE.get().size;
    0
}

unsafe extern "C-unwind" fn remote_size(comm: Below, size: *mut c_int) -> c_int {
    see(ASKED, comm as u64);
    *size = SHAPE.get().remote_size;
    0
}

unsafe extern "C-unwind" fn rank(comm: Below, rank: *mut c_int) -> c_int {
    see(ASKED, comm as u64);
    *rank = 1;
    0
}

unsafe extern "C-unwind" fn topology(comm: Below, topology: *mut c_int) -> c_int {
    see(ASKED, comm as u64);
    *topology = constant(SHAPE.get().topology).1;
    0
}

unsafe extern "C-unwind" fn dimensions(comm: Below, dimensions: *mut c_int) -> c_int {
    see(ASKED, comm as u64);
    *dimensions = SHAPE.get().neighbours.0;
    0
}

/// Writes the number of neighbours of a rank in a graph topology.
unsafe extern "C-unwind" fn of_graph(comm: Below, rank: c_int, count: *mut c_int) -> c_int {
    see(ASKED, comm as u64);
    *count = if rank == 1 {
        SHAPE.get().neighbours.0
    } else {
        0
    };
    0
}

unsafe extern "C-unwind" fn of_distributed_graph(
    comm: Below,
    from: *mut c_int,
    to: *mut c_int,
    weighted: *mut c_int,
) -> c_int {
    see(ASKED, comm as u64);
    (*from, *to) = SHAPE.get().neighbours;
    *weighted = 0;
    0
}

/// A mock of `MPI_Request_get_status`. Reports that the operation is still active.
unsafe extern "C-unwind" fn is_pending(_: Below, flag: *mut c_int, _: *mut BelowStatus) -> c_int {
    *flag = 0;
    0
}

/// Returns the communicators for collectives among all ranks, with their numbers of blocks.
fn among_all() -> Vec<Shape> {
    let one = |inter, size, in_place, send, receive| Shape {
        inter,
        size,
        in_place,
        send,
        receive,
        ..PLAIN
    };
    vec![
        one(0, 3, false, 3, 3),
        one(0, 20, false, 20, 20),
        one(1, 3, false, 5, 5),
        one(0, 4, true, 0, 4),
        NULL,
    ]
}

fn among_neighbours() -> Vec<Shape> {
    let one = |topology, neighbours, send, receive| Shape {
        topology,
        neighbours,
        send,
        receive,
        ..PLAIN
    };
    vec![
        one("MPI_CART", (2, 0), 4, 4),
        one("MPI_CART", (9, 0), 18, 18),
        one("MPI_GRAPH", (3, 0), 3, 3),
        one("MPI_DIST_GRAPH", (2, 17), 17, 2),
        NULL,
    ]
}

/// Records the `count` datatypes that the backend receives.
unsafe fn note_types(types: *const Below, count: usize) {
    for i in 0..count {
        note!(*types.add(i));
    }
}

macro_rules! check {
    ($name:ident($count:ty, $displacement:ty), $shapes:ident $(, info $info:ident)? $(, request $request:ident)?) => {{
        unsafe extern "C-unwind" fn mock(
            sendbuf: *const c_void,
            sendcounts: *const $count,
            sdispls: *const $displacement,
            sendtypes: *const Below,
            recvbuf: *mut c_void,
            recvcounts: *const $count,
            rdispls: *const $displacement,
            recvtypes: *const Below,
            comm: Below,
            $($info: Below,)?
            $($request: *mut Below,)?
        ) -> c_int {
            arrived();
            note!(sendbuf.addr(), sendcounts.addr(), sdispls.addr(), recvbuf.addr());
            note!(recvcounts.addr(), rdispls.addr(), comm);
            $( note!($info); )?
            $( *$request = made(50).1; )?
            note_types(sendtypes, SHAPE.get().send);
            note_types(recvtypes, SHAPE.get().receive);
            keep(0, sendtypes.expose_provenance());
            keep(1, recvtypes.expose_provenance());
            answer()
        }
        let name = stringify!($name);
        for (shape, (code, code_below)) in $shapes().into_iter().zip([(0, 0), (0, 0), failure(), (0, 0), failure()]) {
            SHAPE.set(shape);
            let sendtypes = handles(Kind::Datatype, shape.send);
            let recvtypes: Vec<_> = handles(Kind::Datatype, shape.receive + 1).split_off(1);
            let (sendbuf, sendbuf_below) = match shape.in_place {
                true => (PROGRAM.in_place(), BELOW.in_place()),
                false => (scratch(0).addr(), scratch(0).addr()),
            };
            $( let $info = predefined(Kind::Info); )?
            $( let mut $request = null(Kind::Request).0; )?
            mock!($name = mock);
            answer_with(code_below);
            let (given_send, given_receive) = (of_program(&sendtypes), of_program(&recvtypes));
            let found = call!($name(
                sendbuf as *const c_void,
                scratch(1) as *const $count,
                scratch(2) as *const $displacement,
                given_send.as_ptr(),
                scratch(3) as *mut c_void,
                scratch(4) as *const $count,
                scratch(5) as *const $displacement,
                given_receive.as_ptr(),
                comm().0,
                $($info.0,)?
                $(&raw mut $request,)?
            ));
            answer_with(0);
            assert_eq!(found, code, "{name}: the code");
            let mut expected = list![sendbuf_below, scratch(1).addr(), scratch(2).addr(), scratch(3).addr()];
            expected.extend(list![scratch(4).addr(), scratch(5).addr(), comm().1]);
            $( expected.extend(list![$info.1]); )?
            let types: Vec<u64> = sendtypes.iter().chain(&recvtypes).map(|pair| pair.1 as u64).collect();
            expected.extend(&types);
            assert_eq!(noted(), expected, "{name}: what arrives below");
            let asked = if shape.null { NOT_ASKED } else { comm().1 as u64 };
            assert_eq!(seen(ASKED), asked, "{name}: which communicator is asked");
            $(
                assert_eq!($request, made(50).0, "{name}: the request");
                if direction::FOREIGN && code == 0 {
                    // SAFETY: the backend reads the arrays until the operation completes.
                    // So the library keeps both arrays, with the lengths of this shape.
                    unsafe {
                        note_types(std::ptr::with_exposed_provenance(kept(0)), shape.send);
                        note_types(std::ptr::with_exposed_provenance(kept(1)), shape.receive);
                    }
                    assert_eq!(noted(), types, "{name}: what is there after the call");
                }
            )?
        }
    }};
}

pub fn check() {
    below!(
        MPI_Comm_test_inter = test_inter,
        MPI_Comm_size = size,
        MPI_Comm_remote_size = remote_size,
        MPI_Comm_rank = rank,
        MPI_Topo_test = topology,
        MPI_Cartdim_get = dimensions,
        MPI_Graph_neighbors_count = of_graph,
        MPI_Dist_graph_neighbors_count = of_distributed_graph,
        MPI_Request_get_status = is_pending,
    );
    check!(MPI_Alltoallw(c_int, c_int), among_all);
    check!(MPI_Alltoallw_c(i64, isize), among_all);
    check!(MPI_Ialltoallw(c_int, c_int), among_all, request request);
    check!(MPI_Ialltoallw_c(i64, isize), among_all, request request);
    check!(MPI_Alltoallw_init(c_int, c_int), among_all, info info, request request);
    check!(MPI_Alltoallw_init_c(i64, isize), among_all, info info, request request);
    check!(MPI_Neighbor_alltoallw(c_int, isize), among_neighbours);
    check!(MPI_Neighbor_alltoallw_c(i64, isize), among_neighbours);
    check!(MPI_Ineighbor_alltoallw(c_int, isize), among_neighbours, request request);
    check!(MPI_Ineighbor_alltoallw_c(i64, isize), among_neighbours, request request);
    check!(MPI_Neighbor_alltoallw_init(c_int, isize), among_neighbours, info info, request request);
    check!(MPI_Neighbor_alltoallw_init_c(i64, isize), among_neighbours, info info, request request);
}
