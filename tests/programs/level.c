/* Requests MPI_THREAD_MULTIPLE and prints the provided level. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int provided, asked;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Query_thread(&asked);
    const char *name = provided == MPI_THREAD_MULTIPLE     ? "multiple"
                       : provided == MPI_THREAD_SERIALIZED ? "serialized"
                                                           : "less";
    printf("provided %s\n", provided == asked ? name : "two things");
    return MPI_Finalize();
}
