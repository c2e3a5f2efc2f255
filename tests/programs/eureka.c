/*
 * Tests of the eureka line (mpi-ext.h): a global flag by which a parallel search ends early.
 *
 *     eureka line [ROUNDS]    MPI_COMM_WORLD and communicators derived from it have a line
 *     eureka world [ROUNDS]   MPI_COMM_WORLD has a line
 *     eureka none             MPI_COMM_WORLD has no line; communicators within a host have one
 *     eureka recorded         the run is recorded; the library reports that the line cannot be used then
 *     eureka death            the last rank dies in a round (mpirun --with-ft ulfm)
 */
#include "check.h"
#include <mpi-ext.h>
#include <signal.h>

static int class_of(int error)
{
    int class;
    OK(MPI_Error_class(error, &class));
    return class;
}

#define IS(call, wanted)                                                                             \
    do {                                                                                             \
        int class_ = class_of(call);                                                                 \
        CHECK(class_ == (wanted), #call " gives class %d, not %d", class_, (wanted));                \
    } while (0)

static int sum(MPI_Comm comm, int mine)
{
    int all;
    OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm));
    return all;
}

/* Polls the line once; returns true if it is high. Sets `first` at the rank that raised it. */
static int looks(MPI_Comm comm, int *first)
{
    int flag = -1;
    *first = -1;
    OK(MPIX_Eureka_test(comm, &flag, first));
    CHECK((flag == 0 || flag == 1) && (*first == 0 || *first == 1) && flag >= *first, "flag %d, first %d", flag, *first);
    return flag;
}

static void wait_for_it(MPI_Comm comm)
{
    int first;
    while (!looks(comm, &first))
        ;
}

/* Without a round there is no line; a second open round is an error. */
static void mistakes(MPI_Comm comm)
{
    int flag = 7, first = 7;
    IS(MPIX_Eureka_raise(comm), MPI_ERR_OTHER);
    IS(MPIX_Eureka_test(comm, &flag, &first), MPI_ERR_OTHER);
    IS(MPIX_Eureka_end(comm, &first), MPI_ERR_OTHER);
    CHECK(flag == 7 && first == 7, "%d %d", flag, first);
    IS(MPIX_Eureka_begin(MPI_COMM_NULL), MPI_ERR_COMM);
    OK(MPIX_Eureka_begin(comm));
    IS(MPIX_Eureka_begin(comm), MPI_ERR_OTHER);
    IS(MPIX_Eureka_test(comm, NULL, &first), MPI_ERR_ARG);
    OK(MPIX_Eureka_end(comm, &first));
    CHECK(first == MPI_UNDEFINED, "no rank has found it, and %d was first", first);
}

/* Some ranks raise the line at about the same time: exactly one rank is first,
 * and all ranks are notified of the line and of the first rank. */
static void round_of(MPI_Comm comm, int me, int members, int round)
{
    int finders = round % 4 == 3 ? members : round % 4, told = -1, first = 0;
    int finds = (me + round) % members < finders;
    OK(MPIX_Eureka_begin(comm));
    if (finders == 0)
        CHECK(!looks(comm, &first), "round %d: high, and no rank finds anything", round);
    if (finds)
        OK(MPIX_Eureka_raise(comm));
    if (finds)
        CHECK(looks(comm, &first), "round %d: low after this rank has raised it", round);
    if (finders)
        wait_for_it(comm);
    /* A second raise has no effect. */
    if (finds)
        OK(MPIX_Eureka_raise(comm));
    int is_high = looks(comm, &first);
    CHECK(is_high == (finders > 0), "round %d", round);
    OK(MPIX_Eureka_end(comm, &told));
    int wanted = finders ? 1 : 0;
    CHECK(sum(comm, first) == wanted, "round %d: not %d was first", round, wanted);
    CHECK(first == (told == me), "round %d: rank %d is told to be first", round, told);
    if (!finders)
        CHECK(told == MPI_UNDEFINED, "round %d: %d", round, told);
    int lowest;
    OK(MPI_Allreduce(&told, &lowest, 1, MPI_INT, MPI_MIN, comm));
    CHECK(lowest == told, "round %d: told %d here and %d elsewhere", round, told, lowest);
}

/* A write before the raise is visible to every rank that sees the line high,
 * even if that rank was notified by a chain of messages. */
static void handed_on(MPI_Comm comm, int me, int members)
{
    int first, told;
    OK(MPIX_Eureka_begin(comm));
    if (me == 0)
        OK(MPIX_Eureka_raise(comm));
    else
        OK(MPI_Recv(NULL, 0, MPI_BYTE, me - 1, 3, comm, MPI_STATUS_IGNORE));
    CHECK(looks(comm, &first), "rank %d is notified and does not see it", me);
    if (me < members - 1)
        OK(MPI_Send(NULL, 0, MPI_BYTE, me + 1, 3, comm));
    OK(MPIX_Eureka_end(comm, &told));
    CHECK(told == 0, "%d", told);
}

