/*
 * portcullis/plugin.h: write a collective component in C or C++, without our sources.
 *
 * A plugin is a shared object that exports one symbol, the function portcullis_component(), and has a manifest (PORTCULLIS_PLUGIN below).
 * The function returns a table of the plugin's functions; the library hands the plugin a table of its services.
 * Nothing else is resolved by symbol, in either direction, so a plugin links with no library of this project
 * and works in programs that load MPI with RTLD_LOCAL.
 *
 * Build it with
 *     cc -shared -fPIC -I<prefix>/include -o coll_mine.so mine.c
 * and copy it to ~/.portcullis/components, to <prefix>/lib/portcullis, or to a folder named by the parameter mca_component_path.
 * mpi-info lists it; mpirun --explain says why it was not chosen.
 *
 * Versions. Every table begins with its size as its author's compiler saw it.
 * Tables only ever grow at the end, so a size tells which slots there are; a slot that is missing or NULL is not there.
 * A table that grows raises PORTCULLIS_ABI_MINOR; the manifest says which one a plugin needs, and an older library does not load it.
 * Whatever cannot be said that way raises PORTCULLIS_ABI_VERSION, and a plugin for another version is not loaded.
 *
 * Ranks. All ranks of a job must have the same components in the same versions: rank 0 warns with host, file and version
 * where they differ, and a component that differs serves no communicator of both.
 *
 * Threads. There is one call at a time in a module, but successive calls may come from different threads of the program,
 * so a plugin keeps nothing in thread-local memory from one call to the next. Services are called from within such a call.
 *
 * Exceptions. No C++ exception and no panic may leave a function of a plugin: the library prints whose function it was and ends the process.
 *
 * Text. Everything is UTF-8 and ends with a NUL. What a function takes it copies, what it gives stays its own.
 */
#ifndef PORTCULLIS_PLUGIN_H
#define PORTCULLIS_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PORTCULLIS_ABI_VERSION 2
#define PORTCULLIS_ABI_MINOR 0
/* A hash over the layout of all tables below, by which a header that was changed by hand is noticed. */
#define PORTCULLIS_ABI_LAYOUT 0x60ee93e3u

/*
 * The least PORTCULLIS_ABI_MINOR of a library with which the plugin works: by default that of this header.
 * A plugin that tests its newer slots for NULL may define a lower one before it includes this file.
 */
#ifndef PORTCULLIS_NEEDS_MINOR
#define PORTCULLIS_NEEDS_MINOR PORTCULLIS_ABI_MINOR
#endif

/* The manifest: an ELF note that is read from the file before any code of it runs. PORTCULLIS_PLUGIN makes it. */
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

/* Once in a plugin, outside of functions, with three string literals: PORTCULLIS_PLUGIN("coll", "mine", "1.0"); as in its table and its file's name. */
#define PORTCULLIS_PLUGIN(framework, component, version)                                                              \
    __attribute__((section(".note.portcullis"), used, aligned(4))) static const portcullis_manifest                   \
        portcullis_manifest_of_this_file = {11, sizeof(portcullis_manifest) - 24, 1, "Portcullis",                    \
                                            PORTCULLIS_ABI_VERSION, PORTCULLIS_ABI_MINOR, PORTCULLIS_NEEDS_MINOR,     \
                                            PORTCULLIS_ABI_LAYOUT, framework, component, version}

/* How a function ended. */
enum {
    PORTCULLIS_FAILED = -1, /* for the reason written to why */
    PORTCULLIS_DONE = 0,
    PORTCULLIS_PENDING = 1, /* not yet: ask again */
    PORTCULLIS_NEXT = 2     /* the next component down shall do it; every member of the communicator must say so for the same call */
};

/* Where a function that fails or refuses writes its reason, one sentence. */
typedef struct portcullis_why {
    char text[512];
} portcullis_why;

/* A communicator as one module sees it: valid from the module's query until its free. */
typedef struct portcullis_comm portcullis_comm;

/* One call: valid until the blocking function returns, or until the test of a started one no longer says PENDING. */
typedef struct portcullis_call portcullis_call;

/* A datatype: valid as long as the call, and one of named_type as long as the module. */
typedef struct portcullis_type portcullis_type;

/* A reduction operator, predefined or the program's: valid as long as the call. */
typedef struct portcullis_op portcullis_op;

/* A predefined operator on one predefined type without holes: valid until dense returns. */
typedef struct portcullis_dense_op portcullis_dense_op;

