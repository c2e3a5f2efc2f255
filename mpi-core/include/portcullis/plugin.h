/*
 * portcullis/plugin.h: the C interface of collective components; needs no library sources.
 *
 * A plugin is a shared object with a manifest (PORTCULLIS_PLUGIN below) that exports one symbol,
 * the function portcullis_component(). The function returns a table of the plugin's functions;
 * the library passes a table of its services to these functions.
 * Plugin and library use no other symbols of each other, so a plugin links with no library of this
 * project and works in programs that load MPI with RTLD_LOCAL.
 *
 * Build it with
 *     cc -shared -fPIC -I<prefix>/include -o coll_mine.so mine.c
 * and copy it to ~/.portcullis/components, to <prefix>/lib/portcullis, or to a folder named by the parameter mca_component_path.
 * mpi-info lists the plugin; mpirun --explain prints why it was not selected.
 *
 * Versions. Every table begins with its size, as the compiler of its author computed it.
 * New slots are only added at the end of a table, so its size shows which slots it has.
 * A slot beyond the size or with the value NULL is missing. New slots raise PORTCULLIS_ABI_MINOR;
 * the manifest has the minor version that a plugin needs, and an older library does not load it.
 * All other changes raise PORTCULLIS_ABI_VERSION; plugins for another version are not loaded.
 *
 * Ranks. All ranks of a job must have the same components in the same versions. Rank 0 prints a
 * warning with host, file and version of each difference, and a component that differs between
 * two ranks serves no communicator of both.
 *
 * Threads. A module gets one call at a time, but successive calls may come from different threads
 * of the program, so a plugin must not keep data in thread-local memory between calls.
 * A plugin calls services only while it executes a call of the library.
 *
 * Exceptions. No C++ exception and no panic may leave a function of a plugin: otherwise the
 * library prints which plugin the function belongs to and ends the process.
 *
 * Text. All strings are UTF-8 and end with a NUL. A function copies the strings that it receives.
 * It stays the owner of the strings that it returns.
 */
#ifndef PORTCULLIS_PLUGIN_H
#define PORTCULLIS_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the interface; the library loads only plugins for its own version. */
#define PORTCULLIS_ABI_VERSION 2
/* The minor version, which increases if slots are added to a table. */
#define PORTCULLIS_ABI_MINOR 0
/* A hash over the layout of all tables below; it detects a header that was changed by hand. */
#define PORTCULLIS_ABI_LAYOUT 0x60ee93e3u

/*
 * The minimum PORTCULLIS_ABI_MINOR of a library with which the plugin works; the default is the
 * value of this header. A plugin that tests newer slots for NULL may define a smaller value
 * before it includes this file.
 */
#ifndef PORTCULLIS_NEEDS_MINOR
#define PORTCULLIS_NEEDS_MINOR PORTCULLIS_ABI_MINOR
#endif

/*
 * The manifest: an ELF note that the library reads before it runs code of the plugin.
 * PORTCULLIS_PLUGIN defines it.
 */
typedef struct portcullis_manifest {
    uint32_t owner_bytes;
    uint32_t description_bytes;
    uint32_t type;
    char owner[12];
    uint32_t abi_version;
    uint32_t abi_minor;
    uint32_t needs_minor;
    uint32_t layout;
    char framework[16];
    char component[64];
    char version[32];
} portcullis_manifest;

/*
 * Defines the manifest. Use it one time in a plugin, outside of functions, with three string
 * literals that agree with the table and the file name: PORTCULLIS_PLUGIN("coll", "mine", "1.0");
 */
#define PORTCULLIS_PLUGIN(framework, component, version)                                                              \
    __attribute__((section(".note.portcullis"), used, aligned(4))) static const portcullis_manifest                   \
        portcullis_manifest_of_this_file = {11, sizeof(portcullis_manifest) - 24, 1, "Portcullis",                    \
                                            PORTCULLIS_ABI_VERSION, PORTCULLIS_ABI_MINOR, PORTCULLIS_NEEDS_MINOR,     \
                                            PORTCULLIS_ABI_LAYOUT, framework, component, version}

