/*
 * A fake libcuda.so.1 for tests without a GPU; the host cannot access its device memory.
 * Device addresses are ranges reserved with PROT_NONE; the data are at other addresses.
 * So an access that does not use a function of this library kills the process.
 * Asynchronous copies are made when the stream is synchronized. Values of the variable FAKE_CUDA:
 *
 *     start      no asynchronous copy can be started
 *     late       asynchronous copies fail when the stream is synchronized
 *     unpinned   no host memory can be pinned
 *     pitch      no copy in two dimensions can be started
 *     handles    no memory has a handle for other processes
 *     open       no handle of another process can be opened
 *
 * A process can open another process's cuMemAlloc memory by a handle. The library prints a message and ends
 * a process that opens a handle twice, opens new memory at an address where a handle of
 * freed memory is still open, copies from freed memory, or ends with open handles.
 * Copies that precede an event are made at the event's second query, in whichever thread.
 * If FAKE_CUDA_LOG names a file, each start of a copy appends a line to the file: process ID, direction,
 * ID of the allocation, offset in it, and length. All processes may append to the same file.
 * Compiled with -DWITHOUT, the library lacks the last of its functions.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

typedef int result;
typedef uint64_t address;
enum { OK, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NOT_READY = 600, INVALID_CONTEXT = 201, ILLEGAL_ADDRESS = 700, UNKNOWN = 999 };
enum { HOST = 1, DEVICE = 2 };
enum kind { PLAIN, MANAGED, POOLED, MAPPED, OPENED };
enum { MOST = 4096, DEVICES = 2 };

static int is(const char *how)
{
    const char *set = getenv("FAKE_CUDA");
    return set && !strcmp(set, how);
}

static struct allocation {
    char *at, *data;
    size_t length;
    enum kind kind;
    int device;
    void *context;
    unsigned long id;
    int file;
    /* The page before the data, shared with other processes: true after the owner freed the memory. */
    volatile struct shared { int freed; } *shared;
    /* Only for memory opened by a handle: the owner's process ID, and the address in the owner. */
    int process;
    address base;
} all[MOST];
static unsigned long ids;

/* The handle that cuIpcGetMemHandle returns. */
struct handle { int process, file; unsigned long id; size_t length; address base; char rest[32]; };

static void broken(const char *rule)
{
    fprintf(stderr, "fake_cuda: process %d %s\n", getpid(), rule);
    _exit(77);
}
static int used, initialized, pinned, opened, copied_between;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char contexts[DEVICES][2], pool;

/* The contexts of a thread; the last one is current. */
static __thread struct { void *stack[16]; int depth; } here;

static void *current(void) { return here.depth ? here.stack[here.depth - 1] : NULL; }

/* A thread's stream: the asynchronous copies that have been started but not made. */
struct stream {
    pthread_mutex_t lock;
    struct { char *to; const char *from; size_t length; } queue[MOST];
    int queued, base;
    /* Number of events that have been recorded but not reached. */
    int pending;
};
static int most_pending;

static struct stream *stream_here(void)
{
    static __thread struct stream *own;
    if (!own) {
        own = calloc(1, sizeof *own);
        pthread_mutex_init(&own->lock, NULL);
    }
    return own;
}

static struct allocation *find(address at)
{
    for (int i = 0; i < used; i++)
        if (all[i].at && at >= (address)(uintptr_t)all[i].at && at < (address)(uintptr_t)all[i].at + all[i].length)
            return &all[i];
    return NULL;
}

/* Returns the address of the data behind a device address, or NULL. */
static char *data_at(address at, size_t length)
{
    pthread_mutex_lock(&lock);
    struct allocation *a = find(at);
    char *data = NULL;
    if (a && a->kind == OPENED && a->shared->freed)
        broken("copies from memory that its owner has freed");
    if (a && at + length <= (address)(uintptr_t)a->at + a->length)
        data = a->data + (at - (address)(uintptr_t)a->at);
    pthread_mutex_unlock(&lock);
    return data;
}

