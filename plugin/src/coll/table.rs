//! The C tables of collective components, generated from `portcullis/plugin.h`.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

// generated from mpi-core/include/portcullis/plugin.h: tables
/// The version of the interface; the library loads only plugins for its own version.
pub const ABI_VERSION: u32 = 2;

/// The minor version, which increases if slots are added to a table.
pub const ABI_MINOR: u32 = 0;

/// A hash over the layout of all tables below; it detects a header that was changed by hand.
pub const ABI_LAYOUT: u32 = 0x60ee_93e3;

/// The call failed; the reason is in why.
pub const FAILED: c_int = -1;
/// The call has completed.
pub const DONE: c_int = 0;
/// The operation is in progress; test it again.
pub const PENDING: c_int = 1;
/// The next lower component serves the call; all members must return this for the same call.
pub const NEXT: c_int = 2;

/// The reason of a failure or refusal, as one sentence.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Why {
    /// The sentence in UTF-8, with a NUL at its end.
    pub text: [c_char; 512],
}

/// The library's handle of a communicator for one module; valid from query until free.
#[repr(C)]
#[derive(Debug)]
pub struct Comm {
    _private: [u8; 0],
}

/// A call; valid until the blocking function returns, or until test no longer returns PENDING.
#[repr(C)]
#[derive(Debug)]
pub struct Call {
    _private: [u8; 0],
}

/// A datatype; valid during the call. A datatype from named_type is valid until free is called.
#[repr(C)]
#[derive(Debug)]
pub struct Type {
    _private: [u8; 0],
}

/// A reduction operator, predefined or user-defined; valid during the call.
#[repr(C)]
#[derive(Debug)]
pub struct Op {
    _private: [u8; 0],
}

/// A predefined operator on one predefined type without gaps; valid until dense returns.
#[repr(C)]
#[derive(Debug)]
pub struct DenseOp {
    _private: [u8; 0],
}

/// count elements of a type. address is the MPI buffer address, so data may begin before it.
/// This structure never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// The MPI buffer address.
    pub address: *mut c_void,
    /// The number of elements.
    pub count: i64,
    /// The datatype of the elements.
    pub datatype: *const Type,
}

/// The sizes of a datatype in bytes. The caller sets size to sizeof(portcullis_type_info).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TypeInfo {
    /// The size of this structure in the version of the caller.
    pub size: usize,
    /// The size of the data of one element.
    pub bytes: i64,
    /// The lower bound.
    pub lb: i64,
    /// The distance from one element to the next.
    pub extent: i64,
    /// The offset of the lowest byte of data.
    pub true_lb: i64,
    /// The distance from the lowest byte of data to the end of the highest.
    pub true_extent: i64,
    /// The MPI_Datatype value of a predefined type in the standard ABI of MPI 5.0; else 0.
    pub handle: usize,
}

/// The properties of an operator. The caller sets size to sizeof(portcullis_op_info).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The size of this structure in the version of the caller.
    pub size: usize,
    /// The MPI_Op value of a predefined operator in the standard ABI of MPI 5.0; else 0.
    pub handle: usize,
    /// 1 if the operator is commutative, else 0.
    pub commutes: c_int,
}

/// The location of this process. The caller sets size to sizeof(portcullis_topology).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Topology {
    /// The size of this structure in the version of the caller.
    pub size: usize,
    /// The name of this host.
    pub host: *const c_char,
    /// The number of cores that this process may use.
    pub cores: u32,
    /// The number of ranks of the job on this host.
    pub ranks_here: u32,
}

