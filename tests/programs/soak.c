/* Any process may die at any moment; dead processes are replaced.
 * Processes also die in MPI_Init, in a spawn, and during the recovery from another death.
 * Usage: soak soak SEED SECONDS RANKS, started by mpirun --with-ft ulfm. */
#include "survival.h"
#include <sys/time.h>
#include <unistd.h>

/* The time at which the test ends, on a clock that all processes share; passed to spawned processes as an argument. */
static char ends[64];

/* Restores `wanted` members, even if processes die during the recovery; returns NULL on a surplus process. */
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

/* For the given number of seconds, any process may die anywhere;
 * dead processes are replaced, and the data remain right. */
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
        /* Agrees on the current round, which new processes do not know. */
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
        if (error) /* other ranks may wait for this rank */
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
        printf("all claims of soak hold after %d rounds\n", round);
    free(mine);
    free(theirs);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "%s soak SEED SECONDS RANKS\n", argv[0]);
        return 2;
    }
    /* On average one process dies per second; an initial process lives at least one second. */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    chance += (uint64_t)t.tv_nsec * (uint64_t)getpid();
    for (int i = 0; i < 10; i++)
        below(2);
    long life = (argc > 5 ? 0 : 1000000) + (long)below(2000000 * atol(argv[4]));
    signal(SIGALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {life / 1000000, life % 1000000 + 1}}, NULL);
    int again = !strcmp(argv[argc - 1], "again");
    survive(&argc, &argv);
    soak(argv, again);
    OK(MPI_Finalize());
    return 0;
}
