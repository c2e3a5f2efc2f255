/* Performance variables as a tool reads them in a running program.
 * The variables are queues of a communicator, and messages and bytes to each of its ranks. */
#include "check.h"

#define WORKS(call) CHECK((call) == MPI_SUCCESS, "%s", #call)

static MPI_T_pvar_session session;

/* Returns a handle of a variable on an object; also stores the number of its values. */
static MPI_T_pvar_handle of(const char *name, int class, void *object, int *count)
{
    MPI_T_pvar_handle handle;
    int index;
    WORKS(MPI_T_pvar_get_index(name, class, &index));
    WORKS(MPI_T_pvar_handle_alloc(session, index, object, &handle, count));
    return handle;
}

int main(int argc, char **argv)
{
    unsigned long long values[64], more[64], number;
    int provided, count, one, word = 0, words[25] = {0};
    MPI_Comm half;
    MPI_Request request;
    MPI_T_pvar_handle posted, unexpected, bytes, messages, again, waits;

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
    waits = of("pml_ob1_unexpected_comm_bytes", MPI_T_PVAR_CLASS_LEVEL, &half, &one);
    WORKS(MPI_T_pvar_read(session, waits, &number));
    CHECK(number == 12, "%llu", number);
    for (int i = 0; i < 3; i++)
        OK(MPI_Recv(&word, 1, MPI_INT, (me + all - 1) % all, 5, half, MPI_STATUS_IGNORE));
    WORKS(MPI_T_pvar_read(session, unexpected, &number));
    CHECK(number == 0, "%llu", number);

    /* Arrays over ranks count from a handle's start; each handle counts separately. */
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

    /* A collective operation counts the bytes that it sends to each rank. */
    MPI_T_pvar_handle collective = of("mpi_base_matrix_collective_bytes", MPI_T_PVAR_CLASS_AGGREGATE, &world, &count);
    WORKS(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_Bcast(words, 25, MPI_INT, 0, MPI_COMM_WORLD));
    WORKS(MPI_T_pvar_read(session, collective, values));
    for (int i = 0; i < size; i++)
        CHECK(values[i] == (rank == 0 && i != 0 ? 100 : 0), "%llu bytes to rank %d", values[i], i);

    /* Totals count from the start; messages are counted by protocol. */
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

    /* Variables of windows and files. */
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

    /* The variables of a freed communicator have no values. */
    waits = of("pml_ob1_posted_receives", MPI_T_PVAR_CLASS_LEVEL, &half, &one);
    OK(MPI_Comm_free(&half));
    CHECK(MPI_T_pvar_read(session, waits, &number) != MPI_SUCCESS, "a value of a freed communicator");
    WORKS(MPI_T_pvar_session_free(&session));
    WORKS(MPI_T_finalize());
    return finish("pvars");
}
