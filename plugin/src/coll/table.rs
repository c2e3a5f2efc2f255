//! The C tables of collective components, generated from `portcullis/plugin.h`.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

// generated from mpi-core/include/portcullis/plugin.h: tables
/// `PORTCULLIS_ABI_VERSION` of the header.
pub const ABI_VERSION: u32 = 2;

/// `PORTCULLIS_ABI_MINOR` of the header.
pub const ABI_MINOR: u32 = 0;

/// A hash over the layout of all tables below, by which a header that was changed by hand is noticed.
pub const ABI_LAYOUT: u32 = 0x60ee_93e3;

/// for the reason written to why
pub const FAILED: c_int = -1;
/// `PORTCULLIS_DONE` of the header.
pub const DONE: c_int = 0;
/// not yet: ask again
pub const PENDING: c_int = 1;
/// the next component down shall do it; every member of the communicator must say so for the same call
pub const NEXT: c_int = 2;

/// Where a function that fails or refuses writes its reason, one sentence.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Why {
    /// `text` of the header.
    pub text: [c_char; 512],
}

/// A communicator as one module sees it: valid from the module's query until its free.
#[repr(C)]
#[derive(Debug)]
pub struct Comm {
    _private: [u8; 0],
}

/// One call: valid until the blocking function returns, or until the test of a started one no longer says PENDING.
#[repr(C)]
#[derive(Debug)]
pub struct Call {
    _private: [u8; 0],
}

/// A datatype: valid as long as the call, and one of named_type as long as the module.
#[repr(C)]
#[derive(Debug)]
pub struct Type {
    _private: [u8; 0],
}

/// A reduction operator, predefined or the program's: valid as long as the call.
#[repr(C)]
#[derive(Debug)]
pub struct Op {
    _private: [u8; 0],
}

/// A predefined operator on one predefined type without holes: valid until dense returns.
#[repr(C)]
#[derive(Debug)]
pub struct DenseOp {
    _private: [u8; 0],
}

/// count elements of a type; address is that of MPI, so data may lie before it. This structure never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// `address` of the header.
    pub address: *mut c_void,
    /// `count` of the header.
    pub count: i64,
    /// `type` of the header.
    pub datatype: *const Type,
}

/// A datatype in numbers of bytes; the caller sets size to sizeof(portcullis_type_info).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TypeInfo {
    /// `size` of the header.
    pub size: usize,
    /// of data in one element
    pub bytes: i64,
    /// `lb` of the header.
    pub lb: i64,
    /// `extent` of the header.
    pub extent: i64,
    /// `true_lb` of the header.
    pub true_lb: i64,
    /// `true_extent` of the header.
    pub true_extent: i64,
    /// of a predefined type: the value of its MPI_Datatype in the standard ABI of MPI 5.0; else 0
    pub handle: usize,
}

/// An operator; the caller sets size to sizeof(portcullis_op_info).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// `size` of the header.
    pub size: usize,
    /// of a predefined operator: the value of its MPI_Op in the standard ABI of MPI 5.0; else 0
    pub handle: usize,
    /// `commutes` of the header.
    pub commutes: c_int,
}

/// Where this process runs; the caller sets size to sizeof(portcullis_topology).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Topology {
    /// `size` of the header.
    pub size: usize,
    /// `host` of the header.
    pub host: *const c_char,
    /// that this process may use
    pub cores: u32,
    /// of the job, on this host
    pub ranks_here: u32,
}

