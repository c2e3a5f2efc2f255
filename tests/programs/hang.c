/*
 * Programs that hang, each by one of the common mistakes, so that a report can be made of it.
 *
 *     hang crossed|tag|missing|computes|left|collective
 *
 * Nothing of it ends by itself; run it under a time limit.
 */
#include "check.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "crossed";
    int word = 1;
    begin(&argc, &argv);
    int other = 1 - rank;
    if (!strcmp(way, "crossed"))
        OK(MPI_Ssend(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD));
    if (!strcmp(way, "tag")) {
        if (rank == 0)
            OK(MPI_Ssend(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(&word, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (!strcmp(way, "missing")) {
        if (rank == 0)
            OK(MPI_Ssend(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD));
        else
            OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (!strcmp(way, "computes")) {
        while (rank == 1)
            pause();
        OK(MPI_Recv(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (!strcmp(way, "left")) {
        if (rank == 0)
            OK(MPI_Recv(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MPI_Finalize();
        return 0;
    }
    if (!strcmp(way, "collective")) {
        if (rank == 0)
            OK(MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        else
            OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    return finish("hang");
}
