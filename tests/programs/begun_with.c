/* Checks the initial error handler of two communicators: begun_with return|abort|fatal. */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    const char *name = argc > 1 ? argv[1] : "fatal";
    MPI_Errhandler wanted = !strcmp(name, "return") ? MPI_ERRORS_RETURN : !strcmp(name, "abort") ? MPI_ERRORS_ABORT : MPI_ERRORS_ARE_FATAL;
    MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF};
    for (int i = 0; i < 2; i++) {
        MPI_Errhandler is;
        OK(MPI_Comm_get_errhandler(comms[i], &is));
        CHECK(is == wanted, "communicator %d does not begin with %s", i, name);
    }
    if (wanted == MPI_ERRORS_RETURN) {
        int class;
        OK(MPI_Error_class(MPI_Barrier(MPI_COMM_NULL), &class));
        CHECK(class == MPI_ERR_COMM, "%d", class);
    }
    return finish("begun_with");
}
