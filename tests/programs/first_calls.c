/* Several threads make their first call of each function at the same moment, each on its own communicator.
 * Data that the library creates at a first use are then created and read by several threads, also in different lanes.
 * A race between first uses occurs at most once in a process, so the threads begin each step at the same moment.
 * ThreadSanitizer still reports such a race in some of the runs only: cargo xtask races --times 40 first_calls. */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 4, LATE = 20000 };

static MPI_Comm comms[THREADS];
static atomic_int arrived;

/* Waits until all threads have begun step number `step`, counted from 1. */
static void together(int step)
{
    atomic_fetch_add(&arrived, 1);
    for (int polls = 1; atomic_load(&arrived) < step * THREADS; polls++)
        if (polls % 1000 == 0)
            sched_yield();
}

static void *call(void *argument)
{
    int me = *(int *)argument, left = (rank + size - 1) % size, right = (rank + 1) % size;
    int in = -1, out = rank, flag, count;
    MPI_Comm comm = comms[me];
    MPI_Request requests[2];
    MPI_Status status, statuses[2];
    together(1);
    OK(MPI_Irecv(&in, 1, MPI_INT, left, 1, comm, &requests[0]));
    /* The messages to rank 0 are late, so all its threads wait for them. */
    if (rank == size - 1)
        usleep(LATE);
    OK(MPI_Isend(&out, 1, MPI_INT, right, 1, comm, &requests[1]));
    OK(MPI_Waitall(2, requests, statuses));
    CHECK(in == left, "thread %d got %d", me, in);
    together(2);
    OK(MPI_Sendrecv(&out, 1, MPI_INT, right, 2, &in, 1, MPI_INT, left, 2, comm, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 1, "thread %d got %d numbers", me, count);
    together(3);
    OK(MPI_Recv_init(&in, 1, MPI_INT, left, 3, comm, &requests[0]));
    OK(MPI_Send_init(&out, 1, MPI_INT, right, 3, comm, &requests[1]));
    OK(MPI_Startall(2, requests));
    together(4);
    OK(MPI_Wait(&requests[0], &status));
    OK(MPI_Wait(&requests[1], &status));
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    together(5);
    OK(MPI_Isend(&out, 1, MPI_INT, right, 4, comm, &requests[1]));
    OK(MPI_Iprobe(left, 4, comm, &flag, &status));
    OK(MPI_Probe(left, 4, comm, &status));
    OK(MPI_Recv(&in, 1, MPI_INT, left, 4, comm, &status));
    for (flag = 0; !flag;)
        OK(MPI_Test(&requests[1], &flag, &status));
    together(6);
    OK(MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, comm));
    CHECK(in == size * (size - 1) / 2, "thread %d: the sum is %d", me, in);
    together(7);
    OK(MPI_Barrier(comm));
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    introduce();
    CHECK(provided == MPI_THREAD_MULTIPLE, "threads were granted level %d", provided);
    /* Only communicators with these assertions are in lanes of their own. */
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_source", "true"));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, t ? info : MPI_INFO_NULL, &comms[t]));
    OK(MPI_Info_free(&info));
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int t = 0; t < THREADS; t++) {
        numbers[t] = t;
        CHECK(!pthread_create(&threads[t], NULL, call, &numbers[t]), "thread %d did not start", t);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Comm_free(&comms[t]));
    return finish("first_calls");
}
