/* Several threads call MPI at the same time: each communicates with the corresponding thread of the next rank,
 * blocking and nonblocking, while one more thread executes barriers on a separate communicator.
 * Threads that outnumber the cores of their rank migrate, but their affinity masks do not change. */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, ROUNDS = 200, LONG = 20000 };

static MPI_Comm quiet;

static void *talk(void *argument)
{
    int me = *(int *)argument, left = (rank + size - 1) % size, right = (rank + 1) % size;
    static int in[THREADS][LONG], out[THREADS][LONG];
    cpu_set_t before, after;
    CHECK(!sched_getaffinity(0, sizeof before, &before), "no affinity mask");
    for (int round = 0; round < ROUNDS; round++) {
        int n = round % 20 == 0 ? LONG : 1 + round % 7;
        MPI_Request requests[2];
        MPI_Status status;
        for (int i = 0; i < n; i++)
            out[me][i] = rank * 1000000 + me * 10000 + round + i;
        if (round % 2) {
            OK(MPI_Irecv(in[me], LONG, MPI_INT, left, me, MPI_COMM_WORLD, &requests[0]));
            OK(MPI_Isend(out[me], n, MPI_INT, right, me, MPI_COMM_WORLD, &requests[1]));
            MPI_Status statuses[2];
            OK(MPI_Waitall(2, requests, statuses));
            status = statuses[0];
        } else {
            OK(MPI_Sendrecv(out[me], n, MPI_INT, right, me, in[me], LONG, MPI_INT, left, me, MPI_COMM_WORLD, &status));
        }
        int count;
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == n && status.MPI_TAG == me, "thread %d got %d of %d with tag %d", me, count, n, status.MPI_TAG);
        for (int i = 0; i < n; i++)
            CHECK(in[me][i] == left * 1000000 + me * 10000 + round + i, "thread %d, round %d: number %d is %d", me, round, i, in[me][i]);
    }
    CHECK(!sched_getaffinity(0, sizeof after, &after), "no affinity mask");
    CHECK(CPU_EQUAL(&before, &after), "thread %d may run on %d instead of %d cores", me, CPU_COUNT(&after), CPU_COUNT(&before));
    return NULL;
}

/* Sends its message first, and receives the last one that the left rank sends. */
static void *exchange(void *got)
{
    int sent = rank, left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Status status;
    OK(MPI_Sendrecv(&sent, 1, MPI_INT, right, 40, got, 1, MPI_INT, left, 41, MPI_COMM_WORLD, &status));
    CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 41, "from %d with tag %d", status.MPI_SOURCE, status.MPI_TAG);
    return NULL;
}

/* A thread waits in MPI_Sendrecv while another one calls MPI_Sendrecv in a loop. */
static void exchanges_at_once(void)
{
    int left = (rank + size - 1) % size, right = (rank + 1) % size, last = -1;
    pthread_t waiting;
    CHECK(!pthread_create(&waiting, NULL, exchange, &last), "no thread");
    for (int round = 0; round < ROUNDS; round++) {
        int sent = 1000 * rank + round, got = -1;
        MPI_Status status;
        /* The message of the left rank's waiting thread is the first one. */
        if (round == 0)
            OK(MPI_Recv(&got, 1, MPI_INT, left, 40, MPI_COMM_WORLD, &status));
        OK(MPI_Sendrecv(&sent, 1, MPI_INT, right, 42, &got, 1, MPI_INT, left, 42, MPI_COMM_WORLD, &status));
        CHECK(got == 1000 * left + round && status.MPI_TAG == 42, "round %d received %d with tag %d", round, got, status.MPI_TAG);
    }
    int sent = rank + 500;
    OK(MPI_Send(&sent, 1, MPI_INT, right, 41, MPI_COMM_WORLD));
    pthread_join(waiting, NULL);
    CHECK(last == left + 500, "the waiting thread got %d", last);
}

static void *meet(void *nothing)
{
    (void)nothing;
    for (int round = 0; round < ROUNDS; round++) {
        int one = 1, sum = 0;
        OK(MPI_Barrier(quiet));
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, quiet));
        CHECK(sum == size, "%d of %d met", sum, size);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, main_thread;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    introduce();
    CHECK(provided == MPI_THREAD_MULTIPLE, "threads were granted level %d", provided);
    OK(MPI_Is_thread_main(&main_thread));
    CHECK(main_thread, "the main thread is another one");
    exchanges_at_once();
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &quiet));

    pthread_t threads[THREADS + 1];
    int numbers[THREADS];
    for (int t = 0; t < THREADS; t++) {
        numbers[t] = t;
        CHECK(!pthread_create(&threads[t], NULL, talk, &numbers[t]), "thread %d did not start", t);
    }
    CHECK(!pthread_create(&threads[THREADS], NULL, meet, NULL), "the last thread did not start");
    for (int t = 0; t <= THREADS; t++)
        pthread_join(threads[t], NULL);
    OK(MPI_Comm_free(&quiet));
    return finish("threads");
}