static void record(const char *direction, address at, size_t length)
{
    static int file = -2;
    char line[200];
    pthread_mutex_lock(&lock);
    const char *path = getenv("FAKE_CUDA_LOG");
    if (file == -2)
        file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    struct allocation *a = file < 0 ? NULL : find(at);
    if (a) {
        int written = snprintf(line, sizeof line, "%d %s %lu %lu %zu\n", getpid(), direction, a->id,
                               (unsigned long)(at - (address)(uintptr_t)a->at), length);
        if (write(file, line, (size_t)written) != written)
            broken("cannot write its log");
    }
    pthread_mutex_unlock(&lock);
}

static result make(address *at, size_t length, enum kind kind, int device)
{
    if (!initialized)
        return NOT_INITIALIZED;
    if (!length)
        return INVALID_VALUE;
    size_t whole = (length + 4095) / 4096 * 4096;
    char *reserved = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int file = -1;
    char *data;
    if (kind == PLAIN) {
        file = memfd_create("fake_cuda", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, (off_t)whole + 4096))
            return OUT_OF_MEMORY;
        data = mmap(NULL, whole + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    } else
        data = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED || data == MAP_FAILED)
        return OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < used && all[i].at)
        i++;
    if (i < MOST) {
        used += i == used;
        all[i] = (struct allocation){reserved, data, length, kind, device, kind == PLAIN || kind == MANAGED ? current() : NULL,
                                     ++ids, file, NULL, 0, 0};
        if (kind == PLAIN) {
            all[i].shared = (void *)data;
            all[i].data = data + 4096;
        }
    }
    pthread_mutex_unlock(&lock);
    *at = (address)(uintptr_t)reserved;
    return i < MOST ? OK : OUT_OF_MEMORY;
}

static result discard(address at)
{
    pthread_mutex_lock(&lock);
    struct allocation *a = find(at);
    if (a && a->kind == OPENED)
        a = NULL;
    if (a) {
        size_t whole = (a->length + 4095) / 4096 * 4096;
        if (a->shared) {
            a->shared->freed = 1;
            munmap((void *)a->shared, whole + 4096);
            close(a->file);
        } else
            munmap(a->data, whole);
        /* The address range stays reserved, so that a later access also ends the process,
         * unless FAKE_CUDA_AGAIN requests that addresses be reused. */
        if (a->kind != OPENED && getenv("FAKE_CUDA_AGAIN"))
            munmap(a->at, whole);
        a->at = NULL;
    }
    pthread_mutex_unlock(&lock);
    return a ? OK : INVALID_VALUE;
}

static int device_of(void *context)
{
    return (char *)context >= contexts[1];
}

result cuInit(unsigned flags) { (void)flags; initialized = 1; return OK; }
result cuDriverGetVersion(int *version) { *version = 12040; return OK; }
result cuDeviceGetCount(int *count) { *count = DEVICES; return initialized ? OK : NOT_INITIALIZED; }
result cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < DEVICES ? OK : INVALID_VALUE; }
result cuDevicePrimaryCtxRetain(void **context, int device)
{
    if (device < 0 || device >= DEVICES)
        return INVALID_VALUE;
    *context = contexts[device];
    return OK;
}
result cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return OK; }
result cuCtxSetCurrent(void *context)
{
    here.depth = context != NULL;
    here.stack[0] = context;
    return OK;
}
result cuCtxGetCurrent(void **context) { *context = current(); return initialized ? OK : NOT_INITIALIZED; }
result cuCtxPushCurrent_v2(void *context)
{
    if (!context || here.depth == 16)
        return INVALID_CONTEXT;
    here.stack[here.depth++] = context;
    return OK;
}
result cuGetErrorName(result code, const char **name)
{
    switch (code) {
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; return OK;
    case INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; return OK;
    case ILLEGAL_ADDRESS: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return OK;
    case UNKNOWN: *name = "CUDA_ERROR_UNKNOWN"; return OK;
    default: *name = NULL; return INVALID_VALUE;
    }
}

