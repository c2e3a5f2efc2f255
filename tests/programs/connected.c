/* A job that is connected with another job by a port, until the test creates a file.
 *
 * connected NAME [connects]
 *     NAME      the file with the name of the port, which the accepting job writes
 *     NAME.part both jobs disconnect when this file exists
 *     NAME.end  the jobs end when this file exists */
#include "check.h"
#include <unistd.h>

static int exists(const char *name, const char *ending)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.%s", name, ending);
    return access(path, F_OK) == 0;
}

/* Returns when the file exists; all ranks then agree on it. */
static void await(const char *name, const char *ending)
{
    int there = 0;
    while (!there) {
        int mine = rank == 0 && exists(name, ending);
        OK(MPI_Allreduce(&mine, &there, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
        usleep(2000);
    }
}

static void says(const char *what)
{
    if (rank == 0) {
        printf("%s\n", what);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    const char *name = argv[1];
    int accepts = argc == 2, others;
    char port[MPI_MAX_PORT_NAME] = "", path[4096];
    MPI_Comm between;
    if (accepts) {
        if (rank == 0) {
            OK(MPI_Open_port(MPI_INFO_NULL, port));
            snprintf(path, sizeof path, "%s.new", name);
            FILE *file = fopen(path, "w");
            CHECK(file && fputs(port, file) >= 0 && fclose(file) == 0 && rename(path, name) == 0, "%s", name);
        }
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between));
        if (rank == 0)
            OK(MPI_Close_port(port));
    } else {
        if (rank == 0) {
            FILE *file;
            while (!(file = fopen(name, "r")))
                usleep(1000);
            CHECK(fgets(port, sizeof port, file) != NULL, "%s", name);
            fclose(file);
        }
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between));
    }
    OK(MPI_Comm_remote_size(between, &others));
    /* Each rank talks with each rank of the other job, so that all of them are connected. */
    int mine = rank, sum = 0;
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, between));
    CHECK(sum == others * (others - 1) / 2, "%d of %d others", sum, others);
    for (int other = 0; other < others; other++) {
        int theirs = -1;
        OK(MPI_Sendrecv(&mine, 1, MPI_INT, other, 1, &theirs, 1, MPI_INT, other, 1, between, MPI_STATUS_IGNORE));
        CHECK(theirs == other, "%d from %d", theirs, other);
    }
    says("connected");
    await(name, "part");
    OK(MPI_Comm_disconnect(&between));
    says("apart");
    await(name, "end");
    says("result of both parts");
    OK(MPI_Finalize());
    return 0;
}