/// MPI_Barrier, MPI_Ibarrier or MPI_Barrier_init.
pub const BARRIER: u32 = 0;
/// MPI_Bcast, MPI_Ibcast or MPI_Bcast_init.
pub const BCAST: u32 = 1;
/// MPI_Gather, MPI_Igather or MPI_Gather_init.
pub const GATHER: u32 = 2;
/// MPI_Gatherv, MPI_Igatherv or MPI_Gatherv_init.
pub const GATHERV: u32 = 3;
/// MPI_Scatter, MPI_Iscatter or MPI_Scatter_init.
pub const SCATTER: u32 = 4;
/// MPI_Scatterv, MPI_Iscatterv or MPI_Scatterv_init.
pub const SCATTERV: u32 = 5;
/// MPI_Allgather, MPI_Iallgather or MPI_Allgather_init.
pub const ALLGATHER: u32 = 6;
/// MPI_Allgatherv, MPI_Iallgatherv or MPI_Allgatherv_init.
pub const ALLGATHERV: u32 = 7;
/// MPI_Alltoall, MPI_Ialltoall or MPI_Alltoall_init.
pub const ALLTOALL: u32 = 8;
/// MPI_Alltoallv, MPI_Ialltoallv or MPI_Alltoallv_init.
pub const ALLTOALLV: u32 = 9;
/// MPI_Alltoallw, MPI_Ialltoallw or MPI_Alltoallw_init.
pub const ALLTOALLW: u32 = 10;
/// MPI_Reduce, MPI_Ireduce or MPI_Reduce_init.
pub const REDUCE: u32 = 11;
/// MPI_Allreduce, MPI_Iallreduce or MPI_Allreduce_init.
pub const ALLREDUCE: u32 = 12;
/// MPI_Reduce_scatter, MPI_Ireduce_scatter or MPI_Reduce_scatter_init.
pub const REDUCE_SCATTER: u32 = 13;
/// MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block or MPI_Reduce_scatter_block_init.
pub const REDUCE_SCATTER_BLOCK: u32 = 14;
/// MPI_Scan, MPI_Iscan or MPI_Scan_init.
pub const SCAN: u32 = 15;
/// MPI_Exscan, MPI_Iexscan or MPI_Exscan_init.
pub const EXSCAN: u32 = 16;
/// MPI_Neighbor_allgather, MPI_Ineighbor_allgather or MPI_Neighbor_allgather_init.
pub const NEIGHBOR_ALLGATHER: u32 = 17;
/// MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv or MPI_Neighbor_allgatherv_init.
pub const NEIGHBOR_ALLGATHERV: u32 = 18;
/// MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall or MPI_Neighbor_alltoall_init.
pub const NEIGHBOR_ALLTOALL: u32 = 19;
/// MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv or MPI_Neighbor_alltoallv_init.
pub const NEIGHBOR_ALLTOALLV: u32 = 20;
/// MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw or MPI_Neighbor_alltoallw_init.
pub const NEIGHBOR_ALLTOALLW: u32 = 21;

/// No rank: the root of an operation without a root, or a neighbour MPI_PROC_NULL.
pub const NO_RANK: u32 = 0xffff_ffff;

/// The arguments of one call; valid during the call. A missing argument is NULL or 0.
/// In v and w forms there is one buffer per rank or neighbour, with displacements in the addresses.
/// In other forms one buffer has all blocks of count elements: one block per rank for gather,
/// scatter, allgather and alltoall, or one block per neighbour for a neighbourhood operation.
/// Neighbourhood blocks to or from PORTCULLIS_NO_RANK stay unchanged.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Args {
    /// The size of this structure in bytes.
    pub size: usize,
    /// The operation: PORTCULLIS_BARRIER or another constant of the same enum.
    pub operation: u32,
    /// The root; PORTCULLIS_NO_RANK for an operation without a root.
    pub root: u32,
    /// The operator; NULL for an operation without an operator.
    pub op: *const Op,
    /// The send buffers; NULL for MPI_IN_PLACE: the data are then in recv. MPI_Bcast has only recv.
    pub send: *const Buffer,
    /// The receive buffers.
    pub recv: *const Buffer,
    /// The number of buffers at send.
    pub send_count: u32,
    /// The number of buffers at recv.
    pub recv_count: u32,
    /// For MPI_Reduce_scatter: the number of elements for each rank.
    pub counts: *const i64,
    /// For neighbourhood operations: the rank of each receive block; source_count ranks.
    pub sources: *const u32,
    /// For neighbourhood operations: the rank of each send block; destination_count ranks.
    pub destinations: *const u32,
    /// The bytes of one rank's block or of all data; 0 if the standard lets members differ.
    pub bytes: u64,
    /// For a persistent operation: a pointer that is kept between starts and is NULL at first.
    /// The function forget gets it when the operation is freed. For other operations plan is NULL.
    pub plan: *mut *mut c_void,
    /// See `sources`.
    pub source_count: u32,
    /// See `destinations`.
    pub destination_count: u32,
    /// The receive blocks in the order in which the sources send them. The order matters only
    /// if one rank is a neighbour twice.
    pub arrivals: *const u32,
    /// The number of blocks at arrivals.
    pub arrival_count: u32,
}

/// Printed by rank 0 with mpirun --explain; from a transport never printed.
pub const INFO: c_int = 0;
/// Always printed.
pub const WARNING: c_int = 1;

