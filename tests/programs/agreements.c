/* A sequence of agreements, one or several at a time, while processes die (mpi-ext.h; ULFM).
 * Usage: agreements SEED MILLISECONDS [DYING], started by mpirun --with-ft ulfm.
 * Each rank except rank 0 dies within MILLISECONDS with a probability of DYING percent.
 * All survivors must get the same outcomes; an outcome without an error is the AND of their values. */
#include "check.h"
#include <mpi-ext.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>
#include <unistd.h>

enum { AT_ONCE = 3, GOES_ON = 1 };

static MPI_Comm world;
static double end;
static int round_number;
static uint64_t digest = 14695981039346656037ULL;

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    return x ^ x >> 33;
}

/* Returns a rank's value in a round; most bits are set, so the AND of a few values is not zero.
 * mine() also sets the lowest bit while the agreements are to continue. */
static int says(int of, int in)
{
    uint64_t a = mixed((uint64_t)of << 32 | (uint64_t)in), b = mixed(a);
    return (int)((a | b) & 0x7ffffffe);
}

static void note(uint64_t what)
{
    digest = mixed(digest ^ what);
}

/* Returns true if the rank's failure has been acknowledged. */
static int is_out(int other)
{
    MPI_Group failed, all;
    int there, here = other;
    OK(MPIX_Comm_failure_get_acked(world, &failed));
    OK(MPI_Comm_group(world, &all));
    OK(MPI_Group_translate_ranks(all, 1, &here, failed, &there));
    OK(MPI_Group_free(&failed));
    OK(MPI_Group_free(&all));
    return there != MPI_UNDEFINED;
}

static int out[64], any_out;

/* Checks one outcome; returns true if all ranks agree to continue. */
static int outcome(int error, int flag, int in)
{
    int class;
    OK(MPI_Error_class(error, &class));
    CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED, "round %d gives class %d", in, class);
    note((uint64_t)flag << 8 | (uint64_t)class);
    if (class == MPI_SUCCESS) {
        int expected = 0x7ffffffe;
        for (int other = 0; other < size; other++)
            if (!out[other])
                expected &= says(other, in);
        CHECK((flag & ~GOES_ON) == expected, "round %d: %#x instead of %#x", in, flag, expected);
    }
    return flag & GOES_ON;
}

static int mine(int in)
{
    return says(rank, in) | (MPI_Wtime() < end ? GOES_ON : 0);
}

static void acknowledge(void)
{
    int acked;
    OK(MPIX_Comm_ack_failed(world, size, &acked));
    any_out = acked;
    for (int other = 0; any_out && other < size; other++)
        out[other] = is_out(other);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc > 2 && size <= 64, "%s SEED MILLISECONDS [DYING]", argv[0]);
    uint64_t seed = strtoull(argv[1], NULL, 10), dying = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    long last = atol(argv[2]) * 1000;
    world = MPI_COMM_WORLD;
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(world));
    uint64_t fate = mixed(seed << 20 | (uint64_t)rank);
    if (rank > 0 && fate % 100 < dying) {
        long life = (long)(mixed(fate) % (uint64_t)last);
        signal(SIGALRM, SIG_DFL);
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {life / 1000000, life % 1000000 + 1}}, NULL);
    }
    end = MPI_Wtime() + (double)last / 1e6;
    for (int goes_on = 1; goes_on;) {
        int flags[AT_ONCE], errors[AT_ONCE], many = round_number % 7 == 3 ? AT_ONCE : 1;
        MPI_Request requests[AT_ONCE];
        /* In some rounds one rank is late, so that the waiting ranks go to sleep. */
        if (round_number % 400 == 399 && (round_number / 400) % size == rank)
            usleep(3000);
        for (int at = 0; at < many; at++)
            flags[at] = mine(round_number + at);
        if (many > 1 || round_number % 5 == 1) {
            for (int at = 0; at < many; at++)
                OK(MPIX_Comm_iagree(world, &flags[at], &requests[at]));
            for (int at = many; at-- > 0;)
                errors[at] = MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
        } else {
            errors[0] = MPIX_Comm_agree(world, &flags[0]);
        }
        int failed = 0;
        for (int at = 0; at < many; at++) {
            goes_on &= outcome(errors[at], flags[at], round_number + at);
            failed |= errors[at] != MPI_SUCCESS;
        }
        if (failed)
            acknowledge();
        round_number += many;
    }
    signal(SIGALRM, SIG_IGN);
    MPI_Comm living;
    OK(MPIX_Comm_shrink(world, &living));
    uint64_t told[2] = {digest, (uint64_t)round_number}, least[2], most[2];
    OK(MPI_Allreduce(told, least, 2, MPI_UINT64_T, MPI_MIN, living));
    OK(MPI_Allreduce(told, most, 2, MPI_UINT64_T, MPI_MAX, living));
    CHECK(!memcmp(least, most, sizeof least), "the living have not had the same outcomes: %d rounds here, %d to %d", round_number, (int)least[1], (int)most[1]);
    int first;
    OK(MPI_Comm_rank(living, &first));
    if (first == 0)
        printf("all claims of agreements hold on %d ranks\n", size);
    OK(MPI_Comm_free(&living));
    OK(MPI_Finalize());
    return 0;
}