/* The results of functions. */
enum {
    PORTCULLIS_FAILED = -1, /* The call failed; the reason is in why. */
    PORTCULLIS_DONE = 0, /* The call has completed. */
    PORTCULLIS_PENDING = 1, /* The operation is in progress; test it again. */
    PORTCULLIS_NEXT = 2     /* The next lower component serves the call; all members must return this for the same call. */
};

/* The reason of a failure or refusal, as one sentence. */
typedef struct portcullis_why {
    char text[512]; /* The sentence in UTF-8, with a NUL at its end. */
} portcullis_why;

/* The library's handle of a communicator for one module; valid from query until free. */
typedef struct portcullis_comm portcullis_comm;

/* A call; valid until the blocking function returns, or until test no longer returns PENDING. */
typedef struct portcullis_call portcullis_call;

/* A datatype; valid during the call. A datatype from named_type is valid until free is called. */
typedef struct portcullis_type portcullis_type;

/* A reduction operator, predefined or user-defined; valid during the call. */
typedef struct portcullis_op portcullis_op;

/* A predefined operator on one predefined type without gaps; valid until dense returns. */
typedef struct portcullis_dense_op portcullis_dense_op;

/*
 * count elements of a type. address is the MPI buffer address, so data may begin before it.
 * This structure never grows.
 */
typedef struct portcullis_buffer {
    void *address; /* The MPI buffer address. */
    int64_t count; /* The number of elements. */
    const portcullis_type *type; /* The datatype of the elements. */
} portcullis_buffer;

/* The sizes of a datatype in bytes. The caller sets size to sizeof(portcullis_type_info). */
typedef struct portcullis_type_info {
    size_t size; /* The size of this structure in the version of the caller. */
    int64_t bytes; /* The size of the data of one element. */
    int64_t lb; /* The lower bound. */
    int64_t extent; /* The distance from one element to the next. */
    int64_t true_lb; /* The offset of the lowest byte of data. */
    int64_t true_extent; /* The distance from the lowest byte of data to the end of the highest. */
    uintptr_t handle; /* The MPI_Datatype value of a predefined type in the standard ABI of MPI 5.0; else 0. */
} portcullis_type_info;

/* The properties of an operator. The caller sets size to sizeof(portcullis_op_info). */
typedef struct portcullis_op_info {
    size_t size; /* The size of this structure in the version of the caller. */
    uintptr_t handle; /* The MPI_Op value of a predefined operator in the standard ABI of MPI 5.0; else 0. */
    int commutes; /* 1 if the operator is commutative, else 0. */
} portcullis_op_info;

/* The location of this process. The caller sets size to sizeof(portcullis_topology). */
typedef struct portcullis_topology {
    size_t size; /* The size of this structure in the version of the caller. */
    const char *host; /* The name of this host. */
    uint32_t cores;      /* The number of cores that this process may use. */
    uint32_t ranks_here; /* The number of ranks of the job on this host. */
} portcullis_topology;