/// `PORTCULLIS_BARRIER` of the header.
pub const BARRIER: u32 = 0;
/// `PORTCULLIS_BCAST` of the header.
pub const BCAST: u32 = 1;
/// `PORTCULLIS_GATHER` of the header.
pub const GATHER: u32 = 2;
/// `PORTCULLIS_GATHERV` of the header.
pub const GATHERV: u32 = 3;
/// `PORTCULLIS_SCATTER` of the header.
pub const SCATTER: u32 = 4;
/// `PORTCULLIS_SCATTERV` of the header.
pub const SCATTERV: u32 = 5;
/// `PORTCULLIS_ALLGATHER` of the header.
pub const ALLGATHER: u32 = 6;
/// `PORTCULLIS_ALLGATHERV` of the header.
pub const ALLGATHERV: u32 = 7;
/// `PORTCULLIS_ALLTOALL` of the header.
pub const ALLTOALL: u32 = 8;
/// `PORTCULLIS_ALLTOALLV` of the header.
pub const ALLTOALLV: u32 = 9;
/// `PORTCULLIS_ALLTOALLW` of the header.
pub const ALLTOALLW: u32 = 10;
/// `PORTCULLIS_REDUCE` of the header.
pub const REDUCE: u32 = 11;
/// `PORTCULLIS_ALLREDUCE` of the header.
pub const ALLREDUCE: u32 = 12;
/// `PORTCULLIS_REDUCE_SCATTER` of the header.
pub const REDUCE_SCATTER: u32 = 13;
/// `PORTCULLIS_REDUCE_SCATTER_BLOCK` of the header.
pub const REDUCE_SCATTER_BLOCK: u32 = 14;
/// `PORTCULLIS_SCAN` of the header.
pub const SCAN: u32 = 15;
/// `PORTCULLIS_EXSCAN` of the header.
pub const EXSCAN: u32 = 16;
/// `PORTCULLIS_NEIGHBOR_ALLGATHER` of the header.
pub const NEIGHBOR_ALLGATHER: u32 = 17;
/// `PORTCULLIS_NEIGHBOR_ALLGATHERV` of the header.
pub const NEIGHBOR_ALLGATHERV: u32 = 18;
/// `PORTCULLIS_NEIGHBOR_ALLTOALL` of the header.
pub const NEIGHBOR_ALLTOALL: u32 = 19;
/// `PORTCULLIS_NEIGHBOR_ALLTOALLV` of the header.
pub const NEIGHBOR_ALLTOALLV: u32 = 20;
/// `PORTCULLIS_NEIGHBOR_ALLTOALLW` of the header.
pub const NEIGHBOR_ALLTOALLW: u32 = 21;

/// No rank: the root of an operation without one, and a neighbour that is MPI_PROC_NULL.
pub const NO_RANK: u32 = 0xffff_ffff;

/// The arguments of one call, valid as long as the call. What an operation or this rank does not have is NULL or 0.
/// A buffer stands for each rank (v and w forms) or each neighbour (v and w forms): then there are several, with displacements in their addresses.
/// Otherwise one buffer stands for all: that of gather, scatter, allgather and alltoall has count elements for each rank, one block after the other,
/// and that of a neighbourhood operation for each neighbour. In neighbourhood operations, blocks to or from PORTCULLIS_NO_RANK stay as they are.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Args {
    /// of this structure
    pub size: usize,
    /// PORTCULLIS_BARRIER and so on
    pub operation: u32,
    /// `root` of the header.
    pub root: u32,
    /// `op` of the header.
    pub op: *const Op,
    /// NULL where a rank that sends passes MPI_IN_PLACE; the data are in recv then. MPI_Bcast has recv only
    pub send: *const Buffer,
    /// `recv` of the header.
    pub recv: *const Buffer,
    /// the number of buffers at send
    pub send_count: u32,
    /// `recv_count` of the header.
    pub recv_count: u32,
    /// of MPI_Reduce_scatter: elements for each rank
    pub counts: *const i64,
    /// of neighbourhood operations: the rank of each receive block; source_count of them
    pub sources: *const u32,
    /// and of each send block
    pub destinations: *const u32,
    /// of one rank's block, or of all data, which the standard makes equal at all members; 0 where it does not
    pub bytes: u64,
    /// In a start of a persistent operation: where one pointer is kept from one start to the next, NULL at first.
    /// The function forget gets it when the operation is freed. Else NULL.
    pub plan: *mut *mut c_void,
    /// `source_count` of the header.
    pub source_count: u32,
    /// `destination_count` of the header.
    pub destination_count: u32,
    /// The receive blocks from a rank, in the order in which the sources send them; it matters where one rank is a neighbour twice.
    pub arrivals: *const u32,
    /// `arrival_count` of the header.
    pub arrival_count: u32,
}

