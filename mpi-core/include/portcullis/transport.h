/*
 * portcullis/transport.h: the C interface of transports; needs no library sources.
 *
 * A transport delivers messages to other processes of the job, each exactly once, in any order.
 * The library exchanges the addresses, orders the messages, splits long ones into fragments,
 * matches them, and determines which transport reaches which process.
 *
 * A plugin is a shared object btl_NAME.so that exports one symbol, the function portcullis_transport(), and has a manifest
 * (PORTCULLIS_TRANSPORT below). The library opens it only if the parameter btl names it, as in
 * mpirun --mca btl self,NAME. portcullis/plugin.h describes how to build and install a plugin;
 * its rules for versions, exceptions and text also hold for transports.
 *
 * Addresses and messages come from other processes: a transport must check them like data from a
 * network. The package portcullis-plugin is the same interface in Rust.
 */
#ifndef PORTCULLIS_TRANSPORT_H
#define PORTCULLIS_TRANSPORT_H

#include <portcullis/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the interface; the library loads only transports for its own version. */
#define PORTCULLIS_TRANSPORT_VERSION 1
/* The minor version, which increases if slots are added to a table. */
#define PORTCULLIS_TRANSPORT_MINOR 1
/* A hash over the layout of all tables below; it detects a header that was changed by hand. */
#define PORTCULLIS_TRANSPORT_LAYOUT 0x8ca82722u

/*
 * The minimum PORTCULLIS_TRANSPORT_MINOR of a library with which the transport works;
 * the default is the value of this header. A transport that tests newer slots of the host
 * for NULL may define a smaller value before it includes this file.
 */
#ifndef PORTCULLIS_NEEDS_TRANSPORT_MINOR
#define PORTCULLIS_NEEDS_TRANSPORT_MINOR PORTCULLIS_TRANSPORT_MINOR
#endif

/*
 * Defines the manifest. Use it one time in a plugin, outside of functions, with two string
 * literals that agree with the table and the file name: PORTCULLIS_TRANSPORT("mine", "1.0");
 */
#define PORTCULLIS_TRANSPORT(transport, version)                                                                      \
    __attribute__((section(".note.portcullis"), used, aligned(4))) static const portcullis_manifest                   \
        portcullis_manifest_of_this_file = {11, sizeof(portcullis_manifest) - 24, 1, "Portcullis",                    \
                                            PORTCULLIS_TRANSPORT_VERSION, PORTCULLIS_TRANSPORT_MINOR,                 \
                                            PORTCULLIS_NEEDS_TRANSPORT_MINOR, PORTCULLIS_TRANSPORT_LAYOUT,    \
                                            "btl", transport, version}

/* The results of send. PORTCULLIS_FAILED, also possible, means that the peer is unreachable now. */
enum {
    PORTCULLIS_SENT = 0,      /* The transport has copied the message. */
    PORTCULLIS_SENDING = 1,   /* The transport reads the message until it calls sent. */
    PORTCULLIS_NO_SPACE = 2   /* No space now, and no byte was copied: the library retries after a poll. */
};

/* The accesses that peers may make to exposed memory. */
enum {
    PORTCULLIS_MAY_READ = 0, /* Peers may read the memory. */
    PORTCULLIS_MAY_READ_AND_WRITE = 1 /* Peers may read and write the memory. */
};

/* The kinds of accesses to the memory of a peer. */
enum {
    PORTCULLIS_READ_MEMORY = 0,  /* Copies the peer's memory to this process's memory. */
    PORTCULLIS_WRITE_MEMORY = 1, /* Copies this process's memory to the peer's. The end of the access does not mean that the data have arrived. */
    PORTCULLIS_FLUSH_MEMORY = 2  /* Ends after the data of all ended writes to the peer have reached its memory. */
};

/* An access to the memory of a peer. A flush has no key and no local memory. */
typedef struct portcullis_access {
    size_t size; /* The size of this structure in bytes. */
    int kind; /* PORTCULLIS_READ_MEMORY or another constant of the same enum. */
    int reserved; /* Reserved for later versions. */
    const void *key; /* The key from the peer's expose. It comes from another process, so check it. */
    size_t key_bytes; /* The length of the key in bytes. */
    uint64_t offset; /* The offset in the exposed memory, in bytes. */
    void *local;     /* The memory of this process; no other code uses it until the access has ended. */
    size_t bytes; /* The number of bytes to copy. */
} portcullis_access;

/* The library's handle of a job for one transport; valid from open until free. */
typedef struct portcullis_job portcullis_job;

/* The handle through which a poll reports events; valid until progress returns. */
typedef struct portcullis_events portcullis_events;