/* count elements of a type; address is that of MPI, so data may lie before it. This structure never grows. */
typedef struct portcullis_buffer {
    void *address;
    int64_t count;
    const portcullis_type *type;
} portcullis_buffer;

/* A datatype in numbers of bytes; the caller sets size to sizeof(portcullis_type_info). */
typedef struct portcullis_type_info {
    size_t size;
    int64_t bytes; /* of data in one element */
    int64_t lb;
    int64_t extent;
    int64_t true_lb;
    int64_t true_extent;
    uintptr_t handle; /* of a predefined type: the value of its MPI_Datatype in the standard ABI of MPI 5.0; else 0 */
} portcullis_type_info;

/* An operator; the caller sets size to sizeof(portcullis_op_info). */
typedef struct portcullis_op_info {
    size_t size;
    uintptr_t handle; /* of a predefined operator: the value of its MPI_Op in the standard ABI of MPI 5.0; else 0 */
    int commutes;
} portcullis_op_info;

/* Where this process runs; the caller sets size to sizeof(portcullis_topology). */
typedef struct portcullis_topology {
    size_t size;
    const char *host;
    uint32_t cores;      /* that this process may use */
    uint32_t ranks_here; /* of the job, on this host */
} portcullis_topology;

/* The operations: MPI_X, MPI_Ix and MPI_X_init are one. */
enum {
    PORTCULLIS_BARRIER = 0,
    PORTCULLIS_BCAST = 1,
    PORTCULLIS_GATHER = 2,
    PORTCULLIS_GATHERV = 3,
    PORTCULLIS_SCATTER = 4,
    PORTCULLIS_SCATTERV = 5,
    PORTCULLIS_ALLGATHER = 6,
    PORTCULLIS_ALLGATHERV = 7,
    PORTCULLIS_ALLTOALL = 8,
    PORTCULLIS_ALLTOALLV = 9,
    PORTCULLIS_ALLTOALLW = 10,
    PORTCULLIS_REDUCE = 11,
    PORTCULLIS_ALLREDUCE = 12,
    PORTCULLIS_REDUCE_SCATTER = 13,
    PORTCULLIS_REDUCE_SCATTER_BLOCK = 14,
    PORTCULLIS_SCAN = 15,
    PORTCULLIS_EXSCAN = 16,
    PORTCULLIS_NEIGHBOR_ALLGATHER = 17,
    PORTCULLIS_NEIGHBOR_ALLGATHERV = 18,
    PORTCULLIS_NEIGHBOR_ALLTOALL = 19,
    PORTCULLIS_NEIGHBOR_ALLTOALLV = 20,
    PORTCULLIS_NEIGHBOR_ALLTOALLW = 21
};

/* No rank: the root of an operation without one, and a neighbour that is MPI_PROC_NULL. */
#define PORTCULLIS_NO_RANK 0xffffffffu

/*
 * The arguments of one call, valid as long as the call. What an operation or this rank does not have is NULL or 0.
 * A buffer stands for each rank (v and w forms) or each neighbour (v and w forms): then there are several, with displacements in their addresses.
 * Otherwise one buffer stands for all: that of gather, scatter, allgather and alltoall has count elements for each rank, one block after the other,
 * and that of a neighbourhood operation for each neighbour. In neighbourhood operations, blocks to or from PORTCULLIS_NO_RANK stay as they are.
 */
typedef struct portcullis_args {
    size_t size;        /* of this structure */
    uint32_t operation; /* PORTCULLIS_BARRIER and so on */
    uint32_t root;
    const portcullis_op *op;
    const portcullis_buffer *send; /* NULL where a rank that sends passes MPI_IN_PLACE; the data are in recv then. MPI_Bcast has recv only */
    const portcullis_buffer *recv;
    uint32_t send_count; /* the number of buffers at send */
    uint32_t recv_count;
    const int64_t *counts; /* of MPI_Reduce_scatter: elements for each rank */
    const uint32_t *sources; /* of neighbourhood operations: the rank of each receive block; source_count of them */
    const uint32_t *destinations; /* and of each send block */
    uint64_t bytes; /* of one rank's block, or of all data, which the standard makes equal at all members; 0 where it does not */
    /*
     * In a start of a persistent operation: where one pointer is kept from one start to the next, NULL at first.
     * The function forget gets it when the operation is freed. Else NULL.
     */
    void **plan;
    uint32_t source_count;
    uint32_t destination_count;
    /* The receive blocks from a rank, in the order in which the sources send them; it matters where one rank is a neighbour twice. */
    const uint32_t *arrivals;
    uint32_t arrival_count;
} portcullis_args;

