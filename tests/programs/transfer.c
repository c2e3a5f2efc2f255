/* Large messages from rank 0 to rank 1 for the given number of seconds; every word is checked.
 * Rank 1 prints "ready PID" after the first message, so that a test can pull a cable. */
#include "check.h"
#include <stdint.h>
#include <unistd.h>

enum { WORDS = (64 << 20) / 8 };

static uint64_t word(long round, long i)
{
    return (uint64_t)(round + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t)i * 0xbf58476d1ce4e5b9u;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    uint64_t *data = malloc(sizeof *data * WORDS);
    CHECK(data != NULL, "no memory");
    double start = MPI_Wtime();
    int more = 1;

    for (long round = 0; rank < 2 && more; round++) {
        if (rank == 0) {
            for (long i = 0; i < WORDS; i++)
                data[i] = word(round, i);
            OK(MPI_Send(data, WORDS, MPI_UINT64_T, 1, 1, MPI_COMM_WORLD));
            more = MPI_Wtime() - start < seconds;
            OK(MPI_Send(&more, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
        } else {
            OK(MPI_Recv(data, WORDS, MPI_UINT64_T, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (long i = 0; i < WORDS; i++)
                CHECK(data[i] == word(round, i), "word %ld of round %ld is %llx", i, round, (unsigned long long)data[i]);
            OK(MPI_Recv(&more, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (round == 0) {
                printf("ready %d\n", (int)getpid());
                fflush(stdout);
            }
        }
    }
    free(data);
    return finish("transfer");
}
