/*
 * A typical profiling tool: an LD_PRELOAD library that counts and prints the number of messages that a rank sends.
 *
 * The tool calls the library by the profiling names (PMPI_).
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
