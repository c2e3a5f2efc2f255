/*
 * Jobs that pause and then continue, each for a reason that is invisible to MPI.
 * mpirun must end none of them.
 *
 *     healthy sleeps|pipe|file|stops|thread|lanes|busy_lanes|timer|lock|polls|accepts|spawns|shared [MILLISECONDS]
 *     healthy serves|calls PORT
 *
 * During the pause all ranks but one wait inside MPI.
 */
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static int milliseconds = 2200;

static void rest(void)
{
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    while (nanosleep(&left, &left))
        ;
}

/* Passes a message around the ring, from rank `first` to itself. */
static void ring(int first)
{
    int word = 7, next = (rank + 1) % size, before = (rank + size - 1) % size;
    if (rank == first)
        OK(MPI_Send(&word, 1, MPI_INT, next, 1, MPI_COMM_WORLD));
    OK(MPI_Recv(&word, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(word == 7, "%d", word);
    if (rank != first)
        OK(MPI_Send(&word, 1, MPI_INT, next, 1, MPI_COMM_WORLD));
}

static void *sends_later(void *unused)
{
    int word = 3;
    rest();
    OK(MPI_Send(&word, 1, MPI_INT, rank, 9, MPI_COMM_WORLD));
    return unused;
}

static void *computes_then_flags(void *flag)
{
    long long until = now() + milliseconds * 1000000LL;
    while (now() < until)
        ;
    *(volatile int *)flag = 1;
    int word = 4;
    OK(MPI_Send(&word, 1, MPI_INT, rank, 8, MPI_COMM_WORLD));
    return NULL;
}

static MPI_Comm comms[3];

static void *receives_in_lane(void *unused)
{
    int word = 0;
    OK(MPI_Recv(&word, 1, MPI_INT, (rank + size - 1) % size, 5, comms[1], MPI_STATUS_IGNORE));
    CHECK(word == 6, "%d", word);
    return unused;
}

static void *computes_then_sends(void *unused)
{
    int word = 6;
    long long until = now() + milliseconds * 1000000LL;
    while (now() < until)
        ;
    OK(MPI_Send(&word, 1, MPI_INT, (rank + 1) % size, 5, comms[1]));
    return unused;
}

static void *probes_then_sends(void *unused)
{
    int word = 6, flag;
    long long until = now() + milliseconds * 1000000LL;
    while (now() < until)
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 8, comms[1], &flag, MPI_STATUS_IGNORE));
    OK(MPI_Send(&word, 1, MPI_INT, (rank + 1) % size, 5, comms[1]));
    return unused;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turns = PTHREAD_COND_INITIALIZER;
static int turn;

/* Two threads wake each other; one of them always runs. */
static void *passes_the_turn(void *second)
{
    long long until = now() + milliseconds * 1000000LL;
    for (int mine = second != NULL, go = 1; go;) {
        pthread_mutex_lock(&mutex);
        while (turn % 2 != mine && turn >= 0)
            pthread_cond_wait(&turns, &mutex);
        go = turn >= 0 && now() < until;
        turn = go ? turn + 1 : -1;
        pthread_cond_broadcast(&turns);
        pthread_mutex_unlock(&mutex);
    }
    return second ? NULL : computes_then_sends(NULL);
}

/* As `lanes`, beside threads that are asleep most of the time: in the lock of a lane or at a condition variable. */
static void busy_lanes(void)
{
    pthread_t waiting, others[2];
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    CHECK(pthread_create(&waiting, NULL, receives_in_lane, NULL) == 0, "no thread");
    CHECK(pthread_create(&others[0], NULL, probes_then_sends, NULL) == 0, "no thread");
    pthread_join(others[0], NULL);
    pthread_join(waiting, NULL);
    CHECK(pthread_create(&waiting, NULL, receives_in_lane, NULL) == 0, "no thread");
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&others[i], NULL, passes_the_turn, i ? &turn : NULL) == 0, "no thread");
    for (int i = 0; i < 2; i++)
        pthread_join(others[i], NULL);
    pthread_join(waiting, NULL);
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_free(&comms[i]));
}

static sem_t tick;

static void ticks(int signal)
{
    (void)signal;
    sem_post(&tick);
}

/* Sleeps without a time limit; the handler of a timer's signal wakes it every 20 ms. */
static void *counts_ticks(void *unused)
{
    (void)unused;
    long long until = now() + milliseconds * 1000000LL;
    while (now() < until)
        sem_wait(&tick);
    int word = 6;
    OK(MPI_Send(&word, 1, MPI_INT, (rank + 1) % size, 5, comms[1]));
    return NULL;
}

