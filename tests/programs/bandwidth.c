/* Prints the bandwidth of messages of 16 MiB from rank 0 to rank 1:
 * the median of the given number of messages, after two warm-up messages. */
#include "check.h"

enum { BYTES = 16 << 20, UNCOUNTED = 2 };

static int order(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int count = argc > 1 ? atoi(argv[1]) : 9;
    CHECK(count > 0, "%d messages", count);
    char *data = calloc(1, BYTES);
    double *seconds = calloc((size_t)count, sizeof *seconds);
    CHECK(data != NULL && seconds != NULL, "no memory");
    for (int n = -UNCOUNTED; n < count && rank < 2; n++) {
        double start = MPI_Wtime();
        if (rank == 0) {
            OK(MPI_Send(data, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
            OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Recv(data, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD));
        }
        if (n >= 0)
            seconds[n] = MPI_Wtime() - start;
    }
    if (rank == 0) {
        qsort(seconds, (size_t)count, sizeof *seconds, order);
        printf("bandwidth %.1f MB/s\n", BYTES / seconds[count / 2] / 1e6);
        fflush(stdout);
    }
    free(data);
    free(seconds);
    return finish("bandwidth");
}
