/* Each rank duplicates MPI_COMM_SELF, a communicator without other members. */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Comm alone;
    begin(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_SELF, &alone));
    OK(MPI_Barrier(alone));
    OK(MPI_Comm_free(&alone));
    return finish("copies_of_self");
}
