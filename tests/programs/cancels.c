/* Tests of requests that MPI_Cancel cannot cancel:
 * MPI_Cancel returns an error for each, and the operation completes normally. */
#include "check.h"

static MPI_Comm comm;

static void refused(const char *what, MPI_Request *request)
{
    MPI_Request before = *request;
    int class;
    OK(MPI_Error_class(MPI_Cancel(request), &class));
    CHECK(class == MPI_ERR_REQUEST, "%s: class %d", what, class);
    CHECK(*request == before, "%s: the handle has changed", what);
}

/* Each rank sends to the next rank.
 * MPI_Cancel is refused before the start, during the operation and after its end. */
static void partitioned(void)
{
    int sent[2] = {rank, rank + 1}, received[2] = {-1, -1}, last = (rank + size - 1) % size;
    MPI_Request send, receive;
    OK(MPI_Psend_init(sent, 2, 1, MPI_INT, (rank + 1) % size, 0, comm, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(received, 2, 1, MPI_INT, last, 0, comm, MPI_INFO_NULL, &receive));
    for (int turn = 0; turn < 2; turn++) {
        refused("a partitioned send that is not started", &send);
        refused("a partitioned receive that is not started", &receive);
        OK(MPI_Start(&receive));
        OK(MPI_Start(&send));
        OK(MPI_Pready(1, send));
        refused("a partitioned send with a part that is not ready", &send);
        refused("a partitioned receive", &receive);
        OK(MPI_Pready(0, send));
        refused("a partitioned send whose parts are ready", &send);
        MPI_Status status;
        int cancelled;
        OK(MPI_Wait(&receive, &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        CHECK(!cancelled, "the receive says that it is cancelled");
        CHECK(received[0] == last && received[1] == last + 1, "received %d and %d", received[0], received[1]);
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

/* Called only on Portcullis: with `mpirun --on`, the other library decides about these requests. */
static void collective(void)
{
    int one = 1, sum = 0;
    MPI_Request request;
    OK(MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request));
    refused("a persistent collective operation that is not started", &request);
    OK(MPI_Start(&request));
    refused("a persistent collective operation", &request);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum == size, "the sum is %d", sum);
    OK(MPI_Request_free(&request));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    partitioned();
    if (is_portcullis())
        collective();
    OK(MPI_Comm_free(&comm));
    announce("cancels");
    MPI_Finalize();
    return 0;
}