/* Barriers of any kind do not end a round; barriers that are in progress when a round begins complete first. */
static void among_barriers(MPI_Comm comm, int me, int members)
{
    int first, told;
    MPI_Request before, within;
    OK(MPI_Ibarrier(comm, &before));
    OK(MPIX_Eureka_begin(comm));
    OK(MPI_Barrier(comm));
    CHECK(!looks(comm, &first), "high before a rank has found it");
    OK(MPI_Barrier(comm));
    if (me == members - 1)
        OK(MPIX_Eureka_raise(comm));
    OK(MPI_Ibarrier(comm, &within));
    OK(MPI_Wait(&within, MPI_STATUS_IGNORE));
    for (int i = 0; i < 20; i++) {
        CHECK(looks(comm, &first), "barrier %d has lowered the line", i);
        OK(MPI_Barrier(comm));
    }
    OK(MPI_Wait(&before, MPI_STATUS_IGNORE));
    OK(MPI_Ibarrier(comm, &within));
    OK(MPIX_Eureka_end(comm, &told));
    CHECK(told == members - 1, "%d", told);
    OK(MPI_Wait(&within, MPI_STATUS_IGNORE));
}

static void all_of(MPI_Comm comm, int rounds)
{
    int me, members;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &members));
    mistakes(comm);
    for (int round = 0; round < rounds; round++)
        round_of(comm, me, members, round);
    handed_on(comm, me, members);
    among_barriers(comm, me, members);
    for (int i = 0; i < 10; i++)
        OK(MPI_Barrier(comm));
}

/* Rank `one` waits until all members have called this function; the other ranks do not wait. */
static void gathered_at(MPI_Comm comm, int one)
{
    int me, members;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &members));
    if (me != one)
        OK(MPI_Send(NULL, 0, MPI_BYTE, one, 0, comm));
    else
        for (int i = 1; i < members; i++)
            OK(MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE));
}

/* A rank that could still raise the line dies: no survivor may poll indefinitely.
 * The survivors continue in a new communicator. */
static void one_dies(void)
{
    int flag = 0, first, code = MPI_SUCCESS;
    OK(MPIX_Eureka_begin(MPI_COMM_WORLD));
    /* The last rank dies after all ranks have returned from MPIX_Eureka_begin.
     * That call may also return MPIX_ERR_PROC_FAILED. */
    gathered_at(MPI_COMM_WORLD, size - 1);
    if (rank == size - 1)
        raise(SIGKILL);
    while (code == MPI_SUCCESS && !flag)
        code = MPIX_Eureka_test(MPI_COMM_WORLD, &flag, &first);
    IS(code, MPIX_ERR_PROC_FAILED);
    IS(MPIX_Eureka_raise(MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
    IS(MPIX_Eureka_end(MPI_COMM_WORLD, &first), MPIX_ERR_PROC_FAILED);
    MPI_Comm living;
    OK(MPIX_Comm_shrink(MPI_COMM_WORLD, &living));
    all_of(living, 8);
    /* Rank 0 revokes the communicator after all ranks have returned from MPIX_Eureka_begin.
     * That call may also return MPIX_ERR_REVOKED. */
    OK(MPIX_Eureka_begin(living));
    gathered_at(living, 0);
    if (rank == 0)
        OK(MPIX_Comm_revoke(living));
    do
        code = MPIX_Eureka_test(living, &flag, &first);
    while (code == MPI_SUCCESS);
    IS(code, MPIX_ERR_REVOKED);
    OK(MPI_Comm_free(&living));
    if (rank == 0)
        printf("the living have had their rounds\n");
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "line";
    int rounds = argc > 2 ? atoi(argv[2]) : 40;
    begin(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));

    if (strcmp(what, "death") == 0) {
        one_dies();
        return 0;
    }
    if (strcmp(what, "none") == 0 || strcmp(what, "recorded") == 0) {
        IS(MPIX_Eureka_begin(MPI_COMM_WORLD), MPI_ERR_UNSUPPORTED_OPERATION);
        char text[MPI_MAX_ERROR_STRING];
        int length;
        OK(MPI_Error_string(MPIX_Eureka_begin(MPI_COMM_WORLD), text, &length));
        if (rank == 0)
            printf("%s\n", text);
        if (what[0] == 'r')
            return finish("eureka");
        /* Communicators within a host have a line. */
        MPI_Comm host;
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
        all_of(host, 8);
        OK(MPI_Comm_free(&host));
        return finish("eureka");
    }

    all_of(MPI_COMM_WORLD, rounds);
    if (strcmp(what, "world") == 0)
        return finish("eureka");
    all_of(MPI_COMM_SELF, 4);

    /* The two halves use lines in shared memory while a round is open on the whole communicator. */
    MPI_Comm half, twin;
    int told;
    OK(MPIX_Eureka_begin(MPI_COMM_WORLD));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    all_of(half, 8);
    OK(MPIX_Eureka_end(MPI_COMM_WORLD, &told));
    CHECK(told == MPI_UNDEFINED, "%d", told);

    /* A communicator may be freed with an open round. */
    OK(MPIX_Eureka_begin(half));
    OK(MPI_Comm_free(&half));

    /* Intercommunicators have no line. */
    if (size > 1) {
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
        OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &twin));
        IS(MPIX_Eureka_begin(twin), MPI_ERR_COMM);
        OK(MPI_Comm_free(&twin));
        OK(MPI_Comm_free(&half));
    }
    /* A round that is still open at MPI_Finalize is harmless. */
    OK(MPIX_Eureka_begin(MPI_COMM_WORLD));
    return finish("eureka");
}