/* How serious a line of log is. */
enum {
    PORTCULLIS_INFO = 0,
    PORTCULLIS_WARNING = 1
};

/*
 * The services of the library.
 * Those that say "blocking" progress MPI while they wait.
 * They may be called from enable, barrier, run, dense, eureka_begin and eureka_end only, and fail when called from inside progress.
 */
typedef struct portcullis_host {
    size_t size;          /* of this table */
    uint32_t abi_version; /* PORTCULLIS_ABI_VERSION */
    uint32_t reserved;
    const char *library; /* name and version of the library */

    /* Facts. */

    uint32_t (*comm_rank)(portcullis_comm *);
    uint32_t (*comm_size)(portcullis_comm *);
    const char *(*comm_name)(portcullis_comm *); /* as it was when the module was asked; of one without, a number */
    int (*comm_is_world)(portcullis_comm *);
    /* Writes up to capacity ranks of members that share this process's memory, ascending; returns how many there are. */
    uint32_t (*comm_node_ranks)(portcullis_comm *, uint32_t *ranks, uint32_t capacity);

    /*
     * Point-to-point among this module's members, apart from all other messages. Blocking.
     * Between two ranks messages arrive in the order in which they were sent; both sides know the length, and another one is a failure.
     */
    int (*send)(portcullis_comm *, uint32_t dest, const void *data, size_t bytes, portcullis_why *);
    int (*recv)(portcullis_comm *, uint32_t source, void *data, size_t bytes, portcullis_why *);
    /* Returns after every member has called it. Blocking. */
    int (*fence)(portcullis_comm *, portcullis_why *);

    /*
     * The same without waiting, apart from the messages above, allowed everywhere from enable on.
     * Both give a number to test the message by. What is sent is copied at once; a receive says how long the message is.
     */
    int (*start_send)(portcullis_comm *, uint32_t dest, const void *data, size_t bytes, uint64_t *message, portcullis_why *);
    int (*start_recv)(portcullis_comm *, uint32_t source, size_t bytes, uint64_t *message, portcullis_why *);
    /* DONE (once: the number is forgotten, and a received message is in data, which may be NULL for one that was sent), PENDING or FAILED. */
    int (*test_message)(portcullis_comm *, uint64_t message, void *data, size_t bytes, portcullis_why *);

    /* Lets MPI look once at what has arrived, and never rests; returns 1 if something had, else 0. */
    int (*progress)(portcullis_comm *);
    /*
     * Waits until ready(argument) is not 0, progressing, and resting as the waiting policy says. Blocking.
     * The process that makes ready true for another one must call ring for it.
     * Fails when a member has died or the communicator is revoked, where the job survives that: then nothing makes ready true any more.
     * What waits by itself, with progress, asks failed_ranks meanwhile.
     * Returns PORTCULLIS_DONE, or PORTCULLIS_PENDING after limit_ns nanoseconds (0: no limit).
     */
    int (*wait)(portcullis_comm *, int (*ready)(void *argument), void *argument, uint64_t limit_ns, portcullis_why *);
    /* Wakes a member on this node if it sleeps; the caller has published what it is woken for. */
    void (*ring)(portcullis_comm *, uint32_t rank);
    /*
     * Zeroed memory that this node's members of the communicator share, returned when the last of them has freed its module.
     * Every one of them calls it. align is a power of two up to 4096. Blocking.
     */
    int (*shared_memory)(portcullis_comm *, size_t bytes, size_t align, void **memory, portcullis_why *);

    /* The value of one of the plugin's own parameters, in the user's words; NULL if it has none of that name. */
    const char *(*param)(portcullis_comm *, const char *name);
    /* One line for the user. */
    void (*log)(portcullis_comm *, int level, const char *line);
    /* A clock that all processes of the machine share and that never goes back. */
    uint64_t (*now_ns)(void);
    /* Lets the next component down carry out this call. Blocking. */
    int (*call_next)(portcullis_call *, portcullis_why *);
    /*
     * The place of one pointer, NULL at first, that all modules of the component in this process share,
     * for data of the process rather than of a communicator. The function that frees the last module stores NULL there.
     */
    void **(*component_data)(portcullis_comm *);
    /*
     * Tells reports and traces of the wire of a hardware barrier that this process drives: its number at the hardware,
     * and how many barriers it has entered and seen released. Costs a few stores; call it when one of them has changed.
     */
    void (*barrier_wire)(portcullis_comm *, uint32_t wire, uint64_t entered, uint64_t released);
    /*
     * The members that this process knows to be dead, in the order in which it learnt of them; at most capacity of them are written.
     * Returns how many there are; always 0 unless the job survives deaths (mpi_ft_enable).
     */
    uint32_t (*failed_ranks)(portcullis_comm *, uint32_t *ranks, uint32_t capacity);

    /* Sets the error text for a function that has no why argument; returns PORTCULLIS_FAILED, which the caller then returns. */
    int (*fail)(portcullis_comm *, const char *reason);
    void (*topology)(portcullis_comm *, portcullis_topology *);

    /* Data of any datatype, and operators. */

    /* A predefined datatype by the value of its MPI_Datatype in the standard ABI of MPI 5.0 (mpi.h); NULL if there is none. */
    const portcullis_type *(*named_type)(portcullis_comm *, uintptr_t handle);
    void (*type_info)(const portcullis_type *, portcullis_type_info *);
    void (*op_info)(const portcullis_op *, portcullis_op_info *);
    /* Copies packed data of a buffer, from packed byte at on, to or from memory; returns the number of bytes, fewer at the buffer's end. */
    size_t (*pack)(const portcullis_buffer *, int64_t at, void *to, size_t bytes);
    size_t (*unpack)(const portcullis_buffer *, int64_t at, const void *from, size_t bytes);
    /* Copies the data of one buffer to another of any type, as many bytes as both have; returns their number. */
    int64_t (*copy)(const portcullis_buffer *from, const portcullis_buffer *to);
    /* inout = in op inout, element by element; both of the type of the call's buffers. */
    int (*reduce)(const portcullis_op *, const portcullis_buffer *in, const portcullis_buffer *inout, portcullis_why *);
    /* The same for the data of dense. */
    void (*combine)(const portcullis_dense_op *, const void *in, void *inout, size_t bytes);
    /* Zeroed memory for count elements of a type, which ends with the call: its buffer. */
    int (*temporary)(portcullis_call *, const portcullis_type *, int64_t count, portcullis_buffer *, portcullis_why *);

    /*
     * Messages of one call, apart from all others: those of overlapping calls do not mix.
     * Between two ranks they arrive in the order in which they were sent; both sides name the same number of bytes.
     * The buffer is used until the message is complete, and no longer than the call: a message that is left then is cancelled.
     */
    int (*call_send)(portcullis_call *, uint32_t dest, const portcullis_buffer *, uint64_t *message, portcullis_why *);
    int (*call_recv)(portcullis_call *, uint32_t source, const portcullis_buffer *, uint64_t *message, portcullis_why *);
    /* DONE (once: the number is forgotten), PENDING or FAILED. */
    int (*call_test)(portcullis_call *, uint64_t message, portcullis_why *);
    /* Waits for all of these messages. Blocking. */
    int (*call_wait)(portcullis_call *, const uint64_t *messages, size_t count, portcullis_why *);
} portcullis_host;

