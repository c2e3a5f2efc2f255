/*
 * A program that continues after a file error; with a second argument it queries the error class.
 * Arguments: a folder, and optionally any word.
 */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_File file;
    char path[600];
    begin(&argc, &argv);
    snprintf(path, sizeof path, "%s/missing", argv[1]);
    /* The deletion fails if the file does not exist; the error is ignored. */
    MPI_File_delete(path, MPI_INFO_NULL);
    int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), class;
    if (argc > 2)
        OK(MPI_Error_class(code, &class));
    return finish("file_unseen");
}
