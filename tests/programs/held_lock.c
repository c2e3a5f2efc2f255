/* A mistake to be explained: rank 1 locks rank 0's window and goes away to wait for a message that rank 2 never sends, while rank 2 waits for the lock. */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Win win;
    long *base;
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_name(win, "board"));
    int word = 0;
    if (rank == 1) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
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