/* The operations. MPI_X, MPI_Ix and MPI_X_init are the same operation. */
enum {
    PORTCULLIS_BARRIER = 0, /* MPI_Barrier, MPI_Ibarrier or MPI_Barrier_init. */
    PORTCULLIS_BCAST = 1, /* MPI_Bcast, MPI_Ibcast or MPI_Bcast_init. */
    PORTCULLIS_GATHER = 2, /* MPI_Gather, MPI_Igather or MPI_Gather_init. */
    PORTCULLIS_GATHERV = 3, /* MPI_Gatherv, MPI_Igatherv or MPI_Gatherv_init. */
    PORTCULLIS_SCATTER = 4, /* MPI_Scatter, MPI_Iscatter or MPI_Scatter_init. */
    PORTCULLIS_SCATTERV = 5, /* MPI_Scatterv, MPI_Iscatterv or MPI_Scatterv_init. */
    PORTCULLIS_ALLGATHER = 6, /* MPI_Allgather, MPI_Iallgather or MPI_Allgather_init. */
    PORTCULLIS_ALLGATHERV = 7, /* MPI_Allgatherv, MPI_Iallgatherv or MPI_Allgatherv_init. */
    PORTCULLIS_ALLTOALL = 8, /* MPI_Alltoall, MPI_Ialltoall or MPI_Alltoall_init. */
    PORTCULLIS_ALLTOALLV = 9, /* MPI_Alltoallv, MPI_Ialltoallv or MPI_Alltoallv_init. */
    PORTCULLIS_ALLTOALLW = 10, /* MPI_Alltoallw, MPI_Ialltoallw or MPI_Alltoallw_init. */
    PORTCULLIS_REDUCE = 11, /* MPI_Reduce, MPI_Ireduce or MPI_Reduce_init. */
    PORTCULLIS_ALLREDUCE = 12, /* MPI_Allreduce, MPI_Iallreduce or MPI_Allreduce_init. */
    PORTCULLIS_REDUCE_SCATTER = 13, /* MPI_Reduce_scatter, MPI_Ireduce_scatter or MPI_Reduce_scatter_init. */
    PORTCULLIS_REDUCE_SCATTER_BLOCK = 14, /* MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block or MPI_Reduce_scatter_block_init. */
    PORTCULLIS_SCAN = 15, /* MPI_Scan, MPI_Iscan or MPI_Scan_init. */
    PORTCULLIS_EXSCAN = 16, /* MPI_Exscan, MPI_Iexscan or MPI_Exscan_init. */
    PORTCULLIS_NEIGHBOR_ALLGATHER = 17, /* MPI_Neighbor_allgather, MPI_Ineighbor_allgather or MPI_Neighbor_allgather_init. */
    PORTCULLIS_NEIGHBOR_ALLGATHERV = 18, /* MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv or MPI_Neighbor_allgatherv_init. */
    PORTCULLIS_NEIGHBOR_ALLTOALL = 19, /* MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall or MPI_Neighbor_alltoall_init. */
    PORTCULLIS_NEIGHBOR_ALLTOALLV = 20, /* MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv or MPI_Neighbor_alltoallv_init. */
    PORTCULLIS_NEIGHBOR_ALLTOALLW = 21 /* MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw or MPI_Neighbor_alltoallw_init. */
};

/* No rank: the root of an operation without a root, or a neighbour MPI_PROC_NULL. */
#define PORTCULLIS_NO_RANK 0xffffffffu

/*
 * The arguments of one call; valid during the call. A missing argument is NULL or 0.
 * In v and w forms there is one buffer per rank or neighbour, with displacements in the addresses.
 * In other forms one buffer has all blocks of count elements: one block per rank for gather,
 * scatter, allgather and alltoall, or one block per neighbour for a neighbourhood operation.
 * Neighbourhood blocks to or from PORTCULLIS_NO_RANK stay unchanged.
 */
