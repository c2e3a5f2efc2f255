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
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int8_t status;
enum { NO_RESOURCE = -2, UNREACHABLE = -6, IO_ERROR = -3, UNSUPPORTED = -22, RESET = -25, IN_PROGRESS = 1 };

static int is(const char *how)
{
    const char *set = getenv("FAKE_UCP");
    return set && !strcmp(set, how);
}

static uint64_t word(const void *at, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)at + offset, sizeof value);
    return value;
}

/* Checks a parameter structure: all bits of its field mask are known, and no byte after `size` is set. */
static void check(const char *what, const void *at, uint64_t known, size_t size, size_t longest)
{
    int bad = (word(at, 0) & ~known) != 0;
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
    check("ucp_params_t", params, 0x1ff, 80, 128);
    *context = &object;
    return is("init") ? IO_ERROR : 0;
}
void ucp_cleanup(void *context) { (void)context; }
status ucp_worker_create(void *context, const void *params, void **worker)
{
    (void)context;
    check("ucp_worker_params_t", params, 0x1ff, 208, 256);
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
    (void)worker;
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
    check("ucp_am_handler_param_t", params, 0xf, 32, 96);
    return 0;
}
void *ucp_worker_flush_nbx(void *worker, const void *params)
{
    (void)worker;
    check("ucp_request_param_t", params, 0, 0, 96);
    return NULL;
}
status ucp_ep_create(void *worker, const void *params, void **endpoint)
{
    (void)worker;
    check("ucp_ep_params_t", params, 0x1ff, 104, 200);
    memcpy(&due.failed, (const char *)params + 24, sizeof due.failed);
    memcpy(&due.hook, (const char *)params + 32, sizeof due.hook);
    *endpoint = &object;
    return is("unreachable") ? UNREACHABLE : 0;
}
void *ucp_ep_close_nbx(void *endpoint, const void *params)
{
    (void)endpoint;
    check("ucp_request_param_t", params, (uint64_t)-1, 72, 128);
    return NULL;
}
void *ucp_am_send_nbx(void *endpoint, unsigned id, const void *head, size_t head_len, const void *data, size_t len, const void *params)
{
    (void)endpoint, (void)id, (void)head, (void)head_len, (void)data, (void)len;
    check("ucp_request_param_t", params, (uint64_t)-1, 72, 128);
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
