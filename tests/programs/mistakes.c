/* Prints the error messages of common mistakes as a user sees them. Needs two ranks. */
#include "check.h"

static void say(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int len, class;
    OK(MPI_Error_string(code, text, &len));
    OK(MPI_Error_class(code, &class));
    if (rank == 0)
        printf("%s:\n  %s\n", what, text);
    CHECK(class != MPI_SUCCESS, "%s is not noticed", what);
}

int main(int argc, char **argv)
{
    int value[4] = {0}, flag;
    MPI_Datatype loose, freed;
    MPI_Request request;
    MPI_Comm inter = MPI_COMM_NULL, gone;
    MPI_Group group;
    begin(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));

    say("a rank that does not exist", MPI_Send(value, 1, MPI_INT, 7, 0, MPI_COMM_WORLD));
    say("a source that does not exist", MPI_Recv(value, 1, MPI_INT, -9, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    say("any source as a destination", MPI_Send(value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD));
    say("a tag as a source", MPI_Recv(value, 1, MPI_INT, MPI_ANY_TAG, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    say("a rank that a query did not find", MPI_Send(value, 1, MPI_INT, MPI_UNDEFINED, 0, MPI_COMM_WORLD));
    say("a negative tag", MPI_Send(value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD));
    say("a negative count", MPI_Send(value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    say("a count of more bytes than an address has", MPI_Send_c(value, (MPI_Count)1 << 61, MPI_INT, 0, 0, MPI_COMM_WORLD));
    say("blocks of more bytes than an address has", MPI_Allgather_c(value, 1, MPI_INT, value, (MPI_Count)1 << 60, MPI_INT, MPI_COMM_WORLD));
    say("a null buffer", MPI_Send(NULL, 3, MPI_INT, 0, 0, MPI_COMM_WORLD));
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &loose));
    say("a datatype that is not committed", MPI_Send(value, 1, loose, 0, 0, MPI_COMM_WORLD));
    freed = loose;
    OK(MPI_Type_free(&loose));
    say("a datatype that has been freed", MPI_Send(value, 1, freed, 0, 0, MPI_COMM_WORLD));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &gone));
    MPI_Comm stale = gone;
    OK(MPI_Comm_free(&gone));
    say("a communicator that has been freed", MPI_Barrier(stale));
    say("no communicator", MPI_Barrier(MPI_COMM_NULL));
    say("a datatype where a communicator should be", MPI_Barrier((MPI_Comm)MPI_INT));
    OK(MPI_Irecv(value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    MPI_Request old = request;
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    say("a request that is over", MPI_Test(&old, &flag, MPI_STATUS_IGNORE));
    say("a root that does not exist", MPI_Bcast(value, 1, MPI_INT, 2, MPI_COMM_WORLD));
    say("a root for an intercommunicator", MPI_Bcast(value, 1, MPI_INT, MPI_ROOT, MPI_COMM_WORLD));
    say("a source that a probe does not have", MPI_Probe(MPI_UNDEFINED, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    say("in place where it is not allowed", MPI_Send(MPI_IN_PLACE, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    say("an operator for other types", MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD));
    say("one buffer twice", MPI_Allreduce(value, value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    say("a block that lies where it is received", MPI_Allgather(value + rank, 1, MPI_INT, value, 1, MPI_INT, MPI_COMM_WORLD));
    say("one buffer twice, and no communication", MPI_Reduce_local(value, value, 1, MPI_INT, MPI_SUM));
    say("more for oneself than there is room for", MPI_Alltoall(value, 2, MPI_INT, value + 3, 1, MPI_SHORT, MPI_COMM_WORLD));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    say("a rank named twice", MPI_Group_incl(group, 2, (int[]){1, 1}, &group));
    say("an intercommunicator that is none", MPI_Comm_remote_size(MPI_COMM_WORLD, &flag));
    say("groups that overlap", MPI_Intercomm_create(MPI_COMM_WORLD, 0, MPI_COMM_WORLD, 0, 3, &inter));
    say("a leader that does not exist", MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 7, 3, &inter));
    say("a buffer that is not attached", MPI_Bsend(value, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD));
    say("a dimension that does not fit", MPI_Dims_create(6, 2, (int[]){4, 0}));
    say("an error class that does not exist", MPI_Add_error_code(12345, &flag));

    /* The message is longer than the receive buffer: the receiver gets the error. */
    OK(MPI_Sendrecv(value, 4, MPI_INT, 1 - rank, 6, value, 4, MPI_INT, 1 - rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Isend(value, 4, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, &request));
    int shorter[1];
    say("a message that is too long", MPI_Recv(shorter, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return finish("mistakes");
}
