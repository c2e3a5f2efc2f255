/* A target that computes without MPI calls still receives puts.
 * On one node the origin accesses the target's memory;
 * otherwise a thread of the target handles messages (osc_am_progress_thread).
 * The argument chooses the kind of window. */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int creates = argc > 1 && strcmp(argv[1], "create") == 0;
    volatile long *base;
    void *memory = NULL;
    MPI_Win win;
    if (creates) {
        base = memory = calloc(4, sizeof(long));
        OK(MPI_Win_create(memory, 4 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&base, &win));
        for (int i = 0; i < 4; i++)
            base[i] = 0;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        long one = 1, old = -1, none = 0;
        for (int to = 1; to < size; to++) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));
            OK(MPI_Accumulate(&one, 1, MPI_LONG, to, 1, 1, MPI_LONG, MPI_SUM, win));
            OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, to, 1, MPI_SUM, win));
            OK(MPI_Compare_and_swap(&one, &none, &old, MPI_LONG, to, 2, win));
            OK(MPI_Win_flush(to, win));
            OK(MPI_Put(&one, 1, MPI_LONG, to, 0, 1, MPI_LONG, win));
            OK(MPI_Win_unlock(to, win));
            CHECK(old == 0, "%ld", old);
        }
    } else {
        /* The target makes no MPI call until the data have arrived. */
        while (base[0] == 0) {
            struct timespec moment = {0, 100000};
            nanosleep(&moment, NULL);
        }
        __sync_synchronize();
        CHECK(base[1] == 2 && base[2] == 1, "%ld and %ld", base[1], base[2]);
    }
    OK(MPI_Win_free(&win));
    free(memory);
    return finish("busy_target");
}
