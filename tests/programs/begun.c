/* A program that begins and ends, and calls nothing else. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    puts("all claims of begun hold");
    return 0;
}
