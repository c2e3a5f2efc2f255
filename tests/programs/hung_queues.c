/* A job that hangs with an entry in each of its message queues, for a debugger to show.
 * Every rank prints "ready PID" and then waits until it is killed. */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv)
{
    static char lots[1 << 20];
    int word = 0, data[10];
    MPI_Comm pair, unread[2];
    MPI_Request requests[3];

    begin_at_level(&argc, &argv);
    CHECK(size == 2, "%d ranks", size);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &pair));
    OK(MPI_Comm_set_name(pair, "backwards"));
    /* With several lanes, consecutive communicators have different lanes. */
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_dup(pair, &unread[i]));
        OK(MPI_Comm_set_name(unread[i], i ? "second" : "first"));
        if (rank == 1)
            OK(MPI_Send(&word, 1, MPI_INT, 1, 34, unread[i]));
        else
            OK(MPI_Probe(0, 34, unread[i], MPI_STATUS_IGNORE));
    }
    if (rank == 1) {
        OK(MPI_Send(&word, 1, MPI_INT, 0, 30, MPI_COMM_WORLD));
        OK(MPI_Send(&word, 1, MPI_INT, 0, 31, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(&word, 1, MPI_INT, 1, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Irecv(data, 10, MPI_INT, 1, 32, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Irecv(data, 5, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, pair, &requests[1]));
        OK(MPI_Issend(lots, sizeof lots, MPI_CHAR, 1, 33, MPI_COMM_WORLD, &requests[2]));
    }
    printf("ready %d\n", (int)getpid());
    if (rank == 0)
        printf("rank 0 is %d\n", (int)getpid());
    fflush(stdout);
    if (rank == 0)
        OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Recv(&word, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return 1;
}