/// The services of the library. Services marked "Blocking" progress MPI while they wait.
/// Only enable, barrier, run, dense, eureka_begin and eureka_end may call blocking services,
/// which fail when called from inside progress.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// The size of this table in bytes.
    pub size: usize,
    /// The value of PORTCULLIS_ABI_VERSION.
    pub abi_version: u32,
    /// Reserved for later versions.
    pub reserved: u32,
    /// The name and version of the library.
    pub library: *const c_char,
    /// Returns the rank of this process.
    pub comm_rank: Option<unsafe extern "C" fn(*mut Comm) -> u32>,
    /// Returns the number of members.
    pub comm_size: Option<unsafe extern "C" fn(*mut Comm) -> u32>,
    /// Returns the name at the time of query; a description if the communicator had no name.
    pub comm_name: Option<unsafe extern "C" fn(*mut Comm) -> *const c_char>,
    /// Returns 1 for MPI_COMM_WORLD, else 0.
    pub comm_is_world: Option<unsafe extern "C" fn(*mut Comm) -> c_int>,
    /// Writes up to capacity ranks of members on this node, ascending.
    /// Returns the number of members on this node.
    pub comm_node_ranks: Option<unsafe extern "C" fn(*mut Comm, ranks: *mut u32, capacity: u32) -> u32>,
    /// send and recv: messages among this module's members, separate from all others. Blocking.
    /// Messages between two ranks arrive in order. A receive of another length fails.
    pub send: Option<unsafe extern "C" fn(*mut Comm, dest: u32, data: *const c_void, bytes: usize, *mut Why) -> c_int>,
    /// See `send`.
    pub recv: Option<unsafe extern "C" fn(*mut Comm, source: u32, data: *mut c_void, bytes: usize, *mut Why) -> c_int>,
    /// A barrier: returns after every member has called fence. Blocking.
    pub fence: Option<unsafe extern "C" fn(*mut Comm, *mut Why) -> c_int>,
    /// Nonblocking send and recv, whose messages match only each other. Allowed from enable on.
    /// Both write the number to pass to test_message.
    /// A send copies its data; a receive only has the length.
    pub start_send: Option<unsafe extern "C" fn(*mut Comm, dest: u32, data: *const c_void, bytes: usize, message: *mut u64, *mut Why) -> c_int>,
    /// Starts to receive a message of this number of bytes; see start_send.
    pub start_recv: Option<unsafe extern "C" fn(*mut Comm, source: u32, bytes: usize, message: *mut u64, *mut Why) -> c_int>,
    /// Returns DONE, PENDING or FAILED. DONE invalidates the number.
    /// After DONE a received message is in data; for a sent message data may be NULL.
    pub test_message: Option<unsafe extern "C" fn(*mut Comm, message: u64, data: *mut c_void, bytes: usize, *mut Why) -> c_int>,
    /// Calls MPI's progress engine once, without a sleep. Returns 1 if it made progress, else 0.
    pub progress: Option<unsafe extern "C" fn(*mut Comm) -> c_int>,
    /// Waits until ready(argument) is not 0, with progress and the waiting policy. Blocking.
    /// A process that makes ready true for another process must call ring for it.
    /// In a fault-tolerant job it fails if a member has died or the communicator is revoked.
    /// A plugin that waits with progress instead must poll failed_ranks.
    /// Returns PORTCULLIS_DONE, or PORTCULLIS_PENDING after limit_ns nanoseconds (0: no limit).
    pub wait: Option<unsafe extern "C" fn(*mut Comm, ready: Option<Ready>, argument: *mut c_void, limit_ns: u64, *mut Why) -> c_int>,
    /// Wakes a member on this node if it sleeps.
    /// The caller must store the data that the member waits for before it calls this.
    pub ring: Option<unsafe extern "C" fn(*mut Comm, rank: u32)>,
    /// Allocates zeroed memory shared by the members on this node; collective over them. Blocking.
    /// The last module that is freed releases it. align is a power of 2 up to 4096.
    pub shared_memory: Option<unsafe extern "C" fn(*mut Comm, bytes: usize, align: usize, memory: *mut *mut c_void, *mut Why) -> c_int>,
    /// Returns the value of a parameter of the plugin as text; NULL for an unknown name.
    pub param: Option<unsafe extern "C" fn(*mut Comm, name: *const c_char) -> *const c_char>,
    /// Prints one line for the user.
    pub log: Option<unsafe extern "C" fn(*mut Comm, level: c_int, line: *const c_char)>,
    /// Returns the time of a monotonic clock that all processes of the machine share.
    pub now_ns: Option<unsafe extern "C" fn() -> u64>,
    /// Executes this call by the next lower component. Blocking.
    pub call_next: Option<unsafe extern "C" fn(*mut Call, *mut Why) -> c_int>,
    /// Returns the address of a per-process pointer, NULL at first, shared by the modules.
    /// The plugin stores NULL there when it frees the last module.
    pub component_data: Option<unsafe extern "C" fn(*mut Comm) -> *mut *mut c_void>,
    /// Reports the state of a hardware barrier wire that this process drives: its number, and the
    /// numbers of barriers entered and released. Costs a few stores; call it after each change.
    pub barrier_wire: Option<unsafe extern "C" fn(*mut Comm, wire: u32, entered: u64, released: u64)>,
    /// Writes up to capacity ranks of known dead members, in the order of their detection.
    /// Returns the number of all such members; always 0 without fault tolerance (mpi_ft_enable).
    pub failed_ranks: Option<unsafe extern "C" fn(*mut Comm, ranks: *mut u32, capacity: u32) -> u32>,
    /// Sets the error text for a function without a why argument. Returns PORTCULLIS_FAILED.
    pub fail: Option<unsafe extern "C" fn(*mut Comm, reason: *const c_char) -> c_int>,
    /// Writes the location of this process.
    pub topology: Option<unsafe extern "C" fn(*mut Comm, *mut Topology)>,
    /// Returns the predefined datatype for an MPI_Datatype value of the MPI 5.0 ABI, or NULL.
    pub named_type: Option<unsafe extern "C" fn(*mut Comm, handle: usize) -> *const Type>,
    /// Writes the sizes of a datatype.
    pub type_info: Option<unsafe extern "C" fn(*const Type, *mut TypeInfo)>,
    /// Writes the properties of an operator.
    pub op_info: Option<unsafe extern "C" fn(*const Op, *mut OpInfo)>,
    /// pack copies buffer data to packed memory, and unpack copies packed memory to the buffer.
    /// at is the position in the packed data, in bytes, at which the copy begins.
    /// Both return the number of copied bytes; it is smaller than bytes at the end of the buffer.
    pub pack: Option<unsafe extern "C" fn(*const Buffer, at: i64, to: *mut c_void, bytes: usize) -> usize>,
    /// See `pack`.
    pub unpack: Option<unsafe extern "C" fn(*const Buffer, at: i64, from: *const c_void, bytes: usize) -> usize>,
    /// Copies data to a buffer of any type, up to the shorter buffer. Returns the number of bytes.
    pub copy: Option<unsafe extern "C" fn(from: *const Buffer, to: *const Buffer) -> i64>,
    /// Computes inout = in op inout by element; both have the type of the call's buffers.
    pub reduce: Option<unsafe extern "C" fn(*const Op, input: *const Buffer, inout: *const Buffer, *mut Why) -> c_int>,
    /// Computes inout = in op inout for the contiguous data of dense.
    pub combine: Option<unsafe extern "C" fn(*const DenseOp, input: *const c_void, inout: *mut c_void, bytes: usize)>,
    /// Allocates a zeroed buffer for count elements of a type; it is freed at the end of the call.
    pub temporary: Option<unsafe extern "C" fn(*mut Call, *const Type, count: i64, *mut Buffer, *mut Why) -> c_int>,
    /// Starts a message of one call. Messages of overlapping calls do not match each other.
    /// Messages between two ranks arrive in order; both sides pass the same number of bytes.
    /// The buffer is in use until the message is complete. The call's end cancels open messages.
    pub call_send: Option<unsafe extern "C" fn(*mut Call, dest: u32, *const Buffer, message: *mut u64, *mut Why) -> c_int>,
    /// Starts to receive a message of one call; see call_send.
    pub call_recv: Option<unsafe extern "C" fn(*mut Call, source: u32, *const Buffer, message: *mut u64, *mut Why) -> c_int>,
    /// Returns DONE, PENDING or FAILED. DONE invalidates the number.
    pub call_test: Option<unsafe extern "C" fn(*mut Call, message: u64, *mut Why) -> c_int>,
    /// Waits until all of these messages are complete. Blocking.
    pub call_wait: Option<unsafe extern "C" fn(*mut Call, messages: *const u64, count: usize, *mut Why) -> c_int>,
}

