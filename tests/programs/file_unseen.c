/*
 * A program that continues after a file error. With a second argument, it asks for the error's class.
 * Arguments: a folder, and optionally any word.
 */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_File file;
    char path[600];
    begin(&argc, &argv);
    snprintf(path, sizeof path, "%s/missing", argv[1]);
    /* The file does not exist, so the deletion fails; the program ignores the error. */
    MPI_File_delete(path, MPI_INFO_NULL);
    int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), class;
    if (argc > 2)
        OK(MPI_Error_class(code, &class));
    return finish("file_unseen");
}
