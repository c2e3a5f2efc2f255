/*
 * Rank 1 writes random data into the memory that it shares with the other ranks.
 * The other ranks exchange messages of every protocol until the job is ended.
 * While rank 1 waits in a call, a timer continues the writes.
 * So the job ends even if a corrupted message is lost.
 *
 *     hostile SEED
 */
#include "check.h"

#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

enum { LONG = 1 << 20 };

static uint64_t state;

static uint64_t next(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns the message rings in the node's shared memory, which begins with a page for the node
 * and a page for each rank. */
static uint64_t *rings(size_t *words)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t begin = 0, end = 0, from, to;
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "portcullis-node") && sscanf(line, "%lx-%lx", &from, &to) == 2 && to - from > end - begin)
            begin = from, end = to;
    fclose(maps);
    CHECK(end > begin, "there is no shared memory");
    size_t head = 4096 * (1 + (size_t)size);
    /* There is a ring of about 1 MiB for each ordered pair of ranks. */
    size_t bytes = (size_t)size * size * ((1 << 20) + 256 * 64);
    *words = bytes / 8;
    return (uint64_t *)(begin + head);
}

static uint64_t *shared;
static size_t words;

static void spoil(int signal)
{
    (void)signal;
    for (int i = 0; i < 200; i++)
        shared[next() % words] = next();
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    shared = rings(&words);
    char *to = calloc(1, LONG), *from = calloc(1, LONG);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 0;; round++) {
        int bytes = (int[]){8, 300, 4096, 20000, 100000, LONG}[round % 6];
        if (rank == 1 && round == 20) {
            sigaction(SIGALRM, &(struct sigaction){.sa_handler = spoil, .sa_flags = SA_RESTART}, NULL);
            struct timeval often = {0, 2000};
            setitimer(ITIMER_REAL, &(struct itimerval){often, often}, NULL);
        }
        OK(MPI_Sendrecv(to, bytes, MPI_CHAR, (rank + 1) % size, 1, from, bytes, MPI_CHAR, (rank + size - 1) % size, 1,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}
