/* Prints without flushing; for the test of `mpirun --stream-buffering`. */
#include "check.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    printf("a line\nand a beginning");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    /* _exit ends the process without the C library's final flush. */
    _exit(0);
}
