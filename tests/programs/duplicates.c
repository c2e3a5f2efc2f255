/*
 * Barriers on the world, on its duplicates, and on other communicators.
 *
 * These communicators have all processes in world order, with this number of barriers:
 * MPI_COMM_WORLD (5, and 1 in finish()), a duplicate (5), a duplicate of the duplicate (5).
 * The other communicators have fewer processes or another order.
 */
#include "check.h"

enum { TIMES = 5 };

static void barriers(MPI_Comm comm)
{
    for (int i = 0; i < TIMES; i++)
        OK(MPI_Barrier(comm));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm first, second, half, turned;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &first));
    OK(MPI_Comm_dup(first, &second));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &half));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned));

    /* The first barrier is on a duplicate, so it initialises the hardware. */
    barriers(second);
    barriers(MPI_COMM_WORLD);
    barriers(half);
    barriers(turned);
    OK(MPI_Comm_free(&second));
    barriers(first);

    OK(MPI_Comm_free(&first));
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&turned));
    return finish("duplicates");
}
