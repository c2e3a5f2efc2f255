/* Performance variables of a running program: queues of a communicator, and messages and bytes to each of its ranks, as a tool reads them. */
#include "check.h"

#define WORKS(call) CHECK((call) == MPI_SUCCESS, "%s", #call)

static MPI_T_pvar_session session;

/* A handle of a variable on a communicator; also stores the number of its values. */
static MPI_T_pvar_handle of(const char *name, int class, MPI_Comm *comm, int *count)
{
    MPI_T_pvar_handle handle;
    int index;
    WORKS(MPI_T_pvar_get_index(name, class, &index));
    WORKS(MPI_T_pvar_handle_alloc(session, index, comm, &handle, count));
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

    /* The queues of two communicators are apart. */
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
    for (int i = 0; i < 3; i++)
        OK(MPI_Recv(&word, 1, MPI_INT, (me + all - 1) % all, 5, half, MPI_STATUS_IGNORE));
    WORKS(MPI_T_pvar_read(session, unexpected, &number));
    CHECK(number == 0, "%llu", number);

    /* Arrays over ranks count from the start on, each handle for itself. */
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

    /* A collective operation counts by what it brings to whom. */
    MPI_T_pvar_handle collective = of("mpi_base_matrix_collective_bytes", MPI_T_PVAR_CLASS_AGGREGATE, &world, &count);
    WORKS(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_Bcast(words, 25, MPI_INT, 0, MPI_COMM_WORLD));
    WORKS(MPI_T_pvar_read(session, collective, values));
    for (int i = 0; i < size; i++)
        CHECK(values[i] == (rank == 0 && i != 0 ? 100 : 0), "%llu bytes to rank %d", values[i], i);

    /* A communicator that was freed has no values. */
    waits = of("pml_ob1_posted_receives", MPI_T_PVAR_CLASS_LEVEL, &half, &one);
    OK(MPI_Comm_free(&half));
    CHECK(MPI_T_pvar_read(session, waits, &number) != MPI_SUCCESS, "a value of a freed communicator");
    WORKS(MPI_T_pvar_session_free(&session));
    WORKS(MPI_T_finalize());
    return finish("pvars");
}