result cuMemAlloc_v2(address *at, size_t length) { return current() ? make(at, length, PLAIN, device_of(current())) : INVALID_CONTEXT; }
result cuMemAllocManaged(address *at, size_t length, unsigned flags)
{
    (void)flags;
    return current() ? make(at, length, MANAGED, device_of(current())) : INVALID_CONTEXT;
}
result cuMemFree_v2(address at) { return discard(at); }

/* Memory of a pool or of a handle belongs to no context. */
result cuMemAllocAsync(address *at, size_t length, void *stream) { (void)stream; return make(at, length, POOLED, device_of(current())); }
result cuMemFreeAsync(address at, void *stream) { (void)stream; return discard(at); }
result cuMemPoolGetAccess(int *flags, void *of, const int *location)
{
    if (of != &pool || location[0] != 1)
        return INVALID_VALUE;
    *flags = 3;
    return OK;
}
/* Makes mapped memory, as cuMemAddressReserve, cuMemCreate, cuMemMap and cuMemSetAccess together. */
result fakeMap(address *at, size_t length, int device) { return make(at, length, MAPPED, device); }
result cuMemRetainAllocationHandle(uint64_t *handle, void *at)
{
    struct allocation *a = find((address)(uintptr_t)at);
    if (!a || a->kind != MAPPED)
        return INVALID_VALUE;
    *handle = (uint64_t)(a - all) + 1;
    return OK;
}
struct properties { int kind, handles, location, device; void *meta; unsigned char flags[8]; };
result cuMemGetAllocationPropertiesFromHandle(struct properties *about, uint64_t handle)
{
    if (!handle || handle > MOST)
        return INVALID_VALUE;
    *about = (struct properties){.kind = 1, .location = 1, .device = all[handle - 1].device};
    return OK;
}
result cuMemRelease(uint64_t handle) { (void)handle; return OK; }

result cuMemHostRegister_v2(void *at, size_t length, unsigned flags)
{
    (void)at, (void)length, (void)flags;
    if (is("unpinned"))
        return UNKNOWN;
    pinned++;
    return current() ? OK : INVALID_CONTEXT;
}
int fakePinned(void) { return pinned; }

static result attribute(void *value, int which, address at)
{
    struct allocation *a = find(at);
    if (!initialized)
        return NOT_INITIALIZED;
    if (!a)
        return INVALID_VALUE;
    switch (which) {
    case 1: *(void **)value = a->context; return OK;
    /* Like some real drivers, reports the type of memory from a pool or of mapped memory as host. */
    case 2: *(unsigned *)value = a->kind == POOLED || a->kind == MAPPED ? HOST : DEVICE; return OK;
    case 7: *(unsigned long long *)value = a->id; return OK;
    case 8: *(unsigned *)value = a->kind == MANAGED; return OK;
    case 9: *(int *)value = a->device; return OK;
    case 17: *(void **)value = a->kind == POOLED ? &pool : NULL; return a->kind == POOLED ? OK : INVALID_VALUE;
    default: return INVALID_VALUE;
    }
}
result cuPointerGetAttribute(void *value, int which, address at)
{
    pthread_mutex_lock(&lock);
    result code = attribute(value, which, at);
    pthread_mutex_unlock(&lock);
    return code;
}
result cuPointerGetAttributes(unsigned count, int *which, void **values, address at)
{
    if (!initialized)
        return NOT_INITIALIZED;
    for (unsigned i = 0; i < count; i++) {
        size_t length = which[i] == 1 || which[i] == 17 ? sizeof(void *) : which[i] == 7 ? 8 : 4;
        memset(values[i], 0, length);
        if (which[i] == 9)
            *(int *)values[i] = -2;
        cuPointerGetAttribute(values[i], which[i], at);
    }
    return OK;
}

