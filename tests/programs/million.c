/* More than a million active requests: receives, all posted before any message arrives. */
#include "check.h"

enum { COUNT = 1300000 };

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Request *requests = malloc(COUNT * sizeof *requests);
    int *values = malloc(COUNT * sizeof *values);
    CHECK(requests && values, "no memory");
    if (rank == 0) {
        for (int i = 0; i < COUNT; i++)
            OK(MPI_Irecv(&values[i], 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[i]));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < COUNT; i++)
            CHECK(values[i] == i && requests[i] == MPI_REQUEST_NULL, "request %d brought %d", i, values[i]);
    } else {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; rank == 1 && i < COUNT; i++)
            OK(MPI_Send(&i, 1, MPI_INT, 0, 7, MPI_COMM_WORLD));
    }
    free(requests);
    free(values);
    return finish("million");
}
