/* An MPI program that a rank starts as a child process is a singleton job; the rank's own job is not disturbed. */
#include "check.h"

int main(int argc, char **argv)
{
    char command[4096];

    begin(&argc, &argv);
    if (argc > 1) {
        CHECK(size == 1, "a child is one of %d", size);
    } else {
        snprintf(command, sizeof command, "'%s' alone > /dev/null", argv[0]);
        int status = system(command);
        CHECK(status == 0, "the child ended with %#x", status);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    return finish("child");
}
