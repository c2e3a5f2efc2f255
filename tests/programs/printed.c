/*
 * Output of a program that ends in the named way without flushing its output:
 *
 *     printed killed-before|killed|aborts|fails|waits FILE
 *
 * "aborts" and "fails" also leave an incomplete line, and a line in the buffer of a stdio file.
 */
#include "check.h"

#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "waits";
    FILE *file = argc > 2 ? fopen(argv[2], "w") : NULL;
    int nothing = 0;
    printf("before MPI_Init\n");
    if (!strcmp(way, "killed-before"))
        raise(SIGKILL);
    begin(&argc, &argv);
    printf("after MPI_Init\n");
    if (!strcmp(way, "killed"))
        raise(SIGKILL);
    if (file)
        fprintf(file, "a line in a file\n");
    if (strcmp(way, "waits"))
        printf("a beginning");
    if (!strcmp(way, "aborts"))
        MPI_Abort(MPI_COMM_WORLD, 42);
    if (!strcmp(way, "fails"))
        MPI_Send(&nothing, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    OK(MPI_Recv(&nothing, 1, MPI_INT, 0, 12345, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return finish("printed");
}