typedef struct portcullis_args {
    size_t size;        /* The size of this structure in bytes. */
    uint32_t operation; /* The operation: PORTCULLIS_BARRIER or another constant of the same enum. */
    uint32_t root; /* The root; PORTCULLIS_NO_RANK for an operation without a root. */
    const portcullis_op *op; /* The operator; NULL for an operation without an operator. */
    const portcullis_buffer *send; /* The send buffers; NULL for MPI_IN_PLACE: the data are then in recv. MPI_Bcast has only recv. */
    const portcullis_buffer *recv; /* The receive buffers. */
    uint32_t send_count; /* The number of buffers at send. */
    uint32_t recv_count; /* The number of buffers at recv. */
    const int64_t *counts; /* For MPI_Reduce_scatter: the number of elements for each rank. */
    const uint32_t *sources; /* For neighbourhood operations: the rank of each receive block; source_count ranks. */
    const uint32_t *destinations; /* For neighbourhood operations: the rank of each send block; destination_count ranks. */
    uint64_t bytes; /* The bytes of one rank's block or of all data; 0 if the standard lets members differ. */
    /*
     * For a persistent operation: a pointer that is kept between starts and is NULL at first.
     * The function forget gets it when the operation is freed. For other operations plan is NULL.
     */
    void **plan;
    uint32_t source_count;
    uint32_t destination_count;
    /*
     * The receive blocks in the order in which the sources send them. The order matters only
     * if one rank is a neighbour twice.
     */
    const uint32_t *arrivals;
    uint32_t arrival_count; /* The number of blocks at arrivals. */
} portcullis_args;

/* The severity of a line that log prints. */
enum {
    PORTCULLIS_INFO = 0, /* Printed by rank 0 with mpirun --explain; from a transport never printed. */
    PORTCULLIS_WARNING = 1 /* Always printed. */
};

/*
 * The services of the library. Services marked "Blocking" progress MPI while they wait.
 * Only enable, barrier, run, dense, eureka_begin and eureka_end may call blocking services,
 * which fail when called from inside progress.
 */