/// `PORTCULLIS_INFO` of the header.
pub const INFO: c_int = 0;
/// `PORTCULLIS_WARNING` of the header.
pub const WARNING: c_int = 1;

/// The services of the library.
/// Those that say "blocking" progress MPI while they wait.
/// They may be called from enable, barrier, run, dense, eureka_begin and eureka_end only, and fail when called from inside progress.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// of this table
    pub size: usize,
    /// PORTCULLIS_ABI_VERSION
    pub abi_version: u32,
    /// `reserved` of the header.
    pub reserved: u32,
    /// name and version of the library
    pub library: *const c_char,
    /// `comm_rank` of the header.
    pub comm_rank: Option<unsafe extern "C" fn(*mut Comm) -> u32>,
    /// `comm_size` of the header.
    pub comm_size: Option<unsafe extern "C" fn(*mut Comm) -> u32>,
    /// as it was when the module was asked; of one without, a number
    pub comm_name: Option<unsafe extern "C" fn(*mut Comm) -> *const c_char>,
    /// `comm_is_world` of the header.
    pub comm_is_world: Option<unsafe extern "C" fn(*mut Comm) -> c_int>,
    /// Writes up to capacity ranks of members that share this process's memory, ascending; returns how many there are.
    pub comm_node_ranks: Option<unsafe extern "C" fn(*mut Comm, ranks: *mut u32, capacity: u32) -> u32>,
    /// Point-to-point among this module's members, apart from all other messages. Blocking.
    /// Between two ranks messages arrive in the order in which they were sent; both sides know the length, and another one is a failure.
    pub send: Option<unsafe extern "C" fn(*mut Comm, dest: u32, data: *const c_void, bytes: usize, *mut Why) -> c_int>,
    /// `recv` of the header.
    pub recv: Option<unsafe extern "C" fn(*mut Comm, source: u32, data: *mut c_void, bytes: usize, *mut Why) -> c_int>,
    /// Returns after every member has called it. Blocking.
    pub fence: Option<unsafe extern "C" fn(*mut Comm, *mut Why) -> c_int>,
    /// The same without waiting, apart from the messages above, allowed everywhere from enable on.
    /// Both give a number to test the message by. What is sent is copied at once; a receive says how long the message is.
    pub start_send: Option<unsafe extern "C" fn(*mut Comm, dest: u32, data: *const c_void, bytes: usize, message: *mut u64, *mut Why) -> c_int>,
    /// `start_recv` of the header.
    pub start_recv: Option<unsafe extern "C" fn(*mut Comm, source: u32, bytes: usize, message: *mut u64, *mut Why) -> c_int>,
    /// DONE (once: the number is forgotten, and a received message is in data, which may be NULL for one that was sent), PENDING or FAILED.
    pub test_message: Option<unsafe extern "C" fn(*mut Comm, message: u64, data: *mut c_void, bytes: usize, *mut Why) -> c_int>,
    /// Lets MPI look once at what has arrived, and never rests; returns 1 if something had, else 0.
    pub progress: Option<unsafe extern "C" fn(*mut Comm) -> c_int>,
    /// Waits until ready(argument) is not 0, progressing, and resting as the waiting policy says. Blocking.
    /// The process that makes ready true for another one must call ring for it.
    /// Fails when a member has died or the communicator is revoked, where the job survives that: then nothing makes ready true any more.
    /// What waits by itself, with progress, asks failed_ranks meanwhile.
    /// Returns PORTCULLIS_DONE, or PORTCULLIS_PENDING after limit_ns nanoseconds (0: no limit).
    pub wait: Option<unsafe extern "C" fn(*mut Comm, ready: Option<Ready>, argument: *mut c_void, limit_ns: u64, *mut Why) -> c_int>,
    /// Wakes a member on this node if it sleeps; the caller has published what it is woken for.
    pub ring: Option<unsafe extern "C" fn(*mut Comm, rank: u32)>,
    /// Zeroed memory that this node's members of the communicator share, returned when the last of them has freed its module.
    /// Every one of them calls it. align is a power of two up to 4096. Blocking.
    pub shared_memory: Option<unsafe extern "C" fn(*mut Comm, bytes: usize, align: usize, memory: *mut *mut c_void, *mut Why) -> c_int>,
    /// The value of one of the plugin's own parameters, in the user's words; NULL if it has none of that name.
    pub param: Option<unsafe extern "C" fn(*mut Comm, name: *const c_char) -> *const c_char>,
    /// One line for the user.
    pub log: Option<unsafe extern "C" fn(*mut Comm, level: c_int, line: *const c_char)>,
    /// A clock that all processes of the machine share and that never goes back.
    pub now_ns: Option<unsafe extern "C" fn() -> u64>,
    /// Lets the next component down carry out this call. Blocking.
    pub call_next: Option<unsafe extern "C" fn(*mut Call, *mut Why) -> c_int>,
    /// The place of one pointer, NULL at first, that all modules of the component in this process share,
    /// for data of the process rather than of a communicator. The function that frees the last module stores NULL there.
    pub component_data: Option<unsafe extern "C" fn(*mut Comm) -> *mut *mut c_void>,
    /// Tells reports and traces of the wire of a hardware barrier that this process drives: its number at the hardware,
    /// and how many barriers it has entered and seen released. Costs a few stores; call it when one of them has changed.
    pub barrier_wire: Option<unsafe extern "C" fn(*mut Comm, wire: u32, entered: u64, released: u64)>,
    /// The members that this process knows to be dead, in the order in which it learnt of them; at most capacity of them are written.
    /// Returns how many there are; always 0 unless the job survives deaths (mpi_ft_enable).
    pub failed_ranks: Option<unsafe extern "C" fn(*mut Comm, ranks: *mut u32, capacity: u32) -> u32>,
    /// Sets the error text for a function that has no why argument; returns PORTCULLIS_FAILED, which the caller then returns.
    pub fail: Option<unsafe extern "C" fn(*mut Comm, reason: *const c_char) -> c_int>,
    /// `topology` of the header.
    pub topology: Option<unsafe extern "C" fn(*mut Comm, *mut Topology)>,
    /// A predefined datatype by the value of its MPI_Datatype in the standard ABI of MPI 5.0 (mpi.h); NULL if there is none.
    pub named_type: Option<unsafe extern "C" fn(*mut Comm, handle: usize) -> *const Type>,
    /// `type_info` of the header.
    pub type_info: Option<unsafe extern "C" fn(*const Type, *mut TypeInfo)>,
    /// `op_info` of the header.
    pub op_info: Option<unsafe extern "C" fn(*const Op, *mut OpInfo)>,
    /// Copies packed data of a buffer, from packed byte at on, to or from memory; returns the number of bytes, fewer at the buffer's end.
    pub pack: Option<unsafe extern "C" fn(*const Buffer, at: i64, to: *mut c_void, bytes: usize) -> usize>,
    /// `unpack` of the header.
    pub unpack: Option<unsafe extern "C" fn(*const Buffer, at: i64, from: *const c_void, bytes: usize) -> usize>,
    /// Copies the data of one buffer to another of any type, as many bytes as both have; returns their number.
    pub copy: Option<unsafe extern "C" fn(from: *const Buffer, to: *const Buffer) -> i64>,
    /// inout = in op inout, element by element; both of the type of the call's buffers.
    pub reduce: Option<unsafe extern "C" fn(*const Op, input: *const Buffer, inout: *const Buffer, *mut Why) -> c_int>,
    /// The same for the data of dense.
    pub combine: Option<unsafe extern "C" fn(*const DenseOp, input: *const c_void, inout: *mut c_void, bytes: usize)>,
    /// Zeroed memory for count elements of a type, which ends with the call: its buffer.
    pub temporary: Option<unsafe extern "C" fn(*mut Call, *const Type, count: i64, *mut Buffer, *mut Why) -> c_int>,
    /// Messages of one call, apart from all others: those of overlapping calls do not mix.
    /// Between two ranks they arrive in the order in which they were sent; both sides name the same number of bytes.
    /// The buffer is used until the message is complete, and no longer than the call: a message that is left then is cancelled.
    pub call_send: Option<unsafe extern "C" fn(*mut Call, dest: u32, *const Buffer, message: *mut u64, *mut Why) -> c_int>,
    /// `call_recv` of the header.
    pub call_recv: Option<unsafe extern "C" fn(*mut Call, source: u32, *const Buffer, message: *mut u64, *mut Why) -> c_int>,
    /// DONE (once: the number is forgotten), PENDING or FAILED.
    pub call_test: Option<unsafe extern "C" fn(*mut Call, message: u64, *mut Why) -> c_int>,
    /// Waits for all of these messages. Blocking.
    pub call_wait: Option<unsafe extern "C" fn(*mut Call, messages: *const u64, count: usize, *mut Why) -> c_int>,
}

