/* A fatal error ends the job with a message that names sender and receiver.
 * The last rank receives from rank 0 into a buffer that is too small.
 * With an argument, the receive's request is freed, so the error is only detected in MPI_Finalize. */
#include "check.h"

int main(int argc, char **argv)
{
    int data[100] = {0};
    begin(&argc, &argv);
    int last = size - 1;
    if (rank == last && argc > 1) {
        MPI_Request request;
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        OK(MPI_Irecv(data, 10, MPI_INT, 0, 7, MPI_COMM_WORLD, &request));
        OK(MPI_Request_free(&request));
    }
    if (rank == 0)
        OK(MPI_Send(data, 100, MPI_INT, last, 7, MPI_COMM_WORLD));
    if (rank == last && argc == 1)
        OK(MPI_Recv(data, 10, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return finish("fatal");
}
