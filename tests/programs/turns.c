/* Results that each rank gets from a window of rank 0 and that depend on timing: locks, fetches,
 * gets under a shared lock, and a test of an epoch. Every rank prints its results in one line. */
#include "check.h"

static char line[4096] = "seen";

static void saw(long value)
{
    size_t end = strlen(line);
    snprintf(line + end, sizeof line - end, " %ld", value);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Win win;
    long *base, one = 1, old;
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_fence(0, win));
    memset(base, 0, 64);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    srand((unsigned)now() + rank);
    for (int i = 0; i < 15; i++) {
        nap(rand() % 300);
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(&old, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
        OK(MPI_Win_flush(0, win));
        saw(old);
        long mine = 100 * rank + i;
        OK(MPI_Put(&mine, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < 15; i++) {
        nap(rand() % 300);
        OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 1, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        saw(old);
        OK(MPI_Get(&old, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win));
        OK(MPI_Win_flush(0, win));
        saw(old);
    }
    OK(MPI_Win_unlock_all(win));
    /* Counts the calls of MPI_Win_test until the epoch is complete. */
    MPI_Group world, first;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, (int[]){0}, &first));
    if (rank == 0) {
        int over = 0, times = 0;
        OK(MPI_Win_post(world, 0, win));
        OK(MPI_Win_start(first, 0, win));
        OK(MPI_Win_complete(win));
        for (; !over; times++)
            OK(MPI_Win_test(win, &over));
        saw(times);
    } else {
        nap(rand() % 3000);
        OK(MPI_Win_start(first, 0, win));
        OK(MPI_Win_complete(win));
    }
    OK(MPI_Group_free(&first));
    OK(MPI_Group_free(&world));
    OK(MPI_Win_free(&win));
    for (int r = 0; r < size; r++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (r == rank)
            printf("%d %s\n", rank, line), fflush(stdout);
    }
    return finish("turns");
}
