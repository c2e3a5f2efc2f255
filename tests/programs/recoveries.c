/* Programs that continue without dead ranks, or with replacements, like ULFM's tutorials.
 * Usage: recoveries WHAT SEED, started by mpirun --with-ft ulfm.
 * SEED determines which ranks die, and when. */
#include "survival.h"

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
        /* All ranks draw the same numbers; only the victim uses `whom` and `how`. */
        uint64_t draw = below(rounds), whom = below(size), how = below(3);
        int dies = died < deaths && draw < (uint64_t)deaths * 3 && now_size > 1;
        died += dies;
        if (dies && (int)whom == rank && rank != 0) {
            if (how == 0)
                die();
            if (how == 1) {
                /* The victim dies while the other ranks are in this operation. */
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

/* Returns a communicator in which spawned processes replace the dead ranks.
 * A replacement has the rank number of the dead rank; the survivors keep theirs. */
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

/* Each rank's right neighbour keeps a copy of its state;
 * a replacement restores the dead rank's state from this copy. */
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
        /* All ranks continue with the round of the survivors;
         * a replacement gets the state from its right neighbour. */
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
            /* The neighbour stores the state of this round.
               If not all ranks have stored it, no rank continues. */
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

/* Rank 0 distributes tasks to workers that may die; every task is executed at least once. */
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

int main(int argc, char **argv)
{
    int again = !strcmp(argv[argc - 1], "again");
    survive(&argc, &argv);
    if (!strcmp(argv[1], "loop"))
        loop();
    else if (!strcmp(argv[1], "checkpoint"))
        checkpoint(argv, again);
    else if (!strcmp(argv[1], "pool"))
        pool();
    else
        CHECK(0, "%s is unknown", argv[1]);
    if (rank == 0 && !again)
        printf("all claims of recoveries hold on %d ranks\n", size);
    OK(MPI_Finalize());
    return 0;
}