/// The entry serves only calls with a predefined operator.
pub const PREDEFINED: u32 = 1;
/// The entry serves only calls with a commutative operator.
pub const COMMUTATIVE: u32 = 2;

/// The functions of a module for one operation. Each may be NULL.
/// Calls without a function go to the next lower component.
///
/// A member must not decide by properties that may differ between members:
/// datatypes with gaps, MPI_IN_PLACE, alignment, or its own memory.
/// run and start may return NEXT before their first message, at all members for the same call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The operation: PORTCULLIS_BARRIER or another constant of the same enum.
    pub operation: u32,
    /// PORTCULLIS_PREDEFINED and PORTCULLIS_COMMUTATIVE, combined by OR, or 0.
    pub flags: u32,
    /// Calls with more args->bytes go to the next component; 0: no limit.
    pub limit: u64,
    /// Executes MPI_X: returns DONE after this member's part, NEXT or FAILED.
    /// May use blocking services.
    pub run: Option<Run>,
    /// Starts MPI_Ix or a persistent MPI_X: writes a ticket, returns DONE, PENDING, NEXT or FAILED.
    /// After DONE or PENDING, the library calls test until it returns DONE or FAILED.
    /// start and test must not use blocking services. A blocking call without run uses both.
    pub start: Option<Start>,
    /// See `start`.
    pub test: Option<Test>,
    /// Frees the value of *args->plan when a persistent operation is freed.
    pub forget: Option<Forget>,
    /// Fast path of MPI_X: a predefined type without gaps, a predefined operator, no MPI_IN_PLACE.
    /// Other members may execute the same call by run, so dense and run must send the same messages.
    /// bytes is args->bytes; send, recv or op is NULL if the member or operation has none.
    /// Returns DONE or FAILED (with the reason by fail). May use blocking services.
    pub dense: Option<Dense>,
}

