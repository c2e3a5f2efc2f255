/* A program for traces: its windows have names, and accesses have targets and displacements.
 * The report at the end must list the windows that were not freed; one of them is still locked. */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Win board, other, third;
    long *base, value = 7;
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &board));
    OK(MPI_Win_set_name(board, "board"));
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &other));
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &third));
    int last = size - 1;
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, last, 0, board));
        OK(MPI_Put(&value, 1, MPI_LONG, last, 3, 1, MPI_LONG, board));
        OK(MPI_Win_flush(last, board));
        OK(MPI_Win_unlock(last, board));
    }
    if (rank == last)
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, other));
    OK(MPI_Win_free(&third));
    return finish("left_windows");
}
