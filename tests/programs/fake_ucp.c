/*
 * A fake libucp.so.0 that reaches no process. Values of FAKE_UCP:
 *
 *     init, worker, address   that call fails
 *     unreachable             no endpoint can be created
 *     again                   every send returns "try again"
 *     late                    every send is accepted, and fails after some polls
 *     dead                    every send is accepted, and then its endpoint fails
 *
 * Compiled with -DWITHOUT, the library lacks its last function.
 * Like a newer version, the library reads beyond the end of each current structure,
 * and ends the process if a byte there is set.
 *
 * Values of FAKE_UCP_SIZES: the first poll delivers a message that no process has sent, and its parameters have
 *
 *     short                   only the mask; the page after the mask cannot be read, and structures have only the fields of UCX 1.11
 *     long                    more fields than in the current version, with their bits of the mask
 *
 * The library prints the variable UCX_TCP_SNDBUF when a worker and when an endpoint is created.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int8_t status;
enum { PAGE = 4096 };
enum { NO_RESOURCE = -2, UNREACHABLE = -6, IO_ERROR = -3, UNSUPPORTED = -22, RESET = -25, IN_PROGRESS = 1 };

static int is(const char *how)
{
    const char *set = getenv("FAKE_UCP");
    return set && !strcmp(set, how);
}

static int sizes_are(const char *how)
{
    const char *set = getenv("FAKE_UCP_SIZES");
    return set && !strcmp(set, how);
}

static void print_send_buffer(const char *when)
{
    const char *set = getenv("UCX_TCP_SNDBUF");
    fprintf(stderr, "fake_ucp: UCX_TCP_SNDBUF at the creation of %s: %s\n", when, set ? set : "unset");
}

static uint64_t word(const void *at, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)at + offset, sizeof value);
    return value;
}

/* Checks a parameter structure: all bits of its field mask are known (`old` in UCX 1.11), and no byte after `size` is set. */
static void check(const char *what, const void *at, uint64_t known, uint64_t old, size_t size, size_t longest)
{
    int bad = (word(at, 0) & ~(sizes_are("short") ? old : known)) != 0;
    for (size_t i = size; i < longest; i++)
        bad |= ((const char *)at)[i] != 0;
    if (bad) {
        fprintf(stderr, "fake_ucp: %s is not as in the header\n", what);
        abort();
    }
}

/* The single active send, and the failure to report for it. */
static struct {
    void (*sent)(void *, status, void *);
    void *argument;
    void (*failed)(void *, void *, status);
    void *hook;
    int polls;
} due;
static char object;

/* The callback for active messages, and its argument. */
static struct {
    status (*arrived)(void *, const void *, size_t, void *, size_t, const void *);
    void *argument;
} handler;

