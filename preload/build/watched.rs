//! The table of the watched functions, and the arguments that each passes to the recorder.
//!
//! The text after a name is an expression of `crate::watch::call_args`.
//! A name in braces is the function's parameter of that name:
//! an integer, a C handle, or a pointer into the program's memory.
//! Each entry applies to C and Fortran, and to the large-count variant `NAME_c`,
//! unless the variant has arrays of counts.

/// Names of the functions without `MPI_`, each with its recorder expression.
pub const WATCHED: &[(&str, &str)] = &[
    ("Send Ssend Rsend Bsend", SEND),
    ("Recv", RECV),
    (
        "Isend Issend Irsend Ibsend",
        "CallArgs::Started(Direction::Send, message!({count}, {datatype}, {dest}, {tag}, {comm}), {request})",
    ),
    (
        "Irecv",
        "CallArgs::Started(Direction::Recv, message!({count}, {datatype}, {source}, {tag}, {comm}), {request})",
    ),
    (
        "Send_init Ssend_init Rsend_init Bsend_init",
        "CallArgs::Prepared(Direction::Send, message!({count}, {datatype}, {dest}, {tag}, {comm}), {request})",
    ),
    (
        "Recv_init",
        "CallArgs::Prepared(Direction::Recv, message!({count}, {datatype}, {source}, {tag}, {comm}), {request})",
    ),
    ("Start", "CallArgs::Starts(1, {request})"),
    ("Startall", "CallArgs::Starts({count}, {array_of_requests})"),
    (
        "Sendrecv",
        "CallArgs::Sendrecv(message!({sendcount}, {sendtype}, {dest}, {sendtag}, {comm}), message!({recvcount}, {recvtype}, {source}, {recvtag}, {comm}), {status})",
    ),
    (
        "Sendrecv_replace",
        "CallArgs::Sendrecv(message!({count}, {datatype}, {dest}, {sendtag}, {comm}), message!({count}, {datatype}, {source}, {recvtag}, {comm}), {status})",
    ),
    ("Probe", "CallArgs::Probe({source}, {tag}, {comm})"),
    (
        "Mprobe",
        "CallArgs::Mprobe({source}, {tag}, {comm}, {message}, {status})",
    ),
    (
        "Iprobe",
        "CallArgs::Iprobe({source}, {tag}, {comm}, {flag})",
    ),
    (
        "Improbe",
        "CallArgs::Improbe({source}, {tag}, {comm}, {flag}, {message}, {status})",
    ),
    ("Mrecv", "CallArgs::Mrecv({message})"),
    ("Imrecv", "CallArgs::Imrecv({message}, {request})"),
    (
        "Wait",
        "CallArgs::Completes(Requests::one({request}, {status}), None)",
    ),
    (
        "Waitall",
        "CallArgs::Completes(Requests::all({count}, {array_of_requests}, {array_of_statuses}), None)",
    ),
    (
        "Waitany",
        "CallArgs::Completes(Requests::any({count}, {array_of_requests}, {indx}, {status}), None)",
    ),
    (
        "Waitsome",
        "CallArgs::Completes(Requests::some({incount}, {array_of_requests}, {outcount}, {array_of_indices}, {array_of_statuses}), None)",
    ),
    (
        "Test",
        "CallArgs::Completes(Requests::one({request}, {status}), Some({flag}))",
    ),
    (
        "Testall",
        "CallArgs::Completes(Requests::all({count}, {array_of_requests}, {array_of_statuses}), Some({flag}))",
    ),
    (
        "Testany",
        "CallArgs::Completes(Requests::any({count}, {array_of_requests}, {indx}, {status}), Some({flag}))",
    ),
    (
        "Testsome",
        "CallArgs::Completes(Requests::some({incount}, {array_of_requests}, {outcount}, {array_of_indices}, {array_of_statuses}), Some({outcount}))",
    ),
    ("Request_free", "CallArgs::Forgets({request})"),
    (
        "Bcast",
        "CallArgs::Round(round!(Bcast, {comm}).root({root}).of({count}, {datatype}), None)",
    ),
    (
        "Gather",
        "CallArgs::Round(round!(Gather, {comm}).root({root}), None)",
    ),
    (
        "Gatherv",
        "CallArgs::Round(round!(Gatherv, {comm}).root({root}), None)",
    ),
    (
        "Scatter",
        "CallArgs::Round(round!(Scatter, {comm}).root({root}), None)",
    ),
    (
        "Scatterv",
        "CallArgs::Round(round!(Scatterv, {comm}).root({root}), None)",
    ),
    (
        "Allgather",
        "CallArgs::Round(round!(Allgather, {comm}).of({recvcount}, {recvtype}), None)",
    ),
    (
        "Allgatherv",
        "CallArgs::Round(round!(Allgatherv, {comm}), None)",
    ),
    (
        "Alltoall",
        "CallArgs::Round(round!(Alltoall, {comm}).of({recvcount}, {recvtype}), None)",
    ),
    (
        "Alltoallv",
        "CallArgs::Round(round!(Alltoallv, {comm}), None)",
    ),
    (
        "Alltoallw",
        "CallArgs::Round(round!(Alltoallw, {comm}), None)",
    ),
    (
        "Reduce",
        "CallArgs::Round(round!(Reduce, {comm}).root({root}).op({op}).of({count}, {datatype}), None)",
    ),
    (
        "Allreduce",
        "CallArgs::Round(round!(Allreduce, {comm}).op({op}).of({count}, {datatype}), None)",
    ),
    (
        "Scan",
        "CallArgs::Round(round!(Scan, {comm}).op({op}).of({count}, {datatype}), None)",
    ),
    (
        "Exscan",
        "CallArgs::Round(round!(Exscan, {comm}).op({op}).of({count}, {datatype}), None)",
    ),
    (
        "Reduce_scatter",
        "CallArgs::Round(round!(ReduceScatter, {comm}).op({op}), None)",
    ),
    (
        "Reduce_scatter_block",
        "CallArgs::Round(round!(ReduceScatterBlock, {comm}).op({op}).of({recvcount}, {datatype}), None)",
    ),
    (
        "Ibarrier",
        "CallArgs::Round(round!(Barrier, {comm}), Some({request}))",
    ),
    (
        "Ibcast",
        "CallArgs::Round(round!(Bcast, {comm}).root({root}).of({count}, {datatype}), Some({request}))",
    ),
    (
        "Igather",
        "CallArgs::Round(round!(Gather, {comm}).root({root}), Some({request}))",
    ),
    (
        "Igatherv",
        "CallArgs::Round(round!(Gatherv, {comm}).root({root}), Some({request}))",
    ),
    (
        "Iscatter",
        "CallArgs::Round(round!(Scatter, {comm}).root({root}), Some({request}))",
    ),
    (
        "Iscatterv",
        "CallArgs::Round(round!(Scatterv, {comm}).root({root}), Some({request}))",
    ),
    (
        "Iallgather",
        "CallArgs::Round(round!(Allgather, {comm}).of({recvcount}, {recvtype}), Some({request}))",
    ),
    (
        "Iallgatherv",
        "CallArgs::Round(round!(Allgatherv, {comm}), Some({request}))",
    ),
    (
        "Ialltoall",
        "CallArgs::Round(round!(Alltoall, {comm}).of({recvcount}, {recvtype}), Some({request}))",
    ),
    (
        "Ialltoallv",
        "CallArgs::Round(round!(Alltoallv, {comm}), Some({request}))",
    ),
    (
        "Ialltoallw",
        "CallArgs::Round(round!(Alltoallw, {comm}), Some({request}))",
    ),
    (
        "Ireduce",
        "CallArgs::Round(round!(Reduce, {comm}).root({root}).op({op}).of({count}, {datatype}), Some({request}))",
    ),
    (
        "Iallreduce",
        "CallArgs::Round(round!(Allreduce, {comm}).op({op}).of({count}, {datatype}), Some({request}))",
    ),
    (
        "Iscan",
        "CallArgs::Round(round!(Scan, {comm}).op({op}).of({count}, {datatype}), Some({request}))",
    ),
    (
        "Iexscan",
        "CallArgs::Round(round!(Exscan, {comm}).op({op}).of({count}, {datatype}), Some({request}))",
    ),
    (
        "Ireduce_scatter",
        "CallArgs::Round(round!(ReduceScatter, {comm}).op({op}), Some({request}))",
    ),
    (
        "Ireduce_scatter_block",
        "CallArgs::Round(round!(ReduceScatterBlock, {comm}).op({op}).of({recvcount}, {datatype}), Some({request}))",
    ),
    // A rank in a neighbourhood collective waits only for its neighbours,
    // so the call is not recorded as a collective of all members.
    (
        "Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw \
         Ineighbor_allgather Ineighbor_allgatherv Ineighbor_alltoall Ineighbor_alltoallv Ineighbor_alltoallw",
        "CallArgs::Plain",
    ),
    (
        "Comm_dup Comm_dup_with_info Comm_create Comm_create_group Comm_split Comm_split_type Cart_sub",
        "CallArgs::Makes({newcomm})",
    ),
    ("Cart_create", "CallArgs::Makes({comm_cart})"),
    ("Graph_create", "CallArgs::Makes({comm_graph})"),
    (
        "Dist_graph_create Dist_graph_create_adjacent",
        "CallArgs::Makes({comm_dist_graph})",
    ),
    ("Intercomm_create", "CallArgs::Makes({newintercomm})"),
    ("Intercomm_merge", "CallArgs::Makes({newintracomm})"),
    (
        "Comm_idup",
        "CallArgs::MakesLater({comm}, {newcomm}, {request})",
    ),
    ("Comm_free Comm_disconnect", "CallArgs::Drops({comm})"),
    (
        "Win_create Win_allocate Win_allocate_shared Win_create_dynamic Win_free Win_fence Win_start Win_complete Win_post Win_wait \
         Win_lock Win_lock_all Win_unlock Win_unlock_all Win_flush Win_flush_all Win_flush_local Win_flush_local_all \
         Put Get Accumulate Get_accumulate Fetch_and_op Compare_and_swap",
        "CallArgs::Plain",
    ),
    (
        "File_close File_set_view File_set_size File_sync File_read File_read_all File_read_at File_read_at_all \
         File_write File_write_all File_write_at File_write_at_all File_read_ordered File_write_ordered",
        "CallArgs::Plain",
    ),
];

/// Functions whose wrappers are written by hand; the build assigns their numbers.
pub const BY_HAND: &[&str] = &["Barrier", "Init", "Init_thread", "Finalize"];

/// Functions wrapped only in C: their Fortran form has hidden string-length arguments.
pub const C_ALONE: &[&str] = &["File_set_view"];

const SEND: &str = "CallArgs::Send(message!({count}, {datatype}, {dest}, {tag}, {comm}))";
const RECV: &str =
    "CallArgs::Recv(message!({count}, {datatype}, {source}, {tag}, {comm}), {status})";
