/* A known number of messages and bytes of each kind, for `mpirun --matrix`. */
#include "check.h"

int main(int argc, char **argv)
{
    int words[64] = {0}, *memory, next;
    MPI_Win win;
    begin(&argc, &argv);
    next = (rank + 1) % size;
    /* Three messages of 40 bytes to the next rank. */
    for (int i = 0; i < 3; i++)
        OK(MPI_Sendrecv(words, 10, MPI_INT, next, 1, words + 32, 10, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    /* A broadcast of 100 bytes from rank 1, and a reduction to rank 0 with 4 bytes from each rank. */
    OK(MPI_Bcast(words, 25, MPI_INT, 1, MPI_COMM_WORLD));
    OK(MPI_Reduce(words, words + 32, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_fence(0, win));
    if (rank == 0) {
        /* Rank 0 writes 8 bytes to rank 2 and reads 16 from rank 1. */
        OK(MPI_Put(words, 2, MPI_INT, 2, 0, 2, MPI_INT, win));
        OK(MPI_Get(words, 4, MPI_INT, 1, 0, 4, MPI_INT, win));
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}
