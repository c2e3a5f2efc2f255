/* Test of performance variables, read as a tool reads them in a running program:
 * the queues of a communicator, the messages and bytes sent to each of its ranks, and others. */
#include "check.h"

#include <unistd.h>

#define WORKS(call) CHECK((call) == MPI_SUCCESS, "%s", #call)

static MPI_T_pvar_session session;

/* Allocates and returns a handle of the variable `name` for an object; stores the number of values in `count`. */
static MPI_T_pvar_handle of(const char *name, int class, void *object, int *count)
{
    MPI_T_pvar_handle handle;
    int index;
    WORKS(MPI_T_pvar_get_index(name, class, &index));
    WORKS(MPI_T_pvar_handle_alloc(session, index, object, &handle, count));
    return handle;
}

/* Returns the value of a variable that is not bound to an object. */
static unsigned long long value_of(const char *name, int class)
{
    unsigned long long value = 0;
    int count, number = 0;
    MPI_T_pvar_handle handle = of(name, class, NULL, &count);
    if (class == MPI_T_PVAR_CLASS_STATE) {
        WORKS(MPI_T_pvar_read(session, handle, &number));
        value = (unsigned long long)number;
    } else {
        WORKS(MPI_T_pvar_read(session, handle, &value));
    }
    WORKS(MPI_T_pvar_handle_free(session, &handle));
    return value;
}

#define LEVEL(name) value_of(name, MPI_T_PVAR_CLASS_LEVEL)
#define COUNTER(name) value_of(name, MPI_T_PVAR_CLASS_COUNTER)

/* Checks that the variable has grown by `by` since its value was `before`. */
#define GREW(name, class, before, by) \
    do { unsigned long long grown = value_of(name, class) - (before); CHECK(grown == (unsigned long long)(by), "%s: %llu", name, grown); } while (0)

/* The variables that count the program's MPI handles, one variable for each kind of handle. */
static void handles(void)
{
    static const char *names[] = {"communicators", "datatypes", "files", "groups", "requests", "windows"};
    unsigned long long before[6];
    char full[6][64];
    MPI_Comm comm;
    MPI_Datatype types[2];
    MPI_File file;
    MPI_Group groups[3];
    MPI_Request requests[4];
    MPI_Win win;
    int word = 0;
    char path[64];
    for (int i = 0; i < 6; i++) {
        snprintf(full[i], sizeof full[i], "mpi_base_%s", names[i]);
        before[i] = LEVEL(full[i]);
    }
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    for (int i = 0; i < 2; i++)
        OK(MPI_Type_contiguous(2 + i, MPI_INT, &types[i]));
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_group(comm, &groups[i]));
    /* Three requests that are completed once, and a persistent request. */
    for (int i = 0; i < 3; i++)
        OK(MPI_Irecv(&word, 1, MPI_INT, 0, 3, comm, &requests[i]));
    OK(MPI_Recv_init(&word, 1, MPI_INT, 0, 4, comm, &requests[3]));
    OK(MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win));
    snprintf(path, sizeof path, "pvars-handles-%d.%d.tmp", size, rank);
    OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    int made[6] = {1, 2, 1, 3, 4, 1};
    for (int i = 0; i < 6; i++)
        GREW(full[i], MPI_T_PVAR_CLASS_LEVEL, before[i], made[i]);
    for (int i = 0; i < 3; i++) {
        OK(MPI_Cancel(&requests[i]));
        OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        OK(MPI_Group_free(&groups[i]));
    }
    OK(MPI_Request_free(&requests[3]));
    OK(MPI_Type_free(&types[0]));
    OK(MPI_Type_free(&types[1]));
    OK(MPI_Win_free(&win));
    OK(MPI_File_close(&file));
    OK(MPI_Comm_free(&comm));
    for (int i = 0; i < 6; i++)
        GREW(full[i], MPI_T_PVAR_CLASS_LEVEL, before[i], 0);
}

