/* Threads of rank 0 wait for a long time, each on a communicator of its own. They must sleep, and rarely wake.
 * Then one thread waits on one communicator, while rank 1 needs the progress of rank 0 on the others.
 * With the parameter threads_lanes the communicators belong to different lanes. */
#include "check.h"
#include <pthread.h>
#include <sys/resource.h>

enum { THREADS = 4, LONG = 200000, ROUNDS = 25 };

static MPI_Comm comms[THREADS];

static long switches(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage failed");
    return usage.ru_nvcsw;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void *wait_on(void *argument)
{
    MPI_Comm comm = *(MPI_Comm *)argument;
    int value = 0;
    OK(MPI_Recv(&value, 1, MPI_INT, 1, 1, comm, MPI_STATUS_IGNORE));
    CHECK(value == 1, "the number is %d", value);
    return NULL;
}

/* A thread that sleeps until its message arrives wakes at most once in 10 ms.
 * The limit is four times that: a thread that wakes may wake another one. */
static void all_sleep(void)
{
    if (rank == 0) {
        pthread_t threads[THREADS];
        for (int t = 0; t < THREADS; t++)
            CHECK(!pthread_create(&threads[t], NULL, wait_on, &comms[t]), "no thread %d", t);
        pause_ms(100);
        double since = MPI_Wtime();
        long before = switches();
        pause_ms(300);
        double ms = 1e3 * (MPI_Wtime() - since);
        long during = switches() - before;
        CHECK(during < THREADS * ms * 4 / 10, "%ld voluntary context switches in %g ms", during, ms);
        OK(MPI_Send(NULL, 0, MPI_INT, 1, 2, MPI_COMM_WORLD));
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
    } else if (rank == 1) {
        int one = 1;
        OK(MPI_Recv(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int t = 0; t < THREADS; t++)
            OK(MPI_Send(&one, 1, MPI_INT, 0, 1, comms[t]));
    }
}

/* Rank 0 sleeps in a receive. Rank 1 sends messages of other communicators that need the progress of rank 0. */
static void one_sleeps_for_all(int *data)
{
    for (int here = 0; here < THREADS; here++) {
        MPI_Request requests[THREADS];
        for (int t = 0; t < THREADS; t++)
            requests[t] = MPI_REQUEST_NULL;
        for (int round = 0; round < ROUNDS; round++) {
            if (rank == 0) {
                for (int t = 0; t < THREADS; t++)
                    if (t != here)
                        OK(MPI_Irecv(data + t * LONG, LONG, MPI_INT, 1, 3, comms[t], &requests[t]));
                OK(MPI_Recv(NULL, 0, MPI_INT, 1, 4, comms[here], MPI_STATUS_IGNORE));
                OK(MPI_Waitall(THREADS, requests, MPI_STATUSES_IGNORE));
                for (int t = 0; t < THREADS; t++)
                    CHECK(t == here || data[t * LONG + LONG - 1] == round + t, "round %d: the number is %d", round, data[t * LONG + LONG - 1]);
            } else if (rank == 1) {
                for (int t = 0; t < THREADS; t++) {
                    if (t == here)
                        continue;
                    data[LONG - 1] = round + t;
                    pause_ms(round % 5);
                    OK(MPI_Ssend(data, LONG, MPI_INT, 0, 3, comms[t]));
                }
                OK(MPI_Send(NULL, 0, MPI_INT, 0, 4, comms[here]));
            }
        }
    }
}

/* Threads of both ranks answer each other after pauses, so they sleep and wake in all lanes in any order.
 * Some leave MPI between two messages, so another thread must watch their lanes. */
static void *answer(void *argument)
{
    int me = (int)((MPI_Comm *)argument - comms), value = 0, other = !rank;
    for (int round = 0; round < 4 * ROUNDS; round++) {
        int mine = (round + me) % 2 == rank;
        if (mine) {
            if (round % 3 == 0)
                pause_ms((round + me) % 4);
            OK(MPI_Ssend(&round, 1, MPI_INT, other, 5, comms[me]));
        } else {
            OK(MPI_Recv(&value, 1, MPI_INT, other, 5, comms[me], MPI_STATUS_IGNORE));
            CHECK(value == round, "thread %d: message %d instead of %d", me, value, round);
        }
    }
    return NULL;
}

static void sleep_and_wake(void)
{
    pthread_t threads[THREADS];
    if (rank > 1)
        return;
    for (int t = 0; t < THREADS; t++)
        CHECK(!pthread_create(&threads[t], NULL, answer, &comms[t]), "no thread %d", t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    introduce();
    CHECK(provided == MPI_THREAD_MULTIPLE && size > 1, "level %d, %d ranks", provided, size);
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
    int *data = calloc(THREADS * LONG, sizeof *data);
    all_sleep();
    one_sleeps_for_all(data);
    sleep_and_wake();
    free(data);
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Comm_free(&comms[t]));
    return finish("asleep_threads");
}
