/*
 * portcullis/plugin.h: write a collective component in C, without our sources.
 *
 * A plugin is a shared object that exports one symbol, the function portcullis_component().
 * It returns a table of the plugin's functions; the library hands the plugin a table of its services.
 * Nothing else is resolved by symbol, in either direction, so a plugin links with no library of this project
 * and works in programs that load MPI with RTLD_LOCAL.
 *
 * Build it with
 *     cc -shared -fPIC -I<prefix>/include -o coll_mine.so mine.c
 * and copy it to <prefix>/lib/portcullis, or to a directory named by the parameter mca_component_path.
 * mpi-info lists it; mpirun --explain says why it was not chosen.
 *
 * Versions. Every table begins with its size as its author's compiler saw it.
 * Tables only ever grow at the end, so a size tells which slots there are; a slot that is missing or NULL is not there.
 * Whatever cannot be said that way raises PORTCULLIS_ABI_VERSION, and a plugin for another version is not loaded.
 *
 * Threads. All calls come from, and all services are called on, the thread that calls MPI.
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

#define PORTCULLIS_ABI_VERSION 1

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

/* One call of a blocking function: valid until that function returns. */
typedef struct portcullis_call portcullis_call;

/* How serious a line of log is. */
enum {
    PORTCULLIS_INFO = 0,
    PORTCULLIS_WARNING = 1
};

/*
 * The services of the library.
 * Those that say "blocking" progress MPI while they wait.
 * They may be called from enable, barrier, eureka_begin and eureka_end only, and fail when called from inside progress.
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
} portcullis_host;

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
    size_t param_count;
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