/* As `lanes`, beside threads that are asleep in each of mpirun's snapshots, but have run since the one before. */
static void timer(void)
{
    pthread_t waiting, counting;
    sigset_t alarm;
    struct itimerval period = {{0, 20000}, {0, 20000}}, none = {{0, 0}, {0, 0}};
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    CHECK(sem_init(&tick, 0, 0) == 0 && signal(SIGALRM, ticks) != SIG_ERR, "no handler");
    /* The signal wakes the main thread or the one that counts. */
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    CHECK(pthread_create(&waiting, NULL, receives_in_lane, NULL) == 0, "no thread");
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    CHECK(pthread_create(&counting, NULL, counts_ticks, NULL) == 0, "no thread");
    CHECK(setitimer(ITIMER_REAL, &period, NULL) == 0, "no timer");
    pthread_join(counting, NULL);
    pthread_join(waiting, NULL);
    CHECK(setitimer(ITIMER_REAL, &none, NULL) == 0, "the timer goes on");
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_free(&comms[i]));
}

/* One thread of each rank waits on a communicator of its own. The message is sent by a thread that computes:
 * first on each rank, then on rank 0 only, while the second thread of each other rank waits, too. */
static void lanes(void)
{
    pthread_t waiting, computing;
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    CHECK(pthread_create(&waiting, NULL, receives_in_lane, NULL) == 0, "no thread");
    CHECK(pthread_create(&computing, NULL, computes_then_sends, NULL) == 0, "no thread");
    pthread_join(computing, NULL);
    pthread_join(waiting, NULL);
    CHECK(pthread_create(&waiting, NULL, receives_in_lane, NULL) == 0, "no thread");
    int word = 6;
    if (rank == 0)
        computes_then_sends(NULL);
    else
        OK(MPI_Recv(&word, 1, MPI_INT, rank - 1, 7, comms[2], MPI_STATUS_IGNORE));
    if (rank > 0)
        OK(MPI_Send(&word, 1, MPI_INT, (rank + 1) % size, 5, comms[1]));
    if (rank < size - 1)
        OK(MPI_Send(&word, 1, MPI_INT, rank + 1, 7, comms[2]));
    pthread_join(waiting, NULL);
    for (int i = 0; i < 3; i++)
        OK(MPI_Comm_free(&comms[i]));
}

/* A word is passed by the system (a pipe or a file) and not by MPI. */
static void through(const char *kind)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/healthy-%s", folder ? folder : "/tmp", kind);
    int is_pipe = !strcmp(kind, "pipe");
    if (rank == 0 && is_pipe)
        CHECK(mkfifo(path, 0600) == 0, "no pipe at %s", path);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        rest();
        FILE *out = fopen(path, "w");
        CHECK(out && fputs("go\n", out) >= 0 && fclose(out) == 0, "%s cannot be written", path);
    }
    if (rank == 1) {
        char line[8] = "";
        FILE *in = NULL;
        while (!in || !fgets(line, sizeof line, in)) {
            if (in && !is_pipe)
                fclose(in);
            in = fopen(path, "r");
            usleep(1000);
        }
        fclose(in);
        CHECK(!strcmp(line, "go\n"), "%s", line);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        unlink(path);
}

/* A child process of a rank stops rank 1 in the middle of its messages. */
static void stops(void)
{
    long pids[64];
    long me = getpid();
    OK(MPI_Allgather(&me, 1, MPI_LONG, pids, 1, MPI_LONG, MPI_COMM_WORLD));
    if (rank == 0 && fork() == 0) {
        usleep(20000);
        kill((pid_t)pids[1], SIGSTOP);
        rest();
        kill((pid_t)pids[1], SIGCONT);
        _exit(0);
    }
    long long until = now() + (milliseconds + 200) * 1000000LL;
    int go = 1;
    while (go) {
        ring(0);
        go = now() < until;
        OK(MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
}

static void locks(void)
{
    int *memory;
    MPI_Win win;
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    *memory = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        rest();
        OK(MPI_Win_unlock(0, win));
    } else {
        int one = 1;
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Win_free(&win));
}

/* After a pause, rank 0 stores into memory that all ranks map.
 * Rank 1 reads the memory, and all other ranks wait for rank 1. */
static void shared(void)
{
    volatile int *memory;
    MPI_Aint bytes;
    int unit;
    MPI_Win win;
    OK(MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&memory, &win));
    OK(MPI_Win_shared_query(win, 0, &bytes, &unit, (void *)&memory));
    if (rank == 0)
        *memory = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        rest();
        *memory = 1;
    }
    if (rank == 1)
        while (!*memory)
            usleep(1000);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
}

