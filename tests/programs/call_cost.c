/* Benchmark on one process: MPI_Comm_rank, and a receive, a send and their waits.
 * Prints medians of many repetitions. Compiled by another library's compiler, it measures that
 * library; compiled by mpicc and run by `mpirun --on`, it measures the translation (docs/compat.md). */
#include "check.h"

#define RUNS 201
#define SIMPLE 20000
#define MESSAGES 5000

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times)
{
    qsort(times, RUNS, sizeof *times, order);
    return times[RUNS / 2];
}

int main(int argc, char **argv)
{
    static double simple[RUNS], message[RUNS];
    int in = 0, out = 1;
    begin(&argc, &argv);
    for (int run = 0; run < RUNS; run++) {
        long long start = now();
        for (int i = 0; i < SIMPLE; i++)
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        simple[run] = (double)(now() - start) / SIMPLE;
        start = now();
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Request requests[2];
            MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]);
            MPI_Isend(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        message[run] = (double)(now() - start) / MESSAGES;
    }
    CHECK(in == out, "%d came", in);
    double call = median(simple), whole = median(message);
    printf("a simple call %.1f ns (best %.1f), a message %.1f ns (best %.1f)\n", call, simple[0], whole, message[0]);
    return finish("call_cost");
}
