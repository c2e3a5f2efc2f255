/* Tests of requests: all wait and test functions, persistent requests, cancel, free,
 * and the empty statuses of inactive requests. */
#include "check.h"

enum { N = 8, ROUNDS = 20 };

static int left, right;

static void persistent(void)
{
    int out[N], in[N];
    MPI_Request all[2 * N];
    MPI_Status statuses[2 * N];
    for (int i = 0; i < N; i++) {
        OK(MPI_Recv_init(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &all[i]));
        if (i % 2)
            OK(MPI_Send_init(&out[i], 1, MPI_INT, right, i, MPI_COMM_WORLD, &all[N + i]));
        else
            OK(MPI_Ssend_init(&out[i], 1, MPI_INT, right, i, MPI_COMM_WORLD, &all[N + i]));
    }
    /* Inactive persistent requests complete immediately, with empty statuses. */
    int flag = 0, count;
    OK(MPI_Testall(2 * N, all, &flag, statuses));
    CHECK(flag, "inactive requests are not complete");
    OK(MPI_Get_count(&statuses[0], MPI_INT, &count));
    CHECK(statuses[0].MPI_SOURCE == MPI_ANY_SOURCE && statuses[0].MPI_TAG == MPI_ANY_TAG && count == 0, "no empty status");
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) {
            out[i] = rank * 1000 + round * 10 + i;
            in[i] = -1;
        }
        if (round % 2) {
            OK(MPI_Startall(2 * N, all));
        } else {
            for (int i = 0; i < 2 * N; i++)
                OK(MPI_Start(&all[i]));
        }
        OK(MPI_Waitall(2 * N, all, statuses));
        for (int i = 0; i < N; i++) {
            CHECK(in[i] == left * 1000 + round * 10 + i, "round %d brought %d", round, in[i]);
            CHECK(statuses[i].MPI_SOURCE == left && statuses[i].MPI_TAG == i, "from %d", statuses[i].MPI_SOURCE);
            CHECK(all[i] != MPI_REQUEST_NULL, "a persistent request vanished");
        }
    }
    for (int i = 0; i < 2 * N; i++)
        OK(MPI_Request_free(&all[i]));
    CHECK(all[0] == MPI_REQUEST_NULL, "a freed request is still there");
}

/* Starts N receives, then N sends. */
static void post(int *out, int *in, MPI_Request *all)
{
    for (int i = 0; i < N; i++)
        OK(MPI_Irecv(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &all[i]));
    for (int i = 0; i < N; i++) {
        out[i] = rank * 100 + i;
        OK(MPI_Isend(&out[i], 1, MPI_INT, right, i, MPI_COMM_WORLD, &all[N + i]));
    }
}

static void forms(void)
{
    int out[N], in[N], indices[2 * N], done, flag, index;
    MPI_Request all[2 * N];
    MPI_Status statuses[2 * N], status;

    for (int form = 0; form < 7; form++) {
        memset(in, 0xff, sizeof in);
        post(out, in, all);
        int finished = 0;
        while (finished < 2 * N) {
            switch (form) {
            case 0:
                OK(MPI_Waitany(2 * N, all, &index, &status));
                CHECK(index >= 0 && index < 2 * N && all[index] == MPI_REQUEST_NULL, "index %d", index);
                if (index < N)
                    CHECK(status.MPI_SOURCE == left && status.MPI_TAG == index, "from %d", status.MPI_SOURCE);
                finished++;
                break;
            case 1:
                OK(MPI_Testany(2 * N, all, &index, &flag, &status));
                finished += flag;
                break;
            case 2:
                OK(MPI_Waitsome(2 * N, all, &done, indices, statuses));
                CHECK(done > 0, "waitsome finished %d", done);
                for (int i = 0; i < done; i++)
                    if (indices[i] < N)
                        CHECK(statuses[i].MPI_TAG == indices[i], "tag %d at %d", statuses[i].MPI_TAG, indices[i]);
                finished += done;
                break;
            case 3:
                OK(MPI_Testsome(2 * N, all, &done, indices, statuses));
                finished += done;
                break;
            case 4:
                OK(MPI_Testall(2 * N, all, &flag, statuses));
                finished = flag ? 2 * N : 0;
                break;
            case 5:
                for (int i = 0; i < 2 * N; i++)
                    if (all[i] != MPI_REQUEST_NULL) {
                        OK(MPI_Test(&all[i], &flag, &status));
                        finished += flag;
                    }
                break;
            case 6:
                for (int i = 0; i < 2 * N; i++) {
                    do
                        OK(MPI_Request_get_status(all[i], &flag, &status));
                    while (!flag);
                    CHECK(all[i] != MPI_REQUEST_NULL, "looking at a request freed it");
                    OK(MPI_Wait(&all[i], &status));
                    finished++;
                }
                break;
            }
        }
        for (int i = 0; i < N; i++)
            CHECK(in[i] == left * 100 + i, "form %d: receive %d got %d", form, i, in[i]);
        for (int i = 0; i < 2 * N; i++)
            CHECK(all[i] == MPI_REQUEST_NULL, "form %d left request %d", form, i);
    }
    /* No request is active any more. */
    OK(MPI_Waitany(2 * N, all, &index, &status));
    CHECK(index == MPI_UNDEFINED, "index %d", index);
    OK(MPI_Waitsome(2 * N, all, &done, indices, statuses));
    CHECK(done == MPI_UNDEFINED, "done %d", done);
    OK(MPI_Testany(2 * N, all, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED, "flag %d, index %d", flag, index);
    OK(MPI_Wait(&all[0], &status));
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE, "the null request's status is not empty");
}

static void cancelling(void)
{
    int in = -1, flag = 0;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Irecv(&in, 1, MPI_INT, left, 4711, MPI_COMM_WORLD, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag, "a receive without a send was not cancelled");

    /* A send is completed even if its request has been freed. */
    int out = rank;
    OK(MPI_Isend(&out, 1, MPI_INT, right, 4712, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Recv(&in, 1, MPI_INT, left, 4712, MPI_COMM_WORLD, &status));
    CHECK(in == left, "%d", in);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Only sends and receives can be cancelled (sections 3.8.4 and 6.12 of MPI 5.0):
 * if the library cancelled one rank's barrier, the program would hang. */
static void not_cancelled(void)
{
    int class, token = 0;
    MPI_Comm comm;
    MPI_Request request;
    /* Other libraries do not report the error in MPI_Cancel. */
    if (size < 2 || !is_portcullis())
        return;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    /* No other rank enters the barrier before rank 0 has tried to cancel it. */
    if (rank != 0)
        OK(MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Ibarrier(comm, &request));
    if (rank == 0) {
        OK(MPI_Error_class(MPI_Cancel(&request), &class));
        CHECK(class == MPI_ERR_REQUEST && request != MPI_REQUEST_NULL, "a barrier is cancelled: class %d", class);
        OK(MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    not_cancelled();
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    persistent();
    forms();
    cancelling();
    return finish("requests");
}