/* The functions by which other processes open memory. */
result cuMemGetAddressRange_v2(address *base, size_t *length, address at)
{
    pthread_mutex_lock(&lock);
    struct allocation *a = find(at);
    if (a) {
        *base = (address)(uintptr_t)a->at;
        *length = a->length;
    }
    pthread_mutex_unlock(&lock);
    return a ? OK : INVALID_VALUE;
}
struct ipc_handle { char bytes[64]; };
result cuIpcGetMemHandle(struct ipc_handle *result, address at)
{
    pthread_mutex_lock(&lock);
    struct allocation *a = find(at);
    int can = a && a->kind == PLAIN && !is("handles");
    if (can) {
        struct handle made = {getpid(), a->file, a->id, a->length, (address)(uintptr_t)a->at, {0}};
        memcpy(result, &made, sizeof made);
    }
    pthread_mutex_unlock(&lock);
    return can ? OK : INVALID_VALUE;
}
static void at_end(void)
{
    for (int i = 0; i < used; i++)
        if (all[i].at && all[i].kind == OPENED)
            broken("ends with an open handle");
}
result cuIpcOpenMemHandle_v2(address *at, struct ipc_handle of, unsigned flags)
{
    struct handle wanted;
    char path[64];
    memcpy(&wanted, &of, sizeof wanted);
    if (!current())
        return INVALID_CONTEXT;
    if (is("open") || flags != 1 || wanted.process == getpid())
        return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < used; i++)
        if (all[i].at && all[i].kind == OPENED && all[i].process == wanted.process) {
            if (all[i].id == wanted.id && all[i].context == current())
                broken("opens a handle twice");
            if (all[i].id != wanted.id && all[i].base < wanted.base + wanted.length && wanted.base < all[i].base + all[i].length)
                broken("keeps a handle open whose memory was freed");
        }
    size_t whole = (wanted.length + 4095) / 4096 * 4096;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", wanted.process, wanted.file);
    int file = open(path, O_RDWR | O_CLOEXEC), i = 0;
    char *data = file < 0 ? MAP_FAILED : mmap(NULL, whole + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *reserved = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    while (i < used && all[i].at)
        i++;
    int can = data != MAP_FAILED && reserved != MAP_FAILED && i < MOST;
    if (can) {
        static int watched;
        if (!watched++)
            atexit(at_end);
        used += i == used;
        all[i] = (struct allocation){reserved, data + 4096, wanted.length, OPENED, device_of(current()), current(),
                                     wanted.id, file, (void *)data, wanted.process, wanted.base};
        *at = (address)(uintptr_t)reserved;
        opened++;
    }
    pthread_mutex_unlock(&lock);
    return can ? OK : INVALID_VALUE;
}
result cuIpcCloseMemHandle(address at)
{
    pthread_mutex_lock(&lock);
    struct allocation *a = find(at);
    if (a && a->kind == OPENED) {
        munmap((void *)a->shared, (a->length + 4095) / 4096 * 4096 + 4096);
        close(a->file);
        a->at = NULL;
    } else
        broken("closes a handle that is not open");
    pthread_mutex_unlock(&lock);
    return OK;
}
int fakeOpened(void) { return opened; }
int fakeCopiedBetween(void) { return copied_between; }
int fakeMostPending(void) { return most_pending; }

