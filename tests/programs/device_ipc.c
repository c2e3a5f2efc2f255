/*
 * Long messages between the devices of a node, and messages whose data are copied while they are sent.
 * Arguments: the driver's library, and the required kind of copy: "between" (by the devices),
 * "pieces" (several pieces in flight at once) or "neither" (whole copies only).
 */
#include "device.h"

static int next, before;
static const char *expected;

static int count_of(const char *what)
{
    int (*count)(void);
    *(void **)&count = dlsym(cuda_library, what);
    CHECK(count, "the library does not count");
    return count();
}

/* Sends between devices, to a longer buffer, and between device and host in both directions. */
static void messages(char *from, char *to, size_t length, int tag)
{
    MPI_Request requests[2];
    MPI_Status status;
    int count;
    char *host = malloc(length);
    OK(MPI_Irecv(to, (int)length, MPI_BYTE, before, tag, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(from, (int)length, MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(device_differs(to, length, before) < 0, "byte %ld of %zu", device_differs(to, length, before), length);
    OK(MPI_Sendrecv(from, (int)length - 5, MPI_BYTE, next, tag, host, (int)length, MPI_BYTE, before, tag, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == (int)length - 5 && differs(host, length - 5, before) < 0, "a message of %d bytes to the host", count);
    fill(host, length, rank + 50);
    OK(MPI_Irecv(to, (int)length, MPI_BYTE, before, tag, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Issend(host, (int)length, MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(device_differs(to, length, before + 50) < 0, "a message from the host");
    /* A message to this process from the second half of an allocation,
     * and a message that arrives before its receive is posted. */
    OK(MPI_Isend(from + length / 2, (int)(length / 2), MPI_BYTE, rank, tag, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Recv(to, (int)(length / 2), MPI_BYTE, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Isend(from + length / 2, (int)(length / 2), MPI_BYTE, next, tag, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Probe(before, tag, MPI_COMM_WORLD, &status));
    OK(MPI_Recv(to + length / 2, (int)(length / 2), MPI_BYTE, before, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    char *pattern = malloc(length);
    get(host, to, length);
    fill(pattern, length, rank);
    CHECK(!memcmp(host, pattern + length / 2, length / 2), "a message to itself");
    fill(pattern, length, before);
    CHECK(!memcmp(host + length / 2, pattern + length / 2, length / 2), "the second half of an allocation");
    free(host), free(pattern);
}

int main(int argc, char **argv)
{
    enum { SHORT = 70000, LONG = 5 << 20 };
    load_cuda(argv[1]);
    OK(MPI_Init(&argc, &argv));
    introduce();
    next = (rank + 1) % size, before = (rank + size - 1) % size;
    expected = argv[2];
    use_device();
    char *from = device_pattern(LONG, rank), *to = device_memory(LONG);
    messages(from, to, SHORT, 1);
    for (int round = 0; round < 3; round++)
        messages(from, to, LONG, 2);
    int opened = count_of("fakeOpened"), between = count_of("fakeCopiedBetween"), pending = count_of("fakeMostPending");
    if (!strcmp(expected, "between"))
        CHECK(between >= 3 * 3 && opened == 1, "%d copies between devices, %d handles opened", between, opened);
    else
        CHECK(opened == 0, "%d handles opened", opened);
    if (!strcmp(expected, "pieces"))
        CHECK(pending >= 2, "%d pieces were in flight at once", pending);

    /* New memory may have the address of freed memory but has another ID;
     * managed memory has no handle that other processes could open. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    setenv("FAKE_CUDA_AGAIN", "1", 1);
    discard(from);
    from = device_pattern(LONG, rank);
    messages(from, to, LONG, 3);
    discard(from);
    from = managed_memory(LONG);
    char *host = malloc(LONG);
    fill(host, LONG, rank);
    put(from, host, LONG);
    free(host);
    opened = count_of("fakeOpened");
    messages(from, to, LONG, 4);
    CHECK(count_of("fakeOpened") == opened, "a handle of managed memory");
    discard(from), discard(to);
    return finish("device_ipc");
}
