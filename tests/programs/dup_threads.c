/* Several threads duplicate communicators at the same time: one MPI_COMM_WORLD, the others a duplicate of their own.
 * The order of the duplications differs between the ranks.
 * Every duplicate must be separate from all others: its messages and sums are those of its own thread. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 60 };

static MPI_Comm parents[THREADS];

static void *duplicate(void *argument)
{
    int me = *(int *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm own;
        OK(MPI_Comm_dup(parents[me], &own));
        int number = 1000 * me + round, sum = 0, from_left = -1;
        OK(MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, own));
        CHECK(sum == number * size, "thread %d, round %d: the sum is %d", me, round, sum);
        int mine = 100000 * rank + number, left = (rank + size - 1) % size;
        OK(MPI_Sendrecv(&mine, 1, MPI_INT, (rank + 1) % size, 0, &from_left, 1, MPI_INT, left, 0, own, MPI_STATUS_IGNORE));
        CHECK(from_left == 100000 * left + number, "thread %d, round %d: got %d", me, round, from_left);
        if ((me + rank + round) % 3 == 0)
            sched_yield();
        OK(MPI_Comm_free(&own));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    introduce();
    CHECK(provided == MPI_THREAD_MULTIPLE, "threads were granted level %d", provided);
    parents[0] = MPI_COMM_WORLD;
    for (int t = 1; t < THREADS; t++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &parents[t]));
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int t = 0; t < THREADS; t++) {
        numbers[t] = (t + rank) % THREADS;
        CHECK(!pthread_create(&threads[t], NULL, duplicate, &numbers[t]), "thread %d did not start", t);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int t = 1; t < THREADS; t++)
        OK(MPI_Comm_free(&parents[t]));
    return finish("dup_threads");
}
