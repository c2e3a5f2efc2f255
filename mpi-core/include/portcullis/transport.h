/*
 * portcullis/transport.h: write a transport in C or C++, without our sources.
 *
 * A transport brings messages to other processes of the job, each exactly once, in any order. The library does the rest:
 * it publishes addresses, puts messages in order, cuts long ones, matches them, and notices which transport reaches which process.
 *
 * A plugin is a shared object btl_NAME.so that exports one symbol, the function portcullis_transport(), and has a manifest
 * (PORTCULLIS_TRANSPORT below). It is opened only if the parameter btl names it: mpirun --mca btl self,NAME.
 * Build it and put it where portcullis/plugin.h says; what is said there of versions, exceptions and texts holds here too.
 *
 * Addresses and messages come from other processes: a transport checks them as it would check what comes from a network.
 * A program that wants the same in Rust uses the package portcullis-plugin.
 */
#ifndef PORTCULLIS_TRANSPORT_H
#define PORTCULLIS_TRANSPORT_H

#include <portcullis/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PORTCULLIS_TRANSPORT_VERSION 1
#define PORTCULLIS_TRANSPORT_MINOR 1
#define PORTCULLIS_TRANSPORT_LAYOUT 0x8ca82722u

/*
 * The least PORTCULLIS_TRANSPORT_MINOR of a library with which the transport works: by default that of this header.
 * A transport that tests the host's newer slots for NULL may define a lower one before it includes this file.
 */
#ifndef PORTCULLIS_NEEDS_TRANSPORT_MINOR
#define PORTCULLIS_NEEDS_TRANSPORT_MINOR PORTCULLIS_TRANSPORT_MINOR
#endif

/* Once in a plugin, outside of functions, with two string literals: PORTCULLIS_TRANSPORT("mine", "1.0"); as in its table and its file's name. */
#define PORTCULLIS_TRANSPORT(transport, version)                                                                      \
    __attribute__((section(".note.portcullis"), used, aligned(4))) static const portcullis_manifest                   \
        portcullis_manifest_of_this_file = {11, sizeof(portcullis_manifest) - 24, 1, "Portcullis",                    \
                                            PORTCULLIS_TRANSPORT_VERSION, PORTCULLIS_TRANSPORT_MINOR,                 \
                                            PORTCULLIS_NEEDS_TRANSPORT_MINOR, PORTCULLIS_TRANSPORT_LAYOUT,    \
                                            "btl", transport, version}

/* How send ended, besides PORTCULLIS_FAILED: the peer cannot be reached any more. */
enum {
    PORTCULLIS_SENT = 0,      /* the message was copied */
    PORTCULLIS_SENDING = 1,   /* the transport refers to the message until it calls sent */
    PORTCULLIS_NO_SPACE = 2   /* not now, and nothing was taken: the library offers it again after a poll */
};

/* What peers may do with exposed memory. */
enum {
    PORTCULLIS_MAY_READ = 0,
    PORTCULLIS_MAY_READ_AND_WRITE = 1
};

/* The kinds of accesses to the memory of a peer. */
enum {
    PORTCULLIS_READ_MEMORY = 0,  /* the peer's memory to this process's */
    PORTCULLIS_WRITE_MEMORY = 1, /* this process's memory to the peer's; its end does not show that the data are there */
    PORTCULLIS_FLUSH_MEMORY = 2  /* ends when the data of all writes to the peer that have ended are in its memory */
};

/* An access to the memory of a peer; without key and memory if it is a flush. */
typedef struct portcullis_access {
    size_t size; /* of this structure */
    int kind;
    int reserved;
    const void *key; /* as the peer's transport wrote it in expose; it comes from another process */
    size_t key_bytes;
    uint64_t offset; /* from the begin of the exposed memory */
    void *local;     /* used by this access alone until it has ended */
    size_t bytes;
} portcullis_access;

/* A job as one transport sees it: valid from open until free. */
typedef struct portcullis_job portcullis_job;

/* Where a poll reports what has happened: valid until progress returns. */
typedef struct portcullis_events portcullis_events;

