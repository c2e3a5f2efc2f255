/* Short messages make no system call, no allocation and no atomic read-modify-write.
 *
 * The processor single-steps the calls (trap flag); a signal handler decodes each instruction before it runs.
 * Each message arrives before its receive is called, so waits are not examined.
 * The ranks synchronise outside MPI, by shared memory of their own. */
#define _GNU_SOURCE
#include "check.h"

#if defined(__x86_64__) && defined(__linux__)
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { ROUNDS = 8, TAG = 5 };

/* The number of messages of each kind that are examined: the argument, if there is one. */
static int examined = ROUNDS;

/* False in the first pass, which completes the library's one-time set-up and is not examined. */
static int watched;

/* Counts since the last reset. */
static struct { long steps, locked, system, allocations; } seen;

static const char *const allocators[] = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "free"};
enum { ALLOCATORS = sizeof allocators / sizeof *allocators };
static const unsigned char *allocator[ALLOCATORS];

static void step(int signal, siginfo_t *info, void *context)
{
    const unsigned char *at = (const unsigned char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    (void)signal, (void)info;
    seen.steps++;
    for (int i = 0; i < ALLOCATORS; i++)
        seen.allocations += at == allocator[i];
    /* Skips prefixes (Intel SDM volume 2, section 2.1.1) and REX to find the opcode. */
    int lock = 0;
    while (*at == 0xf0 || *at == 0xf2 || *at == 0xf3 || *at == 0x66 || *at == 0x67 || *at == 0x2e || *at == 0x36
           || *at == 0x3e || *at == 0x26 || *at == 0x64 || *at == 0x65)
        lock |= *at++ == 0xf0;
    if ((*at & 0xf0) == 0x40)
        at++;
    /* XCHG with memory is locked without a prefix. */
    int exchange = (*at == 0x86 || *at == 0x87) && at[1] >> 6 != 3;
    seen.locked += lock || exchange;
    seen.system += at[0] == 0x0f && (at[1] == 0x05 || at[1] == 0x34);
}

#define TRAP(change) \
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; " change ", (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc")

/* Single-steps a call; checks its locked instructions, system calls and allocations. */
#define STEP_BY_STEP(call) \
    do { \
        memset(&seen, 0, sizeof seen); \
        if (watched) \
            TRAP("orq $0x100"); \
        int step_code = (call); \
        if (watched) \
            TRAP("andq $~0x100"); \
        CHECK(step_code == MPI_SUCCESS, "%s returned %d", #call, step_code); \
        CHECK(!watched || seen.steps > 20, "%ld steps of %s", seen.steps, #call); \
        CHECK(seen.system == 0, "%ld calls of the system in %s", seen.system, #call); \
        CHECK(seen.allocations == 0, "%ld calls of the allocator in %s", seen.allocations, #call); \
        CHECK(seen.locked == 0, "%ld locked instructions in %s", seen.locked, #call); \
    } while (0)

/* The stage that each rank has reached, in shared memory that rank 1 created. */
static volatile long *progress;

static void share_memory(void)
{
    int where[2];
    if (rank == 1) {
        where[0] = getpid();
        where[1] = memfd_create("progress", 0);
        CHECK(where[1] >= 0 && ftruncate(where[1], 4096) == 0, "no memory");
        OK(MPI_Send(where, 2, MPI_INT, 0, TAG, MPI_COMM_WORLD));
    } else {
        char path[64];
        OK(MPI_Recv(where, 2, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        snprintf(path, sizeof path, "/proc/%d/fd/%d", where[0], where[1]);
        where[1] = open(path, O_RDWR);
        CHECK(where[1] >= 0, "cannot open %s", path);
    }
    progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, where[1], 0);
    CHECK(progress != MAP_FAILED, "cannot map the memory of rank 1");
}

/* Publishes this rank's stage, and waits outside MPI until the other rank has reached the stage. */
static void meet(long stage)
{
    progress[rank] = stage;
    while (progress[1 - rank] < stage)
        nap(50);
}

static void blocking(long *stage)
{
    long word = 0;
    for (int round = 0; round < (watched ? examined : ROUNDS); round++) {
        if (rank == 0) {
            word = round;
            STEP_BY_STEP(MPI_Send(&word, 1, MPI_LONG, 1, TAG, MPI_COMM_WORLD));
            meet(++*stage);
        } else {
            meet(++*stage);
            STEP_BY_STEP(MPI_Recv(&word, 1, MPI_LONG, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(word == round, "message %d says %ld", round, word);
        }
        meet(++*stage);
    }
}

static void nonblocking(long *stage)
{
    long word = 0;
    MPI_Request request;
    for (int round = 0; round < (watched ? examined : ROUNDS); round++) {
        if (rank == 1)
            STEP_BY_STEP(MPI_Irecv(&word, 1, MPI_LONG, 0, TAG, MPI_COMM_WORLD, &request));
        meet(++*stage);
        if (rank == 0) {
            word = round;
            STEP_BY_STEP(MPI_Isend(&word, 1, MPI_LONG, 1, TAG, MPI_COMM_WORLD, &request));
        }
        meet(++*stage);
        STEP_BY_STEP(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(word == round, "message %d says %ld", round, word);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size == 2, "this is for two ranks");
    if (argc > 1)
        examined = atoi(argv[1]);
    for (int i = 0; i < ALLOCATORS; i++)
        allocator[i] = dlsym(RTLD_DEFAULT, allocators[i]);
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0, "no handler");

    long stage = 0;
    share_memory();
    for (watched = 0; watched < 2; watched++) {
        blocking(&stage);
        nonblocking(&stage);
    }
    return finish("short_path");
}
#else
int main(int argc, char **argv)
{
    /* The instruction decoder supports only x86-64. */
    begin(&argc, &argv);
    return finish("short_path");
}
#endif
