/*
 * One rank ends in the named way; the other ranks wait for a message that never arrives.
 *
 *     leave abort|exit|quiet|kill|segv|wait|fork|deaf RANK
 *
 * Before that, every rank prints "ready PID", so that a test can kill these processes or look for them.
 */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* A sleeping thread prevents the proof of a deadlock, so the job waits until a test ends it. */
static void *sleeps(void *unused)
{
    for (;;)
        pause();
    return unused;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "wait";
    int who = argc > 2 ? atoi(argv[2]) : 1, nothing;
    begin(&argc, &argv);
    if (!strcmp(way, "deaf"))
        for (int i = 0; i < 4; i++)
            signal((int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT}[i], SIG_IGN);
    if (!strcmp(way, "fork") && fork() == 0) {
        /* A child process that has the rank's files open and would outlive the rank. */
        printf("ready %d\n", (int)getpid());
        fflush(stdout);
        for (;;)
            pause();
    }
    pthread_t sleeper;
    CHECK(pthread_create(&sleeper, NULL, sleeps, NULL) == 0, "no thread");
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == who) {
        if (!strcmp(way, "abort"))
            MPI_Abort(MPI_COMM_WORLD, 42);
        if (!strcmp(way, "exit"))
            _exit(3);
        if (!strcmp(way, "quiet"))
            _exit(0);
        if (!strcmp(way, "kill"))
            raise(SIGKILL);
        if (!strcmp(way, "segv")) {
            signal(SIGSEGV, SIG_DFL);
            raise(SIGSEGV);
        }
    }
    OK(MPI_Recv(&nothing, 1, MPI_INT, (rank + 1) % size, 12345, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return finish("leave");
}
