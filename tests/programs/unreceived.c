/* Messages that are never received: rank 0 sends to the last rank, which receives one message. */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Comm halo;
    MPI_Request request;
    MPI_Status status;
    int value = 7, flag;
    static char large[100000];

    begin_at_level(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &halo));
    OK(MPI_Comm_set_name(halo, "halo"));
    int last = size - 1;
    if (rank == 0) {
        OK(MPI_Send(&value, 1, MPI_INT, last, 4, MPI_COMM_WORLD));
        for (int i = 0; i < 3; i++)
            OK(MPI_Send(&value, 1, MPI_INT, last, 5, MPI_COMM_WORLD));
        OK(MPI_Send(&value, 0, MPI_INT, last, 6, halo));
        /* A cancelled message is not counted. */
        OK(MPI_Issend(large, sizeof large, MPI_BYTE, last, 9, MPI_COMM_WORLD, &request));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag, "the send was not cancelled");
    }
    if (rank == last)
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return finish("unreceived");
}