/// only with a predefined operator
pub const PREDEFINED: u32 = 1;
/// only with a commutative operator
pub const COMMUTATIVE: u32 = 2;

/// What a module does for one operation. Every function may be NULL, and all calls that no function takes go to the next component down.
///
/// A member must not decide from what may differ between members: datatypes with holes, MPI_IN_PLACE, alignment, its own memory.
/// run and start may say NEXT, at all members for the same call, before they have sent anything; after that a call ends or fails here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// `operation` of the header.
    pub operation: u32,
    /// `flags` of the header.
    pub flags: u32,
    /// calls with more args->bytes go to the next component; 0: none do
    pub limit: u64,
    /// MPI_X: DONE when this member's part is done, NEXT or FAILED. Blocking services are allowed.
    pub run: Option<Run>,
    /// MPI_Ix, and each start of MPI_X_init: returns at once and names what it started; test is asked until it no longer says PENDING.
    /// Start says DONE or PENDING for "ask test", or NEXT, or FAILED; test says DONE, PENDING or FAILED.
    /// Neither may call a blocking service. A blocking call without run is started and tested.
    pub start: Option<Start>,
    /// `test` of the header.
    pub test: Option<Test>,
    /// A persistent operation is freed: frees what *args->plan was.
    pub forget: Option<Forget>,
    /// The short way of MPI_X: data of a predefined type without holes, a predefined operator, no MPI_IN_PLACE. It needs run beside it,
    /// which other members may get for the same call, so both exchange the same messages. bytes is args->bytes; send or recv is NULL
    /// at a member that has none; op is NULL without one. Returns DONE or FAILED (fail keeps the reason). Blocking services are allowed.
    pub dense: Option<Dense>,
}

