/* Tests of windows on memory that the program allocated: by malloc, on the stack, static,
 * as shared mappings and as read-only mappings.
 * Each rank puts to, accumulates to and gets from each other rank's memory.
 * All access methods of the library are used.
 * After memory was detached, freed, reallocated and attached again, its new contents are accessed.
 * If a target forks, the parent's memory is accessed.
 * A number as argument is the number of accesses to each window.
 * With "dies" and kill, segv, exit or abort, rank 1 ends in that way,
 * while the other ranks access its memory. */
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 6000, PAGE = 4096 };

/* The number of accesses to each window, and the number of times that memory is attached. */
static int times = 200, rounds = 20;

static long in_static[WORDS];

/* Each rank adds to a counter on every rank, and puts to and gets from its own slot there. */
static void use(MPI_Win win, const long *mine, const MPI_Aint *at, int unit)
{
    MPI_Aint middle = 2500, last = WORDS - 1;
    long one = 1, old;
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < times; i++)
        for (int target = 0; target < size; target++) {
            MPI_Aint counter = at[target] + middle * unit;
            OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, target, counter, MPI_SUM, win));
            long value = 1000 * rank + i, back = -1;
            OK(MPI_Put(&value, 1, MPI_LONG, target, at[target] + rank * unit, 1, MPI_LONG, win));
            OK(MPI_Win_flush(target, win));
            CHECK(old >= 0 && old < (long)size * times, "%ld at rank %d", old, target);
            OK(MPI_Get(&back, 1, MPI_LONG, target, at[target] + rank * unit, 1, MPI_LONG, win));
            OK(MPI_Win_flush(target, win));
            CHECK(back == value, "rank %d has %ld, not %ld", target, back, value);
            /* Adds to a two-byte element and to an eight-byte element. */
            short two = 1;
            OK(MPI_Accumulate(&two, 1, MPI_SHORT, target, at[target] + (last - 1) * unit, 1, MPI_SHORT, MPI_SUM, win));
            OK(MPI_Accumulate(&one, 1, MPI_LONG, target, at[target] + last * unit, 1, MPI_LONG, MPI_SUM, win));
        }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK(mine[middle] == (long)size * times, "%ld", mine[middle]);
    CHECK(mine[last] == (long)size * times, "%ld", mine[last]);
    CHECK(*(const short *)&mine[last - 1] == size * times, "%d", *(const short *)&mine[last - 1]);
    for (int r = 0; r < size; r++)
        CHECK(mine[r] == 1000 * r + times - 1, "%ld of rank %d", mine[r], r);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void created(long *mine)
{
    MPI_Win win;
    MPI_Aint *at = calloc(size, sizeof *at);
    memset(mine, 0, WORDS * sizeof *mine);
    OK(MPI_Win_create(mine, WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    use(win, mine, at, 1);
    OK(MPI_Win_free(&win));
    free(at);
}

static long *mapped(int flags)
{
    void *found = mmap(NULL, WORDS * sizeof(long), PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    CHECK(found != MAP_FAILED, "no memory");
    return found;
}

static void unmap(long *mine) { munmap(mine, WORDS * sizeof(long)); }

/* Read-only memory can be read, but not written. */
static void constants(void)
{
    MPI_Win win;
    long *mine = mapped(MAP_SHARED), back = -1;
    mine[5] = 100 + rank;
    CHECK(mprotect(mine, WORDS * sizeof(long), PROT_READ) == 0, "not protected");
    OK(MPI_Win_create(mine, WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(&back, 1, MPI_LONG, (rank + 1) % size, 5, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK(back == 100 + (rank + 1) % size, "%ld", back);
    OK(MPI_Win_free(&win));
    unmap(mine);
}

static void attached(void)
{
    MPI_Win win;
    MPI_Aint mine_at, *at = calloc(size, sizeof *at);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int round = 0; round < rounds; round++) {
        /* The C library unmaps large freed blocks, and may then return the same address again. */
        long *mine = round % 3 == 0 ? mapped(MAP_PRIVATE) : round % 3 == 1 ? calloc(WORDS, sizeof *mine) : mapped(MAP_SHARED);
        OK(MPI_Win_attach(win, mine, WORDS * sizeof *mine));
        OK(MPI_Get_address(mine, &mine_at));
        OK(MPI_Allgather(&mine_at, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
        use(win, mine, at, sizeof *mine);
        OK(MPI_Win_detach(win, mine));
        if (round % 3 == 1)
            free(mine);
        else
            unmap(mine);
    }
    OK(MPI_Win_free(&win));
    free(at);
}

/* The target forks: the child has a copy of the memory, but accesses must reach the parent's memory. */
static void forked(void)
{
    MPI_Win win;
    long *mine = calloc(WORDS, sizeof *mine);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    OK(MPI_Win_create(mine, WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_lock_all(0, win));
    for (long i = 1; i <= rounds; i++) {
        OK(MPI_Put(&i, 1, MPI_LONG, to, 7, 1, MPI_LONG, win));
        OK(MPI_Win_flush(to, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_sync(win));
        CHECK(mine[7] == i, "%ld, not %ld from rank %d", mine[7], i, from);
        pid_t child = fork();
        if (child == 0) {
            mine[7] = -1;
            _exit(0);
        }
        CHECK(child > 0, "no child");
        mine[8] = 10 * i;
        int status;
        CHECK(waitpid(child, &status, 0) == child, "the child is gone");
        CHECK(mine[7] == i, "%ld", mine[7]);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        long back = -1;
        OK(MPI_Get(&back, 1, MPI_LONG, to, 8, 1, MPI_LONG, win));
        OK(MPI_Win_flush(to, win));
        CHECK(back == 10 * i, "%ld, not %ld", back, 10 * i);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    free(mine);
}

static void die(const char *way)
{
    if (!strcmp(way, "kill"))
        raise(SIGKILL);
    if (!strcmp(way, "segv")) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (!strcmp(way, "exit"))
        _exit(3);
    MPI_Abort(MPI_COMM_WORLD, 42);
}

static void dies(const char *way)
{
    MPI_Win win;
    long *mine = calloc(WORDS, sizeof *mine), i = 0;
    OK(MPI_Win_create(mine, WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_lock_all(0, win));
    for (;; i++) {
        OK(MPI_Put(&i, 1, MPI_LONG, 1, rank + PAGE / sizeof i * (i % 8), 1, MPI_LONG, win));
        OK(MPI_Win_flush(1, win));
        if (rank == 1 && i == 20000)
            die(way);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (argc > 2 && !strcmp(argv[1], "dies"))
        dies(argv[2]);
    if (argc == 2) {
        times = atoi(argv[1]);
        rounds = times < rounds ? times : rounds;
    }
    long on_stack[WORDS];
    created(in_static);
    created(on_stack);
    long *from_malloc = malloc(WORDS * sizeof *from_malloc + 8);
    /* The memory has a smaller alignment than its element type requires. */
    created((long *)((char *)from_malloc + 4));
    created(from_malloc);
    long *shared = mapped(MAP_SHARED);
    /* Other ranks can map the memory of all ranks except rank 1, whose memory is a shared mapping. */
    created(rank == 1 ? shared : from_malloc);
    created(shared);
    free(from_malloc);
    unmap(shared);
    constants();
    attached();
    forked();
    return finish("elsewhere");
}
