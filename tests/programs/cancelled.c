/*
 * Rank 0 cancels a receive. Rank 1 sends the message before the cancel ("cancelled") or after it ("cancelled late").
 */
#include "check.h"

int main(int argc, char **argv)
{
    enum { GO = 6, DATA = 7 };
    int late = argc > 1 && !strcmp(argv[1], "late");
    begin(&argc, &argv);
    if (rank == 1) {
        int tags[] = {late ? GO : DATA, late ? DATA : GO};
        for (int i = 0; i < 2; i++) {
            OK(MPI_Send(&tags[i], 1, MPI_INT, 0, tags[i], MPI_COMM_WORLD));
            nap(late ? 300000 : 0);
        }
    }
    if (rank == 0) {
        int data = 0, go = 0, flag;
        MPI_Request request;
        MPI_Status status;
        OK(MPI_Irecv(&data, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, &request));
        OK(MPI_Recv(&go, 1, MPI_INT, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        if (flag)
            OK(MPI_Recv(&data, 1, MPI_INT, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(data == DATA && go == GO, "%d and %d came", data, go);
        printf("seen cancelled %d\n", flag);
    }
    return finish("cancelled");
}
