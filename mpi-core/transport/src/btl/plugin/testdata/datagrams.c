/* A test transport in C that uses only the public header: datagrams between the processes of one host, which also read and write each other's memory. */
#define _GNU_SOURCE
#include <portcullis/transport.h>

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef ABI
#define ABI PORTCULLIS_TRANSPORT_VERSION
#endif
#ifndef VERSION
#define VERSION "1.0"
#endif
#ifndef NAME
#define NAME "datagrams"
#endif
PORTCULLIS_TRANSPORT(NAME, VERSION);
/* Macros that a test defines: code to run when the file is loaded, and when the functions open, address and send are called. */
#ifdef THROWS
extern void throws(void);
#endif
#ifdef AT_LOAD
__attribute__((constructor)) static void at_load(void) {
    AT_LOAD;
}
#endif
#ifndef AT_OPEN
#define AT_OPEN
#endif
#ifndef AT_ADDRESS
#define AT_ADDRESS
#endif
#ifndef AT_SEND
#define AT_SEND
#endif
#ifndef RETURN
#define RETURN &transport
#endif

/* For functions that some variants of the table leave out. */
#define OPTIONAL __attribute__((unused))

struct address {
    pid_t process;
    struct sockaddr_un socket;
};

struct datagrams {
    const portcullis_transport_host *host;
    portcullis_job *job;
    int socket;
    int is_full;
    uint32_t ranks;
    uint64_t exposed;
    struct address own;
    struct address peers[];
};

/* A key of registered memory: the memory's address range in its process. */
struct key {
    uint64_t address, bytes;
    int rights;
};

static int failed(portcullis_why *why, const char *what) {
    snprintf(why->text, sizeof why->text, "%s: %s", what, strerror(errno));
    return PORTCULLIS_FAILED;
}

static int start(const portcullis_transport_host *host, portcullis_job *job, void **self, portcullis_why *why) {
    static unsigned last;
    uint32_t ranks = host->ranks(job);
    struct datagrams *me;

    AT_OPEN;
    me = calloc(1, sizeof *me + ranks * sizeof me->peers[0]);
    if (!me)
        return failed(why, "memory");
    me->host = host;
    me->job = job;
    me->ranks = ranks;
    me->own.process = getpid();
    me->own.socket.sun_family = AF_UNIX;
    /* The socket has an abstract name, which begins with a NUL. The name is unique, because a process may have opened several copies of this file. */
    snprintf(me->own.socket.sun_path + 1, sizeof me->own.socket.sun_path - 1, "portcullis-datagrams-%d-%p-%u", getpid(), (void *)&last,
             __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED));
    me->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (me->socket < 0 || bind(me->socket, (const struct sockaddr *)&me->own.socket, sizeof me->own.socket)) {
        int outcome = failed(why, "a socket");
        if (me->socket >= 0)
            close(me->socket);
        free(me);
        return outcome;
    }
    *self = me;
    return PORTCULLIS_DONE;
}

static size_t address(void *self, void *to, size_t capacity) {
    struct datagrams *me = self;
    AT_ADDRESS;
    if (sizeof me->own <= capacity)
        memcpy(to, &me->own, sizeof me->own);
    return sizeof me->own;
}

static int meet(void *self, uint32_t peer, const void *address, size_t bytes, portcullis_why *why) {
    struct datagrams *me = self;
    if (peer >= me->ranks || bytes != sizeof me->peers[0]) {
        snprintf(why->text, sizeof why->text, "its address has %zu bytes, and one of this transport %zu", bytes, sizeof me->peers[0]);
        return PORTCULLIS_FAILED;
    }
    memcpy(&me->peers[peer], address, bytes);
    return PORTCULLIS_DONE;
}

