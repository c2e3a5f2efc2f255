/* Tests of the errors of calls that involve a dead rank, and of calls that work without the rank.
 * Usage: deaths WHAT SEED, started by mpirun --with-ft ulfm. */
#include "survival.h"
#include <unistd.h>

/* Checks the error of each call that involves a dead rank. */
static void dead(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    static char big[1 << 20], in[1 << 20];
    int victim = size - 1, flag, acked;
    MPI_Request request, any;
    if (rank == victim) {
        OK(MPI_Send("last", 5, MPI_CHAR, 0, 9, world));
        nap(20000);
        die();
    }
    double begun = MPI_Wtime();
    CHECK(class_of(MPI_Recv(in, 1, MPI_CHAR, victim, 1, world, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED, "%g s", MPI_Wtime() - begun);
    if (rank == 0) {
        /* Messages that the rank sent before its death arrive. */
        OK(MPI_Recv(in, 5, MPI_CHAR, victim, 9, world, MPI_STATUS_IGNORE));
        CHECK(!strcmp(in, "last"), "%s", in);
    }
    CHECK(class_of(MPI_Send(big, sizeof big, MPI_CHAR, victim, 1, world)) == MPIX_ERR_PROC_FAILED, "%d", victim);
    CHECK(class_of(MPI_Ssend(big, 1, MPI_CHAR, victim, 1, world)) == MPIX_ERR_PROC_FAILED, "%d", victim);
    CHECK(class_of(MPI_Recv(in, 1, MPI_CHAR, MPI_ANY_SOURCE, 2, world, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED, "%d", victim);
    CHECK(class_of(MPI_Probe(MPI_ANY_SOURCE, 2, world, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED, "%d", victim);
    OK(MPI_Irecv(in, 1, MPI_CHAR, MPI_ANY_SOURCE, 3, world, &any));
    CHECK(class_of(MPI_Wait(&any, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED_PENDING, "%d", victim);
    CHECK(any != MPI_REQUEST_NULL, "a pending request is gone, %d", victim);
    MPI_Status statuses[1];
    CHECK(class_of(MPI_Waitall(1, &any, statuses)) == MPI_ERR_IN_STATUS, "%d", victim);
    CHECK(class_of(statuses[0].MPI_ERROR) == MPIX_ERR_PROC_FAILED_PENDING, "%d", statuses[0].MPI_ERROR);
    CHECK(failures_of(world) == 1, "%d", failures_of(world));
    OK(MPIX_Comm_ack_failed(world, 0, &acked));
    CHECK(acked == 0, "%d", acked);
    OK(MPIX_Comm_ack_failed(world, size, &acked));
    CHECK(acked == 1, "%d", acked);
    int error = MPI_Test(&any, &flag, MPI_STATUS_IGNORE);
    if (size > 2)
        CHECK(error == MPI_SUCCESS && !flag, "class %d, %d", class_of(error), flag);
    else /* no rank is left that could send a message */
        CHECK(flag && class_of(error) == MPIX_ERR_PROC_FAILED && any == MPI_REQUEST_NULL, "class %d, %d", class_of(error), flag);
    flag = 1;
    OK(MPIX_Comm_agree(world, &flag));
    if (size > 2) {
        int next = (rank + 1) % (size - 1);
        OK(MPI_Issend(big, 1, MPI_CHAR, next, 3, world, &request));
        OK(MPI_Wait(&any, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        /* The survivors still communicate with each other. */
        OK(MPI_Sendrecv(big, sizeof big, MPI_CHAR, next, 4, in, sizeof in, MPI_CHAR, (rank + size - 2) % (size - 1), 4, world, MPI_STATUS_IGNORE));
    }
    CHECK(class_of(MPI_Barrier(world)) == MPIX_ERR_PROC_FAILED, "acknowledging does not heal, %d", victim);
    flag = ~(1 << rank);
    OK(MPIX_Comm_agree(world, &flag));
    int wanted = -1;
    for (int i = 0; i < size - 1; i++)
        wanted &= ~(1 << i);
    CHECK(flag == wanted, "%x is not %x", flag, wanted);
}

/* A rank dies while the others are in a barrier; every variant of the barrier call returns. */
static void barrier(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    int victim = size - 1, flag = 1, error;
    MPI_Request request;
    for (int i = 0; i < 100; i++)
        OK(MPI_Barrier(world));
    if (rank == victim) {
        nap(20000);
        die();
    }
    if (rank % 2)
        error = MPI_Barrier(world);
    else {
        OK(MPI_Ibarrier(world, &request));
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK(class_of(error) == MPIX_ERR_PROC_FAILED, "a barrier gives class %d", class_of(error));
    TRY(MPIX_Comm_agree(world, &flag));
    CHECK(class_of(MPI_Barrier(world)) == MPIX_ERR_PROC_FAILED, "%d", victim);
    MPI_Comm smaller;
    OK(MPIX_Comm_shrink(world, &smaller));
    returning(smaller);
    OK(MPI_Barrier(smaller));
    OK(MPI_Comm_free(&smaller));
}

/* A rank dies while short nonblocking collectives of all others wait for it: each fails, as do all later ones. */
static void started(void)
{
    enum { REQUESTS = 4 };
    MPI_Comm world = MPI_COMM_WORLD, comm, smaller;
    MPI_Request requests[REQUESTS];
    MPI_Status statuses[REQUESTS];
    int victim = size - 1, one = 1, sum = 0, all[64], data;
    CHECK(size <= 64, "%d ranks", size);
    OK(MPI_Comm_dup(world, &comm));
    returning(comm);
    if (rank == victim) {
        for (int i = 0; i < victim; i++)
            OK(MPI_Recv(&data, 1, MPI_INT, i, 1, world, MPI_STATUS_IGNORE));
        die();
    }
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]));
    OK(MPI_Ibarrier(comm, &requests[1]));
    OK(MPI_Ibcast(&data, 1, MPI_INT, victim, comm, &requests[2]));
    OK(MPI_Iallgather(&one, 1, MPI_INT, all, 1, MPI_INT, comm, &requests[3]));
    OK(MPI_Send(&one, 1, MPI_INT, victim, 1, world));
    int error = MPI_Waitall(REQUESTS, requests, statuses);
    CHECK(class_of(error) == MPI_ERR_IN_STATUS, "MPI_Waitall gives class %d", class_of(error));
    for (int i = 0; i < REQUESTS; i++) {
        error = statuses[i].MPI_ERROR;
        CHECK(class_of(error) == MPIX_ERR_PROC_FAILED && requests[i] == MPI_REQUEST_NULL, "request %d gives class %d", i, class_of(error));
    }
    /* ULFM also allows the error at the completion. This library reports it at the start. */
    error = MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
    CHECK(class_of(error) == MPIX_ERR_PROC_FAILED, "a later one gives class %d", class_of(error));
    OK(MPI_Comm_free(&comm));
    OK(MPIX_Comm_shrink(world, &smaller));
    returning(smaller);
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, smaller, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK(sum == size - 1, "%d of %d", sum, size - 1);
    OK(MPI_Comm_free(&smaller));
}

/* Checks a communicator of the survivors with a sum. */
static void works(MPI_Comm comm, const char *made_by)
{
    int one = 1, sum = 0, members;
    CHECK(comm != MPI_COMM_NULL, "%s made none", made_by);
    returning(comm);
    OK(MPI_Comm_size(comm, &members));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == members && members == size - 1, "%s: %d of %d", made_by, sum, members);
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
}

/* A rank dies during a split; groups without the rank create working communicators. */
static void groups(void)
{
    MPI_Comm world = MPI_COMM_WORLD, part = MPI_COMM_NULL;
    int victim = size - 1, flag = 1, in;
    MPI_Group all, living;
    if (rank == victim) {
        nap(20000);
        die();
    }
    /* Some members may get their new communicator and others an error, but no call hangs. */
    int error = MPI_Comm_split(world, 0, rank, &part);
    CHECK(!error || class_of(error) == MPIX_ERR_PROC_FAILED, "MPI_Comm_split gives class %d", class_of(error));
    CHECK(class_of(MPI_Recv(&in, 1, MPI_INT, victim, 1, world, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED, "%d", victim);
    TRY(MPIX_Comm_agree(world, &flag));
    OK(MPI_Comm_group(world, &all));
    OK(MPI_Group_excl(all, 1, &victim, &living));
    OK(MPI_Comm_create_group(world, living, 3, &part));
    works(part, "MPI_Comm_create_group");
    OK(MPI_Comm_create_from_group(living, "the living", MPI_INFO_NULL, MPI_ERRORS_RETURN, &part));
    works(part, "MPI_Comm_create_from_group");
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&living));
}

/* A member of a window and of a file dies: calls that need all members fail.
 * The survivors then free the window and the file. */
static void memory(char **argv)
{
    MPI_Comm world = MPI_COMM_WORLD;
    int victim = size - 1, *base, *held, zero = 0, failures;
    MPI_Win win, fenced;
    MPI_File file;
    OK(MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, world, &base, &win));
    OK(MPI_Win_create(&zero, sizeof zero, 1, MPI_INFO_NULL, world, &fenced));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_set_errhandler(fenced, MPI_ERRORS_RETURN));
    OK(MPI_File_open(world, argv[3], MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    held = base;
    *held = 0;
    if (rank == victim) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Send(&zero, 1, MPI_INT, 0, 1, world));
        nap(20000);
        die();
    }
    if (rank == 0)
        OK(MPI_Recv(&zero, 1, MPI_INT, victim, 1, world, MPI_STATUS_IGNORE));
    int go = 1;
    TRY(MPIX_Comm_agree(world, &go));
    int error = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    error = error ? error : MPI_Win_unlock(0, win);
    CHECK(class_of(error) == MPIX_ERR_PROC_FAILED, "a lock that a dead rank holds gives class %d", class_of(error));
    CHECK(class_of(MPI_Win_fence(0, fenced)) == MPIX_ERR_PROC_FAILED, "%d", victim);
    MPI_Group failed;
    OK(MPIX_Win_get_failed(win, &failed));
    OK(MPI_Group_size(failed, &failures));
    CHECK(failures == 1, "%d", failures);
    OK(MPI_Group_free(&failed));
    error = MPI_File_write_at_all(file, rank, &rank, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    CHECK(class_of(error) == MPIX_ERR_PROC_FAILED, "a collective write gives class %d", class_of(error));
    OK(MPI_File_write_at(file, rank, &rank, 1, MPI_CHAR, MPI_STATUS_IGNORE));
    TRY(MPIX_Comm_agree(world, &go)); /* all survivors have seen the death */
    OK(MPIX_Win_revoke(fenced));
    OK(MPIX_Win_is_revoked(fenced, &go));
    CHECK(go, "%d", go);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free(&fenced));
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL, "closing keeps the file, %d", victim);
    CHECK(access(argv[3], F_OK), "%s was to be deleted", argv[3]);
}

/* A rank dies without receiving, so the buffers for messages to that rank are full. */
static void full(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    static char long_one[1 << 22];
    int victim = size - 1, pid = getpid(), flag = 1, error = 0;
    MPI_Request request, big;
    if (rank == victim) {
        OK(MPI_Send(&pid, 1, MPI_INT, 0, 1, world));
        for (;;)
            pause();
    }
    if (rank == 0) {
        OK(MPI_Recv(&pid, 1, MPI_INT, victim, 1, world, MPI_STATUS_IGNORE));
        do {
            OK(MPI_Isend(&flag, 1, MPI_INT, victim, 2, world, &request));
            OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        } while (flag);
        OK(MPI_Isend(long_one, sizeof long_one, MPI_CHAR, victim, 3, world, &big));
        kill(pid, SIGKILL);
        CHECK(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED, "%d", victim);
        CHECK(class_of(MPI_Wait(&big, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED, "%d", victim);
        while (!error)
            error = MPI_Send(&flag, 1, MPI_INT, victim, 2, world);
        CHECK(class_of(error) == MPIX_ERR_PROC_FAILED, "class %d", class_of(error));
    }
    flag = 1;
    TRY(MPIX_Comm_agree(world, &flag));
}

/* A rank whose blocking calls all fail must still learn that another rank revokes the communicator. */
static void heard(void)
{
    int victim = size - 1, error;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    returning(comm);
    OK(MPI_Barrier(comm));
    if (rank == victim)
        die();
    do
        error = MPI_Barrier(comm);
    while (!error);
    /* Rank 0 revokes after all other ranks have detected the death, so none of their calls waits. */
    for (int i = 1; i < victim; i++)
        if (rank == i)
            OK(MPI_Send(&i, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
        else if (rank == 0)
            OK(MPI_Recv(&i, 1, MPI_INT, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank == 0)
        OK(MPIX_Comm_revoke(comm));
    while (class_of(error) != MPIX_ERR_REVOKED)
        error = MPI_Barrier(comm);
    OK(MPI_Comm_free(&comm));
}

static void knows(int dead)
{
    int in, class = class_of(MPI_Recv(&in, 1, MPI_INT, dead, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(class == MPIX_ERR_PROC_FAILED, "a receive from rank %d, which is dead, gives class %d", dead, class);
}

/* No intercommunicator is created if a group has a dead member or the bridge communicator is revoked:
 * all survivors of both groups get the cause as error. */
static void between(void)
{
    MPI_Comm world = MPI_COMM_WORLD, half, peer, broken, inter;
    int flag = 1, side = rank % 2, last = size - 1, leader_there[] = {!side};
    MPI_Group all, members, other, living;
    CHECK(size == 5, "%d: ranks 0, 2 and 4 are one group, 1 and 3 the other", size);
    OK(MPI_Comm_split(world, side, rank, &half));
    returning(half);
    OK(MPI_Comm_dup(world, &peer));
    OK(MPI_Comm_dup(world, &broken));
    returning(peer);
    returning(broken);
    OK(MPI_Comm_group(world, &all));
    OK(MPI_Comm_group(half, &members));
    OK(MPI_Group_incl(all, 1, leader_there, &other));
    if (rank == 0)
        OK(MPIX_Comm_revoke(broken));
    int class = class_of(MPI_Intercomm_create(half, 0, broken, !side, 1, &inter));
    CHECK(class == MPIX_ERR_REVOKED, "a revoked way gives class %d", class);
    OK(MPI_Barrier(world));
    if (rank == last)
        die();
    /* The dead rank is not its group's leader; the other group's ranks need not detect its death. */
    if (side == 0)
        knows(last);
    class = class_of(MPI_Intercomm_create(half, 0, peer, !side, 2, &inter));
    CHECK(class == MPIX_ERR_PROC_FAILED, "a dead member of %s group gives class %d", side ? "the other" : "this", class);
    class = class_of(MPI_Intercomm_create_from_groups(members, 0, other, 0, "sides", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
    CHECK(class == MPIX_ERR_PROC_FAILED, "from groups, a dead member of %s group gives class %d", side ? "the other" : "this", class);
    TRY(MPIX_Comm_agree(world, &flag));
    if (rank == 1)
        die();
    /* The dead rank is its group's leader; the other group's leader notifies its own group. */
    knows(1);
    OK(MPI_Group_excl(members, side == 0, &(int){2}, &living));
    OK(MPI_Comm_free(&half));
    if (side == 0)
        OK(MPI_Comm_create_group(world, living, 3, &half));
    class = side == 0 ? class_of(MPI_Intercomm_create(returning(half), 0, peer, 1, 4, &inter)) : class;
    CHECK(class == MPIX_ERR_PROC_FAILED, "a dead leader of the other group gives class %d", class);
    TRY(MPIX_Comm_agree(world, &flag));
}

/* The attribute MPIX_FT tells programs whether the job survives the death of ranks. */
static void asked(void)
{
    int *survives, found;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &survives, &found));
    CHECK(found && *survives == 1, "%d", found);
    CHECK(class_of(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_FT, NULL)) == MPI_ERR_KEYVAL, "%d", found);
}

/* The last rank dies while it sends long messages to rank 0 and receives others from rank 1.
 * An operation that has failed leaves its buffer alone afterwards. */
static void midway(void)
{
    enum { COUNT = 6, LENGTH = 16 << 20 };
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request all[COUNT];
    int victim = size - 1, flag;
    char *buffers = malloc((size_t)COUNT * LENGTH);
    for (int i = 0; i < COUNT; i++)
        fill(buffers + (size_t)i * LENGTH, LENGTH, rank == 0 ? 99 : i);
    if (rank == victim) {
        MPI_Request others[2 * COUNT];
        char *more = calloc(COUNT, LENGTH);
        for (int i = 0; i < COUNT; i++) {
            OK(MPI_Isend(buffers + (size_t)i * LENGTH, LENGTH, MPI_CHAR, 0, i, world, others + i));
            OK(MPI_Irecv(more + (size_t)i * LENGTH, LENGTH, MPI_CHAR, 1, i, world, others + COUNT + i));
        }
        /* A few polls after the first messages have begun to arrive, most of the data are still to come. */
        for (long polls = 10 + below(20); polls > 0; polls -= more[5] != 0)
            OK(MPI_Test(others + COUNT + 1, &flag, MPI_STATUS_IGNORE));
        die();
    }
    for (int i = 0; i < COUNT; i++)
        if (rank == 0)
            OK(MPI_Irecv(buffers + (size_t)i * LENGTH, LENGTH, MPI_CHAR, victim, i, world, all + i));
        else if (rank == 1)
            OK(MPI_Isend(buffers + (size_t)i * LENGTH, LENGTH, MPI_CHAR, victim, i, world, all + i));
    for (int i = 0; i < COUNT && rank < 2; i++) {
        char *buffer = buffers + (size_t)i * LENGTH;
        if (TRY(MPI_Wait(all + i, MPI_STATUS_IGNORE)) == MPI_SUCCESS && rank == 0)
            CHECK(differs(buffer, LENGTH, i) < 0, "message %d", i);
        /* The program uses the buffer again. */
        memset(buffer, 7, LENGTH);
    }
    for (int i = 0; i < 50 && rank < 2; i++) {
        TRY(MPI_Iprobe(rank, 99, world, &flag, MPI_STATUS_IGNORE));
        nap(1000);
    }
    for (size_t i = 0; i < (size_t)COUNT * LENGTH && rank < 2; i++)
        CHECK(buffers[i] == 7, "byte %zu was written", i);
    free(buffers);
}

int main(int argc, char **argv)
{
    survive(&argc, &argv);
    if (!strcmp(argv[1], "dead"))
        dead();
    else if (!strcmp(argv[1], "barrier"))
        barrier();
    else if (!strcmp(argv[1], "started"))
        started();
    else if (!strcmp(argv[1], "groups"))
        groups();
    else if (!strcmp(argv[1], "memory") && argc > 3)
        memory(argv);
    else if (!strcmp(argv[1], "full"))
        full();
    else if (!strcmp(argv[1], "heard"))
        heard();
    else if (!strcmp(argv[1], "between"))
        between();
    else if (!strcmp(argv[1], "asked"))
        asked();
    else if (!strcmp(argv[1], "midway"))
        midway();
    else
        CHECK(0, "%s is unknown", argv[1]);
    if (rank == 0)
        printf("all claims of deaths hold on %d ranks\n", size);
    OK(MPI_Finalize());
    return 0;
}