/* Starts a copy, which is made immediately or when the stream is synchronized. */
static result enqueue(char *to, const char *from, size_t length)
{
    if (!current())
        return INVALID_CONTEXT;
    if (!to || !from)
        return INVALID_VALUE;
    struct stream *s = stream_here();
    pthread_mutex_lock(&s->lock);
    int can = !is("start") && s->queued < MOST;
    if (can) {
        s->queue[s->queued].to = to;
        s->queue[s->queued].from = from;
        s->queue[s->queued++].length = length;
    }
    pthread_mutex_unlock(&s->lock);
    return can ? OK : UNKNOWN;
}
result cuMemcpyDtoHAsync_v2(void *to, address from, size_t length, void *stream)
{
    (void)stream;
    record("to_host", from, length);
    return enqueue(to, data_at(from, length), length);
}
result cuMemcpyHtoDAsync_v2(address to, const void *from, size_t length, void *stream)
{
    (void)stream;
    record("to_device", to, length);
    return enqueue(data_at(to, length), from, length);
}
struct copy_2d {
    size_t from_x, from_y; unsigned from_kind; const void *from_host; address from_device; void *from_array; size_t from_pitch;
    size_t to_x, to_y; unsigned to_kind; void *to_host; address to_device; void *to_array; size_t to_pitch, width, height;
};
result cuMemcpy2DAsync_v2(const struct copy_2d *copy, void *stream)
{
    (void)stream;
    if (is("pitch") || copy->width > copy->from_pitch || copy->width > copy->to_pitch)
        return INVALID_VALUE;
    for (size_t row = 0; row < copy->height; row++) {
        size_t from_at = row * copy->from_pitch, to_at = row * copy->to_pitch;
        const char *from = copy->from_kind == DEVICE ? data_at(copy->from_device + from_at, copy->width)
                                                      : (const char *)copy->from_host + from_at;
        char *to = copy->to_kind == DEVICE ? data_at(copy->to_device + to_at, copy->width) : (char *)copy->to_host + to_at;
        result code = enqueue(to, from, copy->width);
        if (code != OK)
            return code;
    }
    return OK;
}
/* Copies between any of device memory, opened memory and host memory. */
result cuMemcpyAsync(address to, address from, size_t length, void *stream)
{
    (void)stream;
    char *target = data_at(to, length), *source = data_at(from, length);
    copied_between++;
    return enqueue(target ? target : (char *)(uintptr_t)to, source ? source : (const char *)(uintptr_t)from, length);
}
/* Makes the first `count` copies in the queue; the caller holds the stream's lock. */
static result run(struct stream *s, int count)
{
    if (count > s->queued)
        count = s->queued;
    for (int i = 0; i < count && !is("late"); i++)
        memcpy(s->queue[i].to, s->queue[i].from, s->queue[i].length);
    memmove(s->queue, s->queue + count, sizeof s->queue[0] * (size_t)(s->queued - count));
    s->queued -= count;
    s->base += count;
    return is("late") && count ? ILLEGAL_ADDRESS : OK;
}
result cuStreamSynchronize(void *stream)
{
    (void)stream;
    struct stream *s = stream_here();
    pthread_mutex_lock(&s->lock);
    result code = run(s, s->queued);
    pthread_mutex_unlock(&s->lock);
    return code;
}
/* An event on a thread's stream. */
struct event { int until, asked, is_recorded; struct stream *stream; };
result cuEventCreate(struct event **event, unsigned flags)
{
    *event = calloc(1, sizeof **event);
    return flags == 2 && *event ? OK : INVALID_VALUE;
}
result cuEventRecord(struct event *event, void *stream)
{
    (void)stream;
    struct stream *s = stream_here();
    pthread_mutex_lock(&s->lock);
    *event = (struct event){s->base + s->queued, 0, 1, s};
    s->pending++;
    pthread_mutex_lock(&lock);
    if (s->pending > most_pending)
        most_pending = s->pending;
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&s->lock);
    return OK;
}
static result reach(struct event *event)
{
    struct stream *s = event->stream;
    pthread_mutex_lock(&s->lock);
    s->pending -= event->is_recorded;
    event->is_recorded = 0;
    result code = event->until > s->base ? run(s, event->until - s->base) : OK;
    pthread_mutex_unlock(&s->lock);
    return code;
}
result cuEventQuery(struct event *event) { return event->asked++ ? reach(event) : NOT_READY; }
result cuEventSynchronize(struct event *event) { return reach(event); }
result cuEventDestroy_v2(struct event *event)
{
    if (event->is_recorded) {
        pthread_mutex_lock(&event->stream->lock);
        event->stream->pending--;
        pthread_mutex_unlock(&event->stream->lock);
    }
    free(event);
    return OK;
}
/* Synchronous copy; only the test program calls it. */
result cuMemcpyDtoH_v2(void *to, address from, size_t length)
{
    const char *data = data_at(from, length);
    return data ? (memcpy(to, data, length), OK) : INVALID_VALUE;
}
result cuMemcpyHtoD_v2(address to, const void *from, size_t length)
{
    char *data = data_at(to, length);
    return data ? (memcpy(data, from, length), OK) : INVALID_VALUE;
}

#ifndef WITHOUT
result cuCtxPopCurrent_v2(void **context)
{
    if (!here.depth)
        return INVALID_CONTEXT;
    *context = here.stack[--here.depth];
    return OK;
}
#endif
