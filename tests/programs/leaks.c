/* Objects that are never freed.
 * Each rank leaves two communicators, requests, a datatype, a group and an operator. */
#include "check.h"

static void sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
}

int main(int argc, char **argv)
{
    MPI_Comm halo, other;
    MPI_Request requests[3];
    MPI_Datatype pairs;
    MPI_Group group;
    MPI_Op op;
    int words[3] = {0};

    begin_at_level(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &halo));
    OK(MPI_Comm_set_name(halo, "halo"));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    OK(MPI_Comm_free(&other));
    if (argc > 1 && strcmp(argv[1], "threads"))
        return finish("leaks");
    for (int i = 0; i < 2; i++)
        OK(MPI_Irecv(&words[i], 1, MPI_INT, MPI_ANY_SOURCE, 7, halo, &requests[i]));
    OK(MPI_Send_init(&words[2], 1, MPI_INT, 0, 8, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Type_contiguous(2, MPI_INT, &pairs));
    OK(MPI_Type_set_name(pairs, "pairs"));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    OK(MPI_Op_create(sum, 1, &op));
    return finish("leaks");
}
