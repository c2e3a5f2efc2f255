/*
 * A wrapper library for libucp.so.0 (UCX) whose one-sided accesses and deliveries in place fail as the variable FAILING_GET specifies.
 * All other functions are those of UCX.
 *
 *     refuse    accesses fail immediately
 *     late      accesses fail after some polls
 *     place     the third receive of a delivery in place fails immediately
 *     offer     every third offer of a delivery in place fails immediately
 *     memory    all offers of deliveries in place fail immediately for lack of memory
 *     count     accesses succeed
 *
 * The library prints the numbers of reads, writes and messages, and of deliveries in place, when the process ends.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int8_t status;
enum { REFUSED = -3, NO_MEMORY = -4, LATE = -25, POLLS = 20, MOST = 256 };
/* UCP_AM_SEND_FLAG_RNDV, in the field `flags` at byte 4 of ucp_request_param_t. */
enum { RENDEZVOUS = 4 };

struct due {
    void (*ended)(void *, status, void *);
    void *argument;
    int polls;
};
static struct due due[MOST];
static long reads, writes, messages, places, offers, refused;

static int is(const char *how)
{
    const char *set = getenv("FAILING_GET");
    return set && !strcmp(set, how);
}

static void *real(const char *name)
{
    static void *ucx;
    if (!ucx)
        ucx = dlopen("libucp.so.0", RTLD_NOW);
    return dlsym(ucx, name);
}

/* Returns the result of an access that must fail, or NULL if the access must be made. */
static void *failure(const void *params)
{
    if (is("refuse"))
        return (void *)(intptr_t)REFUSED;
    for (int n = 0; is("late") && n < MOST; n++)
        if (!due[n].ended) {
            memcpy(&due[n].ended, (const char *)params + 16, sizeof due[n].ended);
            memcpy(&due[n].argument, (const char *)params + 32, sizeof due[n].argument);
            due[n].polls = POLLS;
            return &due[n];
        }
    return NULL;
}

void *ucp_get_nbx(void *endpoint, void *buffer, size_t len, uint64_t address, void *key, const void *params)
{
    reads++;
    void *failed = failure(params);
    if (failed)
        return failed;
    void *(*get)(void *, void *, size_t, uint64_t, void *, const void *);
    *(void **)&get = real("ucp_get_nbx");
    return get(endpoint, buffer, len, address, key, params);
}

void *ucp_put_nbx(void *endpoint, const void *buffer, size_t len, uint64_t address, void *key, const void *params)
{
    writes++;
    void *failed = failure(params);
    if (failed)
        return failed;
    void *(*put)(void *, const void *, size_t, uint64_t, void *, const void *);
    *(void **)&put = real("ucp_put_nbx");
    return put(endpoint, buffer, len, address, key, params);
}

void *ucp_am_send_nbx(void *endpoint, unsigned id, const void *head, size_t head_len, const void *data, size_t len, const void *params)
{
    uint32_t flags;
    memcpy(&flags, (const char *)params + 4, sizeof flags);
    messages++;
    if (flags & RENDEZVOUS) {
        offers++;
        if (is("memory") || (is("offer") && offers % 3 == 0)) {
            refused++;
            return (void *)(intptr_t)(is("memory") ? NO_MEMORY : REFUSED);
        }
    }
    void *(*send)(void *, unsigned, const void *, size_t, const void *, size_t, const void *);
    *(void **)&send = real("ucp_am_send_nbx");
    return send(endpoint, id, head, head_len, data, len, params);
}

void *ucp_am_recv_data_nbx(void *worker, void *data, void *buffer, size_t len, const void *params)
{
    places++;
    if (is("place") && places == 3)
        return (void *)(intptr_t)REFUSED;
    void *(*receive)(void *, void *, void *, size_t, const void *);
    *(void **)&receive = real("ucp_am_recv_data_nbx");
    return receive(worker, data, buffer, len, params);
}

unsigned ucp_worker_progress(void *worker)
{
    for (int n = 0; n < MOST; n++)
        if (due[n].ended && --due[n].polls == 0) {
            struct due now = due[n];
            due[n].ended = NULL;
            now.ended(&due[n], LATE, now.argument);
        }
    unsigned (*progress)(void *);
    *(void **)&progress = real("ucp_worker_progress");
    return progress(worker);
}

/* While a read's failure is pending, the process must not sleep, because no descriptor would wake it. */
status ucp_worker_arm(void *worker)
{
    for (int n = 0; n < MOST; n++)
        if (due[n].ended)
            return -15;
    status (*arm)(void *);
    *(void **)&arm = real("ucp_worker_arm");
    return arm(worker);
}

void ucp_request_free(void *request)
{
    uintptr_t begin = (uintptr_t)due, at = (uintptr_t)request;
    if (at - begin < sizeof due)
        return;
    void (*release)(void *);
    *(void **)&release = real("ucp_request_free");
    release(request);
}

__attribute__((destructor)) static void report(void)
{
    fprintf(stderr, "failing_get: %ld reads, %ld writes, %ld messages\n", reads, writes, messages);
    fprintf(stderr, "in place: %ld\n", places);
    fprintf(stderr, "refused offers: %ld\n", refused);
}
