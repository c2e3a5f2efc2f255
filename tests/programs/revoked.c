/* Test of revocation, agreement and shrinking while all processes are alive (mpi-ext.h; ULFM). */
#include "check.h"
#include <mpi-ext.h>
#include <time.h>

static int class_of(int error)
{
    int class;
    OK(MPI_Error_class(error, &class));
    return class;
}

#define IS(call, wanted)                                                                             \
    do {                                                                                             \
        int class_ = class_of(call);                                                                 \
        CHECK(class_ == (wanted), #call " gives class %d, not %d", class_, (wanted));                \
    } while (0)

static void sum_is(MPI_Comm comm, int wanted)
{
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == wanted, "%d of %d", sum, wanted);
}

static void agreements(MPI_Comm comm, int me)
{
    for (int round = 0; round < 20; round++) {
        int flag = ~(1 << (me + round) % 31);
        int wanted = -1;
        for (int i = 0; i < size; i++)
            wanted &= ~(1 << (i + round) % 31);
        OK(MPIX_Comm_agree(comm, &flag));
        CHECK(flag == wanted, "%x is not %x", flag, wanted);
    }
    /* The last rank contributes after all other ranks have begun. */
    int flag = 7, done = 0;
    MPI_Request request;
    if (size > 1) {
        if (me == size - 1)
            OK(MPI_Barrier(comm));
        OK(MPIX_Comm_iagree(comm, &flag, &request));
        if (me != size - 1) {
            OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            CHECK(!done, "an agreement ends before all have contributed, %d", done);
            OK(MPI_Barrier(comm));
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(flag == 7, "%d", flag);
    }
}

enum { STARTED = 4 };

/* Starts short nonblocking collectives, none of which can complete without rank `last`. */
static void start(MPI_Comm comm, int last, long *out, long *in, MPI_Request *requests)
{
    OK(MPI_Iallreduce(out, in, 1, MPI_LONG, MPI_SUM, comm, &requests[0]));
    OK(MPI_Ibarrier(comm, &requests[1]));
    OK(MPI_Ibcast(in + 1, 1, MPI_LONG, last, comm, &requests[2]));
    OK(MPI_Iallgather(out, 1, MPI_LONG, in + 2, 1, MPI_LONG, comm, &requests[3]));
}

/* Waits for requests, all of which fail; returns the error of the last. */
static int all_fail(MPI_Request *requests)
{
    MPI_Status statuses[STARTED];
    IS(MPI_Waitall(STARTED, requests, statuses), MPI_ERR_IN_STATUS);
    for (int i = 0; i < STARTED; i++) {
        IS(statuses[i].MPI_ERROR, MPIX_ERR_REVOKED);
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is left", i);
    }
    return statuses[STARTED - 1].MPI_ERROR;
}

/* Another member revokes the communicator while this rank is in a blocking call or has started nonblocking ones;
   each call ends, however it waits. */
static void revoke_under_way(MPI_Comm world, int me)
{
    enum { RECV, PROBE, SSEND, SENDRECV, BARRIER, ALLREDUCE, LONG, IBARRIER, SHORT, TESTED, WAYS };
    static long in[1 << 16], out[1 << 16];
    if (size == 1)
        return;
    for (int way = 0; way < WAYS; way++) {
        MPI_Comm comm;
        MPI_Request requests[STARTED];
        int error = MPI_SUCCESS, from = size - 1, flag = 0;
        OK(MPI_Comm_dup(world, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        if (me != from) {
            if (way == IBARRIER)
                OK(MPI_Ibarrier(comm, requests));
            if (way == SHORT || way == TESTED)
                start(comm, from, out, in, requests);
        }
        OK(MPI_Barrier(world));
        if (me == from) {
            struct timespec pause = {0, 5000000};
            nanosleep(&pause, NULL);
            OK(MPIX_Comm_revoke(comm));
        } else {
            switch (way) {
            case RECV: error = MPI_Recv(in, 1, MPI_LONG, from, 0, comm, MPI_STATUS_IGNORE); break;
            case PROBE: error = MPI_Probe(from, 0, comm, MPI_STATUS_IGNORE); break;
            case SSEND: error = MPI_Ssend(out, 1 << 16, MPI_LONG, from, 0, comm); break;
            case SENDRECV: error = MPI_Sendrecv(out, 1, MPI_LONG, from, 0, in, 1, MPI_LONG, from, 0, comm, MPI_STATUS_IGNORE); break;
            case BARRIER: error = MPI_Barrier(comm); break;
            case ALLREDUCE: error = MPI_Allreduce(out, in, 1, MPI_LONG, MPI_SUM, comm); break;
            case LONG: error = MPI_Allreduce(out, in, 1 << 16, MPI_LONG, MPI_SUM, comm); break;
            case IBARRIER: error = MPI_Wait(requests, MPI_STATUS_IGNORE); break;
            case SHORT: error = all_fail(requests); break;
            case TESTED:
                while (!flag)
                    error = MPI_Test(requests, &flag, MPI_STATUS_IGNORE);
                IS(error, MPIX_ERR_REVOKED);
                IS(MPI_Waitall(STARTED, requests, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
            }
            CHECK(error != MPI_SUCCESS, "way %d succeeds", way);
            IS(error, MPIX_ERR_REVOKED);
        }
        OK(MPI_Comm_free(&comm));
    }
}

static void revoke(MPI_Comm world, int me)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(world, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    enum { RECV, ANY, SEND, REQUESTS };
    MPI_Request pending[REQUESTS];
    static char in[2], out[1 << 18];
    int next = (me + 1) % size, flag;
    OK(MPI_Irecv(&in[0], 1, MPI_CHAR, next, 1, comm, &pending[RECV]));
    OK(MPI_Irecv(&in[1], 1, MPI_CHAR, MPI_ANY_SOURCE, 2, comm, &pending[ANY]));
    OK(MPI_Issend(out, sizeof out, MPI_CHAR, next, 3, comm, &pending[SEND]));
    OK(MPI_Barrier(world));
    OK(MPIX_Comm_is_revoked(comm, &flag));
    if (me == size - 1)
        OK(MPIX_Comm_revoke(comm));
    /* These receives get no message. */
    for (int i = 0; i < REQUESTS; i++)
        {
            IS(MPI_Wait(&pending[i], MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
            CHECK(pending[i] == MPI_REQUEST_NULL, "request %d is left", i);
        }
    OK(MPIX_Comm_is_revoked(comm, &flag));
    CHECK(flag, "%d", flag);
    OK(MPIX_Comm_revoke(comm));

    MPI_Comm other;
    MPI_Message message;
    IS(MPI_Send(out, 1, MPI_CHAR, MPI_PROC_NULL, 0, comm), MPIX_ERR_REVOKED);
    IS(MPI_Send(out, 1, MPI_CHAR, next, 0, comm), MPIX_ERR_REVOKED);
    IS(MPI_Recv(in, 1, MPI_CHAR, MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    IS(MPI_Recv(in, 1, MPI_CHAR, next, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    IS(MPI_Sendrecv(out, 1, MPI_CHAR, next, 0, in, 1, MPI_CHAR, next, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    IS(MPI_Iprobe(MPI_ANY_SOURCE, 0, comm, &flag, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    IS(MPI_Probe(MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    IS(MPI_Mprobe(MPI_ANY_SOURCE, 0, comm, &message, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    IS(MPI_Barrier(comm), MPIX_ERR_REVOKED);
    IS(MPI_Bcast(out, 1, MPI_CHAR, 0, comm), MPIX_ERR_REVOKED);
    IS(MPI_Comm_dup(comm, &other), MPIX_ERR_REVOKED);
    IS(MPI_Comm_split(comm, 0, 0, &other), MPIX_ERR_REVOKED);
    IS(MPI_Ibarrier(comm, &pending[0]), MPIX_ERR_REVOKED);

    MPI_Group failed;
    int failures;
    OK(MPIX_Comm_get_failed(comm, &failed));
    OK(MPI_Group_size(failed, &failures));
    CHECK(failures == 0, "%d", failures);
    OK(MPI_Group_free(&failed));
    OK(MPIX_Comm_ack_failed(comm, size, &failures));
    CHECK(failures == 0, "%d", failures);
    flag = 3;
    OK(MPIX_Comm_agree(comm, &flag));
    CHECK(flag == 3, "%d", flag);
    MPI_Comm shrunk;
    MPI_Request request;
    OK(MPIX_Comm_shrink(comm, &shrunk));
    int place;
    OK(MPI_Comm_compare(world, shrunk, &place));
    CHECK(place == MPI_CONGRUENT, "%d", place);
    sum_is(shrunk, size);
    OK(MPI_Comm_free(&shrunk));
    OK(MPIX_Comm_ishrink(comm, &shrunk, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    sum_is(shrunk, size);
    OK(MPI_Comm_free(&shrunk));
    OK(MPI_Comm_free(&comm));
    sum_is(world, size);
}

/* The same operations on an intercommunicator, with members of both groups. */
static void between(MPI_Comm world, int me)
{
    if (size < 2)
        return;
    MPI_Comm half, inter, shrunk;
    OK(MPI_Comm_split(world, me % 2, me, &half));
    OK(MPI_Intercomm_create(half, 0, world, me % 2 ? 0 : 1, 1, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    int flag = ~(1 << me), wanted = -1, remote;
    for (int i = 0; i < size; i++)
        wanted &= ~(1 << i);
    OK(MPIX_Comm_agree(inter, &flag));
    CHECK(flag == wanted, "%x is not %x", flag, wanted);
    if (me == 0)
        OK(MPIX_Comm_revoke(inter));
    for (flag = 0; !flag;)
        OK(MPIX_Comm_is_revoked(inter, &flag));
    IS(MPI_Barrier(inter), MPIX_ERR_REVOKED);
    OK(MPIX_Comm_shrink(inter, &shrunk));
    OK(MPI_Comm_remote_size(shrunk, &remote));
    sum_is(shrunk, remote);
    OK(MPI_Comm_free(&shrunk));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

/* A member may revoke a communicator while the others are still creating it: their calls succeed. */
static void revoke_at_once(MPI_Comm world, int me)
{
    for (int round = 0; round < 200; round++) {
        MPI_Comm comm;
        int nothing;
        if (round % 2)
            OK(MPI_Comm_dup(world, &comm));
        else
            OK(MPI_Comm_split(world, 0, me, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        if (me == round % size)
            OK(MPIX_Comm_revoke(comm));
        /* The receive waits for the notification. */
        IS(MPI_Recv(&nothing, 1, MPI_INT, me, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
        OK(MPI_Comm_free(&comm));
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm world = MPI_COMM_WORLD;
    agreements(world, rank);
    revoke(world, rank);
    revoke_under_way(world, rank);
    between(world, rank);
    revoke_at_once(world, rank);
    return finish("revoked");
}
