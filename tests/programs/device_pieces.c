/*
 * Long messages between devices that are copied in pieces while they are sent and received.
 * Argument: the driver's library. FAKE_CUDA_LOG names the file to which the drivers of both ranks append a line
 * for each copy that they start. The order of the lines shows that copies overlap with the transfer.
 * FAKE_CUDA must be "handles", so that the devices cannot copy the messages themselves.
 * Rank 0 sends to rank 1. If there are more arguments, the data of rank 0 are in host memory.
 */
#include "device.h"
#include <unistd.h>

enum { LONG = 32 << 20, PARTS = 4, PART = LONG / PARTS };

static char *data, *host;
static int from_host;
static long seen;
static MPI_Comm comm;

/* A line of the log. */
struct copy { int process, to_device; unsigned long buffer, offset; size_t length; };

/* Ignores the copies before this call, which both ranks make. */
static void begin_log(void)
{
    OK(MPI_Barrier(comm));
    FILE *log = fopen(getenv("FAKE_CUDA_LOG"), "a");
    CHECK(log && !fseek(log, 0, SEEK_END), "no log");
    seen = ftell(log);
    fclose(log);
    OK(MPI_Barrier(comm));
}

/* Reads the copies since `begin_log`; returns their number. */
static int copies(struct copy *all, int most)
{
    FILE *log = fopen(getenv("FAKE_CUDA_LOG"), "r");
    char direction[20];
    int count = 0;
    CHECK(log && !fseek(log, seen, SEEK_SET), "no log");
    while (count < most && fscanf(log, "%d %19s %lu %lu %zu", &all[count].process, direction, &all[count].buffer,
                                  &all[count].offset, &all[count].length) == 5)
        all[count++].to_device = !strcmp(direction, "to_device");
    fclose(log);
    return count;
}

/* Checks the copies of one message, at rank 1 after the message has been received:
 * a copy to the device began before the last copy to the sender's host, and each byte was copied once. */
static void overlapped(const char *what, size_t length)
{
    static struct copy all[1000];
    OK(MPI_Barrier(comm));
    if (rank == 1) {
        int count = copies(all, 1000), first = -1, last = -1;
        size_t landed = 0;
        for (int i = 0; i < count; i++) {
            if (all[i].process == getpid() && all[i].to_device) {
                first = first < 0 ? i : first;
                landed += all[i].length;
                CHECK(all[i].length <= 1 << 20, "%s: a copy of %zu bytes", what, all[i].length);
            } else if (all[i].process != getpid() && !all[i].to_device)
                last = i;
        }
        CHECK(landed == length, "%s: %zu bytes were copied to the device, not %zu", what, landed, length);
        if (!from_host)
            CHECK(first >= 0 && first < last, "%s: the first copy to the device is number %d, the last copy to the host number %d", what, first, last);
    }
    OK(MPI_Barrier(comm));
}

/* Fills the sender's data; clears the receiver's memory. */
static void prepare(unsigned salt)
{
    fill(host, LONG, rank == 0 ? salt : salt + 100);
    if (rank == 0 && from_host)
        memcpy(data, host, LONG);
    else
        put(data, host, LONG);
    begin_log();
}

static void check(const char *what, size_t length, unsigned salt)
{
    overlapped(what, length);
    if (rank == 1) {
        get(host, data, LONG);
        CHECK(differs(host, length, salt) < 0, "%s: byte %ld", what, differs(host, length, salt));
        char *rest = malloc(LONG);
        fill(rest, LONG, salt + 100);
        CHECK(!memcmp(host + length, rest + length, LONG - length), "%s: bytes beyond the message", what);
        free(rest);
    }
}