/* Which calls an operation takes besides those up to its limit; both are equal at all members. */
enum {
    PORTCULLIS_PREDEFINED = 1, /* only with a predefined operator */
    PORTCULLIS_COMMUTATIVE = 2 /* only with a commutative operator */
};

/*
 * What a module does for one operation. Every function may be NULL, and all calls that no function takes go to the next component down.
 *
 * A member must not decide from what may differ between members: datatypes with holes, MPI_IN_PLACE, alignment, its own memory.
 * run and start may say NEXT, at all members for the same call, before they have sent anything; after that a call ends or fails here.
 */
typedef struct portcullis_operation {
    uint32_t operation;
    uint32_t flags;
    uint64_t limit; /* calls with more args->bytes go to the next component; 0: none do */
    /* MPI_X: DONE when this member's part is done, NEXT or FAILED. Blocking services are allowed. */
    int (*run)(void *self, const portcullis_args *, portcullis_call *, portcullis_why *);
    /*
     * MPI_Ix, and each start of MPI_X_init: returns at once and names what it started; test is asked until it no longer says PENDING.
     * Start says DONE or PENDING for "ask test", or NEXT, or FAILED; test says DONE, PENDING or FAILED.
     * Neither may call a blocking service. A blocking call without run is started and tested.
     */
    int (*start)(void *self, const portcullis_args *, portcullis_call *, uint64_t *ticket, portcullis_why *);
    int (*test)(void *self, uint64_t ticket, portcullis_why *);
    /* A persistent operation is freed: frees what *args->plan was. */
    void (*forget)(void *self, void *plan);
    /*
     * The short way of MPI_X: data of a predefined type without holes, a predefined operator, no MPI_IN_PLACE. It needs run beside it,
     * which other members may get for the same call, so both exchange the same messages. bytes is args->bytes; send or recv is NULL
     * at a member that has none; op is NULL without one. Returns DONE or FAILED (fail keeps the reason). Blocking services are allowed.
     */
    int (*dense)(void *self, const void *send, void *recv, size_t bytes, uint32_t root, const portcullis_dense_op *op);
} portcullis_operation;

