/* The C functions that completed_by_c.f90 calls. */
#include <mpi.h>

void wait_in_c(int request);

void wait_in_c(int request)
{
    MPI_Request handle = MPI_Request_fromint(request);
    MPI_Wait(&handle, MPI_STATUS_IGNORE);
}
