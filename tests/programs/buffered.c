/* Prints without flushing, to test output forwarding with `mpirun --stream-buffering`. */
#include "check.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    printf("a line\nand a beginning");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    /* The process ends without the final flush of the C library. */
    _exit(0);
}