/*
 * What a component does for one communicator. Every slot may be NULL.
 * A barrier without barrier_start is served only when it is called blocking, and the other way round the library waits by itself.
 */
typedef struct portcullis_module {
    size_t size; /* of this table */
    /* Sets up what all members set up together, with blocking services. If it fails at any member, all members free their module. */
    int (*enable)(void *self, portcullis_why *);
    /* MPI_Barrier: returns DONE after every member has called it, or NEXT, or FAILED. */
    int (*barrier)(void *self, portcullis_call *, portcullis_why *);
    /*
     * MPI_Ibarrier: start returns at once and names what it started; test is asked until it no longer says PENDING.
     * Start says DONE or PENDING for "ask test", or NEXT, or FAILED. Several may be in progress, with barriers after them:
     * members start them in the same order, and each ends only after every member has started it.
     * Neither may call a blocking service.
     */
    int (*barrier_start)(void *self, uint64_t *ticket, portcullis_why *);
    int (*barrier_test)(void *self, uint64_t ticket, portcullis_why *);
    /* The communicator goes away, or another member refused: leave everything as it was. Members do not call it together. */
    void (*disable)(void *self);
    /* The last call. */
    void (*free)(void *self);
    /*
     * A message that was started has completed, or some time has passed. Called between enable and disable while this process is in MPI,
     * in a barrier or not, so that a member can answer what others ask it. It may call no blocking service.
     */
    void (*attend)(void *self);
    /*
     * A eureka line: one member says that it has found it, and all can see that (MPIX_Eureka_...). All four slots or none.
     * Begin and end are called by all members, in one order with barriers, and may call blocking services.
     * Begin opens a round: DONE, or NEXT at all members if the round has to go another way. In the round the line stays as it is
     * until end, so barriers of this communicator say NEXT if the line is lowered by them.
     * Raise returns when the line is high, and writes to *first whether this member was the first of the round.
     * Test says DONE if the line is high, else PENDING. End returns DONE after every member has called it.
     */
    int (*eureka_begin)(void *self, portcullis_why *);
    int (*eureka_raise)(void *self, int *first, portcullis_why *);
    int (*eureka_test)(void *self, portcullis_why *);
    int (*eureka_end)(void *self, portcullis_why *);
    /*
     * The operations, in any order; operation_size is sizeof(portcullis_operation). Of two entries for one operation the first counts.
     * An entry for PORTCULLIS_BARRIER is used if barrier and barrier_start are NULL.
     */
    const portcullis_operation *operations;
    uint32_t operation_count;
    uint32_t operation_size;
} portcullis_module;

/* A parameter; users call it coll_<component>_<name>. The library adds the parameter "priority" by itself. */
typedef struct portcullis_param {
    const char *name;
    const char *default_value;
    const char *help;
    const char *type; /* bool, int, unsigned_int, size_t, double, duration or string; NULL is string */
} portcullis_param;

/* What a plugin is. */
typedef struct portcullis_component_table {
    size_t size;          /* sizeof(portcullis_component_table) */
    uint32_t abi_version; /* PORTCULLIS_ABI_VERSION */
    int32_t priority;     /* the default; the highest goes first */
    const char *framework; /* "coll" */
    const char *name;      /* lower-case letters, digits and _, at most 63 */
    const char *version;   /* such as "1.2.0" */
    const portcullis_param *params;
    size_t param_count; /* at most 256 */
    /*
     * Whether this process can serve this communicator: a table and, in *self, what its functions get as self;
     * or NULL and the reason. No communication here: the library asks every member and uses the component where all can.
     */
    const portcullis_module *(*query)(const portcullis_host *, portcullis_comm *, void **self, portcullis_why *);
    /*
     * The name of the parameter by which the user asks for this component, or NULL. Where it has another value than its
     * default and MPI_COMM_WORLD cannot have the component, rank 0 warns with the reason.
     */
    const char *asked_by;
} portcullis_component_table;

/* The one exported symbol. The table must stay; the library never unloads a plugin. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const portcullis_component_table *portcullis_component(void);

#ifdef __cplusplus
}
#endif

#endif
