/*
 * Two threads of each rank pass a buffer to each other, synchronised only by MPI messages:
 * one thread writes the buffer and sends, the other receives and uses the buffer.
 * Only the library's lock orders the accesses; a race detector that ignores the lock reports a race.
 * The messages use MPI_COMM_WORLD and then duplicates of it, each of which may have a lock of its own.
 */
#include "check.h"
#include <pthread.h>

enum { ROUNDS = 20, NUMBERS = 16, DUPLICATES = 4 };

static long shared[NUMBERS];
static MPI_Comm comm;

static void hand_over(int tag)
{
    OK(MPI_Send(NULL, 0, MPI_CHAR, rank, tag, comm));
}

static void take_over(int tag)
{
    OK(MPI_Recv(NULL, 0, MPI_CHAR, rank, tag, comm, MPI_STATUS_IGNORE));
}

static void add(long what)
{
    for (int i = 0; i < NUMBERS; i++)
        shared[i] += what;
}

static void *other(void *nothing)
{
    (void)nothing;
    for (int i = 0; i < ROUNDS; i++) {
        take_over(2 * i);
        add(1);
        hand_over(2 * i + 1);
    }
    return NULL;
}

static void pass_on(MPI_Comm by)
{
    comm = by;
    long before = shared[NUMBERS - 1];
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        add(100);
        hand_over(2 * i);
        take_over(2 * i + 1);
    }
    long added = shared[NUMBERS - 1] - before;
    CHECK(added == 101 * ROUNDS, "%ld", added);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    introduce();
    CHECK(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
    pass_on(MPI_COMM_WORLD);
    for (int i = 0; i < DUPLICATES; i++) {
        MPI_Comm duplicate;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &duplicate));
        pass_on(duplicate);
        OK(MPI_Comm_free(&duplicate));
    }
    return finish("handed_over");
}
