/*
 * Rank 0's results depend on timing: wildcards, probes, and the order in which requests complete.
 * Rank 0 prints all results in one line.
 *
 *     race        every rank sleeps for random times between its calls
 *     race other  rank 0 makes other calls, so that a replay of a recording of `race` must fail
 *     race die    rank 0 dies by a signal at the end of its run
 */
#include "check.h"

#include <signal.h>
#include <unistd.h>

enum { EACH = 6 };

static char seen[8192];

static void note(const char *what, int a, int b)
{
    size_t length = strlen(seen);
    snprintf(seen + length, sizeof seen - length, " %s:%d.%d", what, a, b);
}

static void receive_any(void)
{
    for (int i = 0; i < EACH * (size - 1); i++) {
        int got;
        MPI_Status status;
        OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        note("recv", status.MPI_SOURCE, got);
    }
}

static void probe_any(void)
{
    for (int i = 0; i < EACH * (size - 1);) {
        int flag, got, looks = 0;
        MPI_Status status;
        do {
            OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
            looks++;
        } while (!flag);
        OK(MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        note("probe", status.MPI_SOURCE, looks);
        i++;
    }
}

static void wait_any(void)
{
    MPI_Request requests[64];
    int got[64], places[64], count;
    for (int i = 0; i < 2 * (size - 1); i++)
        OK(MPI_Irecv(&got[i], 1, MPI_INT, 1 + i / 2, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]));
    for (int i = 0; i < size - 1; i++) {
        int place;
        OK(MPI_Waitany(2 * (size - 1), requests, &place, MPI_STATUS_IGNORE));
        note("any", place, got[place]);
    }
    for (;;) {
        OK(MPI_Waitsome(2 * (size - 1), requests, &count, places, MPI_STATUSES_IGNORE));
        if (count == MPI_UNDEFINED)
            break;
        note("some", count, places[0]);
    }
}

static void test_some(void)
{
    MPI_Request requests[64];
    int got[64], places[64], count, flag, looks = 0;
    for (int i = 0; i < size - 1; i++)
        OK(MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &requests[i]));
    do {
        OK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
        looks++;
    } while (!flag);
    note("test", looks, got[0]);
    looks = 0;
    for (int left = size - 2; left > 0;) {
        OK(MPI_Testsome(size - 1, requests, &count, places, MPI_STATUSES_IGNORE));
        looks++;
        if (count > 0) {
            left -= count;
            note("testsome", looks, got[places[0]]);
        }
    }
}

/* Tries to cancel receives; the message of a cancelled receive is received by another receive. */
static void cancel_some(void)
{
    for (int i = 0; i < EACH; i++) {
        int got = -1, flag;
        MPI_Request request;
        MPI_Status status;
        OK(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 20 + i, MPI_COMM_WORLD, &request));
        nap(random() % 1500);
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        if (flag)
            OK(MPI_Recv(&got, 1, MPI_INT, 1, 20 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        note("cancel", flag, got);
    }
}

static void look_at_any(void)
{
    MPI_Request requests[64];
    int got[64], place, flag, looks = 0;
    for (int i = 0; i < size - 1; i++)
        OK(MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &requests[i]));
    do {
        OK(MPI_Request_get_status_any(size - 1, requests, &place, &flag, MPI_STATUS_IGNORE));
        looks++;
    } while (!flag);
    note("look", looks, got[place]);
    OK(MPI_Waitall(size - 1, requests, MPI_STATUSES_IGNORE));
}

static void feed(int messages, int tag)
{
    for (int i = 0; i < messages; i++) {
        int word = rank * 100 + i;
        nap(random() % 1500);
        OK(MPI_Send(&word, 1, MPI_INT, 0, tag < 0 ? i % 3 : tag, MPI_COMM_WORLD));
    }
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    begin(&argc, &argv);
    srandom((unsigned)(now() ^ getpid()));
    if (rank == 0) {
        if (!strcmp(way, "other"))
            probe_any();
        else
            receive_any();
    } else {
        feed(EACH, -1);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    rank == 0 ? probe_any() : feed(EACH, -1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    rank == 0 ? wait_any() : feed(2, -1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    rank == 0 ? test_some() : feed(1, 9);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        cancel_some();
    for (int i = 0; rank == 1 && i < EACH; i++)
        feed(1, 20 + i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    rank == 0 ? look_at_any() : feed(1, 9);
    if (rank == 0) {
        printf("seen%s\n", seen);
        fflush(stdout);
        if (!strcmp(way, "die"))
            raise(SIGKILL);
    }
    return finish("race");
}
