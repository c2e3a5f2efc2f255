/* A token travels around the ring and collects a mark of every rank;
 * then every rank sends a token at the same time. */
#include "check.h"

enum { LAPS = 50 };

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Status status;

    for (int lap = 0; lap < LAPS; lap++) {
        long token = 0;
        if (size == 1)
            break;
        if (rank == 0) {
            token = lap;
            OK(MPI_Send(&token, 1, MPI_LONG, next, lap, MPI_COMM_WORLD));
            OK(MPI_Recv(&token, 1, MPI_LONG, before, lap, MPI_COMM_WORLD, &status));
            CHECK(token == lap + (long)size * (size - 1) / 2, "lap %d came home as %ld", lap, token);
        } else {
            OK(MPI_Recv(&token, 1, MPI_LONG, before, lap, MPI_COMM_WORLD, &status));
            CHECK(status.MPI_SOURCE == before && status.MPI_TAG == lap, "from %d, tag %d", status.MPI_SOURCE, status.MPI_TAG);
            token += rank;
            OK(MPI_Send(&token, 1, MPI_LONG, next, lap, MPI_COMM_WORLD));
        }
    }
    /* All tokens are in flight at the same time. */
    int mine = rank, token = rank;
    for (int step = 0; step < size; step++) {
        OK(MPI_Sendrecv(&mine, 1, MPI_INT, next, 7, &token, 1, MPI_INT, before, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        mine = token;
    }
    CHECK(token == rank, "my token is %d", token);
    for (int step = 0; step < size; step++)
        OK(MPI_Sendrecv_replace(&token, 1, MPI_INT, next, 8, before, 8, MPI_COMM_WORLD, &status));
    CHECK(token == rank, "after replacing, my token is %d", token);
    return finish("ring");
}
