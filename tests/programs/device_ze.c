/* Test of buffers in the memory of Level Zero devices. Argument: the file of the loader's library. */
#include "check.h"
#include <dlfcn.h>
#include <mpi-ext.h>
#include <stdint.h>

static struct {
    int (*init)(unsigned), (*drivers)(uint32_t *, void **), (*devices)(void *, uint32_t *, void **);
    int (*create)(void *, const void *, void **), (*alloc)(void *, const void *, size_t, size_t, void *, void **);
    int (*alloc_shared)(void *, const void *, const void *, size_t, size_t, void *, void **);
    int (*create_list)(void *, void *, const void *, void **), (*copy)(void *, void *, const void *, size_t, void *, uint32_t, void **);
} ze;
static void *context, *device, *list;

static void *memory(size_t length, int shared)
{
    struct { int kind; const void *next; uint32_t flags, ordinal; } desc = {0x15, NULL, 0, 0}, host = {0x16, NULL, 0, 0};
    void *at;
    int code = shared ? ze.alloc_shared(context, &desc, &host, length, 64, NULL, &at) : ze.alloc(context, &desc, length, 64, device, &at);
    CHECK(code == 0, "no memory: %x", code);
    return at;
}

static void copy(void *to, const void *from, size_t length)
{
    int code = ze.copy(list, to, from, length, NULL, 0, NULL);
    CHECK(code == 0, "a copy returned %x", code);
}

static void messages(size_t length, int shared)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    char *host = malloc(length), *from = memory(length, 0), *to = memory(length, shared);
    fill(host, length, rank);
    copy(from, host, length);
    MPI_Request requests[2];
    OK(MPI_Irecv(to, (int)length, MPI_BYTE, before, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(from, (int)length, MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    copy(host, to, length);
    CHECK(differs(host, length, before) < 0, "byte %ld of %zu", differs(host, length, before), length);
    free(host);
}

int main(int argc, char **argv)
{
    struct { int kind; const void *next; uint32_t flags; } context_desc = {0xd, NULL, 0};
    struct { int kind; const void *next; uint32_t ordinal, index, flags; int mode, priority; } queue_desc = {0xe, NULL, 0, 0, 0, 1, 0};
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL), *drivers[2];
    CHECK(library, "%s", dlerror());
    static const char *const names[] = {"zeInit", "zeDriverGet", "zeDeviceGet", "zeContextCreate", "zeMemAllocDevice", "zeMemAllocShared",
                                        "zeCommandListCreateImmediate", "zeCommandListAppendMemoryCopy"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ((void **)&ze)[i] = dlsym(library, names[i]);
    CHECK(!MPIX_Query_ze_support(), "support before MPI_Init");
    OK(MPI_Init(&argc, &argv));
    introduce();
    /* The library is loaded but not initialized. */
    int one = 1, sum;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(MPIX_Query_ze_support() && !MPIX_Query_cuda_support(), "support is %d", MPIX_Query_ze_support());
    uint32_t count = 2;
    CHECK(!ze.init(0) && !ze.drivers(&count, drivers) && count == 2, "no drivers");
    /* Selects the device of the second driver. */
    count = 1;
    CHECK(!ze.devices(drivers[1], &count, &device) && !ze.create(drivers[1], &context_desc, &context), "no device");
    CHECK(!ze.create_list(context, device, &queue_desc, &list), "no command list");
    static const size_t lengths[] = {8, 5000, 70000, 3 << 20};
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof lengths[0]; i++)
        messages(lengths[i / 2], (int)i % 2);

    enum { N = 1000 };
    int host[N], *from = memory(sizeof host, 0), *to = memory(sizeof host, 1);
    for (int i = 0; i < N; i++)
        host[i] = i + rank;
    copy(from, host, sizeof host);
    OK(MPI_Allreduce(from, to, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    copy(host, to, sizeof host);
    for (int i = 0; i < N; i++)
        CHECK(host[i] == size * i + size * (size - 1) / 2, "element %d is %d", i, host[i]);

    char text[MPI_MAX_ERROR_STRING];
    int length, class, code;
    setenv("FAKE_ZE", "copy", 1);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    code = MPI_Allreduce(MPI_IN_PLACE, from, N, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    unsetenv("FAKE_ZE");
    OK(MPI_Error_class(code, &class));
    OK(MPI_Error_string(code, text, &length));
    CHECK(class == MPI_ERR_BUFFER && strstr(text, "zeCommandListAppendMemoryCopy returned error 0x70000001"), "class %d: %s", class, text);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    return finish("device_ze");
}