typedef struct portcullis_host {
    size_t size;          /* The size of this table in bytes. */
    uint32_t abi_version; /* The value of PORTCULLIS_ABI_VERSION. */
    uint32_t reserved; /* Reserved for later versions. */
    const char *library; /* The name and version of the library. */

    /* Properties of the communicator. */

    uint32_t (*comm_rank)(portcullis_comm *); /* Returns the rank of this process. */
    uint32_t (*comm_size)(portcullis_comm *); /* Returns the number of members. */
    const char *(*comm_name)(portcullis_comm *); /* Returns the name at the time of query; a description if the communicator had no name. */
    int (*comm_is_world)(portcullis_comm *); /* Returns 1 for MPI_COMM_WORLD, else 0. */
    /*
     * Writes up to capacity ranks of members on this node, ascending.
     * Returns the number of members on this node.
     */
    uint32_t (*comm_node_ranks)(portcullis_comm *, uint32_t *ranks, uint32_t capacity);

    /*
     * send and recv: messages among this module's members, separate from all others. Blocking.
     * Messages between two ranks arrive in order. A receive of another length fails.
     */
    int (*send)(portcullis_comm *, uint32_t dest, const void *data, size_t bytes, portcullis_why *);
    int (*recv)(portcullis_comm *, uint32_t source, void *data, size_t bytes, portcullis_why *);
    /* A barrier: returns after every member has called fence. Blocking. */
    int (*fence)(portcullis_comm *, portcullis_why *);

    /*
     * Nonblocking send and recv, whose messages match only each other. Allowed from enable on.
     * Both write the number to pass to test_message.
     * A send copies its data; a receive only has the length.
     */
    int (*start_send)(portcullis_comm *, uint32_t dest, const void *data, size_t bytes, uint64_t *message, portcullis_why *);
    /* Starts to receive a message of this number of bytes; see start_send. */
    int (*start_recv)(portcullis_comm *, uint32_t source, size_t bytes, uint64_t *message, portcullis_why *);
    /*
     * Returns DONE, PENDING or FAILED. DONE invalidates the number.
     * After DONE a received message is in data; for a sent message data may be NULL.
     */
    int (*test_message)(portcullis_comm *, uint64_t message, void *data, size_t bytes, portcullis_why *);

    /* Calls MPI's progress engine once, without a sleep. Returns 1 if it made progress, else 0. */
    int (*progress)(portcullis_comm *);
    /*
     * Waits until ready(argument) is not 0, with progress and the waiting policy. Blocking.
     * A process that makes ready true for another process must call ring for it.
     * In a fault-tolerant job it fails if a member has died or the communicator is revoked.
     * A plugin that waits with progress instead must poll failed_ranks.
     * Returns PORTCULLIS_DONE, or PORTCULLIS_PENDING after limit_ns nanoseconds (0: no limit).
     */
    int (*wait)(portcullis_comm *, int (*ready)(void *argument), void *argument, uint64_t limit_ns, portcullis_why *);
    /*
     * Wakes a member on this node if it sleeps.
     * The caller must store the data that the member waits for before it calls this.
     */
    void (*ring)(portcullis_comm *, uint32_t rank);
    /*
     * Allocates zeroed memory shared by the members on this node; collective over them. Blocking.
     * The last module that is freed releases it. align is a power of 2 up to 4096.
     */
    int (*shared_memory)(portcullis_comm *, size_t bytes, size_t align, void **memory, portcullis_why *);

    /* Returns the value of a parameter of the plugin as text; NULL for an unknown name. */
    const char *(*param)(portcullis_comm *, const char *name);
    /* Prints one line for the user. */
    void (*log)(portcullis_comm *, int level, const char *line);
    /* Returns the time of a monotonic clock that all processes of the machine share. */
    uint64_t (*now_ns)(void);
    /* Executes this call by the next lower component. Blocking. */
    int (*call_next)(portcullis_call *, portcullis_why *);
    /*
     * Returns the address of a per-process pointer, NULL at first, shared by the modules.
     * The plugin stores NULL there when it frees the last module.
     */
    void **(*component_data)(portcullis_comm *);
    /*
     * Reports the state of a hardware barrier wire that this process drives: its number, and the
     * numbers of barriers entered and released. Costs a few stores; call it after each change.
     */
    void (*barrier_wire)(portcullis_comm *, uint32_t wire, uint64_t entered, uint64_t released);
    /*
     * Writes up to capacity ranks of known dead members, in the order of their detection.
     * Returns the number of all such members; always 0 without fault tolerance (mpi_ft_enable).
     */
    uint32_t (*failed_ranks)(portcullis_comm *, uint32_t *ranks, uint32_t capacity);

    /* Sets the error text for a function without a why argument. Returns PORTCULLIS_FAILED. */
    int (*fail)(portcullis_comm *, const char *reason);
    /* Writes the location of this process. */
    void (*topology)(portcullis_comm *, portcullis_topology *);

    /* Data of any datatype, and operators. */

    /* Returns the predefined datatype for an MPI_Datatype value of the MPI 5.0 ABI, or NULL. */
    const portcullis_type *(*named_type)(portcullis_comm *, uintptr_t handle);
    /* Writes the sizes of a datatype. */
    void (*type_info)(const portcullis_type *, portcullis_type_info *);
    /* Writes the properties of an operator. */
    void (*op_info)(const portcullis_op *, portcullis_op_info *);
    /*
     * pack copies buffer data to packed memory, and unpack copies packed memory to the buffer.
     * at is the position in the packed data, in bytes, at which the copy begins.
     * Both return the number of copied bytes; it is smaller than bytes at the end of the buffer.
     */
    size_t (*pack)(const portcullis_buffer *, int64_t at, void *to, size_t bytes);
    size_t (*unpack)(const portcullis_buffer *, int64_t at, const void *from, size_t bytes);
    /* Copies data to a buffer of any type, up to the shorter buffer. Returns the number of bytes. */
    int64_t (*copy)(const portcullis_buffer *from, const portcullis_buffer *to);
    /* Computes inout = in op inout by element; both have the type of the call's buffers. */
    int (*reduce)(const portcullis_op *, const portcullis_buffer *in, const portcullis_buffer *inout, portcullis_why *);
    /* Computes inout = in op inout for the contiguous data of dense. */
    void (*combine)(const portcullis_dense_op *, const void *in, void *inout, size_t bytes);
    /* Allocates a zeroed buffer for count elements of a type; it is freed at the end of the call. */
    int (*temporary)(portcullis_call *, const portcullis_type *, int64_t count, portcullis_buffer *, portcullis_why *);

    /*
     * Starts a message of one call. Messages of overlapping calls do not match each other.
     * Messages between two ranks arrive in order; both sides pass the same number of bytes.
     * The buffer is in use until the message is complete. The call's end cancels open messages.
     */
    int (*call_send)(portcullis_call *, uint32_t dest, const portcullis_buffer *, uint64_t *message, portcullis_why *);
    /* Starts to receive a message of one call; see call_send. */
    int (*call_recv)(portcullis_call *, uint32_t source, const portcullis_buffer *, uint64_t *message, portcullis_why *);
    /* Returns DONE, PENDING or FAILED. DONE invalidates the number. */
    int (*call_test)(portcullis_call *, uint64_t message, portcullis_why *);
    /* Waits until all of these messages are complete. Blocking. */
    int (*call_wait)(portcullis_call *, const uint64_t *messages, size_t count, portcullis_why *);
} portcullis_host;

