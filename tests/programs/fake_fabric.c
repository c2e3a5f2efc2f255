/*
 * A fake libfabric.so.1 with one provider that reaches no process. Values of FAKE_FABRIC:
 *
 *     getinfo, fabric, endpoint   that call fails
 *     short                       the table of message functions ends before fi_send, as in an older version
 *     again                       every send returns "try again"
 *     late                        every send is accepted, and fails after some polls
 *
 * Compiled with -DWITHOUT, the library lacks its last function.
 * The completion queue has no file descriptor.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN = -11, NO_MEMORY = -12, INVALID = -22, NO_DESCRIPTOR = -38, AVAILABLE = -259, POLLS = 20, MOST = 256 };

static int is(const char *how)
{
    const char *set = getenv("FAKE_FABRIC");
    return set && !strcmp(set, how);
}

/* As in libfabric, a table of functions begins with its size,
 * and an object has pointers to tables at offsets that depend on its type. */
struct table {
    size_t size;
    void *functions[8];
};
struct object {
    size_t class;
    void *context;
    struct table *all, *at_24, *at_32, *at_40;
    void *rest[8];
};

static int succeeds(void) { return 0; }
static struct table all = {sizeof all, {(void *)succeeds, (void *)succeeds, (void *)succeeds}};
static struct object fabric = {.all = &all}, domain = {.all = &all}, queue = {.all = &all}, addresses = {.all = &all}, endpoint = {.all = &all};

static struct {
    void *context;
    int polls;
} due[MOST];

static long take(void *ep, const void *data, size_t len, void *mark, uint64_t to, void *context)
{
    (void)ep, (void)data, (void)len, (void)mark, (void)to;
    for (int n = 0; is("late") && n < MOST; n++)
        if (!due[n].context) {
            due[n].context = context;
            due[n].polls = POLLS;
            return 0;
        }
    return AGAIN;
}

static long receive(void) { return 0; }

static long poll_queue(void *cq, void *entries, size_t most)
{
    (void)cq, (void)entries, (void)most;
    for (int n = 0; n < MOST; n++)
        if (due[n].context && --due[n].polls <= 0)
            return AVAILABLE;
    return AGAIN;
}

static long poll_error(void *cq, void *entry, uint64_t flags)
{
    (void)cq, (void)flags;
    for (int n = 0; n < MOST; n++)
        if (due[n].context && due[n].polls <= 0) {
            int error = 104;
            memcpy(entry, &due[n].context, sizeof due[n].context);
            memcpy((char *)entry + 56, &error, sizeof error);
            due[n].context = NULL;
            return 1;
        }
    return AGAIN;
}

static int insert(void *av, const void *address, size_t count, uint64_t *number, uint64_t flags, void *context)
{
    static uint64_t last;
    (void)av, (void)address, (void)flags, (void)context;
    *number = last++;
    return (int)count;
}

static int name(void *ep, void *address, size_t *len)
{
    (void)ep;
    memset(address, 1, 16);
    *len = 16;
    return 0;
}

static int open_queue(void *in, void *attributes, void **made, void *context)
{
    int wait;
    (void)in, (void)context;
    memcpy(&wait, (char *)attributes + 20, sizeof wait);
    *made = &queue;
    return wait ? NO_DESCRIPTOR : 0;
}

static int open_addresses(void *in, void *attributes, void **made, void *context)
{
    (void)in, (void)attributes, (void)context;
    *made = &addresses;
    return 0;
}

static int open_endpoint(void *in, const void *info, void **made, void *context)
{
    (void)in, (void)info, (void)context;
    *made = &endpoint;
    return is("endpoint") ? NO_MEMORY : 0;
}

static int open_domain(void *in, void *info, void **made, void *context)
{
    (void)in, (void)info, (void)context;
    *made = &domain;
    return 0;
}

static struct table of_fabric = {sizeof of_fabric, {(void *)open_domain}};
static struct table of_domain = {sizeof of_domain, {(void *)open_addresses, (void *)open_queue, (void *)open_endpoint}};
static struct table of_queue = {sizeof of_queue, {(void *)poll_queue, NULL, (void *)poll_error}};
static struct table of_addresses = {sizeof of_addresses, {(void *)insert}};
static struct table names = {sizeof names, {NULL, (void *)name}};
static struct table messages = {sizeof messages, {(void *)receive, NULL, NULL, (void *)take, NULL, NULL, (void *)take}};

unsigned fi_version(void) { return 1u << 16 | 99; }

/* Returns an fi_info with all substructures; tx_attr, rx_attr, ep_attr, domain_attr and fabric_attr are at bytes 72 to 104. */
void *fi_dupinfo(const void *info)
{
    char *made = calloc(1, 256);
    (void)info;
    for (int at = 72; at <= 104; at += 8) {
        void *part = calloc(1, 256);
        memcpy(made + at, &part, sizeof part);
    }
    return made;
}

void fi_freeinfo(void *info) { (void)info; }

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const void *hints, void **info)
{
    static const char *provider = "fake";
    void *attributes;
    (void)version, (void)node, (void)service, (void)flags, (void)hints;
    if (is("getinfo"))
        return INVALID;
    *info = fi_dupinfo(NULL);
    memcpy(&attributes, (char *)*info + 104, sizeof attributes);
    memcpy((char *)attributes + 16, &provider, sizeof provider);
    return 0;
}

int fi_fabric(void *attributes, void **made, void *context)
{
    (void)attributes, (void)context;
    fabric.at_24 = &of_fabric;
    domain.at_24 = &of_domain;
    queue.at_24 = &of_queue;
    addresses.at_24 = &of_addresses;
    endpoint.at_32 = &names;
    endpoint.at_40 = &messages;
    if (is("short"))
        messages.size = 32;
    *made = &fabric;
    return is("fabric") ? NO_MEMORY : 0;
}

#ifndef WITHOUT
const char *fi_strerror(int number)
{
    return number == 104 ? "the fake provider has lost it" : "a fake error";
}
#endif
