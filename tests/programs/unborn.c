/* A rank dies before it calls MPI_Init: unborn RANK MICROSECONDS, started by mpirun --with-ft ulfm. */
#include "survival.h"
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *place = getenv("PMI_RANK");
    if (argc > 2 && place && !strcmp(place, argv[1])) {
        nap(atol(argv[2]));
        die();
    }
    survive(&argc, &argv);
    MPI_Comm living;
    int class = class_of(MPI_Barrier(MPI_COMM_WORLD)), n, me;
    CHECK(class == MPIX_ERR_PROC_FAILED, "a barrier without rank %s gives class %d", argv[1], class);
    OK(MPIX_Comm_shrink(MPI_COMM_WORLD, &living));
    OK(MPI_Comm_size(living, &n));
    OK(MPI_Comm_rank(living, &me));
    CHECK(n == size - 1, "%d of %d ranks are left", n, size);
    OK(MPI_Barrier(living));
    if (me == 0)
        printf("all claims of unborn hold on %d ranks\n", size);
    OK(MPI_Comm_free(&living));
    OK(MPI_Finalize());
    return 0;
}
