/* A program that calls only MPI_Init and MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    puts("all claims of begun hold");
    return 0;
}