/// What a component does for one communicator. Every slot may be NULL.
/// A barrier without barrier_start is served only when it is called blocking, and the other way round the library waits by itself.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModuleTable {
    /// of this table
    pub size: usize,
    /// Sets up what all members set up together, with blocking services. If it fails at any member, all members free their module.
    pub enable: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    /// MPI_Barrier: returns DONE after every member has called it, or NEXT, or FAILED.
    pub barrier: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Call, *mut Why) -> c_int>,
    /// MPI_Ibarrier: start returns at once and names what it started; test is asked until it no longer says PENDING.
    /// Start says DONE or PENDING for "ask test", or NEXT, or FAILED. Several may be in progress, with barriers after them:
    /// members start them in the same order, and each ends only after every member has started it.
    /// Neither may call a blocking service.
    pub barrier_start: Option<unsafe extern "C-unwind" fn(this: *mut c_void, ticket: *mut u64, *mut Why) -> c_int>,
    /// `barrier_test` of the header.
    pub barrier_test: Option<unsafe extern "C-unwind" fn(this: *mut c_void, ticket: u64, *mut Why) -> c_int>,
    /// The communicator goes away, or another member refused: leave everything as it was. Members do not call it together.
    pub disable: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
    /// The last call.
    pub free: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
    /// A message that was started has completed, or some time has passed. Called between enable and disable while this process is in MPI,
    /// in a barrier or not, so that a member can answer what others ask it. It may call no blocking service.
    pub attend: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
    /// A eureka line: one member says that it has found it, and all can see that (MPIX_Eureka_...). All four slots or none.
    /// Begin and end are called by all members, in one order with barriers, and may call blocking services.
    /// Begin opens a round: DONE, or NEXT at all members if the round has to go another way. In the round the line stays as it is
    /// until end, so barriers of this communicator say NEXT if the line is lowered by them.
    /// Raise returns when the line is high, and writes to *first whether this member was the first of the round.
    /// Test says DONE if the line is high, else PENDING. End returns DONE after every member has called it.
    pub eureka_begin: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    /// `eureka_raise` of the header.
    pub eureka_raise: Option<unsafe extern "C-unwind" fn(this: *mut c_void, first: *mut c_int, *mut Why) -> c_int>,
    /// `eureka_test` of the header.
    pub eureka_test: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    /// `eureka_end` of the header.
    pub eureka_end: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    /// The operations, in any order; operation_size is sizeof(portcullis_operation). Of two entries for one operation the first counts.
    /// An entry for PORTCULLIS_BARRIER is used if barrier and barrier_start are NULL.
    pub operations: *const Operation,
    /// `operation_count` of the header.
    pub operation_count: u32,
    /// `operation_size` of the header.
    pub operation_size: u32,
}

