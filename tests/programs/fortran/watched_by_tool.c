/* A tool that counts the calls of three functions. */
#include <mpi.h>

static int sends, reductions, waits;

int MPI_Send(const void *buffer, int count, MPI_Datatype datatype, int destination, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buffer, count, datatype, destination, tag, comm);
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    reductions++;
    return PMPI_Allreduce(from, to, count, datatype, op, comm);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    waits++;
    return PMPI_Wait(request, status);
}

int calls_of_send(void);
int calls_of_allreduce(void);
int calls_of_wait(void);

int calls_of_send(void)
{
    return sends;
}

int calls_of_allreduce(void)
{
    return reductions;
}

int calls_of_wait(void)
{
    return waits;
}
