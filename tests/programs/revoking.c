/* Fault tolerance without failures (ULFM): after a revocation, a communicator is unusable,
 * shrinking gives a usable one, and all members agree.
 * The program is also compiled for other MPI libraries,
 * so it uses only functions that all ULFM implementations have. */
#include "check.h"
#if !defined(MPICH_VERSION)
#include <mpi-ext.h>
#endif

static int class_of(int error)
{
    int class;
    OK(MPI_Error_class(error, &class));
    return class;
}

/* Returns false if the error says that this library does not support the function. */
static int is_there(int error)
{
    CHECK(error == MPI_SUCCESS || (!is_portcullis() && class_of(error) == MPI_ERR_UNSUPPORTED_OPERATION), "class %d", class_of(error));
    return error == MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI_Comm whole, shrunk;
    MPI_Group failed;
    int n, flag;
    begin(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &whole));
    OK(MPI_Comm_set_errhandler(whole, MPI_ERRORS_RETURN));
    if (is_there(MPIX_Comm_failure_ack(whole))) {
        OK(MPIX_Comm_failure_get_acked(whole, &failed));
        OK(MPI_Group_size(failed, &n));
        CHECK(n == 0, "%d have failed", n);
        OK(MPI_Group_free(&failed));
    }
    flag = rank == size - 1 ? 5 : 7;
    if (is_there(MPIX_Comm_agree(whole, &flag)))
        CHECK(flag == 5, "agreed on %d", flag);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        flag = is_there(MPIX_Comm_revoke(whole));
    OK(MPI_Bcast(&flag, 1, MPI_INT, 0, MPI_COMM_WORLD));
    if (flag) {
        int error, got;
        /* The notification may take some time; the receive waits for it. */
        error = MPI_Recv(&got, 1, MPI_INT, rank, 9, whole, MPI_STATUS_IGNORE);
        CHECK(class_of(error) == MPIX_ERR_REVOKED, "class %d", class_of(error));
#if !defined(MPICH_VERSION)
        if (is_there(MPIX_Comm_is_revoked(whole, &got)))
            CHECK(got, "it is revoked");
#endif
        OK(MPIX_Comm_shrink(whole, &shrunk));
        OK(MPI_Comm_size(shrunk, &n));
        CHECK(n == size, "%d are left", n);
        OK(MPI_Barrier(shrunk));
        OK(MPI_Comm_free(&shrunk));
    }
    OK(MPI_Comm_free(&whole));
    return finish("revoking");
}