/// The functions of a component for one communicator. Every slot may be NULL.
/// If barrier_start is NULL, only blocking barriers are served. If barrier is NULL, MPI_Barrier
/// calls barrier_start, then barrier_test until the barrier is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModuleTable {
    /// The size of this table in bytes.
    pub size: usize,
    /// Collective setup; may use blocking services. If one member fails, all free their modules.
    pub enable: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    /// Executes MPI_Barrier: returns DONE after every member has called it, NEXT or FAILED.
    pub barrier: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Call, *mut Why) -> c_int>,
    /// Starts MPI_Ibarrier: writes a ticket and returns DONE, PENDING, NEXT or FAILED.
    /// After DONE or PENDING, the library calls barrier_test until it no longer returns PENDING.
    /// Several barriers may be in progress, and further ones may follow, in the same order at all
    /// members. Each ends only after every member has started it.
    /// barrier_start and barrier_test must not use blocking services.
    pub barrier_start: Option<unsafe extern "C-unwind" fn(this: *mut c_void, ticket: *mut u64, *mut Why) -> c_int>,
    /// See `barrier_start`.
    pub barrier_test: Option<unsafe extern "C-unwind" fn(this: *mut c_void, ticket: u64, *mut Why) -> c_int>,
    /// Restores the state before enable: the communicator is freed, or enable failed at a member.
    /// Not collective.
    pub disable: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
    /// Frees the module; no other function of the module is called afterwards.
    pub free: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
    /// Called when a started message completes, and periodically during MPI calls of this process.
    /// Lets a member answer requests from enable until disable. Must not use blocking services.
    pub attend: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
    /// Eureka line for early termination (MPIX_Eureka_...). Its four slots are all set or all NULL.
    /// eureka_begin and eureka_end are collective, ordered with barriers; they may block.
    /// eureka_begin opens a round: DONE, or NEXT at all members to decline.
    /// The line keeps its state until eureka_end, so barriers that would lower it return NEXT.
    /// eureka_raise returns when the line is high; *first is 1 at the first member of the round.
    /// eureka_test: DONE if the line is high, else PENDING. eureka_end waits for all members.
    pub eureka_begin: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    /// See `eureka_begin`.
    pub eureka_raise: Option<unsafe extern "C-unwind" fn(this: *mut c_void, first: *mut c_int, *mut Why) -> c_int>,
    /// See `eureka_begin`.
    pub eureka_test: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    /// See `eureka_begin`.
    pub eureka_end: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    /// The operations, in any order; of two entries for one operation the first is used.
    /// operation_size is sizeof(portcullis_operation).
    /// An entry for PORTCULLIS_BARRIER is used if barrier and barrier_start are NULL.
    pub operations: *const Operation,
    /// The number of entries at operations.
    pub operation_count: u32,
    /// See `operations`.
    pub operation_size: u32,
}

/// A parameter; users call it coll_\<component>_\<name>. The library adds the parameter "priority".
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The name without the prefix coll_\<component>_.
    pub name: *const c_char,
    /// The default value as text.
    pub default_value: *const c_char,
    /// The description for users.
    pub help: *const c_char,
    /// The type: bool, int, unsigned_int, size_t, double, duration or string; NULL means string.
    pub kind: *const c_char,
}

