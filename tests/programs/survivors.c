/* What programs do to survive the death of some of their processes (mpi-ext.h; ULFM), after the tutorials of the ULFM project:
   survivors WHAT SEED, started by mpirun --with-ft ulfm. Which ranks die and when depends on SEED; but for
   survivors soak SEED SECONDS RANKS, in which any process dies at any moment, and the dead are replaced. */
#include "check.h"
#include <mpi-ext.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>
#include <unistd.h>

static uint64_t chance = 88172645463325252ULL;

static uint64_t below(uint64_t n)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance % n;
}

static int class_of(int error)
{
    int class;
    OK(MPI_Error_class(error, &class));
    return class;
}

static int of_faults(int error)
{
    int class = class_of(error);
    return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED;
}

/* An MPI call that succeeds or fails because of a death. */
#define TRY(call)                                                                              \
    ({                                                                                         \
        int error_ = (call);                                                                   \
        CHECK(error_ == MPI_SUCCESS || of_faults(error_), #call " gives class %d", class_of(error_)); \
        error_;                                                                                \
    })

static void die(void)
{
    raise(SIGKILL);
}

static MPI_Comm returning(MPI_Comm comm)
{
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    return comm;
}

static int failures_of(MPI_Comm comm)
{
    MPI_Group failed;
    int n;
    OK(MPIX_Comm_get_failed(comm, &failed));
    OK(MPI_Group_size(failed, &n));
    OK(MPI_Group_free(&failed));
    return n;
}

/* What each call says of a dead rank. */
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
        /* What it sent before it died is there. */
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
    else /* nobody is left to send it anything */
        CHECK(flag && class_of(error) == MPIX_ERR_PROC_FAILED && any == MPI_REQUEST_NULL, "class %d, %d", class_of(error), flag);
    flag = 1;
    OK(MPIX_Comm_agree(world, &flag));
    if (size > 2) {
        int next = (rank + 1) % (size - 1);
        OK(MPI_Issend(big, 1, MPI_CHAR, next, 3, world, &request));
        OK(MPI_Wait(&any, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        /* Those who live talk on. */
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

/* A rank dies while the others are in a barrier; each way of calling one ends. */
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

/* A sum over a communicator of the living, which works. */
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

/* A rank dies while all are being divided; groups without it make communicators that work. */
static void groups(void)
{
    MPI_Comm world = MPI_COMM_WORLD, part = MPI_COMM_NULL;
    int victim = size - 1, flag = 1, in;
    MPI_Group all, living;
    if (rank == victim) {
        nap(20000);
        die();
    }
    /* Some may have their part and others not, but none waits without end. */
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

/* Windows and files of which a member dies: what needs all members fails, and they are freed. */
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
    TRY(MPIX_Comm_agree(world, &go)); /* all have seen that */
    OK(MPIX_Win_revoke(fenced));
    OK(MPIX_Win_is_revoked(fenced, &go));
    CHECK(go, "%d", go);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free(&fenced));
    error = MPI_File_close(&file);
    CHECK(!error || class_of(error) == MPIX_ERR_PROC_FAILED, "closing gives class %d", class_of(error));
}

/* Works on while processes die: revoke, shrink, again. */
static void loop(void)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    returning(comm);
    int rounds = 60, deaths = size / 2, died = 0;
    int now_me, now_size;
    for (int round = 0; round < rounds; round++) {
        OK(MPI_Comm_rank(comm, &now_me));
        OK(MPI_Comm_size(comm, &now_size));
        /* Everybody draws the same numbers, so that all know who dies, and nobody uses it. */
        uint64_t draw = below(rounds), whom = below(size), how = below(3);
        int dies = died < deaths && draw < (uint64_t)deaths * 3 && now_size > 1;
        died += dies;
        if (dies && (int)whom == rank && rank != 0) {
            if (how == 0)
                die();
            if (how == 1) {
                /* In the middle of what the others do. */
                int in = 1, out;
                MPI_Request request;
                MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
                die();
            }
        }
        int one = 1, sum = 0, error = MPI_SUCCESS;
        for (int i = 0; i < 5 && !error; i++) {
            error = TRY(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
            CHECK(error || sum == now_size, "%d of %d", sum, now_size);
        }
        if (!error && dies && (int)whom == rank && rank != 0)
            die();
        if (error)
            OK(MPIX_Comm_revoke(comm));
        int flag = !error;
        int agreed = TRY(MPIX_Comm_agree(comm, &flag));
        if (agreed || !flag) {
            MPI_Comm smaller;
            OK(MPIX_Comm_revoke(comm));
            OK(MPIX_Comm_shrink(comm, &smaller));
            int smaller_size;
            OK(MPI_Comm_size(smaller, &smaller_size));
            CHECK(smaller_size <= now_size, "%d of %d", smaller_size, now_size);
            OK(MPI_Comm_free(&comm));
            comm = returning(smaller);
        }
    }
    OK(MPI_Comm_free(&comm));
}

/* The communicator with the dead replaced by processes spawned anew, everybody in the place that it had. */
static MPI_Comm replaced(MPI_Comm broken, char **argv, int place)
{
    MPI_Comm shrunk, inter, merged, whole;
    int wanted, living;
    for (;;) {
        if (broken == MPI_COMM_NULL) {
            OK(MPI_Comm_get_parent(&inter));
            returning(inter);
            OK(MPI_Recv(&place, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
        } else {
            OK(MPIX_Comm_shrink(broken, &shrunk));
            returning(shrunk);
            OK(MPI_Comm_size(broken, &wanted));
            OK(MPI_Comm_size(shrunk, &living));
            int missing = wanted - living, me, error;
            if (missing == 0)
                return shrunk;
            MPI_Group before, after, gone;
            OK(MPI_Comm_group(broken, &before));
            OK(MPI_Comm_group(shrunk, &after));
            OK(MPI_Group_difference(before, after, &gone));
            char *args[] = {argv[1], argv[2], "again", NULL};
            error = TRY(MPI_Comm_spawn(argv[0], args, missing, MPI_INFO_NULL, 0, shrunk, &inter, MPI_ERRCODES_IGNORE));
            CHECK(!error, "spawn gives %d", error);
            returning(inter);
            OK(MPI_Comm_rank(shrunk, &me));
            for (int i = 0; me == 0 && i < missing; i++) {
                int theirs;
                OK(MPI_Group_translate_ranks(gone, 1, &i, before, &theirs));
                OK(MPI_Send(&theirs, 1, MPI_INT, i, 1, inter));
            }
            OK(MPI_Group_free(&before));
            OK(MPI_Group_free(&after));
            OK(MPI_Group_free(&gone));
            OK(MPI_Comm_free(&shrunk));
        }
        OK(MPI_Intercomm_merge(inter, broken == MPI_COMM_NULL, &merged));
        OK(MPI_Comm_free(&inter));
        OK(MPI_Comm_split(merged, 0, place, &whole));
        OK(MPI_Comm_free(&merged));
        return returning(whole);
    }
}

/* Each rank's state lies with its right neighbour too; a dead rank is replaced, and its state comes back from there. */
static void checkpoint(char **argv, int again)
{
    enum { ROUNDS = 12, LENGTH = 1000 };
    int me, n, round = 0, mine[LENGTH], theirs[LENGTH];
    MPI_Comm comm;
    if (again) {
        comm = replaced(MPI_COMM_NULL, argv, 0);
        OK(MPI_Comm_rank(comm, &me));
    } else {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        returning(comm);
        OK(MPI_Comm_rank(comm, &me));
        for (int i = 0; i < LENGTH; i++)
            mine[i] = me * 1000;
    }
    OK(MPI_Comm_size(comm, &n));
    int left = (me + n - 1) % n, right = (me + 1) % n, fresh = again;
    for (;;) {
        /* Everybody is at the round of those who have a state; whoever has none gets it from its right neighbour. */
        int furthest = fresh ? 0 : round;
        OK(MPI_Allreduce(MPI_IN_PLACE, &furthest, 1, MPI_INT, MPI_MAX, comm));
        int neighbour_fresh;
        OK(MPI_Sendrecv(&fresh, 1, MPI_INT, right, 2, &neighbour_fresh, 1, MPI_INT, left, 2, comm, MPI_STATUS_IGNORE));
        MPI_Request request = MPI_REQUEST_NULL;
        if (fresh)
            OK(MPI_Irecv(mine, LENGTH, MPI_INT, right, 3, comm, &request));
        if (neighbour_fresh)
            OK(MPI_Send(theirs, LENGTH, MPI_INT, left, 3, comm));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        fresh = 0;
        round = furthest;
        int error = MPI_SUCCESS;
        while (round < ROUNDS) {
            for (int i = 0; i < LENGTH; i++)
                CHECK(mine[i] == me * 1000 + round, "place %d, round %d: %d", me, round, mine[i]);
            /* The state of this round is kept by the neighbour; all have it, or nobody goes on. */
            int kept[LENGTH], flag;
            error = TRY(MPI_Sendrecv(mine, LENGTH, MPI_INT, right, 4, kept, LENGTH, MPI_INT, left, 4, comm, MPI_STATUS_IGNORE));
            flag = !error;
            if (TRY(MPIX_Comm_agree(comm, &flag)) || !flag) {
                error = 1;
                break;
            }
            memcpy(theirs, kept, sizeof kept);
            if (!again && round == 3 && me == n - 1)
                die();
            if (!again && round == 7 && me == 1 % n && n > 2)
                die();
            int sum = 0, one = 1;
            error = TRY(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
            flag = !error;
            if (TRY(MPIX_Comm_agree(comm, &flag)) || !flag) {
                error = 1;
                break;
            }
            CHECK(sum == n, "%d of %d", sum, n);
            for (int i = 0; i < LENGTH; i++)
                mine[i]++;
            round++;
        }
        if (!error)
            break;
        MPI_Comm whole = replaced(comm, argv, me);
        OK(MPI_Comm_free(&comm));
        comm = whole;
    }
    int total = mine[0], wanted = 0;
    OK(MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT, MPI_SUM, comm));
    for (int i = 0; i < n; i++)
        wanted += i * 1000 + ROUNDS;
    CHECK(total == wanted, "%d is not %d", total, wanted);
    OK(MPI_Comm_free(&comm));
}

/* Rank 0 hands out tasks to workers that die; every task is done at least once. */
static void pool(void)
{
    enum { TASKS = 200 };
    MPI_Comm world = MPI_COMM_WORLD;
    if (rank != 0) {
        for (int done = 0;; done++) {
            int task;
            OK(MPI_Send(&done, 1, MPI_INT, 0, 1, world));
            OK(MPI_Recv(&task, 1, MPI_INT, 0, 2, world, MPI_STATUS_IGNORE));
            if (task < 0)
                return;
            nap((long)below(2000));
            if (rank % 2 && done == 2 + rank)
                die();
            OK(MPI_Send(&task, 1, MPI_INT, 0, 3, world));
        }
    }
    int given[TASKS], done[TASKS] = {0}, left = TASKS, working = size - 1, *task_of = malloc(size * sizeof *task_of);
    for (int i = 0; i < TASKS; i++)
        given[i] = 0;
    for (int i = 0; i < size; i++)
        task_of[i] = -1;
    while (working > 0) {
        MPI_Status status;
        int word;
        int error = MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &status);
        if (error) {
            CHECK(class_of(error) == MPIX_ERR_PROC_FAILED, "class %d", class_of(error));
            MPI_Group acked_before, acked, all;
            int n_before, n;
            OK(MPIX_Comm_failure_get_acked(world, &acked_before));
            OK(MPIX_Comm_failure_ack(world));
            OK(MPIX_Comm_failure_get_acked(world, &acked));
            OK(MPI_Group_size(acked_before, &n_before));
            OK(MPI_Group_size(acked, &n));
            OK(MPI_Comm_group(world, &all));
            for (int i = n_before; i < n; i++) {
                int who;
                OK(MPI_Group_translate_ranks(acked, 1, &i, all, &who));
                if (task_of[who] >= 0)
                    given[task_of[who]] = 0;
                task_of[who] = -1;
                working--;
            }
            OK(MPI_Group_free(&acked_before));
            OK(MPI_Group_free(&acked));
            OK(MPI_Group_free(&all));
            continue;
        }
        int who = status.MPI_SOURCE;
        if (status.MPI_TAG == 3) {
            CHECK(word == task_of[who], "%d has done %d", who, word);
            left -= !done[word];
            done[word] = 1;
            task_of[who] = -1;
            continue;
        }
        int task = -1;
        for (int i = 0; i < TASKS && task < 0; i++)
            if (!done[i] && (!given[i] || left <= working))
                task = i;
        if (task >= 0)
            given[task] = 1;
        task_of[who] = task;
        if (TRY(MPI_Send(&task, 1, MPI_INT, who, 2, world)) == MPI_SUCCESS && task < 0)
            working--;
    }
    int living = 0;
    for (int i = 1; i < size; i++)
        living += i % 2 == 0;
    CHECK(left == 0 || living == 0, "%d tasks are left", left);
    free(task_of);
}

/* When a soak ends, on a clock that all processes share; as an argument of those that come later. */
static char ends[64];

/* The communicator whole again, however often somebody dies meanwhile; NULL for a process that is not wanted any more. */
static MPI_Comm rebuilt(MPI_Comm broken, char **argv, int *place, int wanted)
{
    int child = broken == MPI_COMM_NULL;
    for (;;) {
        MPI_Comm left = MPI_COMM_NULL, inter, merged = MPI_COMM_NULL, whole = MPI_COMM_NULL;
        int error;
        if (child) {
            OK(MPI_Comm_get_parent(&inter));
            if (inter == MPI_COMM_NULL)
                return inter;
            error = MPI_Recv(place, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE);
        } else {
            int living, me, places[wanted], is_there[wanted];
            OK(MPIX_Comm_shrink(broken, &left));
            returning(left);
            OK(MPI_Comm_free(&broken));
            broken = left;
            OK(MPI_Comm_size(left, &living));
            OK(MPI_Comm_rank(left, &me));
            error = TRY(MPI_Allgather(place, 1, MPI_INT, places, 1, MPI_INT, left));
            int all = !error;
            if (TRY(MPIX_Comm_agree(left, &all)) || !all) {
                OK(MPIX_Comm_revoke(left));
                continue;
            }
            if (living == wanted)
                return left;
            memset(is_there, 0, sizeof is_there);
            for (int i = 0; i < living; i++)
                is_there[places[i]] = 1;
            MPI_Info info;
            OK(MPI_Info_create(&info));
            OK(MPI_Info_set(info, "mpi_initial_errhandler", "mpi_errors_return"));
            char *args[] = {argv[1], argv[2], ends, argv[4], "again", NULL};
            error = MPI_Comm_spawn(argv[0], args, wanted - living, info, 0, left, &inter, MPI_ERRCODES_IGNORE);
            OK(MPI_Info_free(&info));
            all = !error;
            if (TRY(MPIX_Comm_agree(left, &all)) || !all) {
                if (!error) {
                    OK(MPIX_Comm_revoke(inter));
                    OK(MPI_Comm_free(&inter));
                }
                continue;
            }
            returning(inter);
            for (int i = 0, next = 0; me == 0 && i < wanted; i++)
                if (!is_there[i] && MPI_Send(&i, 1, MPI_INT, next++, 1, inter))
                    break;
        }
        error = error || MPI_Intercomm_merge(inter, child, &merged);
        if (!error)
            returning(merged);
        error = error || MPI_Comm_split(merged, 0, *place, &whole);
        int all = !error;
        if (MPIX_Comm_agree(inter, &all) || !all) {
            OK(MPIX_Comm_revoke(inter));
            if (child)
                return MPI_COMM_NULL;
            OK(MPI_Comm_free(&inter));
            continue;
        }
        OK(MPI_Comm_free(&merged));
        OK(MPI_Comm_free(&inter));
        if (!child)
            OK(MPI_Comm_free(&left));
        return returning(whole);
    }
}

/* For so many seconds, any process may die at any moment and wherever it is; the dead are replaced and the data are right. */
static void soak(char **argv, int again)
{
    enum { LENGTH = 5000 };
    int wanted = atoi(argv[4]), place = again ? -1 : rank, round = 0;
    double until = again ? atof(argv[3]) : now() * 1e-9 + atof(argv[3]);
    snprintf(ends, sizeof ends, "%.3f", until);
    MPI_Comm comm = MPI_COMM_NULL;
    if (!again) {
        CHECK(size == wanted, "%d is not %d", size, wanted);
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        returning(comm);
    } else if ((comm = rebuilt(comm, argv, &place, wanted)) == MPI_COMM_NULL)
        return;
    int *mine = malloc(LENGTH * sizeof *mine), *theirs = malloc(LENGTH * sizeof *theirs);
    for (int stop = 0;;) {
        /* Where we are: those who are new do not know. */
        int word[2] = {round, place == 0 && now() * 1e-9 > until};
        int error = TRY(MPI_Allreduce(MPI_IN_PLACE, word, 2, MPI_INT, MPI_MAX, comm));
        if (!error) {
            round = word[0];
            stop = word[1];
            int left = (place + wanted - 1) % wanted, right = (place + 1) % wanted;
            for (int i = 0; i < LENGTH; i++)
                mine[i] = place * 7 + round * 3 + i;
            error = TRY(MPI_Sendrecv(mine, LENGTH, MPI_INT, right, 1, theirs, LENGTH, MPI_INT, left, 1, comm, MPI_STATUS_IGNORE));
            for (int i = 0; !error && i < LENGTH; i++)
                CHECK(theirs[i] == left * 7 + round * 3 + i, "round %d, place %d: %d", round, place, theirs[i]);
        }
        if (!error) {
            int all[wanted];
            error = TRY(MPI_Allgather(&mine[0], 1, MPI_INT, all, 1, MPI_INT, comm));
            for (int i = 0; !error && i < wanted; i++)
                CHECK(all[i] == i * 7 + round * 3, "round %d, place %d: %d", round, i, all[i]);
        }
        int all = !error;
        if (error) /* some may wait for this rank */
            OK(MPIX_Comm_revoke(comm));
        if (!TRY(MPIX_Comm_agree(comm, &all)) && all) {
            round++;
            if (stop)
                break;
            continue;
        }
        OK(MPIX_Comm_revoke(comm));
        comm = rebuilt(comm, argv, &place, wanted);
        CHECK(comm != MPI_COMM_NULL, "%d", place);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    if (place == 0)
        printf("all claims of survivors hold after %d rounds\n", round);
    free(mine);
    free(theirs);
}

int main(int argc, char **argv)
{
    if (argc > 4 && !strcmp(argv[1], "soak")) {
        /* One of all dies every second or so; the first ones begin to die later. */
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        chance += (uint64_t)t.tv_nsec * (uint64_t)getpid();
        for (int i = 0; i < 10; i++)
            below(2);
        long life = (argc > 5 ? 0 : 1000000) + (long)below(2000000 * atol(argv[4]));
        signal(SIGALRM, SIG_DFL);
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {life / 1000000, life % 1000000 + 1}}, NULL);
    }
    begin(&argc, &argv);
    int again = !strcmp(argv[argc - 1], "again");
    returning(MPI_COMM_WORLD);
    CHECK(argc > 2, "%s WHAT SEED", argv[0]);
    chance += strtoull(argv[2], NULL, 10) * 0x9E3779B97F4A7C15ULL;
    if (!strcmp(argv[1], "dead"))
        dead();
    else if (!strcmp(argv[1], "barrier"))
        barrier();
    else if (!strcmp(argv[1], "groups"))
        groups();
    else if (!strcmp(argv[1], "memory") && argc > 3)
        memory(argv);
    else if (!strcmp(argv[1], "loop"))
        loop();
    else if (!strcmp(argv[1], "checkpoint"))
        checkpoint(argv, again);
    else if (!strcmp(argv[1], "pool"))
        pool();
    else if (!strcmp(argv[1], "soak") && argc > 4)
        soak(argv, again);
    else
        CHECK(0, "%s is unknown", argv[1]);
    if (rank == 0 && !again && strcmp(argv[1], "soak"))
        printf("all claims of survivors hold on %d ranks\n", size);
    OK(MPI_Finalize());
    return 0;
}
