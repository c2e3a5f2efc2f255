/*
 * A typical profiler: a library for LD_PRELOAD that counts the messages a rank sends and prints the number at the end.
 *
 * It calls the library by the standard's profiling names.
 */
#include <mpi.h>
#include <stdio.h>

static int sent;

int MPI_Send(const void *data, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    sent++;
    return PMPI_Send(data, count, datatype, dest, tag, comm);
}

int MPI_Finalize(void)
{
    fprintf(stderr, "profiler: %d messages\n", sent);
    return PMPI_Finalize();
}
