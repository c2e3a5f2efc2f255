/*
 * Many timed barriers; checks that no rank leaves before all ranks have entered.
 *
 *     barrier_loop [BARRIERS [MAXIMUM_RANDOM_DELAY_MICROSECONDS]]
 *
 * All ranks must be on one machine: enter and leave times are compared on its monotonic clock.
 * The last lines of output are the number of barriers, and the median and maximum time of a barrier,
 * measured from one exit of a rank to its next exit.
 */
#include "check.h"

static int ascending(const void *a, const void *b)
{
    long long x = *(const long long *)a, y = *(const long long *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int barriers = argc > 1 ? atoi(argv[1]) : 1000;
    long delay = argc > 2 ? atol(argv[2]) : 0;
    begin(&argc, &argv);
    CHECK(barriers > 0, "%d barriers", barriers);

    long long *enter = calloc(barriers, sizeof *enter), *leave = calloc(barriers, sizeof *leave);
    long long *last_enter = calloc(barriers, sizeof *enter), *first_leave = calloc(barriers, sizeof *leave);
    long long *period = calloc(barriers, sizeof *period);
    long long *all = rank == 0 ? calloc((size_t)barriers * size, sizeof *all) : NULL;
    CHECK(enter && leave && last_enter && first_leave && period && (all || rank), "no memory");
    unsigned seed = 12345u + 7919u * (unsigned)rank;

    OK(MPI_Barrier(MPI_COMM_WORLD));
    long long previous = now();
    for (int i = 0; i < barriers; i++) {
        if (delay > 0)
            nap(rand_r(&seed) % delay);
        enter[i] = now();
        OK(MPI_Barrier(MPI_COMM_WORLD));
        leave[i] = now();
        period[i] = leave[i] - previous;
        previous = leave[i];
    }
    OK(MPI_Allreduce(enter, last_enter, barriers, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD));
    OK(MPI_Allreduce(leave, first_leave, barriers, MPI_LONG_LONG, MPI_MIN, MPI_COMM_WORLD));
    for (int i = 0; i < barriers; i++)
        CHECK(last_enter[i] <= first_leave[i], "barrier %d: a rank left %lld ns before the last had entered",
              i, last_enter[i] - first_leave[i]);

    OK(MPI_Gather(period, barriers, MPI_LONG_LONG, all, barriers, MPI_LONG_LONG, 0, MPI_COMM_WORLD));
    if (rank == 0) {
        size_t n = (size_t)barriers * size;
        qsort(all, n, sizeof *all, ascending);
        /* The count includes one barrier before the loop and one in finish(). */
        printf("barriers %d\n", barriers + 2);
        printf("median %.3f us\n", all[n / 2] / 1e3);
        printf("worst %.3f us\n", all[n - 1] / 1e3);
    }
    free(enter); free(leave); free(last_enter); free(first_leave); free(period); free(all);
    return finish("barrier_loop");
}
