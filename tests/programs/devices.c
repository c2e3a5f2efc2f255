/*
 * Buffers in the memory of a CUDA device.
 * Arguments: the driver's library; "early" or "late" to load it before or after MPI_Init;
 * and "kinds" to check the info hint mpi_memory_alloc_kinds of MPI_COMM_WORLD.
 * tests/tests/devices.rs generates programs of single functions; this one combines them.
 */
#include "device.h"
#include <pthread.h>
#ifdef OTHER_LIBRARY
int MPIX_Query_cuda_support(void);
#else
#include <mpi-ext.h>
#endif

static int next, before;

static void answers(int expected)
{
    MPI_Info info, given;
    char kinds[100];
    int length = sizeof kinds, there;
    CHECK(MPIX_Query_cuda_support() == expected, "support is %d", MPIX_Query_cuda_support());
#ifndef OTHER_LIBRARY
    CHECK(MPIX_CUDA_AWARE_SUPPORT == 1 && !MPIX_Query_rocm_support() && !MPIX_Query_ze_support(), "another device");
#endif
    MPI_Comm comm;
    OK(MPI_Info_create(&given));
    OK(MPI_Info_set(given, "mpi_memory_alloc_kinds", "system,cuda:device:frozen,rocm"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_SELF, given, &comm));
    OK(MPI_Comm_get_info(comm, &info));
    OK(MPI_Info_get_string(info, "mpi_memory_alloc_kinds", &length, kinds, &there));
    const char *wanted = expected ? "mpi,system,cuda:device" : "mpi,system";
    CHECK(there && !strcmp(kinds, wanted), "kinds are %s", kinds);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&given));
    OK(MPI_Comm_free(&comm));
}

#ifndef OTHER_LIBRARY
/* A checkpoint cannot save device memory: the call fails with a message, and the job continues. */
static void protected_memory(void)
{
    char *device = device_memory(64), text[MPI_MAX_ERROR_STRING], host[64];
    int length, class;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int code = MPIX_Checkpoint_protect(1, device, 64, MPI_BYTE);
    OK(MPI_Error_class(code, &class));
    OK(MPI_Error_string(code, text, &length));
    CHECK(class == MPI_ERR_BUFFER && strstr(text, "region 1 is in device memory"), "class %d: %s", class, text);
    OK(MPIX_Checkpoint_protect(1, host, 64, MPI_BYTE));
    OK(MPIX_Checkpoint_protect(1, NULL, 0, MPI_BYTE));
    discard(device);
}
#endif

