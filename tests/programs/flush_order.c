/* A put with its flush comes before the get that follows it (Dekker): of two ranks that put a flag each and then get the other one's, one sees it. */
#include "check.h"

enum { ROUNDS = 3000 };

int main(int argc, char **argv)
{
    MPI_Win win;
    long *flags, seen, sum = 0, one = 1;
    begin(&argc, &argv);
    CHECK(size == 2, "%d ranks", size);
    OK(MPI_Win_allocate(rank == 0 ? 2 * ROUNDS * sizeof one : 0, sizeof one, MPI_INFO_NULL, MPI_COMM_WORLD, &flags, &win));
    for (int i = 0; rank == 0 && i < 2 * ROUNDS; i++)
        flags[i] = 0;
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Put(&one, 1, MPI_LONG, 0, 2 * i + rank, 1, MPI_LONG, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Get(&seen, 1, MPI_LONG, 0, 2 * i + 1 - rank, 1, MPI_LONG, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Allreduce(&seen, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
        CHECK(sum > 0, "round %d: neither rank has seen the other one's flag", i);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    announce("flush_order");
    OK(MPI_Finalize());
    return 0;
}