/* Conditions, besides limit, for the calls that an entry serves; equal at all members. */
enum {
    PORTCULLIS_PREDEFINED = 1, /* The entry serves only calls with a predefined operator. */
    PORTCULLIS_COMMUTATIVE = 2 /* The entry serves only calls with a commutative operator. */
};

/*
 * The functions of a module for one operation. Each may be NULL.
 * Calls without a function go to the next lower component.
 *
 * A member must not decide by properties that may differ between members:
 * datatypes with gaps, MPI_IN_PLACE, alignment, or its own memory.
 * run and start may return NEXT before their first message, at all members for the same call.
 */
typedef struct portcullis_operation {
    uint32_t operation; /* The operation: PORTCULLIS_BARRIER or another constant of the same enum. */
    uint32_t flags; /* PORTCULLIS_PREDEFINED and PORTCULLIS_COMMUTATIVE, combined by OR, or 0. */
    uint64_t limit; /* Calls with more args->bytes go to the next component; 0: no limit. */
    /*
     * Executes MPI_X: returns DONE after this member's part, NEXT or FAILED.
     * May use blocking services.
     */
    int (*run)(void *self, const portcullis_args *, portcullis_call *, portcullis_why *);
    /*
     * Starts MPI_Ix or a persistent MPI_X: writes a ticket, returns DONE, PENDING, NEXT or FAILED.
     * After DONE or PENDING, the library calls test until it returns DONE or FAILED.
     * start and test must not use blocking services. A blocking call without run uses both.
     */
    int (*start)(void *self, const portcullis_args *, portcullis_call *, uint64_t *ticket, portcullis_why *);
    int (*test)(void *self, uint64_t ticket, portcullis_why *);
    /* Frees the value of *args->plan when a persistent operation is freed. */
    void (*forget)(void *self, void *plan);
    /*
     * Fast path of MPI_X: a predefined type without gaps, a predefined operator, no MPI_IN_PLACE.
     * Other members may execute the same call by run, so dense and run must send the same messages.
     * bytes is args->bytes; send, recv or op is NULL if the member or operation has none.
     * Returns DONE or FAILED (with the reason by fail). May use blocking services.
     */
    int (*dense)(void *self, const void *send, void *recv, size_t bytes, uint32_t root, const portcullis_dense_op *op);
} portcullis_operation;

/*
 * The functions of a component for one communicator. Every slot may be NULL.
 * If barrier_start is NULL, only blocking barriers are served. If barrier is NULL, MPI_Barrier
 * calls barrier_start, then barrier_test until the barrier is complete.
 */
