/*
 * Ranks wait in a barrier that rank 0 enters late or never.
 *
 *     in_barrier abort|kill|wait
 *     in_barrier late RANK
 *
 * "abort", "kill": rank 1 enters by MPI_Ibarrier and then calls MPI_Abort or kills itself.
 * "wait": all ranks wait until a signal ends them.
 * "late": RANK enters after two seconds, and the program ends normally.
 * Each rank prints "ready PID" before the barrier.
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
        /* During this pause the other ranks enter the barrier. */
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
