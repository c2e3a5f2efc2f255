/* A plugin in C that includes only the public header: a barrier in which every rank reports to rank 0 and waits for its reply. */
#include <portcullis/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ABI
#define ABI PORTCULLIS_ABI_VERSION
#endif
#ifndef FRAMEWORK
#define FRAMEWORK "coll"
#endif
#ifndef NAME
#define NAME "linear"
#endif
#ifndef VERSION
#define VERSION "1.0"
#endif
/* The texts of the manifest, by default those of the table. */
#ifndef M_FRAMEWORK
#define M_FRAMEWORK "coll"
#endif
#ifndef M_NAME
#define M_NAME NAME
#endif
#ifndef M_VERSION
#define M_VERSION VERSION
#endif
#ifndef NO_MANIFEST
PORTCULLIS_PLUGIN(M_FRAMEWORK, M_NAME, M_VERSION);
#endif
#ifndef PARAMS
#define PARAMS 2
#endif
/* Statements that run when the file is opened or when the entry point is called; set by the tests. */
#ifdef THROWS
extern void throws(void);
#endif
#ifdef AT_OPEN
__attribute__((constructor)) static void at_open(void) {
    AT_OPEN;
}
#endif
#ifndef AT_QUERY
#define AT_QUERY
#endif
/* Statements that run at the start of a barrier; set by the tests. */
#ifndef AT_BARRIER
#define AT_BARRIER
#endif
#ifndef RETURN
#define RETURN &component
#endif
#ifndef SIZE
#define SIZE sizeof(portcullis_component_table)
#endif

struct linear {
    const portcullis_host *host;
    portcullis_comm *comm;
    uint64_t calls;
    uint64_t hand_down; /* number of calls after which the next component serves one */
};

static int enable(void *self, portcullis_why *why) {
    struct linear *me = self;
    return me->host->fence(me->comm, why);
}

static int barrier(void *self, portcullis_call *call, portcullis_why *why) {
    struct linear *me = self;
    const portcullis_host *host = me->host;
    uint32_t size = host->comm_size(me->comm);
    uint64_t theirs = 0;

    AT_BARRIER;
    me->calls++;
    if (me->hand_down && me->calls % me->hand_down == 0)
        return me->calls % 2 ? PORTCULLIS_NEXT : host->call_next(call, why);
    if (host->comm_rank(me->comm) != 0) {
        if (host->send(me->comm, 0, &me->calls, sizeof me->calls, why) != PORTCULLIS_DONE)
            return PORTCULLIS_FAILED;
        return host->recv(me->comm, 0, &theirs, sizeof theirs, why);
    }
    for (uint32_t rank = 1; rank < size; rank++) {
        if (host->recv(me->comm, rank, &theirs, sizeof theirs, why) != PORTCULLIS_DONE)
            return PORTCULLIS_FAILED;
        if (theirs != me->calls) {
            snprintf(why->text, sizeof why->text, "rank %u is in barrier %llu, rank 0 in %llu", rank,
                     (unsigned long long)theirs, (unsigned long long)me->calls);
            return PORTCULLIS_FAILED;
        }
    }
    for (uint32_t rank = 1; rank < size; rank++)
        if (host->send(me->comm, rank, &me->calls, sizeof me->calls, why) != PORTCULLIS_DONE)
            return PORTCULLIS_FAILED;
    return PORTCULLIS_DONE;
}

static const portcullis_module module = {
    .size = sizeof module,
    .enable = enable,
    .barrier = barrier,
    .free = free,
};

static const portcullis_module *query(const portcullis_host *host, portcullis_comm *comm, void **self, portcullis_why *why) {
    const char *refuse = host->param(comm, "refuse");
    struct linear *me;

    AT_QUERY;
    if (host->abi_version != PORTCULLIS_ABI_VERSION || host->size < sizeof *host) {
        snprintf(why->text, sizeof why->text, "the library is older than this plugin");
        return NULL;
    }
    if (strcmp(refuse, host->comm_name(comm)) == 0) {
        snprintf(why->text, sizeof why->text, "it was asked to refuse %s", refuse);
        return NULL;
    }
    me = calloc(1, sizeof *me);
    if (!me) {
        snprintf(why->text, sizeof why->text, "there is no memory");
        return NULL;
    }
    me->host = host;
    me->comm = comm;
    me->hand_down = strtoull(host->param(comm, "hand_down"), NULL, 10);
    *self = me;
    return &module;
}

static const portcullis_param params[] = {
    {"hand_down", "0", "Number of calls after which the next component serves one; 0: never", "unsigned_int"},
    {"refuse", "", "The name of a communicator to refuse", NULL},
};

static const portcullis_component_table component = {
    .size = SIZE,
    .abi_version = ABI,
    .priority = 90,
    .framework = FRAMEWORK,
    .name = NAME,
    .version = VERSION,
    .params = params,
    .param_count = PARAMS,
    .query = query,
};

const portcullis_component_table *portcullis_component(void) {
    return RETURN;
}
