/*
 * A program for a set-user-ID file: opens a file, publishes a name and spawns a process.
 * Argument: the name of the file. The last line of output reports whether the spawn succeeded.
 */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Comm child;
    char service[64], text[MPI_MAX_ERROR_STRING];
    int length;

    begin(&argc, &argv);
    if (argc < 2) {
        /* This process is the spawned one. */
        OK(MPI_Comm_get_parent(&child));
        OK(MPI_Comm_disconnect(&child));
        OK(MPI_Finalize());
        return 0;
    }
    OK(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    snprintf(service, sizeof service, "raised %lld", now());
    OK(MPI_Publish_name(service, MPI_INFO_NULL, "a-port:1"));
    OK(MPI_Unpublish_name(service, MPI_INFO_NULL, "a-port:1"));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    int code = MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE);
    if (code == MPI_SUCCESS) {
        OK(MPI_Comm_disconnect(&child));
        printf("spawned\n");
    } else {
        OK(MPI_Error_string(code, text, &length));
        printf("not spawned: %s\n", text);
    }
    fflush(stdout);
    return finish("raised");
}
