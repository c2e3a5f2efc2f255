/*
 * Barriers on many communicators at the same time, possibly on hardware channels.
 *
 *     channels [NAP_MILLISECONDS [GUESTS]]
 *
 * First, barriers of the world and of its two halves alternate. Then more duplicates of the world than a board
 * has channels execute barriers concurrently; then more duplicates, GUESTS or 12, are created and freed.
 * With a time, the last rank enters one barrier late by this time, and no rank may leave early.
 * All ranks must be on one machine: enter and leave times are compared on its monotonic clock. */
#include "check.h"

enum { TWINS = 7, ROUNDS = 20 };

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static void meet_once(MPI_Comm comm, enum form form)
{
    MPI_Request request;
    switch (form) {
    case BLOCKING:
        OK(MPI_Barrier(comm));
        return;
    case NONBLOCKING:
        OK(MPI_Ibarrier(comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        return;
    default:
        OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &request));
        for (int i = 0; i < 2; i++) {
            OK(MPI_Start(&request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        OK(MPI_Request_free(&request));
    }
}

/* Checks that no rank leaves a barrier before all ranks have entered it. */
static void meet(MPI_Comm comm, enum form form, long microseconds, const char *where)
{
    long long entered, left, last, first;
    nap(microseconds);
    entered = now();
    meet_once(comm, form);
    left = now();
    OK(MPI_Allreduce(&entered, &last, 1, MPI_LONG_LONG, MPI_MAX, comm));
    OK(MPI_Allreduce(&left, &first, 1, MPI_LONG_LONG, MPI_MIN, comm));
    CHECK(last <= first, "%s: a rank left %lld ns before the last had entered", where, last - first);
}

int main(int argc, char **argv)
{
    MPI_Comm half, twins[TWINS], guest;
    MPI_Request requests[TWINS];
    long late = argc > 1 ? atol(argv[1]) * 1000 : 0;
    int guests = argc > 2 ? atoi(argv[2]) : 12;
    begin(&argc, &argv);
    unsigned seed = 4711u + 31u * (unsigned)rank;

    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    for (int i = 0; i < ROUNDS; i++) {
        meet(half, i % FORMS, rand_r(&seed) % 300, "a half");
        if (i % 4 == 0)
            meet(MPI_COMM_WORLD, i % FORMS, rand_r(&seed) % 300, "the world");
    }

    for (int i = 0; i < TWINS; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &twins[i]));
    for (int i = 0; i < ROUNDS; i++)
        meet(twins[i % TWINS], i % FORMS, rand_r(&seed) % 300, "a twin");
    /* All barriers are in progress at the same time, and are completed in reverse order. */
    for (int i = 0; i < TWINS; i++)
        OK(MPI_Ibarrier(twins[i], &requests[i]));
    for (int i = TWINS; i-- > 0;)
        OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    for (int i = 0; i < TWINS; i++)
        OK(MPI_Comm_free(&twins[i]));
    OK(MPI_Comm_free(&half));

    for (int i = 0; i < guests; i++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &guest));
        meet(guest, i % FORMS, 0, "a guest");
        if (late && i == guests / 2) {
            meet(guest, BLOCKING, rank == size - 1 ? late : 0, "a guest that waits");
            meet(guest, BLOCKING, 0, "a guest after that");
        }
        OK(MPI_Comm_free(&guest));
    }
    return finish("channels");
}