/* Repeats two messages until rank 1 has slept while waiting; the variables about waits must show it. */
static void waits(void)
{
    int has_slept = 0, word = 0;
    while (!has_slept) {
        unsigned long long sleeps = COUNTER("mpi_base_sleeps"), waits = COUNTER("mpi_base_waits_asleep");
        unsigned long long steps = COUNTER("mpi_base_progress_steps");
        unsigned long long asleep = value_of("mpi_base_asleep_ns", MPI_T_PVAR_CLASS_TIMER);
        long long begin = now();
        if (rank == 0) {
            struct timespec moment = {0, 20000000};
            nanosleep(&moment, NULL);
            /* This message arrives during rank 1's wait but does not end the wait. */
            OK(MPI_Send(&word, 1, MPI_INT, 1, 22, MPI_COMM_WORLD));
            nanosleep(&moment, NULL);
            OK(MPI_Send(&word, 1, MPI_INT, 1, 21, MPI_COMM_WORLD));
        }
        if (rank == 1) {
            OK(MPI_Recv(&word, 1, MPI_INT, 0, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            unsigned long long took = (unsigned long long)(now() - begin);
            sleeps = COUNTER("mpi_base_sleeps") - sleeps;
            waits = COUNTER("mpi_base_waits_asleep") - waits;
            steps = COUNTER("mpi_base_progress_steps") - steps;
            asleep = value_of("mpi_base_asleep_ns", MPI_T_PVAR_CLASS_TIMER) - asleep;
            CHECK(asleep <= took && waits <= sleeps + 1, "%llu of %llu ns, %llu sleeps of %llu waits", asleep, took, sleeps, waits);
            /* The system needs longer than 100 ns for a sleep. */
            CHECK(asleep >= 100 * sleeps, "%llu ns in %llu sleeps", asleep, sleeps);
            OK(MPI_Recv(&word, 1, MPI_INT, 0, 22, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            has_slept = sleeps > 0 && waits > 0 && steps > 0;
        }
        OK(MPI_Bcast(&has_slept, 1, MPI_INT, 1, MPI_COMM_WORLD));
    }
}

/* The node's shared memory keeps the pages of a freed window, and the next window uses them again. */
static void node_memory(void)
{
    enum { BYTES = 256 << 10 };
    unsigned long long span = value_of("btl_sm_ring_span", MPI_T_PVAR_CLASS_SIZE), least, most;
    char *bytes;
    MPI_Win win;
    for (int round = 0; round < 2; round++) {
        unsigned long long before = LEVEL("btl_sm_kept_bytes"), used;
        OK(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_SELF, &bytes, &win));
        memset(bytes, 1, BYTES);
        used = LEVEL("btl_sm_kept_bytes");
        OK(MPI_Win_free(&win));
        unsigned long long after = LEVEL("btl_sm_kept_bytes");
        CHECK(after >= used + BYTES - 8192, "%llu, %llu, %llu", before, used, after);
        CHECK(round == 0 || before >= used + BYTES - 8192, "%llu, %llu, %llu", before, used, after);
    }
    OK(MPI_Allreduce(&span, &least, 1, MPI_UNSIGNED_LONG_LONG, MPI_MIN, MPI_COMM_WORLD));
    OK(MPI_Allreduce(&span, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD));
    CHECK(least == most && span >= 4096 && span <= 64 << 20, "%llu, %llu to %llu", span, least, most);
}

/* The variables that show that processors are shared by several ranks, and that messages wait because a ring is full. */
static void shortage(void)
{
    enum { COUNT = 3000, BYTES = 2000 };
    static char bytes[BYTES];
    static MPI_Request requests[COUNT];
    unsigned long long occupancy = value_of("mpi_base_occupancy", MPI_T_PVAR_CLASS_STATE);
    CHECK(occupancy == 1 || occupancy == 2, "%llu", occupancy);
    CHECK(size <= sysconf(_SC_NPROCESSORS_ONLN) || occupancy == 2, "%llu", occupancy);
    CHECK(LEVEL("mpi_base_waits_beside_load") <= 2000, "%llu", LEVEL("mpi_base_waits_beside_load"));
    int has_waited = 0;
    while (!has_waited) {
        unsigned long long queued = COUNTER("pml_ob1_sends_queued");
        for (int i = 0; i < COUNT && rank == 0; i++)
            OK(MPI_Isend(bytes, BYTES, MPI_CHAR, 1, 51, MPI_COMM_WORLD, &requests[i]));
        if (rank == 0) {
            has_waited = COUNTER("pml_ob1_sends_queued") > queued;
            OK(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE));
        }
        if (rank == 1) {
            struct timespec moment = {0, 50000000};
            nanosleep(&moment, NULL);
            for (int i = 0; i < COUNT; i++)
                OK(MPI_Recv(bytes, BYTES, MPI_CHAR, 0, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        OK(MPI_Bcast(&has_waited, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
}

/* The variables about messages that arrive before their receives, and about long messages. */
static void arrivals(void)
{
    static char lots[2 << 20];
    int next = (rank + 1) % size, before = (rank + size - 1) % size, word = 0;
    MPI_Request request, go;
    OK(MPI_Irecv(NULL, 0, MPI_INT, next, 30, MPI_COMM_WORLD, &go));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    unsigned long long came = COUNTER("pml_ob1_unexpected_arrivals"), announced = COUNTER("pml_ob1_rendezvous_received");
    unsigned long long bytes = LEVEL("pml_ob1_unexpected_bytes");
    /* Ensures that the next rank's message is sent after these values were read. */
    OK(MPI_Send(NULL, 0, MPI_INT, before, 30, MPI_COMM_WORLD));
    OK(MPI_Wait(&go, MPI_STATUS_IGNORE));
    OK(MPI_Send(lots, 30, MPI_CHAR, next, 31, MPI_COMM_WORLD));
    OK(MPI_Probe(before, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    GREW("pml_ob1_unexpected_arrivals", MPI_T_PVAR_CLASS_COUNTER, came, 1);
    CHECK(LEVEL("pml_ob1_unexpected_bytes") >= bytes + 30, "%llu", bytes);
    CHECK(value_of("pml_ob1_unexpected_bytes_max", MPI_T_PVAR_CLASS_HIGHWATERMARK) >= bytes + 30, "%llu", bytes);
    OK(MPI_Recv(lots, 30, MPI_CHAR, before, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    GREW("pml_ob1_unexpected_bytes", MPI_T_PVAR_CLASS_LEVEL, bytes, 0);
    CHECK(value_of("pml_ob1_unexpected_bytes_max", MPI_T_PVAR_CLASS_HIGHWATERMARK) >= bytes + 30, "it falls");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Irecv(lots, sizeof lots / 2, MPI_CHAR, before, 32, MPI_COMM_WORLD, &request));
    OK(MPI_Ssend(lots + sizeof lots / 2, sizeof lots / 2, MPI_CHAR, next, 32, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* The library's own requests may complete at any time, so the comparison is repeated. */
    unsigned long long idle, busy;
    int tries = 0;
    do {
        idle = LEVEL("pml_ob1_requests_under_way");
        OK(MPI_Irecv(&word, 1, MPI_INT, 0, 34, MPI_COMM_SELF, &request));
        busy = LEVEL("pml_ob1_requests_under_way");
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } while (busy != idle + 1 && tries++ < 1000);
    CHECK(busy == idle + 1, "%llu, %llu", idle, busy);
    GREW("pml_ob1_rendezvous_received", MPI_T_PVAR_CLASS_COUNTER, announced, 1);
    /* A call counts once, even if it calls other MPI functions. */
    unsigned long long first = COUNTER("mpi_base_calls"), calls = COUNTER("mpi_base_calls"), own = calls - first;
    for (int i = 0; i < 5; i++)
        OK(MPI_Sendrecv(&word, 1, MPI_INT, rank, 33, lots, 1, MPI_INT, rank, 33, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    GREW("mpi_base_calls", MPI_T_PVAR_CLASS_COUNTER, calls, own + 5);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(COUNTER("pml_ob1_protocol_errors") == 0 && COUNTER("btl_base_stray_messages") == 0, "messages were dropped");
    CHECK(COUNTER("btl_base_links_lost") == 0 && COUNTER("btl_base_peers_lost") == 0, "something was lost");
    CHECK(LEVEL("btl_base_foreign_processes") == 0, "another job is known");
    /* Transports between hosts count their messages; with PVARS_COUNTED such a transport is used. */
    int is_counted = getenv("PVARS_COUNTED") != NULL;
    CHECK((COUNTER("btl_base_messages_sent") > 0) == is_counted, "%llu sent", COUNTER("btl_base_messages_sent"));
    CHECK((COUNTER("btl_base_messages_received") > 0) == is_counted, "%llu received", COUNTER("btl_base_messages_received"));
}

/* Messages and bytes of collective and one-sided operations, to each rank and in total. */
static void kinds(void)
{
    unsigned long long values[64], number;
    int count, one, next = (rank + 1) % size, words[25] = {0};
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Win win;
    OK(MPI_Win_create(words, sizeof words, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_T_pvar_handle put_bytes = of("mpi_base_matrix_one_sided_bytes", MPI_T_PVAR_CLASS_AGGREGATE, &world, &count);
    MPI_T_pvar_handle puts = of("mpi_base_matrix_one_sided_messages", MPI_T_PVAR_CLASS_COUNTER, &world, &count);
    MPI_T_pvar_handle all_bytes = of("mpi_base_one_sided_bytes", MPI_T_PVAR_CLASS_AGGREGATE, NULL, &one);
    MPI_T_pvar_handle all_puts = of("mpi_base_one_sided_messages", MPI_T_PVAR_CLASS_COUNTER, NULL, &one);
    MPI_T_pvar_handle calls = of("mpi_base_matrix_collective_messages", MPI_T_PVAR_CLASS_COUNTER, &world, &count);
    MPI_T_pvar_handle total_calls = of("mpi_base_collective_messages", MPI_T_PVAR_CLASS_COUNTER, NULL, &one);
    MPI_T_pvar_handle total_bytes = of("mpi_base_collective_bytes", MPI_T_PVAR_CLASS_AGGREGATE, NULL, &one);
    MPI_T_pvar_handle sent = of("mpi_base_p2p_messages", MPI_T_PVAR_CLASS_COUNTER, NULL, &one);
    OK(MPI_Win_fence(0, win));
    WORKS(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    for (int i = 0; i < 3; i++)
        OK(MPI_Put(&rank, 1, MPI_INT, next, i, 1, MPI_INT, win));
    WORKS(MPI_T_pvar_read(session, puts, values));
    for (int i = 0; i < size; i++)
        CHECK(values[i] == (i == next ? 3 : 0), "%llu accesses to rank %d", values[i], i);
    WORKS(MPI_T_pvar_read(session, put_bytes, values));
    CHECK(values[next] == 12, "%llu", values[next]);
    WORKS(MPI_T_pvar_read(session, all_bytes, &number));
    CHECK(number == 12, "%llu", number);
    WORKS(MPI_T_pvar_read(session, all_puts, &number));
    CHECK(number == 3, "%llu", number);
    OK(MPI_Win_fence(0, win));
    WORKS(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_Bcast(words, 25, MPI_INT, 0, MPI_COMM_WORLD));
    WORKS(MPI_T_pvar_read(session, calls, values));
    for (int i = 0; i < size; i++)
        CHECK(values[i] == (rank == 0 && i != 0), "%llu to rank %d", values[i], i);
    WORKS(MPI_T_pvar_read(session, total_calls, &number));
    CHECK(number == (rank == 0 ? size - 1ULL : 0), "%llu", number);
    WORKS(MPI_T_pvar_read(session, total_bytes, &number));
    CHECK(number == (rank == 0 ? 100 * (size - 1ULL) : 0), "%llu", number);
    WORKS(MPI_T_pvar_read(session, sent, &number));
    CHECK(number == 0, "%llu", number);
    OK(MPI_Send(words, 1, MPI_INT, next, 41, MPI_COMM_WORLD));
    OK(MPI_Recv(words, 1, MPI_INT, (rank + size - 1) % size, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    WORKS(MPI_T_pvar_read(session, sent, &number));
    CHECK(number == 1, "%llu", number);
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    unsigned long long values[64], more[64], number;
    int provided, count, one, word = 0, words[25] = {0};
    MPI_Comm half;
    MPI_Request request;
    MPI_T_pvar_handle posted, unexpected, bytes, messages, again, waiting;

    begin(&argc, &argv);
    WORKS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    WORKS(MPI_T_pvar_session_create(&session));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    MPI_Comm world = MPI_COMM_WORLD;

    /* Two communicators have separate queues. */
    posted = of("pml_ob1_posted_receives", MPI_T_PVAR_CLASS_LEVEL, &world, &one);
    CHECK(one == 1, "%d", one);
    unexpected = of("pml_ob1_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, &half, &one);
    OK(MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request));
    WORKS(MPI_T_pvar_read(session, posted, &number));
    CHECK(number == 1, "%llu", number);
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    WORKS(MPI_T_pvar_read(session, posted, &number));
    CHECK(number == 0, "%llu", number);
    int me, all;
    OK(MPI_Comm_rank(half, &me));
    OK(MPI_Comm_size(half, &all));
    for (int i = 0; i < 3; i++)
        OK(MPI_Send(&word, 1, MPI_INT, (me + 1) % all, 5, half));
    OK(MPI_Probe((me + all - 1) % all, 5, half, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(half));
    do {
        int flag;
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 6, half, &flag, MPI_STATUS_IGNORE));
        WORKS(MPI_T_pvar_read(session, unexpected, &number));
    } while (number < 3);
    CHECK(number == 3, "%llu", number);
    waiting = of("pml_ob1_unexpected_comm_bytes", MPI_T_PVAR_CLASS_LEVEL, &half, &one);
    WORKS(MPI_T_pvar_read(session, waiting, &number));
    CHECK(number == 12, "%llu", number);
    for (int i = 0; i < 3; i++)
        OK(MPI_Recv(&word, 1, MPI_INT, (me + all - 1) % all, 5, half, MPI_STATUS_IGNORE));
    WORKS(MPI_T_pvar_read(session, unexpected, &number));
    CHECK(number == 0, "%llu", number);

    /* Values per rank count from the start of their handle; each handle counts separately. */
    bytes = of("mpi_base_matrix_p2p_bytes", MPI_T_PVAR_CLASS_AGGREGATE, &world, &count);
    messages = of("mpi_base_matrix_p2p_messages", MPI_T_PVAR_CLASS_COUNTER, &world, &count);
    again = of("mpi_base_matrix_p2p_messages", MPI_T_PVAR_CLASS_COUNTER, &world, &count);
    CHECK(count == size, "%d values", count);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    WORKS(MPI_T_pvar_start(session, bytes));
    WORKS(MPI_T_pvar_start(session, messages));
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            WORKS(MPI_T_pvar_start(session, again));
        OK(MPI_Sendrecv(words, 10, MPI_INT, next, 1, words + 12, 10, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    WORKS(MPI_T_pvar_stop(session, bytes));
    OK(MPI_Sendrecv(words, 10, MPI_INT, next, 1, words + 12, 10, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    WORKS(MPI_T_pvar_read(session, bytes, values));
    for (int i = 0; i < size; i++)
        CHECK(values[i] == (i == next ? 160 : 0), "%llu bytes to rank %d", values[i], i);
    WORKS(MPI_T_pvar_read(session, messages, values));
    WORKS(MPI_T_pvar_read(session, again, more));
    CHECK(values[next] == 5 && more[next] == 3, "%llu, %llu", values[next], more[next]);
    WORKS(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    WORKS(MPI_T_pvar_read(session, messages, values));
    CHECK(values[next] == 0, "%llu", values[next]);
    CHECK(MPI_T_pvar_readreset(session, messages, values) == MPI_T_ERR_PVAR_NO_ATOMIC, "not refused");
    CHECK(MPI_T_pvar_start(session, posted) == MPI_T_ERR_PVAR_NO_STARTSTOP, "not refused");

    /* Checks the number of bytes that a collective operation sends to each rank. */
    MPI_T_pvar_handle collective = of("mpi_base_matrix_collective_bytes", MPI_T_PVAR_CLASS_AGGREGATE, &world, &count);
    WORKS(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_Bcast(words, 25, MPI_INT, 0, MPI_COMM_WORLD));
    WORKS(MPI_T_pvar_read(session, collective, values));
    for (int i = 0; i < size; i++)
        CHECK(values[i] == (rank == 0 && i != 0 ? 100 : 0), "%llu bytes to rank %d", values[i], i);

    /* A total counts from the start of its handle; messages are counted separately by protocol. */
    static char lots[4 << 20];
    MPI_T_pvar_handle eager = of("pml_ob1_eager_sent", MPI_T_PVAR_CLASS_COUNTER, NULL, &one);
    MPI_T_pvar_handle announced = of("pml_ob1_rendezvous_sent", MPI_T_PVAR_CLASS_COUNTER, NULL, &one);
    MPI_T_pvar_handle total = of("mpi_base_p2p_bytes", MPI_T_PVAR_CLASS_AGGREGATE, NULL, &one);
    unsigned long long announced_before;
    WORKS(MPI_T_pvar_start(session, total));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    WORKS(MPI_T_pvar_read(session, announced, &announced_before));
    WORKS(MPI_T_pvar_start(session, eager));
    MPI_Request both[2];
    OK(MPI_Irecv(lots, 1, MPI_CHAR, before, 11, MPI_COMM_WORLD, &both[0]));
    OK(MPI_Isend(words, 1, MPI_CHAR, next, 11, MPI_COMM_WORLD, &both[1]));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    WORKS(MPI_T_pvar_read(session, eager, &number));
    CHECK(number == 1, "%llu", number);
    OK(MPI_Irecv(lots, sizeof lots / 2, MPI_CHAR, before, 12, MPI_COMM_WORLD, &both[0]));
    OK(MPI_Issend(lots + sizeof lots / 2, sizeof lots / 2, MPI_CHAR, next, 12, MPI_COMM_WORLD, &both[1]));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    WORKS(MPI_T_pvar_read(session, eager, &number));
    CHECK(number == 1, "%llu", number);
    WORKS(MPI_T_pvar_read(session, announced, &number));
    CHECK(number == announced_before + 1, "%llu after %llu", number, announced_before);
    WORKS(MPI_T_pvar_read(session, total, &number));
    CHECK(number == 1 + sizeof lots / 2, "%llu", number);

    /* Checks the variables of windows and files. */
    MPI_Win win;
    MPI_File file;
    char path[64];
    OK(MPI_Win_create(words, sizeof words, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_T_pvar_handle memory = of("osc_base_memory", MPI_T_PVAR_CLASS_SIZE, &win, &one);
    WORKS(MPI_T_pvar_read(session, memory, &number));
    CHECK(number == sizeof words, "%llu", number);
    OK(MPI_Win_free(&win));
    CHECK(MPI_T_pvar_read(session, memory, &number) == MPI_T_ERR_INVALID_HANDLE, "a value of a freed window");
    snprintf(path, sizeof path, "pvars-%d.%d.tmp", size, rank);
    OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    MPI_T_pvar_handle written = of("io_base_bytes_written", MPI_T_PVAR_CLASS_AGGREGATE, &file, &one);
    MPI_T_pvar_handle was_read = of("io_base_bytes_read", MPI_T_PVAR_CLASS_AGGREGATE, &file, &one);
    OK(MPI_File_write_at(file, 0, words, 25, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 40, words, 5, MPI_INT, MPI_STATUS_IGNORE));
    WORKS(MPI_T_pvar_read(session, written, &number));
    CHECK(number == 100, "%llu", number);
    WORKS(MPI_T_pvar_read(session, was_read, &number));
    CHECK(number == 20, "%llu", number);
    OK(MPI_File_close(&file));

    /* After the communicator has been freed, its variables cannot be read. */
    waiting = of("pml_ob1_posted_receives", MPI_T_PVAR_CLASS_LEVEL, &half, &one);
    OK(MPI_Comm_free(&half));
    CHECK(MPI_T_pvar_read(session, waiting, &number) != MPI_SUCCESS, "a value of a freed communicator");

    CHECK(value_of("mpi_base_thread_level", MPI_T_PVAR_CLASS_STATE) == MPI_THREAD_SINGLE, "another level");
    handles();
    waits();
    node_memory();
    arrivals();
    shortage();
    kinds();
    WORKS(MPI_T_pvar_session_free(&session));
    WORKS(MPI_T_finalize());
    return finish("pvars");
}