static int deliver(void *self, uint32_t peer, const void *data, size_t bytes, uint64_t message, portcullis_why *why) {
    struct datagrams *me = self;
    const struct sockaddr_un *to = &me->peers[peer].socket;
    (void)message;
    AT_SEND;
    if (sendto(me->socket, data, bytes, 0, (const struct sockaddr *)to, sizeof *to) >= 0)
        return PORTCULLIS_SENT;
    if (errno != EAGAIN && errno != ENOBUFS)
        return failed(why, "a datagram was not sent");
    me->is_full = 1;
    return PORTCULLIS_NO_SPACE;
}

static void progress(void *self, portcullis_events *events) {
    struct datagrams *me = self;
    char message[64 << 10];
    ssize_t bytes;
    me->is_full = 0;
    while ((bytes = recv(me->socket, message, sizeof message, 0)) >= 0)
        me->host->arrived(events, message, (size_t)bytes);
}

static int wait_on(void *self, uint64_t *longest_ns) {
    struct datagrams *me = self;
    *longest_ns = me->is_full ? 1000000 : 0;
    return me->socket;
}

OPTIONAL static size_t expose(void *self, void *memory, size_t bytes, int rights, uint64_t *number, void *key, size_t capacity) {
    struct datagrams *me = self;
    struct key made = {(uintptr_t)memory, bytes, rights};
    if (capacity < sizeof made)
        return 0;
    memcpy(key, &made, sizeof made);
    *number = ++me->exposed;
    return sizeof made;
}

OPTIONAL static void withdraw(void *self, uint64_t number) {
    (void)self;
    (void)number;
}

OPTIONAL static int reach(void *self, uint32_t peer, const portcullis_access *access, uint64_t number) {
    struct datagrams *me = self;
    pid_t process = me->peers[peer].process;
    struct iovec here = {access->local, access->bytes}, there;
    struct key key;
    ssize_t moved;
    (void)number;
    if (access->kind == PORTCULLIS_FLUSH_MEMORY)
        return PORTCULLIS_SENT;
    if (access->key_bytes != sizeof key)
        return PORTCULLIS_FAILED;
    memcpy(&key, access->key, sizeof key);
    if (access->offset > key.bytes || access->bytes > key.bytes - access->offset)
        return PORTCULLIS_FAILED;
    there.iov_base = (void *)(uintptr_t)(key.address + access->offset);
    there.iov_len = access->bytes;
    if (access->kind == PORTCULLIS_WRITE_MEMORY && key.rights != PORTCULLIS_MAY_READ_AND_WRITE)
        return PORTCULLIS_FAILED;
    moved = access->kind == PORTCULLIS_READ_MEMORY ? process_vm_readv(process, &here, 1, &there, 1, 0)
                                                   : process_vm_writev(process, &here, 1, &there, 1, 0);
    if (moved == (ssize_t)access->bytes && getenv("DATAGRAMS_COUNT"))
        fprintf(stderr, "datagrams: %s %zu bytes\n", access->kind == PORTCULLIS_READ_MEMORY ? "read" : "wrote", access->bytes);
    return moved == (ssize_t)access->bytes ? PORTCULLIS_SENT : PORTCULLIS_FAILED;
}

static void end(void *self) {
    struct datagrams *me = self;
    close(me->socket);
    free(me);
}

static const portcullis_transport_table transport = {
    .size = sizeof transport,
    .abi_version = ABI,
    .exclusivity = 50,
    .name = NAME,
    .version = VERSION,
    .eager = 4096,
    .longest = 8192,
    .poll_is_syscall = 1,
    .open = start,
    .address = address,
    .connect = meet,
    .send = deliver,
    .progress = progress,
    .wait_on = wait_on,
    .free = end,
#ifndef NO_MEMORY
    .expose = expose,
    .withdraw = withdraw,
#ifndef NO_ACCESS
    .access = reach,
#endif
#endif
};

#ifdef OLD
static portcullis_transport_table old;
#endif

const portcullis_transport_table *portcullis_transport(void) {
    return RETURN;
}
