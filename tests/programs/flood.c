/* A flood of eager messages from rank 0 to rank 1; the second argument is the number of messages.
 * Rank 1 waits without receiving until its memory stops growing, and then receives all messages.
 * The first argument is the allowed growth of rank 1's memory, in KiB. */
#include "check.h"

/* Returns the peak memory of this process, in KiB. */
static long peak(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (status)
        fclose(status);
    CHECK(kib > 0, "no VmHWM in /proc/self/status");
    return kib;
}

/* Makes progress without a receive until the peak has not changed for half a second. */
static void look_elsewhere(void)
{
    long before = 0;
    double since = MPI_Wtime();
    while (MPI_Wtime() - since < 0.5) {
        int found;
        for (int i = 0; i < 1000; i++) {
            OK(MPI_Iprobe(0, 2, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
            CHECK(!found, "a message that no rank sent");
        }
        if (peak() > before) {
            before = peak();
            since = MPI_Wtime();
        }
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size == 2 && argc == 3, "needs two ranks, a bound in KiB and a count");
    long bound = atol(argv[1]), count = atol(argv[2]), word = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        for (long i = 0; i < count; i++)
            OK(MPI_Send(&i, 1, MPI_LONG, 1, 1, MPI_COMM_WORLD));
    } else {
        long before = peak();
        look_elsewhere();
        for (long i = 0; i < count; i++) {
            OK(MPI_Recv(&word, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(word == i, "message %ld brought %ld", i, word);
        }
        long grown = peak() - before;
        CHECK(grown < bound, "it grew by %ld KiB, allowed are %ld", grown, bound);
    }
    return finish("flood");
}