/* Sends a short message, the first one after the driver's library was loaded. */
static void first_message(void)
{
    char *from = device_pattern(8, rank), *to = device_memory(8);
    OK(MPI_Sendrecv(from, 8, MPI_BYTE, next, 1, to, 8, MPI_BYTE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(device_differs(to, 8, before) < 0, "byte %ld", device_differs(to, 8, before));
    discard(from), discard(to);
}

/* Sends messages of all protocols from a device to device, host and managed memory. */
static void messages(size_t length)
{
    char *from = device_pattern(length, rank), *to = device_memory(length), *managed = managed_memory(length), *host = malloc(length);
    MPI_Request requests[2];
    MPI_Status status;
    int count;
    OK(MPI_Irecv(to, (int)length, MPI_BYTE, before, 2, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(from, (int)length, MPI_BYTE, next, 2, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(device_differs(to, length, before) < 0, "byte %ld of %zu", device_differs(to, length, before), length);

    OK(MPI_Isend(to, (int)length, MPI_BYTE, next, 3, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Recv(host, (int)length, MPI_BYTE, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK(differs(host, length, (unsigned)((before + size - 1) % size)) < 0, "a message to the host");

    /* The message is shorter than the buffer; the rest of the buffer is unchanged. */
    char *pattern = malloc(length);
    fill(pattern, length, 77);
    put(managed, pattern, length);
    OK(MPI_Isend(from, (int)length / 2, MPI_BYTE, next, 4, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Recv(managed, (int)length, MPI_BYTE, before, 4, MPI_COMM_WORLD, &status));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    get(host, managed, length);
    CHECK(count == (int)length / 2 && differs(host, length / 2, before) < 0, "half a message of %d bytes", count);
    CHECK(!memcmp(host + length / 2, pattern + length / 2, length - length / 2), "the rest of the buffer");
    discard(from), discard(to), discard(managed);
    free(host), free(pattern);
}

/* Receives two messages into interleaved columns of a matrix; neither may write the other's column. */
static void columns(void)
{
    enum { ROWS = 500, WIDTH = 6 };
    int host[ROWS][WIDTH], *device = device_memory(sizeof host);
    MPI_Datatype column;
    MPI_Request requests[WIDTH + 1];
    OK(MPI_Type_vector(ROWS, 1, WIDTH, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    memset(host, -1, sizeof host);
    put(device, host, sizeof host);
    int data[2][ROWS];
    for (int i = 0; i < ROWS; i++)
        data[0][i] = i, data[1][i] = 1000 + i;
    for (int c = 0; c < 2; c++)
        OK(MPI_Irecv(device + 2 * c, 1, column, rank, c, MPI_COMM_WORLD, &requests[c]));
    for (int c = 1; c >= 0; c--) {
        OK(MPI_Send(data[c], ROWS, MPI_INT, rank, c, MPI_COMM_WORLD));
        /* The receives complete one at a time, in reverse order;
           MPI_Request_get_status also reports completion. */
        int done = 0;
        while (!done)
            OK(MPI_Request_get_status(requests[c], &done, MPI_STATUS_IGNORE));
        get(host, device, sizeof host);
        for (int i = 0; i < ROWS; i++)
            CHECK(host[i][2 * c] == data[c][i] && host[i][1] == -1 && host[i][3] == -1, "row %d", i);
        OK(MPI_Wait(&requests[c], MPI_STATUS_IGNORE));
    }
    /* Sends a strided column, and then data of an irregular type. */
    int got[ROWS], lengths[3] = {1, 3, 2}, places[3] = {0, 5, 11}, some[6];
    OK(MPI_Sendrecv(device + 2, 1, column, rank, 5, got, ROWS, MPI_INT, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(!memcmp(got, data[1], sizeof got), "a column that was sent");
    MPI_Datatype irregular;
    OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &irregular));
    OK(MPI_Type_commit(&irregular));
    OK(MPI_Sendrecv(device, 1, irregular, rank, 6, some, 6, MPI_INT, rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    int *flat = &host[0][0], wanted[6] = {flat[0], flat[5], flat[6], flat[7], flat[11], flat[12]};
    CHECK(!memcmp(some, wanted, sizeof some), "an irregular type");
    OK(MPI_Type_free(&irregular));
    OK(MPI_Type_free(&column));
    discard(device);
}

/* Tests reductions, also in place and persistent: each start reads the device's current data. */
static void reductions(void)
{
    enum { N = 3000 };
    int host[N], *from = device_memory(sizeof host), *to = device_memory(sizeof host);
    for (int i = 0; i < N; i++)
        host[i] = i + rank;
    put(from, host, sizeof host);
    OK(MPI_Allreduce(from, to, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    get(host, to, sizeof host);
    for (int i = 0; i < N; i++)
        CHECK(host[i] == size * i + size * (size - 1) / 2, "element %d is %d", i, host[i]);
    OK(MPI_Allreduce(MPI_IN_PLACE, from, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    get(host, from, sizeof host);
    for (int i = 0; i < N; i++)
        CHECK(host[i] == i + size - 1, "element %d is %d", i, host[i]);
    OK(MPI_Bcast(from, N, MPI_INT, size - 1, MPI_COMM_WORLD));

    MPI_Request request;
    OK(MPI_Allreduce_init(from, to, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++)
            host[i] = round * i;
        put(from, host, sizeof host);
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        get(host, to, sizeof host);
        for (int i = 0; i < N; i++)
            CHECK(host[i] == size * round * i, "element %d of round %d is %d", i, round, host[i]);
    }
    OK(MPI_Request_free(&request));
    discard(from), discard(to);
}

/* Window accesses from and to device memory; a flush completes only the gets from its rank. */
static void windows(void)
{
    int *base, host[4] = {1, 2, 3, rank}, *from = device_memory(sizeof host), *to = device_memory(sizeof host), code;
    MPI_Win win;
    OK(MPI_Win_allocate(2 * sizeof host, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    memset(base, 0, 2 * sizeof host);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    put(from, host, sizeof host);
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(from, 4, MPI_INT, next, 0, 4, MPI_INT, win));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Accumulate(from, 4, MPI_INT, next, 0, 4, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Get(to, 4, MPI_INT, next, 0, 4, MPI_INT, win));
    OK(MPI_Win_flush(next, win));
    get(host, to, sizeof host);
    CHECK(host[0] == 2 && host[1] == 4 && host[2] == 6 && host[3] == 2 * rank, "got %d %d %d %d", host[0], host[1], host[2], host[3]);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));

    /* Windows of device memory are refused. */
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    code = MPI_Win_create(from, sizeof host, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    int class, length;
    OK(MPI_Error_class(code, &class));
    OK(MPI_Error_string(code, text, &length));
    CHECK(class == MPI_ERR_BASE, "class %d: %s", class, text);
    discard(from), discard(to);
}

/* Memory from a pool or mapped from a handle has no context, and the driver reports its type as host.
 * A thread without a current context accesses both kinds. */
static void *in_thread(void *at)
{
    OK(MPI_Sendrecv_replace(at, 100, MPI_BYTE, next, 9, before, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return NULL;
}

static void contexts(void)
{
    address pooled = 0, mapped = 0;
    char host[100];
    fill(host, sizeof host, rank);
    for (int kind = 0; kind < 2; kind++) {
        int code = kind ? (cuda.map ? cuda.map(&mapped, sizeof host, 0) : 1) : cuda.alloc_async(&pooled, sizeof host, NULL);
        if (code != 0)
            continue; /* A real device may lack this kind of memory. */
        void *at = (void *)(uintptr_t)(kind ? mapped : pooled);
        put(at, host, sizeof host);
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, in_thread, at), "no thread");
        pthread_join(thread, NULL);
        CHECK(device_differs(at, sizeof host, before) < 0, "memory of kind %d", kind);
    }
}

/* Completes several nonblocking operations by each completion call;
 * frees one request and cancels another. */
static void requests(void)
{
    char host_byte[1];
    enum { MANY = 12, LENGTH = 3000 };
    char *from = device_pattern(LENGTH, rank), *to = device_memory(MANY * LENGTH);
    MPI_Request all[2 * MANY], unused;
    int left = 2 * MANY, done, indices[2 * MANY], flag, cancelled;
    MPI_Status status;
    for (int i = 0; i < MANY; i++) {
        OK(MPI_Irecv(to + i * LENGTH, LENGTH, MPI_BYTE, before, 20 + i, MPI_COMM_WORLD, &all[i]));
        OK(MPI_Issend(from, LENGTH, MPI_BYTE, next, 20 + i, MPI_COMM_WORLD, &all[MANY + i]));
    }
    OK(MPI_Waitany(2 * MANY, all, &done, MPI_STATUS_IGNORE));
    left--;
    OK(MPI_Waitsome(2 * MANY, all, &done, indices, MPI_STATUSES_IGNORE));
    left -= done;
    do {
        OK(MPI_Testany(2 * MANY, all, &done, &flag, MPI_STATUS_IGNORE));
        if (flag && done != MPI_UNDEFINED)
            left--;
    } while (left > 0);
    for (int i = 0; i < MANY; i++)
        CHECK(device_differs(to + i * LENGTH, LENGTH, before) < 0, "message %d", i);

    OK(MPI_Irecv(to, LENGTH, MPI_BYTE, before, 99, MPI_COMM_WORLD, &unused));
    OK(MPI_Cancel(&unused));
    OK(MPI_Wait(&unused, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled && device_differs(to, LENGTH, before) < 0, "a cancelled receive");

    OK(MPI_Isend(from, LENGTH, MPI_BYTE, next, 50, MPI_COMM_WORLD, &unused));
    OK(MPI_Request_free(&unused));
    OK(MPI_Recv(to, LENGTH, MPI_BYTE, before, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(device_differs(to, LENGTH, before) < 0, "a freed send");

    /* MPI_Isendrecv whose request is freed; its send completes before its receive. */
    char *late = device_memory(LENGTH);
    int token = 0;
    OK(MPI_Isendrecv(from, 4, MPI_BYTE, rank, 60, late, LENGTH, MPI_BYTE, next, 61, MPI_COMM_WORLD, &unused));
    OK(MPI_Recv(&token, 4, MPI_BYTE, rank, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&unused));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Send(from, LENGTH, MPI_BYTE, before, 61, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    while (device_differs(late, LENGTH, next) >= 0) {
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 98, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        OK(MPI_Irecv(host_byte, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &unused));
        OK(MPI_Request_free(&unused));
    }
    discard(late);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    discard(from), discard(to);
}

/* If the driver fails, the MPI call returns an error. */
static void failed(int code, const char *words)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    OK(MPI_Error_class(code, &class));
    OK(MPI_Error_string(code, text, &length));
    CHECK(class == MPI_ERR_BUFFER, "class %d: %s", class, text);
    CHECK(strstr(text, words) || !words[0], "%s", text);
}

static void failures(void)
{
    char *at = device_pattern(100, rank), *early = device_memory(100), byte = 1;
    MPI_Request request;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    static const char *const ways[] = {"start", "late"};
    for (int i = 0; i < 2; i++) {
        setenv("FAKE_CUDA", ways[i], 1);
        failed(MPI_Send(at, 100, MPI_BYTE, rank, 7, MPI_COMM_WORLD), "");
        failed(MPI_Isend(at, 100, MPI_BYTE, rank, 7, MPI_COMM_WORLD, &request), "");
        CHECK(request == MPI_REQUEST_NULL, "a request of a failed call");
        failed(MPI_Allreduce(MPI_IN_PLACE, at, 25, MPI_INT, MPI_SUM, MPI_COMM_SELF), "");
        unsetenv("FAKE_CUDA");
    }
    /* The program frees the buffer before its receive is complete. */
    OK(MPI_Irecv(early, 1, MPI_BYTE, rank, 8, MPI_COMM_WORLD, &request));
    discard(early);
    OK(MPI_Send(&byte, 1, MPI_BYTE, rank, 8, MPI_COMM_WORLD));
    failed(MPI_Wait(&request, MPI_STATUS_IGNORE), "");
    CHECK(request == MPI_REQUEST_NULL, "a request that has failed");
    /* Other operations on device memory still work. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Sendrecv(at, 1, MPI_BYTE, rank, 7, &byte, 1, MPI_BYTE, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    discard(at);
}

int main(int argc, char **argv)
{
    int provided, late = argc > 2 && !strcmp(argv[2], "late");
    if (!late)
        load_cuda(argv[1]);
    CHECK(!MPIX_Query_cuda_support(), "support before MPI_Init");
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    introduce();
    next = (rank + 1) % size, before = (rank + size - 1) % size;
    if (late) {
        answers(0);
        load_cuda(argv[1]);
    }
    use_device();
    if (late)
        first_message();
    answers(1);
#ifndef OTHER_LIBRARY
    protected_memory();
#endif
    if (argc > 3) {
        MPI_Info info;
        char kinds[100];
        int length = sizeof kinds, there;
        OK(MPI_Comm_get_info(MPI_COMM_WORLD, &info));
        OK(MPI_Info_get_string(info, "mpi_memory_alloc_kinds", &length, kinds, &there));
        printf("kinds of the world: %s\n", kinds);
        OK(MPI_Info_free(&info));
    }
    static const size_t lengths[] = {1, 40, 1000, 5000, 70000, 3 << 20};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        messages(lengths[i]);
    columns();
    reductions();
    windows();
    contexts();
    requests();
    if (getenv("FAKE_CUDA_FAILS"))
        failures();
    return finish("devices");
}
