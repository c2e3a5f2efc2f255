/*
 * A program that forks after MPI_Init; parent and child continue.
 *
 *     forked asks|sends|executes
 *
 * The child calls functions that are always allowed and exits; or sends a message;
 * or executes a program without MPI.
 */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "asks";
    int flag = 0, value = 7, status = 0, sum = 0;
    begin(&argc, &argv);
    pid_t child = fork();
    if (child == 0) {
        if (!strcmp(way, "executes"))
            execlp("true", "true", (char *)NULL);
        if (!strcmp(way, "sends"))
            MPI_Send(&value, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD);
        MPI_Initialized(&flag);
        if (!flag)
            _exit(3);
        MPI_Finalized(&flag);
        /* `exit` runs the C library's exit handlers. */
        exit(flag ? 3 : 0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status), "status %d", status);
    CHECK(WEXITSTATUS(status) == !strcmp(way, "sends"), "status %d", WEXITSTATUS(status));
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == 7 * size, "%d", sum);
    return finish("forked");
}
