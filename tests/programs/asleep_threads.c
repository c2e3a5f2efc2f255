/* Threads of rank 0 wait for a long time, each on a communicator of its own. They must sleep, and rarely wake.
 * Then one thread waits on one communicator, while rank 1 needs the progress of rank 0 on the others.
 * With the parameter threads_lanes the communicators belong to different lanes.
 *
 * A message must end a sleep. A message that does not is found when the sleep's limit ends it, 10 or 100 ms later.
 * The library counts such sleeps. A message may also arrive just after a sleep has ended,
 * so each part tolerates one such sleep for eight messages: fewer than one of four lanes has. */
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>

enum { THREADS = 4, LONG = 200000, ROUNDS = 25, TURNS = 32, MESSAGES_PER_LATE_SLEEP = 8 };

static MPI_Comm comms[THREADS];
static MPI_T_pvar_session session;

static long switches(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage failed");
    return usage.ru_nvcsw;
}

/* Returns the value of a counter of the library; 0 for other libraries. */
static long counter(const char *name)
{
    unsigned long long value = 0;
    int index, count;
    MPI_T_pvar_handle handle;
    if (!is_portcullis())
        return 0;
    CHECK(!MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), "no variable %s", name);
    CHECK(!MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count), "no handle of %s", name);
    CHECK(!MPI_T_pvar_read(session, handle, &value), "%s cannot be read", name);
    CHECK(!MPI_T_pvar_handle_free(session, &handle), "a handle of %s", name);
    return (long)value;
}

/* Runs a part with this number of messages. A wake-up that the library always loses is lost in each of three attempts;
 * on a loaded machine, messages may happen to arrive just after the ends of sleeps in one of them. */
static void counted(const char *part, void (*run)(int *), int *data, int messages)
{
    long most = 0;
    for (int attempt = 0; attempt < 3; attempt++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        long before = counter("mpi_base_late_sleeps");
        run(data);
        long late = counter("mpi_base_late_sleeps") - before;
        OK(MPI_Allreduce(&late, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD));
        if (most <= messages / MESSAGES_PER_LATE_SLEEP)
            return;
    }
    CHECK(0, "%s: %ld late sleeps for %d messages", part, most, messages);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void start(pthread_t *thread, void *(*work)(void *), void *argument)
{
    CHECK(!pthread_create(thread, NULL, work, argument), "a thread did not start: %p", argument);
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
            start(&threads[t], wait_on, &comms[t]);
        pause_ms(100);
        double since = MPI_Wtime();
        long before = switches(), sleeps = counter("mpi_base_sleeps");
        pause_ms(300);
        long during = switches() - before;
        sleeps = counter("mpi_base_sleeps") - sleeps;
        double ms = 1e3 * (MPI_Wtime() - since);
        CHECK(during < THREADS * ms * 4 / 10, "%ld voluntary context switches in %g ms", during, ms);
        /* The counter is read in every lane, so each thread wakes for it. */
        CHECK(sleeps < THREADS * (4 + ms / 10) * 3 / 2, "%ld sleeps in %g ms", sleeps, ms);
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

static void sleep_and_wake(int *unused)
{
    (void)unused;
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS && rank < 2; t++)
        start(&threads[t], answer, &comms[t]);
    for (int t = 0; t < THREADS && rank < 2; t++)
        pthread_join(threads[t], NULL);
}

static sem_t go, returned;

/* Sleeps in each turn on communicator turn + 1, while the main thread sleeps on communicator turn. */
static void *sleeps_second(void *unused)
{
    for (int turn = 0; turn < TURNS; turn++) {
        sem_wait(&go);
        pause_ms(20);
        OK(MPI_Recv(NULL, 0, MPI_INT, 1, 7, comms[(turn + 1) % THREADS], MPI_STATUS_IGNORE));
        sem_post(&returned);
    }
    return unused;
}

/* Two threads of rank 0 sleep. The one that began first returns and leaves MPI.
 * Then the other must wake for a message of a third communicator. */
static void first_leaves(int *data)
{
    if (rank == 0) {
        pthread_t second;
        CHECK(!sem_init(&go, 0, 0) && !sem_init(&returned, 0, 0), "no semaphore: %p", (void *)&go);
        start(&second, sleeps_second, NULL);
        for (int turn = 0; turn < TURNS; turn++) {
            MPI_Request request;
            OK(MPI_Irecv(data, LONG, MPI_INT, 1, 8, comms[(turn + 2) % THREADS], &request));
            sem_post(&go);
            OK(MPI_Recv(NULL, 0, MPI_INT, 1, 6, comms[turn % THREADS], MPI_STATUS_IGNORE));
            sem_wait(&returned);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK(data[LONG - 1] == turn, "turn %d: the number is %d", turn, data[LONG - 1]);
        }
        pthread_join(second, NULL);
    } else if (rank == 1) {
        for (int turn = 0; turn < TURNS; turn++) {
            /* The second thread sleeps for the second time, and will do so for some ms. */
            pause_ms(32 + turn % 4);
            OK(MPI_Send(NULL, 0, MPI_INT, 0, 6, comms[turn % THREADS]));
            pause_ms(2);
            data[LONG - 1] = turn;
            OK(MPI_Ssend(data, LONG, MPI_INT, 0, 8, comms[(turn + 2) % THREADS]));
            OK(MPI_Send(NULL, 0, MPI_INT, 0, 7, comms[(turn + 1) % THREADS]));
        }
    }
}

static void *receives_turns(void *unused)
{
    for (int turn = 0; turn < TURNS; turn++) {
        OK(MPI_Recv(NULL, 0, MPI_INT, 1, 9, comms[1], MPI_STATUS_IGNORE));
        OK(MPI_Send(NULL, 0, MPI_INT, 1, 9, comms[1]));
    }
    return unused;
}

/* Two threads of rank 0 wait on one communicator. The first one waits for the last message, and polls for both. */
static void one_polls_for_both(int *unused)
{
    (void)unused;
    if (rank == 0) {
        pthread_t second;
        start(&second, receives_turns, NULL);
        OK(MPI_Recv(NULL, 0, MPI_INT, 1, 10, comms[1], MPI_STATUS_IGNORE));
        pthread_join(second, NULL);
    } else if (rank == 1) {
        for (int turn = 0; turn < TURNS; turn++) {
            pause_ms(23);
            OK(MPI_Send(NULL, 0, MPI_INT, 0, 9, comms[1]));
            OK(MPI_Recv(NULL, 0, MPI_INT, 0, 9, comms[1], MPI_STATUS_IGNORE));
        }
        OK(MPI_Send(NULL, 0, MPI_INT, 0, 10, comms[1]));
    }
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    introduce();
    CHECK(provided == MPI_THREAD_MULTIPLE && size > 1, "level %d, %d ranks", provided, size);
    CHECK(!MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) && !MPI_T_pvar_session_create(&session), "level %d", provided);
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
    int *data = calloc(THREADS * LONG, sizeof *data);
    all_sleep();
    counted("one sleeps for all", one_sleeps_for_all, data, THREADS * (THREADS - 1) * ROUNDS);
    counted("sleep and wake", sleep_and_wake, data, 4 * THREADS * ROUNDS);
    counted("the first leaves", first_leaves, data, TURNS);
    counted("one polls for both", one_polls_for_both, data, TURNS);
    free(data);
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Comm_free(&comms[t]));
    CHECK(!MPI_T_pvar_session_free(&session) && !MPI_T_finalize(), "the session stays: %d", rank);
    return finish("asleep_threads");
}
