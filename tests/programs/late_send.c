/* A barrier must not stop point-to-point progress:
 * a rank with a large pending send enters the barrier before its receiver has got the message. */
#include "check.h"

enum { BYTES = 8 << 20, ROUNDS = 5 };

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    unsigned char *data = malloc(BYTES);
    CHECK(data, "no memory");
    for (int round = 0; round < ROUNDS; round++) {
        /* The even rank sends, the odd rank receives late; a rank without a partner only enters. */
        int partner = rank ^ 1;
        if (partner >= size) {
            OK(MPI_Barrier(MPI_COMM_WORLD));
        } else if (rank % 2 == 0) {
            MPI_Request request;
            fill(data, BYTES, round);
            OK(MPI_Isend(data, BYTES, MPI_BYTE, partner, round, MPI_COMM_WORLD, &request));
            OK(MPI_Barrier(MPI_COMM_WORLD));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            memset(data, 0, BYTES);
            nap(20000);
            OK(MPI_Recv(data, BYTES, MPI_BYTE, partner, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(differs(data, BYTES, round) < 0, "byte %ld differs", differs(data, BYTES, round));
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        /* The nonblocking barrier must give the same guarantee. */
        MPI_Request barrier;
        if (partner >= size) {
            OK(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
            OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
        } else if (rank % 2 == 0) {
            MPI_Request both[2];
            fill(data, BYTES, round + 50);
            OK(MPI_Isend(data, BYTES, MPI_BYTE, partner, round, MPI_COMM_WORLD, &both[0]));
            OK(MPI_Ibarrier(MPI_COMM_WORLD, &both[1]));
            OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        } else {
            OK(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
            nap(5000);
            OK(MPI_Recv(data, BYTES, MPI_BYTE, partner, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(differs(data, BYTES, round + 50) < 0, "byte %ld differs", differs(data, BYTES, round + 50));
            OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
        }
    }
    free(data);
    return finish("late_send");
}