/* The services of the library. */
typedef struct portcullis_transport_host {
    size_t size;          /* of this table */
    uint32_t abi_version; /* PORTCULLIS_TRANSPORT_VERSION */
    uint32_t reserved;
    const char *library; /* name and version of the library */
    uint32_t (*rank)(portcullis_job *);
    uint32_t (*ranks)(portcullis_job *);
    /* The value of one of the transport's own parameters, in the user's words; NULL if it has none of that name. */
    const char *(*param)(portcullis_job *, const char *name);
    void (*log)(portcullis_job *, int level, const char *line); /* PORTCULLIS_INFO or PORTCULLIS_WARNING */
    uint64_t (*now_ns)(void);
    /* In a poll: a message has arrived, as its sender sent it; the memory is free again when this returns. */
    void (*arrived)(portcullis_events *, const void *message, size_t bytes);
    /* In a poll: the transport no longer refers to a message; why is NULL if it was sent. */
    void (*sent)(portcullis_events *, uint64_t message, const char *why);
    /* In a poll: a peer cannot be reached any more; once per connection, after its messages. */
    void (*failed)(portcullis_events *, uint32_t peer, const char *why);
    /* In a poll: an access has ended. Since version 1.1. */
    void (*ended)(portcullis_events *, uint64_t access, int succeeded);
} portcullis_transport_host;

/* A parameter; users call it btl_<transport>_<name>. The library adds eager_limit, max_send_size and others by itself. */
typedef struct portcullis_transport_param {
    const char *name;
    const char *default_value;
    const char *help;
    const char *type; /* as in portcullis_param */
} portcullis_transport_param;

/* A transport. There is one call at a time, though not always from the same thread. */
typedef struct portcullis_transport_table {
    size_t size;          /* of this table */
    uint32_t abi_version; /* PORTCULLIS_TRANSPORT_VERSION */
    uint32_t exclusivity; /* of several transports that reach a peer the highest is used: sm has 1024, tcp 100 */
    const char *name;
    const char *version;
    const portcullis_transport_param *params;
    size_t param_count; /* at most 256 */
    size_t eager;       /* the default of btl_<transport>_eager_limit */
    size_t longest;     /* the default of btl_<transport>_max_send_size; messages also have a head of 32 bytes */
    int poll_is_syscall; /* polled rarely, then, while other transports deliver messages */
    int reserved;
    /* Opens it, once per process and job; *self is what the other functions get. FAILED with a reason: this process does not use it. */
    int (*open)(const portcullis_transport_host *, portcullis_job *, void **self, portcullis_why *);
    /* Writes the address that peers need; returns its length, which is at most 4000 and the same in each call. */
    size_t (*address)(void *self, void *to, size_t capacity);
    /* Prepares to send to a peer that has published this address. */
    int (*connect)(void *self, uint32_t peer, const void *address, size_t bytes, portcullis_why *);
    /* Ends the connection to a peer; at_once drops what was not sent. What the transport refers to is reported by sent, later. */
    void (*close)(void *self, uint32_t peer, int at_once);
    /* Sends a message; message is its number for sent. */
    int (*send)(void *self, uint32_t peer, const void *data, size_t bytes, uint64_t message, portcullis_why *);
    /* Polls, and reports what has happened. */
    void (*progress)(void *self, portcullis_events *);
    /* 1 if everything that was sent has arrived or was given up, else 0. */
    int (*is_quiet)(void *self);
    /*
     * A descriptor that becomes readable at the next event, or -1 if the library must poll again before it sleeps.
     * *longest_ns is the longest sleep, 0 for any. NULL: the library never sleeps while it waits for a message.
     */
    int (*wait_on)(void *self, uint64_t *longest_ns);
    /* The last call. */
    void (*free)(void *self);
    /*
     * Memory that peers read and write without this process: all three functions or none. Since version 1.1.
     * The library uses them for long messages, which the receiver reads in one copy, and for windows.
     * expose writes the key with which peers access this memory, of at most capacity bytes, and a number for withdraw;
     * it returns the length of the key, or 0 if it is not possible. The memory stays until withdraw.
     */
    size_t (*expose)(void *self, void *memory, size_t bytes, int rights, uint64_t *number, void *key, size_t capacity);
    void (*withdraw)(void *self, uint64_t number);
    /* Starts an access: SENT if it has ended, SENDING if ended will report its end, NO_SPACE, or FAILED: the library sends messages then. */
    int (*access)(void *self, uint32_t peer, const portcullis_access *, uint64_t number);
} portcullis_transport_table;

/* The one exported symbol. The table must stay; the library never unloads a plugin. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const portcullis_transport_table *portcullis_transport(void);

#ifdef __cplusplus
}
#endif

#endif