typedef struct portcullis_module {
    size_t size; /* The size of this table in bytes. */
    /* Collective setup; may use blocking services. If one member fails, all free their modules. */
    int (*enable)(void *self, portcullis_why *);
    /* Executes MPI_Barrier: returns DONE after every member has called it, NEXT or FAILED. */
    int (*barrier)(void *self, portcullis_call *, portcullis_why *);
    /*
     * Starts MPI_Ibarrier: writes a ticket and returns DONE, PENDING, NEXT or FAILED.
     * After DONE or PENDING, the library calls barrier_test until it no longer returns PENDING.
     * Several barriers may be in progress, and further ones may follow, in the same order at all
     * members. Each ends only after every member has started it.
     * barrier_start and barrier_test must not use blocking services.
     */
    int (*barrier_start)(void *self, uint64_t *ticket, portcullis_why *);
    int (*barrier_test)(void *self, uint64_t ticket, portcullis_why *);
    /*
     * Restores the state before enable: the communicator is freed, or enable failed at a member.
     * Not collective.
     */
    void (*disable)(void *self);
    /* Frees the module; no other function of the module is called afterwards. */
    void (*free)(void *self);
    /*
     * Called when a started message completes, and periodically during MPI calls of this process.
     * Lets a member answer requests from enable until disable. Must not use blocking services.
     */
    void (*attend)(void *self);
    /*
     * Eureka line for early termination (MPIX_Eureka_...). Its four slots are all set or all NULL.
     * eureka_begin and eureka_end are collective, ordered with barriers; they may block.
     * eureka_begin opens a round: DONE, or NEXT at all members to decline.
     * The line keeps its state until eureka_end, so barriers that would lower it return NEXT.
     * eureka_raise returns when the line is high; *first is 1 at the first member of the round.
     * eureka_test: DONE if the line is high, else PENDING. eureka_end waits for all members.
     */
    int (*eureka_begin)(void *self, portcullis_why *);
    int (*eureka_raise)(void *self, int *first, portcullis_why *);
    int (*eureka_test)(void *self, portcullis_why *);
    int (*eureka_end)(void *self, portcullis_why *);
    /*
     * The operations, in any order; of two entries for one operation the first is used.
     * operation_size is sizeof(portcullis_operation).
     * An entry for PORTCULLIS_BARRIER is used if barrier and barrier_start are NULL.
     */
    const portcullis_operation *operations;
    uint32_t operation_count; /* The number of entries at operations. */
    uint32_t operation_size;
} portcullis_module;

/* A parameter; users call it coll_<component>_<name>. The library adds the parameter "priority". */
typedef struct portcullis_param {
    const char *name; /* The name without the prefix coll_<component>_. */
    const char *default_value; /* The default value as text. */
    const char *help; /* The description for users. */
    const char *type; /* The type: bool, int, unsigned_int, size_t, double, duration or string; NULL means string. */
} portcullis_param;

/* The description of a collective component. */
typedef struct portcullis_component_table {
    size_t size;          /* The size of this table: sizeof(portcullis_component_table). */
    uint32_t abi_version; /* The value of PORTCULLIS_ABI_VERSION. */
    int32_t priority;     /* The default priority; the component with the highest priority is asked first. */
    const char *framework; /* The framework name "coll". */
    const char *name;      /* The component name: lower-case letters, digits and _, at most 63 characters. */
    const char *version;   /* The version, for example "1.2.0". */
    const portcullis_param *params; /* The parameters of the component. */
    size_t param_count; /* The number of parameters, at most 256. */
    /*
     * Returns a module table if this process can serve the communicator, else NULL and the reason.
     * *self is passed to all functions. Must not communicate: the library agrees with all members.
     */
    const portcullis_module *(*query)(const portcullis_host *, portcullis_comm *, void **self, portcullis_why *);
    /*
     * The name of the parameter that requests this component, or NULL. Rank 0 prints a warning
     * if its value is not the default and MPI_COMM_WORLD cannot use the component.
     */
    const char *asked_by;
} portcullis_component_table;

/* The only exported symbol. The table must stay valid: the library never unloads a plugin. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const portcullis_component_table *portcullis_component(void);

#ifdef __cplusplus
}
#endif

#endif
