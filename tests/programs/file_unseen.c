/*
 * A program that goes on after an error of a file; with a second argument it asks for the class.
 * Arguments: a folder, and whether it looks.
 */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_File file;
    char path[600];
    begin(&argc, &argv);
    snprintf(path, sizeof path, "%s/missing", argv[1]);
    /* That it is not there is no news. */
    MPI_File_delete(path, MPI_INFO_NULL);
    int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), class;
    if (argc > 2)
        OK(MPI_Error_class(code, &class));
    return finish("file_unseen");
}
