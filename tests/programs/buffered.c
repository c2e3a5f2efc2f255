/* Prints without flushing, to test whether the output is forwarded: `mpirun --stream-buffering`. */
#include "check.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    printf("a line\nand a beginning");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    /* Ends without the C library's last flush. */
    _exit(0);
}
