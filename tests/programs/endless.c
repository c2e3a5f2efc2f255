/*
 * An endless sequence of messages of every protocol and of collectives, until the job is killed.
 *
 * Each rank prints "ready PID" before MPI_Init.
 */
#include "check.h"

#include <unistd.h>

enum { LONG = 1 << 20 };

int main(int argc, char **argv)
{
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    begin(&argc, &argv);
    char *to = malloc(LONG), *from = malloc(LONG);
    CHECK(to && from, "no memory");
    memset(to, rank, LONG);
    for (int round = 0;; round++) {
        int bytes = (int[]){8, 4096, 100000, LONG}[round % 4], sum = rank;
        OK(MPI_Sendrecv(to, bytes, MPI_CHAR, (rank + 1) % size, 1, from, bytes, MPI_CHAR, (rank + size - 1) % size, 1,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    }
}