/* Delivers a message that no process has sent. */
static void deliver_nonsense(void)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *params = pages;
    if (pages == MAP_FAILED)
        abort();
    if (sizes_are("short")) {
        params = pages + PAGE - sizeof(uint64_t);
        mprotect(pages + PAGE, PAGE, PROT_NONE);
    } else {
        memset(params, 0xff, PAGE);
        /* All bits but those of data that remain valid or have not arrived. */
        memcpy(params, &(uint64_t){~(uint64_t)(3 << 16)}, sizeof(uint64_t));
    }
    char head[] = "no header", data[] = "no data";
    status taken = handler.arrived(handler.argument, head, sizeof head, data, sizeof data, params);
    fprintf(stderr, "fake_ucp: a message was taken with status %d\n", taken);
    munmap(pages, 2 * PAGE);
}

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release) { *major = 1, *minor = 99, *release = 0; }
status ucp_config_read(const char *prefix, const char *file, void **config)
{
    (void)prefix, (void)file;
    *config = &object;
    return 0;
}
status ucp_config_modify(void *config, const char *name, const char *value)
{
    (void)config, (void)name;
    return strcmp(value, "nonsense") ? 0 : UNSUPPORTED;
}
void ucp_config_release(void *config) { (void)config; }
status ucp_init_version(unsigned major, unsigned minor, const void *params, void *config, void **context)
{
    (void)major, (void)minor, (void)config;
    check("ucp_params_t", params, 0x1ff, 0x1ff, 80, 128);
    *context = &object;
    return is("init") ? IO_ERROR : 0;
}
void ucp_cleanup(void *context) { (void)context; }
status ucp_worker_create(void *context, const void *params, void **worker)
{
    (void)context;
    check("ucp_worker_params_t", params, 0x1ff, 0x3f, 208, 256);
    print_send_buffer("a worker");
    *worker = &object;
    return is("worker") ? IO_ERROR : 0;
}
void ucp_worker_destroy(void *worker) { (void)worker; }
status ucp_worker_get_address(void *worker, void **address, size_t *len)
{
    (void)worker;
    *address = calloc(1, 100000);
    *len = is("address") ? 100000 : 8;
    return 0;
}
void ucp_worker_release_address(void *worker, void *address)
{
    (void)worker;
    free(address);
}
unsigned ucp_worker_progress(void *worker)
{
    static int delivered;
    (void)worker;
    if (!delivered++ && (sizes_are("short") || sizes_are("long")))
        deliver_nonsense();
    if (due.polls == 0 || --due.polls > 0)
        return 0;
    if (is("dead") && due.failed)
        due.failed(due.hook, &object, RESET);
    if (due.sent)
        due.sent(&object, RESET, due.argument);
    due.sent = NULL;
    return 1;
}
status ucp_worker_get_efd(void *worker, int *descriptor)
{
    (void)worker, (void)descriptor;
    return UNSUPPORTED;
}
status ucp_worker_arm(void *worker)
{
    (void)worker;
    return UNSUPPORTED;
}
status ucp_worker_set_am_recv_handler(void *worker, const void *params)
{
    (void)worker;
    check("ucp_am_handler_param_t", params, 0xf, 0xf, 32, 96);
    memcpy(&handler.arrived, (const char *)params + 16, sizeof handler.arrived);
    memcpy(&handler.argument, (const char *)params + 24, sizeof handler.argument);
    return 0;
}
void *ucp_worker_flush_nbx(void *worker, const void *params)
{
    (void)worker;
    check("ucp_request_param_t", params, 0, 0, 0, 96);
    return NULL;
}
status ucp_ep_create(void *worker, const void *params, void **endpoint)
{
    (void)worker;
    check("ucp_ep_params_t", params, 0x1ff, 0xff, 104, 200);
    print_send_buffer("an endpoint");
    memcpy(&due.failed, (const char *)params + 24, sizeof due.failed);
    memcpy(&due.hook, (const char *)params + 32, sizeof due.hook);
    *endpoint = &object;
    return is("unreachable") ? UNREACHABLE : 0;
}
void *ucp_ep_close_nbx(void *endpoint, const void *params)
{
    (void)endpoint;
    check("ucp_request_param_t", params, (uint64_t)-1, (uint64_t)-1, 72, 128);
    return NULL;
}
void *ucp_am_send_nbx(void *endpoint, unsigned id, const void *head, size_t head_len, const void *data, size_t len, const void *params)
{
    (void)endpoint, (void)id, (void)head, (void)head_len, (void)data, (void)len;
    check("ucp_request_param_t", params, (uint64_t)-1, (uint64_t)-1, 72, 128);
    if (is("again") || due.sent)
        return (void *)(intptr_t)NO_RESOURCE;
    memcpy(&due.sent, (const char *)params + 16, sizeof due.sent);
    memcpy(&due.argument, (const char *)params + 32, sizeof due.argument);
    due.polls = 3;
    return &object;
}
void ucp_am_data_release(void *worker, void *data) { (void)worker, (void)data; }
status ucp_request_check_status(void *request)
{
    (void)request;
    return IN_PROGRESS;
}
#ifndef WITHOUT
void ucp_request_free(void *request) { (void)request; }
#endif
