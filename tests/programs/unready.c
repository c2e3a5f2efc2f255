/* Each member uses a new window immediately, while other members may still be creating it.
 * Usage: unready WINDOWS, the number of windows. */
#include "check.h"

int main(int argc, char **argv)
{
    static int mine[1000], read[1000];
    begin(&argc, &argv);
    int windows = argc > 1 ? atoi(argv[1]) : 100, next = (rank + 1) % size;
    for (int i = 0; i < windows; i++) {
        MPI_Win win;
        int one = 1, old = -1;
        for (int k = 0; k < 1000; k++)
            mine[k] = rank + i + k;
        mine[999] = 0;
        OK(MPI_Win_create(mine, sizeof mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        switch (i % 3) {
        case 0:
            OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
            OK(MPI_Get(read, 999, MPI_INT, next, 0, 999, MPI_INT, win));
            OK(MPI_Fetch_and_op(&one, &old, MPI_INT, next, 999, MPI_SUM, win));
            OK(MPI_Win_unlock(next, win));
            break;
        case 1:
            OK(MPI_Win_lock_all(0, win));
            OK(MPI_Get(read, 999, MPI_INT, next, 0, 999, MPI_INT, win));
            OK(MPI_Fetch_and_op(&one, &old, MPI_INT, next, 999, MPI_SUM, win));
            OK(MPI_Win_unlock_all(win));
            break;
        default:
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
            OK(MPI_Put(&one, 1, MPI_INT, next, 999, 1, MPI_INT, win));
            OK(MPI_Get(read, 999, MPI_INT, next, 0, 999, MPI_INT, win));
            OK(MPI_Win_unlock(next, win));
            old = 0;
        }
        for (int k = 0; k < 999; k++)
            CHECK(read[k] == next + i + k, "window %d, element %d: %d", i, k, read[k]);
        CHECK(old == 0, "window %d: %d was there", i, old);
        OK(MPI_Win_free(&win));
        CHECK(mine[999] == 1, "window %d: %d", i, mine[999]);
    }
    return finish("unready");
}