static void blocking(void)
{
    MPI_Status status;
    int count;
    prepare(1);
    if (rank == 0)
        OK(MPI_Send(data, LONG - 4567, MPI_BYTE, 1, 1, comm));
    else {
        OK(MPI_Recv(data, LONG, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(count == LONG - 4567 && status.MPI_SOURCE == 0 && status.MPI_TAG == 1, "%d bytes", count);
    }
    check("MPI_Recv", LONG - 4567, 1);
}

static void matched(void)
{
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    int done = 0;
    prepare(2);
    if (rank == 0) {
        OK(MPI_Issend(data, LONG, MPI_BYTE, 1, 2, comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Mprobe(MPI_ANY_SOURCE, 2, comm, &message, &status));
        OK(MPI_Imrecv(data, LONG, MPI_BYTE, &message, &request));
        while (!done)
            OK(MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    check("MPI_Imrecv", LONG, 2);
}

/* The receive buffer is shorter than the message. */
static void truncated(void)
{
    int class;
    prepare(3);
    if (rank == 0)
        OK(MPI_Send(data, LONG, MPI_BYTE, 1, 3, comm));
    else {
        int code = MPI_Recv(data, LONG / 2 + 5, MPI_BYTE, 0, 3, comm, MPI_STATUS_IGNORE);
        OK(MPI_Error_class(code, &class));
        CHECK(class == MPI_ERR_TRUNCATE, "class %d", class);
    }
    check("a truncated message", LONG / 2 + 5, 3);
}

static void persistent(void)
{
    MPI_Request request;
    prepare(4);
    if (rank == 0)
        OK(MPI_Send_init(data, LONG, MPI_BYTE, 1, 4, comm, &request));
    else
        OK(MPI_Recv_init(data, LONG, MPI_BYTE, 0, 4, comm, &request));
    for (unsigned round = 0; round < 3; round++) {
        prepare(4 + round);
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        check("a persistent receive", LONG, 4 + round);
    }
    OK(MPI_Request_free(&request));
}

/* Cancels a receive, also a persistent one; its buffer stays unchanged, and the next receive works. */
static void cancelled(void)
{
    MPI_Request request;
    MPI_Status status;
    int flag;
    prepare(10);
    if (rank == 1) {
        OK(MPI_Recv_init(data, LONG, MPI_BYTE, 0, 10, comm, &request));
        OK(MPI_Start(&request));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag && device_differs(data, LONG, 110) < 0, "a cancelled receive");
        OK(MPI_Start(&request));
    }
    OK(MPI_Barrier(comm));
    if (rank == 0)
        OK(MPI_Send(data, LONG, MPI_BYTE, 1, 10, comm));
    else {
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
    }
    check("a receive after a cancelled one", LONG, 10);
}

#if MPI_VERSION >= 4
/* The receiver divides the message differently and has room for one more partition. */
static void partitioned(void)
{
    static struct copy all[1000];
    static const int order[PARTS] = {2, 0, 3, 1};
    MPI_Request request;
    int flag, half = PART / 2;
    if (rank == 0)
        OK(MPI_Psend_init(data, PARTS - 1, PART, MPI_BYTE, 1, 11, comm, MPI_INFO_NULL, &request));
    else
        OK(MPI_Precv_init(data, 2 * PARTS, half, MPI_BYTE, 0, 11, comm, MPI_INFO_NULL, &request));
    for (unsigned round = 0; round < 3; round++) {
        prepare(20 + round);
        OK(MPI_Start(&request));
        if (rank == 0) {
            for (int i = 0; i < PARTS; i++) {
                if (order[i] == PARTS - 1)
                    continue;
                OK(MPI_Pready(order[i], request));
                /* The first pieces of the partition are being copied when MPI_Pready returns. */
                int begun = from_host || round == 0, count = copies(all, 1000);
                for (int c = 0; c < count && !begun; c++)
                    begun = all[c].process == getpid() && !all[c].to_device && all[c].offset / PART == (size_t)order[i];
                CHECK(begun, "partition %d was not copied", order[i]);
            }
        } else {
            char *pattern = malloc(LONG);
            fill(pattern, LONG, 20 + round);
            for (int p = 0; p < 2 * PARTS; p++) {
                flag = 0;
                while (!flag)
                    OK(MPI_Parrived(request, p, &flag));
                size_t at = (size_t)p * half, length = p < 2 * PARTS - 2 ? half : 0;
                get(host, data + at, length);
                CHECK(!memcmp(host, pattern + at, length), "partition %d", p);
            }
            free(pattern);
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        check("a partitioned receive", LONG - PART, 20 + round);
        /* Between two operations each partition counts as arrived, and nothing is copied. */
        if (rank == 1) {
            fill(host, LONG, 77);
            put(data, host, LONG);
            OK(MPI_Parrived(request, 0, &flag));
            CHECK(flag && device_differs(data, LONG, 77) < 0, "an inactive receive");
        }
    }
    OK(MPI_Request_free(&request));
}

/* The message is longer than the receive buffer, and its partitions are sent before the receiver can refuse it.
 * They arrive without data, and nothing is copied to the device. */
static void refused(void)
{
    MPI_Request request;
    int flag = 0, class;
    prepare(40);
    if (rank == 0) {
        OK(MPI_Psend_init(data, PARTS, PART, MPI_BYTE, 1, 40, comm, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        OK(MPI_Pready_range(0, PARTS - 1, request));
    }
    OK(MPI_Barrier(comm));
    if (rank == 1) {
        OK(MPI_Precv_init(data, PARTS / 2, PART, MPI_BYTE, 0, 40, comm, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        while (!flag)
            OK(MPI_Parrived(request, 0, &flag));
    }
    OK(MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class));
    CHECK(class == MPI_ERR_TRUNCATE, "class %d", class);
    if (rank == 1)
        CHECK(device_differs(data, LONG, 140) < 0, "a refused message was copied to the device");
    OK(MPI_Request_free(&request));
}

/* The sender frees the active operation before the receiver receives. */
static void freed(void)
{
    MPI_Request request;
    prepare(50);
    if (rank == 0) {
        OK(MPI_Psend_init(data, PARTS, PART, MPI_BYTE, 1, 50, comm, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        OK(MPI_Pready_range(0, PARTS - 1, request));
        OK(MPI_Request_free(&request));
    }
    OK(MPI_Barrier(comm));
    if (rank == 1) {
        OK(MPI_Precv_init(data, PARTS, PART, MPI_BYTE, 0, 50, comm, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
    }
    check("the receive of a send that was freed", LONG, 50);
}
#endif

/* A copy to the device fails: the receive fails, and the next one works. */
static void failing(void)
{
    char text[MPI_MAX_ERROR_STRING], before[50];
    int class, length;
    snprintf(before, sizeof before, "%s", getenv("FAKE_CUDA"));
    prepare(30);
    if (rank == 0)
        OK(MPI_Ssend(data, LONG, MPI_BYTE, 1, 30, comm));
    else {
        setenv("FAKE_CUDA", "late", 1);
        int code = MPI_Recv(data, LONG, MPI_BYTE, 0, 30, comm, MPI_STATUS_IGNORE);
        setenv("FAKE_CUDA", before, 1);
        OK(MPI_Error_class(code, &class));
        OK(MPI_Error_string(code, text, &length));
        CHECK(class == MPI_ERR_BUFFER && strstr(text, "to it from the host"), "class %d: %s", class, text);
    }
    blocking();
}

int main(int argc, char **argv)
{
    load_cuda(argv[1]);
    OK(MPI_Init(&argc, &argv));
    introduce();
    CHECK(size == 2, "%d ranks", size);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    use_device();
    from_host = rank == 0 && argc > 2;
    data = from_host ? malloc(LONG) : device_memory(LONG);
    OK(MPI_Bcast(&from_host, 1, MPI_INT, 0, comm));
    host = malloc(LONG);
    blocking();
    matched();
    truncated();
    persistent();
    cancelled();
#if MPI_VERSION >= 4
    partitioned();
    refused();
    freed();
#endif
    failing();
    OK(MPI_Comm_free(&comm));
    return finish("device_pieces");
}