/* The services of the library for a transport. */
typedef struct portcullis_transport_host {
    size_t size;          /* The size of this table in bytes. */
    uint32_t abi_version; /* The value of PORTCULLIS_TRANSPORT_VERSION. */
    uint32_t reserved; /* Reserved for later versions. */
    const char *library; /* The name and version of the library. */
    uint32_t (*rank)(portcullis_job *); /* Returns the rank of this process in the job. */
    uint32_t (*ranks)(portcullis_job *); /* Returns the number of ranks of the job. */
    /* Returns the value of a parameter of the transport as text; NULL for an unknown name. */
    const char *(*param)(portcullis_job *, const char *name);
    void (*log)(portcullis_job *, int level, const char *line); /* Prints a line; level is PORTCULLIS_INFO or PORTCULLIS_WARNING. */
    uint64_t (*now_ns)(void); /* Returns the time of a monotonic clock, in ns. */
    /* In a poll: reports a complete message. The library does not use the memory after the return. */
    void (*arrived)(portcullis_events *, const void *message, size_t bytes);
    /* In a poll: reports that the transport has released a message; why is NULL if it was sent. */
    void (*sent)(portcullis_events *, uint64_t message, const char *why);
    /* In a poll: reports an unreachable peer, once per connection, after all of its messages. */
    void (*failed)(portcullis_events *, uint32_t peer, const char *why);
    /* In a poll: reports that an access has ended. Since version 1.1. */
    void (*ended)(portcullis_events *, uint64_t access, int succeeded);
} portcullis_transport_host;

/* A parameter; users call it btl_<transport>_<name>. The library adds eager_limit and others. */
typedef struct portcullis_transport_param {
    const char *name; /* The name without the prefix btl_<transport>_. */
    const char *default_value; /* The default value as text. */
    const char *help; /* The description for users. */
    const char *type; /* The type of the value, as in portcullis_param. */
} portcullis_transport_param;

/* A transport. The library makes one call at a time, not always from the same thread. */
typedef struct portcullis_transport_table {
    size_t size;          /* The size of this table in bytes. */
    uint32_t abi_version; /* The value of PORTCULLIS_TRANSPORT_VERSION. */
    uint32_t exclusivity; /* The priority: for each peer the library uses the highest; sm has 1024, tcp 100. */
    const char *name; /* The transport name, as in the manifest. */
    const char *version; /* The version, for example "1.2.0". */
    const portcullis_transport_param *params; /* The parameters of the transport. */
    size_t param_count; /* The number of parameters, at most 256. */
    size_t eager;       /* The default in bytes of btl_<transport>_eager_limit. */
    size_t longest;     /* The default in bytes of btl_<transport>_max_send_size; messages also have a 32-byte header. */
    int poll_is_syscall; /* 1 if a poll costs a system call; the library then polls rarely while other transports deliver messages. */
    int reserved; /* Reserved for later versions. */
    /*
     * Opens the transport, once per process and job, and sets *self for the other functions.
     * FAILED with a reason means that this process cannot use the transport.
     */
    int (*open)(const portcullis_transport_host *, portcullis_job *, void **self, portcullis_why *);
    /* Writes the address for peers. Returns its length, at most 4000 and equal in all calls. */
    size_t (*address)(void *self, void *to, size_t capacity);
    /* Prepares to send to the peer with this address. */
    int (*connect)(void *self, uint32_t peer, const void *address, size_t bytes, portcullis_why *);
    /*
     * Closes the connection to a peer; at_once discards unsent data.
     * Later the transport calls sent for each message that it still holds.
     */
    void (*close)(void *self, uint32_t peer, int at_once);
    /* Sends data to a peer; message is the number to pass to sent. */
    int (*send)(void *self, uint32_t peer, const void *data, size_t bytes, uint64_t message, portcullis_why *);
    /* Polls once and reports all events. */
    void (*progress)(void *self, portcullis_events *);
    /* Returns 1 if every sent message has arrived or was abandoned, else 0. */
    int (*is_quiet)(void *self);
    /*
     * Returns a descriptor that becomes readable at the next event; -1 means: poll without a sleep.
     * *longest_ns is the maximum sleep, 0: no limit. If this slot is NULL, waits never sleep.
     */
    int (*wait_on)(void *self, uint64_t *longest_ns);
    /* Frees the transport; no other function of the transport is called afterwards. */
    void (*free)(void *self);
    /*
     * Exposes memory that peers access without this process, for long messages and for windows.
     * expose, withdraw and access are all set, or all NULL. Since version 1.1.
     * Writes the key for accesses of peers, at most capacity bytes, and a number for withdraw.
     * Returns the length of the key, or 0 on failure. The memory stays allocated until withdraw.
     */
    size_t (*expose)(void *self, void *memory, size_t bytes, int rights, uint64_t *number, void *key, size_t capacity);
    void (*withdraw)(void *self, uint64_t number);
    /*
     * Starts an access. Returns SENT if it has ended, SENDING if the transport will call ended,
     * NO_SPACE, or FAILED; the library then sends messages instead.
     */
    int (*access)(void *self, uint32_t peer, const portcullis_access *, uint64_t number);
} portcullis_transport_table;

/* The only exported symbol. The table must stay valid: the library never unloads a plugin. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const portcullis_transport_table *portcullis_transport(void);

#ifdef __cplusplus
}
#endif

#endif