/// The description of a collective component.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ComponentTable {
    /// The size of this table: sizeof(portcullis_component_table).
    pub size: usize,
    /// The value of PORTCULLIS_ABI_VERSION.
    pub abi_version: u32,
    /// The default priority; the component with the highest priority is asked first.
    pub priority: i32,
    /// The framework name "coll".
    pub framework: *const c_char,
    /// The component name: lower-case letters, digits and _, at most 63 characters.
    pub name: *const c_char,
    /// The version, for example "1.2.0".
    pub version: *const c_char,
    /// The parameters of the component.
    pub params: *const Param,
    /// The number of parameters, at most 256.
    pub param_count: usize,
    /// Returns a module table if this process can serve the communicator, else NULL and the reason.
    /// *self is passed to all functions. Must not communicate: the library agrees with all members.
    pub query: Option<unsafe extern "C-unwind" fn(*const Host, *mut Comm, this: *mut *mut c_void, *mut Why) -> *const ModuleTable>,
    /// The name of the parameter that requests this component, or NULL. Rank 0 prints a warning
    /// if its value is not the default and MPI_COMM_WORLD cannot use the component.
    pub asked_by: *const c_char,
}

/// The parameter `ready` of a service.
pub type Ready = unsafe extern "C-unwind" fn(argument: *mut c_void) -> c_int;

/// Executes MPI_X: returns DONE after this member's part, NEXT or FAILED.
/// May use blocking services.
pub type Run = unsafe extern "C-unwind" fn(this: *mut c_void, *const Args, *mut Call, *mut Why) -> c_int;

/// Starts MPI_Ix or a persistent MPI_X: writes a ticket, returns DONE, PENDING, NEXT or FAILED.
/// After DONE or PENDING, the library calls test until it returns DONE or FAILED.
/// start and test must not use blocking services. A blocking call without run uses both.
pub type Start = unsafe extern "C-unwind" fn(this: *mut c_void, *const Args, *mut Call, ticket: *mut u64, *mut Why) -> c_int;

/// See `start`.
pub type Test = unsafe extern "C-unwind" fn(this: *mut c_void, ticket: u64, *mut Why) -> c_int;

/// Frees the value of *args->plan when a persistent operation is freed.
pub type Forget = unsafe extern "C-unwind" fn(this: *mut c_void, plan: *mut c_void);

/// Fast path of MPI_X: a predefined type without gaps, a predefined operator, no MPI_IN_PLACE.
/// Other members may execute the same call by run, so dense and run must send the same messages.
/// bytes is args->bytes; send, recv or op is NULL if the member or operation has none.
/// Returns DONE or FAILED (with the reason by fail). May use blocking services.
pub type Dense = unsafe extern "C-unwind" fn(this: *mut c_void, send: *const c_void, recv: *mut c_void, bytes: usize, root: u32, op: *const DenseOp) -> c_int;