static void accepts(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = MPI_COMM_NULL;
    if (rank == 0)
        OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (rank == 0)
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    if (rank == 1) {
        rest();
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    }
    if (inter != MPI_COMM_NULL)
        OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* All ranks wait inside MPI, rank 0 for another job: first for a connection to its port, whose name it prints, then for a message. */
static void serves(void)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    int word = 0;
    if (rank == 0) {
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        printf("port %s\n", port);
        fflush(stdout);
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        OK(MPI_Recv(&word, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE));
        CHECK(word == 8, "%d", word);
        OK(MPI_Comm_disconnect(&inter));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* The job that connects to the port of `serves`, and sends a message after a pause. */
static void calls(const char *port)
{
    MPI_Comm inter;
    int word = 8;
    OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    rest();
    OK(MPI_Send(&word, 1, MPI_INT, 0, 3, inter));
    OK(MPI_Comm_disconnect(&inter));
}

static void spawns(char *program)
{
    MPI_Comm inter;
    int word = 0;
    char *arguments[] = {"child", NULL};
    OK(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    if (rank == 0)
        OK(MPI_Recv(&word, 1, MPI_INT, 0, 2, inter, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Comm_disconnect(&inter));
}

/* A spawned process sleeps before its MPI_Init and before its send. */
static int child(int *argc, char ***argv)
{
    MPI_Comm parent;
    int word = 5;
    rest();
    begin(argc, argv);
    OK(MPI_Comm_get_parent(&parent));
    rest();
    OK(MPI_Send(&word, 1, MPI_INT, 0, 2, parent));
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Finalize());
    return 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "sleeps";
    if (argc > 2 && strcmp(way, "calls"))
        milliseconds = atoi(argv[2]);
    if (!strcmp(way, "child"))
        return child(&argc, &argv);
    int is_threaded = !strcmp(way, "thread"), has_lanes = !strcmp(way, "lanes") || !strcmp(way, "busy_lanes") || !strcmp(way, "timer");
    int level;
    OK(MPI_Init_thread(&argc, &argv, is_threaded || has_lanes ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level));
    introduce();
    if (!strcmp(way, "sleeps")) {
        if (rank == 0)
            rest();
        ring(0);
    }
    if (!strcmp(way, "pipe") || !strcmp(way, "file"))
        through(way);
    if (!strcmp(way, "stops"))
        stops();
    if (is_threaded) {
        pthread_t thread;
        int word = 0, flag = 0;
        /* A thread that calls MPI only later, and a thread that first computes. */
        CHECK(pthread_create(&thread, NULL, sends_later, NULL) == 0, "no thread");
        OK(MPI_Recv(&word, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        pthread_join(thread, NULL);
        CHECK(pthread_create(&thread, NULL, computes_then_flags, &flag) == 0, "no thread");
        OK(MPI_Recv(&word, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        pthread_join(thread, NULL);
        CHECK(flag && word == 4, "%d", word);
    }
    if (!strcmp(way, "lanes"))
        lanes();
    if (!strcmp(way, "busy_lanes"))
        busy_lanes();
    if (!strcmp(way, "timer"))
        timer();
    if (!strcmp(way, "lock"))
        locks();
    if (!strcmp(way, "shared"))
        shared();
    if (!strcmp(way, "polls")) {
        /* Rank 0 polls for a message that never arrives, while the others wait in a barrier. */
        MPI_Request request;
        int there = 0, word;
        long long until = now() + milliseconds * 1000000LL;
        OK(MPI_Irecv(&word, 1, MPI_INT, (rank + 1) % size, 6, MPI_COMM_WORLD, &request));
        while (rank == 0 && now() < until)
            OK(MPI_Test(&request, &there, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(!there, "a message has arrived");
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    if (!strcmp(way, "accepts"))
        accepts();
    if (!strcmp(way, "serves"))
        serves();
    if (!strcmp(way, "calls") && argc > 2)
        calls(argv[2]);
    if (!strcmp(way, "spawns"))
        spawns(argv[0]);
    return finish("healthy");
}
