//! The table of the watched functions, and the arguments that each passes to the recorder.
//!
//! The text after a name is an expression of `crate::watch::said`. A name in braces stands for the function's parameter of
//! that name: an integer, a C handle, or a pointer into the program's memory. Each entry applies to C and
//! Fortran, and to the large-count variant, whose name ends in `_c`, unless that one has arrays of counts.

/// Names without `MPI_`, and their expressions.
pub const WATCHED: &[(&str, &str)] = &[
    ("Send Ssend Rsend Bsend", SEND),
    ("Recv", RECV),
    (
        "Isend Issend Irsend Ibsend",
        "Said::Started(Way::Send, message!({count}, {datatype}, {dest}, {tag}, {comm}), {request})",
    ),
    (
        "Irecv",
        "Said::Started(Way::Recv, message!({count}, {datatype}, {source}, {tag}, {comm}), {request})",
    ),
    (
        "Send_init Ssend_init Rsend_init Bsend_init",
        "Said::Prepared(Way::Send, message!({count}, {datatype}, {dest}, {tag}, {comm}), {request})",
    ),
    (
        "Recv_init",
        "Said::Prepared(Way::Recv, message!({count}, {datatype}, {source}, {tag}, {comm}), {request})",
    ),
    ("Start", "Said::Starts(1, {request})"),
    ("Startall", "Said::Starts({count}, {array_of_requests})"),
    (
        "Sendrecv",
        "Said::Sendrecv(message!({sendcount}, {sendtype}, {dest}, {sendtag}, {comm}), message!({recvcount}, {recvtype}, {source}, {recvtag}, {comm}), {status})",
    ),
    (
        "Sendrecv_replace",
        "Said::Sendrecv(message!({count}, {datatype}, {dest}, {sendtag}, {comm}), message!({count}, {datatype}, {source}, {recvtag}, {comm}), {status})",
    ),
    ("Probe", "Said::Probe({source}, {tag}, {comm})"),
    (
        "Mprobe",
        "Said::Mprobe({source}, {tag}, {comm}, {message}, {status})",
    ),
    ("Iprobe", "Said::Iprobe({source}, {tag}, {comm}, {flag})"),
    (
        "Improbe",
        "Said::Improbe({source}, {tag}, {comm}, {flag}, {message}, {status})",
    ),
    ("Mrecv", "Said::Mrecv({message})"),
    ("Imrecv", "Said::Imrecv({message}, {request})"),
    (
        "Wait",
        "Said::Completes(Requests::one({request}, {status}), None)",
    ),
    (
        "Waitall",
        "Said::Completes(Requests::all({count}, {array_of_requests}, {array_of_statuses}), None)",
    ),
    (
        "Waitany",
        "Said::Completes(Requests::any({count}, {array_of_requests}, {indx}, {status}), None)",
    ),
    (
        "Waitsome",
        "Said::Completes(Requests::some({incount}, {array_of_requests}, {outcount}, {array_of_indices}, {array_of_statuses}), None)",
    ),
    (
        "Test",
        "Said::Completes(Requests::one({request}, {status}), Some({flag}))",
    ),
    (
        "Testall",
        "Said::Completes(Requests::all({count}, {array_of_requests}, {array_of_statuses}), Some({flag}))",
    ),
    (
        "Testany",
        "Said::Completes(Requests::any({count}, {array_of_requests}, {indx}, {status}), Some({flag}))",
    ),
    (
        "Testsome",
        "Said::Completes(Requests::some({incount}, {array_of_requests}, {outcount}, {array_of_indices}, {array_of_statuses}), Some({outcount}))",
    ),
    ("Request_free", "Said::Forgets({request})"),
    (
        "Bcast",
        "Said::Round(round!(Bcast, {comm}).root({root}).of({count}, {datatype}), None)",
    ),
    (
        "Gather",
        "Said::Round(round!(Gather, {comm}).root({root}), None)",
    ),
    (
        "Gatherv",
        "Said::Round(round!(Gatherv, {comm}).root({root}), None)",
    ),
    (
        "Scatter",
        "Said::Round(round!(Scatter, {comm}).root({root}), None)",
    ),
    (
        "Scatterv",
        "Said::Round(round!(Scatterv, {comm}).root({root}), None)",
    ),
    (
        "Allgather",
        "Said::Round(round!(Allgather, {comm}).of({recvcount}, {recvtype}), None)",
    ),
    (
        "Allgatherv",
        "Said::Round(round!(Allgatherv, {comm}), None)",
    ),
    (
        "Alltoall",
        "Said::Round(round!(Alltoall, {comm}).of({recvcount}, {recvtype}), None)",
    ),
    ("Alltoallv", "Said::Round(round!(Alltoallv, {comm}), None)"),
    ("Alltoallw", "Said::Round(round!(Alltoallw, {comm}), None)"),
    (
        "Reduce",
        "Said::Round(round!(Reduce, {comm}).root({root}).op({op}).of({count}, {datatype}), None)",
    ),
    (
        "Allreduce",
        "Said::Round(round!(Allreduce, {comm}).op({op}).of({count}, {datatype}), None)",
    ),
    (
        "Scan",
        "Said::Round(round!(Scan, {comm}).op({op}).of({count}, {datatype}), None)",
    ),
    (
        "Exscan",
        "Said::Round(round!(Exscan, {comm}).op({op}).of({count}, {datatype}), None)",
    ),
    (
        "Reduce_scatter",
        "Said::Round(round!(ReduceScatter, {comm}).op({op}), None)",
    ),
    (
        "Reduce_scatter_block",
        "Said::Round(round!(ReduceScatterBlock, {comm}).op({op}).of({recvcount}, {datatype}), None)",
    ),
    (
        "Ibarrier",
        "Said::Round(round!(Barrier, {comm}), Some({request}))",
    ),
    (
        "Ibcast",
        "Said::Round(round!(Bcast, {comm}).root({root}).of({count}, {datatype}), Some({request}))",
    ),
    (
        "Igather",
        "Said::Round(round!(Gather, {comm}).root({root}), Some({request}))",
    ),
    (
        "Igatherv",
        "Said::Round(round!(Gatherv, {comm}).root({root}), Some({request}))",
    ),
    (
        "Iscatter",
        "Said::Round(round!(Scatter, {comm}).root({root}), Some({request}))",
    ),
    (
        "Iscatterv",
        "Said::Round(round!(Scatterv, {comm}).root({root}), Some({request}))",
    ),
    (
        "Iallgather",
        "Said::Round(round!(Allgather, {comm}).of({recvcount}, {recvtype}), Some({request}))",
    ),
    (
        "Iallgatherv",
        "Said::Round(round!(Allgatherv, {comm}), Some({request}))",
    ),
    (
        "Ialltoall",
        "Said::Round(round!(Alltoall, {comm}).of({recvcount}, {recvtype}), Some({request}))",
    ),
    (
        "Ialltoallv",
        "Said::Round(round!(Alltoallv, {comm}), Some({request}))",
    ),
    (
        "Ialltoallw",
        "Said::Round(round!(Alltoallw, {comm}), Some({request}))",
    ),
    (
        "Ireduce",
        "Said::Round(round!(Reduce, {comm}).root({root}).op({op}).of({count}, {datatype}), Some({request}))",
    ),
    (
        "Iallreduce",
        "Said::Round(round!(Allreduce, {comm}).op({op}).of({count}, {datatype}), Some({request}))",
    ),
    (
        "Iscan",
        "Said::Round(round!(Scan, {comm}).op({op}).of({count}, {datatype}), Some({request}))",
    ),
    (
        "Iexscan",
        "Said::Round(round!(Exscan, {comm}).op({op}).of({count}, {datatype}), Some({request}))",
    ),
    (
        "Ireduce_scatter",
        "Said::Round(round!(ReduceScatter, {comm}).op({op}), Some({request}))",
    ),
    (
        "Ireduce_scatter_block",
        "Said::Round(round!(ReduceScatterBlock, {comm}).op({op}).of({recvcount}, {datatype}), Some({request}))",
    ),
    // In a neighbourhood collective a rank waits only for its neighbours, so it is not recorded as a collective of all members.
    (
        "Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw \
         Ineighbor_allgather Ineighbor_allgatherv Ineighbor_alltoall Ineighbor_alltoallv Ineighbor_alltoallw",
        "Said::Plain",
    ),
    (
        "Comm_dup Comm_dup_with_info Comm_create Comm_create_group Comm_split Comm_split_type Cart_sub",
        "Said::Makes({newcomm})",
    ),
    ("Cart_create", "Said::Makes({comm_cart})"),
    ("Graph_create", "Said::Makes({comm_graph})"),
    (
        "Dist_graph_create Dist_graph_create_adjacent",
        "Said::Makes({comm_dist_graph})",
    ),
    ("Intercomm_create", "Said::Makes({newintercomm})"),
    ("Intercomm_merge", "Said::Makes({newintracomm})"),
    (
        "Comm_idup",
        "Said::MakesLater({comm}, {newcomm}, {request})",
    ),
    ("Comm_free Comm_disconnect", "Said::Drops({comm})"),
    (
        "Win_create Win_allocate Win_allocate_shared Win_create_dynamic Win_free Win_fence Win_start Win_complete Win_post Win_wait \
         Win_lock Win_lock_all Win_unlock Win_unlock_all Win_flush Win_flush_all Win_flush_local Win_flush_local_all \
         Put Get Accumulate Get_accumulate Fetch_and_op Compare_and_swap",
        "Said::Plain",
    ),
    (
        "File_close File_set_view File_set_size File_sync File_read File_read_all File_read_at File_read_at_all \
         File_write File_write_all File_write_at File_write_at_all File_read_ordered File_write_ordered",
        "Said::Plain",
    ),
];

/// Written by hand in the library; with names and numbers like the others.
pub const BY_HAND: &[&str] = &["Barrier", "Init", "Init_thread", "Finalize"];

/// Functions with character arguments in Fortran, whose lengths are hidden arguments.
pub const C_ALONE: &[&str] = &["File_set_view"];

const SEND: &str = "Said::Send(message!({count}, {datatype}, {dest}, {tag}, {comm}))";
const RECV: &str = "Said::Recv(message!({count}, {datatype}, {source}, {tag}, {comm}), {status})";
