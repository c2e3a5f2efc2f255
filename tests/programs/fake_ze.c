/*
 * A fake libze_loader.so.1 (Level Zero) for tests without a GPU; the host cannot access its device memory.
 * Device addresses are ranges reserved with PROT_NONE; the data are at other addresses.
 * With FAKE_ZE=copy, copies fail. Compiled with -DWITHOUT, the library lacks the last of its functions.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int result;
enum { OK, UNINITIALIZED = 0x78000001, INVALID = 0x78000004, LOST = 0x70000001 };
enum { UNKNOWN, HOST, DEVICE, SHARED };
enum { MOST = 1024, DRIVERS = 2 };

static struct allocation { char *at, *data; size_t length; int kind, driver; } all[MOST];
static int initialized, used, lists;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char drivers[DRIVERS], devices[DRIVERS];
struct context { int driver; };
struct list { int driver; volatile int is_busy; };

static struct allocation *find(const void *at)
{
    for (int i = 0; i < used; i++)
        if (all[i].at && (const char *)at >= all[i].at && (const char *)at < all[i].at + all[i].length)
            return &all[i];
    return NULL;
}

result zeInit(unsigned flags) { (void)flags; initialized = 1; return OK; }
result zeDriverGet(uint32_t *count, void **result)
{
    if (!initialized)
        return UNINITIALIZED;
    if (!result || *count > DRIVERS || !*count)
        *count = DRIVERS;
    for (uint32_t i = 0; result && i < *count; i++)
        result[i] = &drivers[i];
    return OK;
}
result zeDeviceGet(void *driver, uint32_t *count, void **result)
{
    *count = 1;
    if (result)
        *result = &devices[(char *)driver - drivers];
    return OK;
}
struct context_desc { int kind; const void *next; uint32_t flags; };
result zeContextCreate(void *driver, const struct context_desc *desc, struct context **context)
{
    if (desc->kind != 0xd || desc->next || desc->flags)
        return INVALID;
    *context = malloc(sizeof **context);
    (*context)->driver = (int)((char *)driver - drivers);
    return OK;
}
static result make(int driver, size_t length, int kind, void **at)
{
    size_t whole = (length + 4095) / 4096 * 4096;
    char *reserved = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *data = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_mutex_lock(&lock);
    all[used++] = (struct allocation){reserved, data, length, kind, driver};
    pthread_mutex_unlock(&lock);
    *at = reserved;
    return used < MOST ? OK : INVALID;
}
struct alloc_desc { int kind; const void *next; uint32_t flags, ordinal; };
result zeMemAllocDevice(struct context *context, const struct alloc_desc *desc, size_t length, size_t alignment, void *device, void **at)
{
    (void)desc, (void)alignment, (void)device;
    return make(context->driver, length, DEVICE, at);
}
/* In this fake library, shared memory is not associated with a device. */
result zeMemAllocShared(struct context *context, const struct alloc_desc *device_desc, const void *host_desc, size_t length, size_t alignment,
                        void *device, void **at)
{
    (void)device_desc, (void)host_desc, (void)alignment, (void)device;
    return make(context->driver, length, SHARED, at);
}
struct properties { int kind; void *next; int memory; uint64_t id, page_size; };
result zeMemGetAllocProperties(struct context *context, const void *at, struct properties *about, void **device)
{
    if (about->kind != 0x17 || about->next)
        return INVALID;
    pthread_mutex_lock(&lock);
    struct allocation *a = find(at);
    if (a && a->driver != context->driver)
        a = NULL;
    about->memory = a ? a->kind : UNKNOWN;
    if (device)
        *device = a && a->kind == DEVICE ? &devices[a->driver] : NULL;
    pthread_mutex_unlock(&lock);
    return OK;
}
struct queue_desc { int kind; const void *next; uint32_t ordinal, index, flags; int mode, priority; };
result zeCommandListCreateImmediate(struct context *context, void *device, const struct queue_desc *desc, struct list **list)
{
    /* Only on a synchronous list is a copy complete when the call returns. */
    if (desc->kind != 0xe || desc->next || desc->mode != 1 || (char *)device - devices != context->driver)
        return INVALID;
    *list = calloc(1, sizeof **list);
    (*list)->driver = context->driver;
    lists++;
    return OK;
}
int fakeLists(void) { return lists; }

#ifndef WITHOUT
result zeCommandListAppendMemoryCopy(struct list *list, void *to, const void *from, size_t length, void *signal, uint32_t count, void **events)
{
    const char *how = getenv("FAKE_ZE");
    if (signal || count || events || __sync_lock_test_and_set(&list->is_busy, 1))
        return INVALID;
    pthread_mutex_lock(&lock);
    struct allocation *source = find(from), *target = find(to);
    if ((source && source->driver != list->driver) || (target && target->driver != list->driver) || (how && !strcmp(how, "copy"))) {
        pthread_mutex_unlock(&lock);
        list->is_busy = 0;
        return LOST;
    }
    memcpy(target ? target->data + ((char *)to - target->at) : to, source ? source->data + ((const char *)from - source->at) : from, length);
    pthread_mutex_unlock(&lock);
    __sync_lock_release(&list->is_busy);
    return OK;
}
#endif
