/* Object names with terminal escapes, in an error message or in the report at the end.
 * The argument is `comm`, `win` or `file`. */
#include "check.h"

#define NAME "name\033]0;title\007\nrank 0: forged"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc > 1, "%d arguments", argc);
    if (!strcmp(argv[1], "comm")) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_name(comm, NAME));
        /* Rank 99 does not exist, so the send fails, and errors are fatal. */
        MPI_Send(NULL, 0, MPI_INT, 99, 0, comm);
    } else if (!strcmp(argv[1], "win")) {
        MPI_Win win;
        char *memory;
        OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
        OK(MPI_Win_set_name(win, NAME));
        /* The window is never freed, so the report at the end lists it. */
    } else {
        MPI_File file;
        OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL));
        MPI_File_open(MPI_COMM_WORLD, "/nowhere/" NAME, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    }
    return finish("names_with_escapes");
}
