/*
 * Ends while ranks are in a barrier that rank 0 never enters, or keeps them waiting there.
 *
 *     in_barrier abort|kill|wait
 *     in_barrier late RANK
 *
 * "abort", "kill": rank 1 enters with MPI_Ibarrier and calls MPI_Abort or kills itself. "wait": all ranks wait for a signal.
 * "late": a normal end: this rank enters after two seconds, and all claims hold.
 * "ready PID" is printed before.
 */
#include "check.h"

#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "wait";
    MPI_Request entered;
    begin(&argc, &argv);
    for (int i = 0; i < 10; i++)
        OK(MPI_Barrier(MPI_COMM_WORLD));
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    if (!strcmp(way, "late")) {
        if (rank == atoi(argv[2]))
            sleep(2);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        return finish("in_barrier");
    }
    if (rank == 1 && strcmp(way, "wait")) {
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &entered));
        /* The others enter meanwhile. */
        usleep(100000);
        if (!strcmp(way, "kill"))
            raise(SIGKILL);
        MPI_Abort(MPI_COMM_WORLD, 42);
    }
    if (rank > 0)
        OK(MPI_Barrier(MPI_COMM_WORLD));
    for (;;)
        pause();
}