/// A structure by its name in the header: its size, and its members with their offsets.
pub type Layout = (&'static str, usize, &'static [(&'static str, usize)]);

/// The layout of each structure.
pub const LAYOUTS: &[Layout] = &[
    ("portcullis_why", size_of::<Why>(), &[
        ("text", offset_of!(Why, text)),
    ]),
    ("portcullis_buffer", size_of::<Buffer>(), &[
        ("address", offset_of!(Buffer, address)),
        ("count", offset_of!(Buffer, count)),
        ("type", offset_of!(Buffer, datatype)),
    ]),
    ("portcullis_type_info", size_of::<TypeInfo>(), &[
        ("size", offset_of!(TypeInfo, size)),
        ("bytes", offset_of!(TypeInfo, bytes)),
        ("lb", offset_of!(TypeInfo, lb)),
        ("extent", offset_of!(TypeInfo, extent)),
        ("true_lb", offset_of!(TypeInfo, true_lb)),
        ("true_extent", offset_of!(TypeInfo, true_extent)),
        ("handle", offset_of!(TypeInfo, handle)),
    ]),
    ("portcullis_op_info", size_of::<OpInfo>(), &[
        ("size", offset_of!(OpInfo, size)),
        ("handle", offset_of!(OpInfo, handle)),
        ("commutes", offset_of!(OpInfo, commutes)),
    ]),
    ("portcullis_topology", size_of::<Topology>(), &[
        ("size", offset_of!(Topology, size)),
        ("host", offset_of!(Topology, host)),
        ("cores", offset_of!(Topology, cores)),
        ("ranks_here", offset_of!(Topology, ranks_here)),
    ]),
    ("portcullis_args", size_of::<Args>(), &[
        ("size", offset_of!(Args, size)),
        ("operation", offset_of!(Args, operation)),
        ("root", offset_of!(Args, root)),
        ("op", offset_of!(Args, op)),
        ("send", offset_of!(Args, send)),
        ("recv", offset_of!(Args, recv)),
        ("send_count", offset_of!(Args, send_count)),
        ("recv_count", offset_of!(Args, recv_count)),
        ("counts", offset_of!(Args, counts)),
        ("sources", offset_of!(Args, sources)),
        ("destinations", offset_of!(Args, destinations)),
        ("bytes", offset_of!(Args, bytes)),
        ("plan", offset_of!(Args, plan)),
        ("source_count", offset_of!(Args, source_count)),
        ("destination_count", offset_of!(Args, destination_count)),
        ("arrivals", offset_of!(Args, arrivals)),
        ("arrival_count", offset_of!(Args, arrival_count)),
    ]),
    ("portcullis_host", size_of::<Host>(), &[
        ("size", offset_of!(Host, size)),
        ("abi_version", offset_of!(Host, abi_version)),
        ("reserved", offset_of!(Host, reserved)),
        ("library", offset_of!(Host, library)),
        ("comm_rank", offset_of!(Host, comm_rank)),
        ("comm_size", offset_of!(Host, comm_size)),
        ("comm_name", offset_of!(Host, comm_name)),
        ("comm_is_world", offset_of!(Host, comm_is_world)),
        ("comm_node_ranks", offset_of!(Host, comm_node_ranks)),
        ("send", offset_of!(Host, send)),
        ("recv", offset_of!(Host, recv)),
        ("fence", offset_of!(Host, fence)),
        ("start_send", offset_of!(Host, start_send)),
        ("start_recv", offset_of!(Host, start_recv)),
        ("test_message", offset_of!(Host, test_message)),
        ("progress", offset_of!(Host, progress)),
        ("wait", offset_of!(Host, wait)),
        ("ring", offset_of!(Host, ring)),
        ("shared_memory", offset_of!(Host, shared_memory)),
        ("param", offset_of!(Host, param)),
        ("log", offset_of!(Host, log)),
        ("now_ns", offset_of!(Host, now_ns)),
        ("call_next", offset_of!(Host, call_next)),
        ("component_data", offset_of!(Host, component_data)),
        ("barrier_wire", offset_of!(Host, barrier_wire)),
        ("failed_ranks", offset_of!(Host, failed_ranks)),
        ("fail", offset_of!(Host, fail)),
        ("topology", offset_of!(Host, topology)),
        ("named_type", offset_of!(Host, named_type)),
        ("type_info", offset_of!(Host, type_info)),
        ("op_info", offset_of!(Host, op_info)),
        ("pack", offset_of!(Host, pack)),
        ("unpack", offset_of!(Host, unpack)),
        ("copy", offset_of!(Host, copy)),
        ("reduce", offset_of!(Host, reduce)),
        ("combine", offset_of!(Host, combine)),
        ("temporary", offset_of!(Host, temporary)),
        ("call_send", offset_of!(Host, call_send)),
        ("call_recv", offset_of!(Host, call_recv)),
        ("call_test", offset_of!(Host, call_test)),
        ("call_wait", offset_of!(Host, call_wait)),
    ]),
    ("portcullis_operation", size_of::<Operation>(), &[
        ("operation", offset_of!(Operation, operation)),
        ("flags", offset_of!(Operation, flags)),
        ("limit", offset_of!(Operation, limit)),
        ("run", offset_of!(Operation, run)),
        ("start", offset_of!(Operation, start)),
        ("test", offset_of!(Operation, test)),
        ("forget", offset_of!(Operation, forget)),
        ("dense", offset_of!(Operation, dense)),
    ]),
    ("portcullis_module", size_of::<ModuleTable>(), &[
        ("size", offset_of!(ModuleTable, size)),
        ("enable", offset_of!(ModuleTable, enable)),
        ("barrier", offset_of!(ModuleTable, barrier)),
        ("barrier_start", offset_of!(ModuleTable, barrier_start)),
        ("barrier_test", offset_of!(ModuleTable, barrier_test)),
        ("disable", offset_of!(ModuleTable, disable)),
        ("free", offset_of!(ModuleTable, free)),
        ("attend", offset_of!(ModuleTable, attend)),
        ("eureka_begin", offset_of!(ModuleTable, eureka_begin)),
        ("eureka_raise", offset_of!(ModuleTable, eureka_raise)),
        ("eureka_test", offset_of!(ModuleTable, eureka_test)),
        ("eureka_end", offset_of!(ModuleTable, eureka_end)),
        ("operations", offset_of!(ModuleTable, operations)),
        ("operation_count", offset_of!(ModuleTable, operation_count)),
        ("operation_size", offset_of!(ModuleTable, operation_size)),
    ]),
    ("portcullis_param", size_of::<Param>(), &[
        ("name", offset_of!(Param, name)),
        ("default_value", offset_of!(Param, default_value)),
        ("help", offset_of!(Param, help)),
        ("type", offset_of!(Param, kind)),
    ]),
    ("portcullis_component_table", size_of::<ComponentTable>(), &[
        ("size", offset_of!(ComponentTable, size)),
        ("abi_version", offset_of!(ComponentTable, abi_version)),
        ("priority", offset_of!(ComponentTable, priority)),
        ("framework", offset_of!(ComponentTable, framework)),
        ("name", offset_of!(ComponentTable, name)),
        ("version", offset_of!(ComponentTable, version)),
        ("params", offset_of!(ComponentTable, params)),
        ("param_count", offset_of!(ComponentTable, param_count)),
        ("query", offset_of!(ComponentTable, query)),
        ("asked_by", offset_of!(ComponentTable, asked_by)),
    ]),
];

/// Each constant by its name in the header.
pub const CONSTANTS: &[(&str, i64)] = &[
    ("PORTCULLIS_ABI_VERSION", ABI_VERSION as i64),
    ("PORTCULLIS_ABI_MINOR", ABI_MINOR as i64),
    ("PORTCULLIS_ABI_LAYOUT", ABI_LAYOUT as i64),
    ("PORTCULLIS_FAILED", FAILED as i64),
    ("PORTCULLIS_DONE", DONE as i64),
    ("PORTCULLIS_PENDING", PENDING as i64),
    ("PORTCULLIS_NEXT", NEXT as i64),
    ("PORTCULLIS_BARRIER", BARRIER as i64),
    ("PORTCULLIS_BCAST", BCAST as i64),
    ("PORTCULLIS_GATHER", GATHER as i64),
    ("PORTCULLIS_GATHERV", GATHERV as i64),
    ("PORTCULLIS_SCATTER", SCATTER as i64),
    ("PORTCULLIS_SCATTERV", SCATTERV as i64),
    ("PORTCULLIS_ALLGATHER", ALLGATHER as i64),
    ("PORTCULLIS_ALLGATHERV", ALLGATHERV as i64),
    ("PORTCULLIS_ALLTOALL", ALLTOALL as i64),
    ("PORTCULLIS_ALLTOALLV", ALLTOALLV as i64),
    ("PORTCULLIS_ALLTOALLW", ALLTOALLW as i64),
    ("PORTCULLIS_REDUCE", REDUCE as i64),
    ("PORTCULLIS_ALLREDUCE", ALLREDUCE as i64),
    ("PORTCULLIS_REDUCE_SCATTER", REDUCE_SCATTER as i64),
    ("PORTCULLIS_REDUCE_SCATTER_BLOCK", REDUCE_SCATTER_BLOCK as i64),
    ("PORTCULLIS_SCAN", SCAN as i64),
    ("PORTCULLIS_EXSCAN", EXSCAN as i64),
    ("PORTCULLIS_NEIGHBOR_ALLGATHER", NEIGHBOR_ALLGATHER as i64),
    ("PORTCULLIS_NEIGHBOR_ALLGATHERV", NEIGHBOR_ALLGATHERV as i64),
    ("PORTCULLIS_NEIGHBOR_ALLTOALL", NEIGHBOR_ALLTOALL as i64),
    ("PORTCULLIS_NEIGHBOR_ALLTOALLV", NEIGHBOR_ALLTOALLV as i64),
    ("PORTCULLIS_NEIGHBOR_ALLTOALLW", NEIGHBOR_ALLTOALLW as i64),
    ("PORTCULLIS_NO_RANK", NO_RANK as i64),
    ("PORTCULLIS_INFO", INFO as i64),
    ("PORTCULLIS_WARNING", WARNING as i64),
    ("PORTCULLIS_PREDEFINED", PREDEFINED as i64),
    ("PORTCULLIS_COMMUTATIVE", COMMUTATIVE as i64),
];
// end of the generated text