/// A parameter; users call it coll_\<component>_\<name>. The library adds the parameter "priority" by itself.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// `name` of the header.
    pub name: *const c_char,
    /// `default_value` of the header.
    pub default_value: *const c_char,
    /// `help` of the header.
    pub help: *const c_char,
    /// bool, int, unsigned_int, size_t, double, duration or string; NULL is string
    pub kind: *const c_char,
}

/// What a plugin is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ComponentTable {
    /// sizeof(portcullis_component_table)
    pub size: usize,
    /// PORTCULLIS_ABI_VERSION
    pub abi_version: u32,
    /// the default; the highest goes first
    pub priority: i32,
    /// "coll"
    pub framework: *const c_char,
    /// lower-case letters, digits and _, at most 63
    pub name: *const c_char,
    /// such as "1.2.0"
    pub version: *const c_char,
    /// `params` of the header.
    pub params: *const Param,
    /// at most 256
    pub param_count: usize,
    /// Whether this process can serve this communicator: a table and, in *self, what its functions get as self;
    /// or NULL and the reason. No communication here: the library asks every member and uses the component where all can.
    pub query: Option<unsafe extern "C-unwind" fn(*const Host, *mut Comm, this: *mut *mut c_void, *mut Why) -> *const ModuleTable>,
    /// The name of the parameter by which the user asks for this component, or NULL. Where it has another value than its
    /// default and MPI_COMM_WORLD cannot have the component, rank 0 warns with the reason.
    pub asked_by: *const c_char,
}

/// The parameter `ready` of a service.
pub type Ready = unsafe extern "C-unwind" fn(argument: *mut c_void) -> c_int;

/// MPI_X: DONE when this member's part is done, NEXT or FAILED. Blocking services are allowed.
pub type Run = unsafe extern "C-unwind" fn(this: *mut c_void, *const Args, *mut Call, *mut Why) -> c_int;

/// MPI_Ix, and each start of MPI_X_init: returns at once and names what it started; test is asked until it no longer says PENDING.
/// Start says DONE or PENDING for "ask test", or NEXT, or FAILED; test says DONE, PENDING or FAILED.
/// Neither may call a blocking service. A blocking call without run is started and tested.
pub type Start = unsafe extern "C-unwind" fn(this: *mut c_void, *const Args, *mut Call, ticket: *mut u64, *mut Why) -> c_int;

/// `test` of the header.
pub type Test = unsafe extern "C-unwind" fn(this: *mut c_void, ticket: u64, *mut Why) -> c_int;

/// A persistent operation is freed: frees what *args->plan was.
pub type Forget = unsafe extern "C-unwind" fn(this: *mut c_void, plan: *mut c_void);

/// The short way of MPI_X: data of a predefined type without holes, a predefined operator, no MPI_IN_PLACE. It needs run beside it,
/// which other members may get for the same call, so both exchange the same messages. bytes is args->bytes; send or recv is NULL
/// at a member that has none; op is NULL without one. Returns DONE or FAILED (fail keeps the reason). Blocking services are allowed.
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
