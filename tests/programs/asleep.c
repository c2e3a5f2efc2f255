/* A rank that waits for a long time must sleep. While rank 0 makes no MPI call for 300 ms,
 * the other ranks wait for it in several ways and use less than a third of that time as CPU time.
 * */
#include "check.h"
#include <sys/resource.h>

enum { LONG = 64 << 20, SHORT = 32 << 10, MANY = 2 * LONG / SHORT };

static double used(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage failed");
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Rank 0 pauses for 300 ms without MPI calls. */
static void dream(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
}

static double since, before;

static void waits(void)
{
    since = MPI_Wtime();
    before = used();
}

static double passed(void)
{
    return MPI_Wtime() - since;
}

static void has_waited(const char *where)
{
    double busy = used() - before, wall = passed();
    CHECK(wall > 0.2, "%s: waited only %g s", where, wall);
    CHECK(busy < wall / 3, "%s: %g s of %g were spent awake", where, busy, wall);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    char *data = calloc(LONG, 1);
    int last = size - 1, word = rank, done = 0;
    MPI_Request request;
    CHECK(data && size > 1, "needs two ranks or more, and memory");
    /* All connections are made here, so that later no rank must respond to a connect. */
    OK(MPI_Alltoall(data, 1, MPI_CHAR, data + size, 1, MPI_CHAR, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));

    if (rank == 0) {
        dream();
        for (int peer = 1; peer < size; peer++)
            OK(MPI_Send(&word, 1, MPI_INT, peer, 1, MPI_COMM_WORLD));
    } else {
        waits();
        OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        has_waited("a receive");
    }

    if (rank == 0)
        dream();
    waits();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank > 0)
        has_waited("a barrier");

    if (rank == 0) {
        dream();
        OK(MPI_Recv(data, LONG, MPI_CHAR, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (rank == last) {
        waits();
        OK(MPI_Send(data, LONG, MPI_CHAR, 0, 2, MPI_COMM_WORLD));
        has_waited("a send without a receive yet");
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));

    /* Rank 0 receives the beginning of the message, and then pauses. */
    if (rank == 0) {
        OK(MPI_Irecv(data, LONG, MPI_CHAR, last, 3, MPI_COMM_WORLD, &request));
        for (double start = MPI_Wtime(); !done && MPI_Wtime() - start < 0.003;)
            OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        dream();
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (rank == last) {
        waits();
        OK(MPI_Send(data, LONG, MPI_CHAR, 0, 3, MPI_COMM_WORLD));
        /* A sender that can write directly to the receiver's memory does not wait for the receiver. */
        if (passed() > 0.2)
            has_waited("a send of which a part is received");
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));

    if (rank == 0) {
        dream();
        for (int i = 0; i < MANY; i++)
            OK(MPI_Recv(data, SHORT, MPI_CHAR, last, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (rank == last) {
        waits();
        for (int i = 0; i < MANY; i++)
            OK(MPI_Send(data, SHORT, MPI_CHAR, 0, 4, MPI_COMM_WORLD));
        has_waited("a send behind more than there is room for");
    }
    free(data);
    return finish("asleep");
}
