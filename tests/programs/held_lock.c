/* Deadlocks for the hang report. Rank 1 locks rank 0's window and waits for a message of rank 2.
 * Rank 2 never sends it, because rank 2 waits for the lock.
 * With "computes", rank 1 makes no MPI calls instead. With "post", rank 2 waits for rank 1's MPI_Win_post.
 * With "complete", rank 2 waits until rank 1 has completed its accesses. */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Win win;
    long *base;
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_name(win, "board"));
    int word = 0, one = 1, two = 2;
    const char *how = argc > 1 ? argv[1] : "";
    MPI_Group world, first, second;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &one, &first));
    OK(MPI_Group_incl(world, 1, &two, &second));
    if (!strcmp(how, "post") || !strcmp(how, "complete")) {
        int exposes = !strcmp(how, "complete");
        if (rank == 1 && exposes)
            OK(MPI_Win_start(second, 0, win));
        if (rank == 2 && exposes)
            OK(MPI_Win_post(first, 0, win));
        if (rank == 1)
            nap(100000000);
        if (rank == 2 && exposes)
            OK(MPI_Win_wait(win));
        else if (rank == 2)
            OK(MPI_Win_start(first, 0, win));
    } else if (rank == 1) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (!strcmp(how, "computes"))
            nap(100000000);
        OK(MPI_Recv(&word, 1, MPI_INT, 2, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Win_unlock(0, win));
    } else {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 2) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
            OK(MPI_Win_unlock(0, win));
            OK(MPI_Send(&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD));
        }
    }
    OK(MPI_Win_free(&win));
    return finish("held_lock");
}
