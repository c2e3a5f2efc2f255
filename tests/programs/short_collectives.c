/* Tests of short nonblocking collectives: many are pending at a time, beside blocking calls,
 * and their communicator may be freed before they complete. */
#include "check.h"

enum { REQUESTS = 48, MOST = 16, ROUNDS = 12 };
enum { ALLREDUCE, BCAST, ALLGATHER, BARRIER, ALLTOALL, SCAN, KINDS };

/* Returns the number that rank `r` contributes to an operation; `block` is the rank that receives it, or 0. */
static int value(int r, int operation, int block)
{
    return 10000 * operation + 100 * r + block;
}

/* Starts an operation. If `one` is a derived datatype of one number, the rank takes the library's general path;
 * with MPI_INT it takes the fast path. */
static void start(int operation, int kind, MPI_Datatype one, MPI_Comm comm, int *out, int *in, MPI_Request *request)
{
    for (int r = 0; r < size; r++) {
        out[r] = value(rank, operation, kind == ALLTOALL ? r : 0);
        in[r] = -1;
    }
    switch (kind) {
    case ALLREDUCE: OK(MPI_Iallreduce(out, in, 1, MPI_INT, MPI_SUM, comm, request)); break;
    case BCAST:
        in[0] = out[0];
        OK(MPI_Ibcast(in, 1, one, operation % size, comm, request));
        break;
    case ALLGATHER: OK(MPI_Iallgather(out, 1, one, in, 1, one, comm, request)); break;
    case BARRIER: OK(MPI_Ibarrier(comm, request)); break;
    case ALLTOALL: OK(MPI_Ialltoall(out, 1, one, in, 1, one, comm, request)); break;
    case SCAN: OK(MPI_Iscan(out, in, 1, MPI_INT, MPI_SUM, comm, request)); break;
    }
}

/* Checks the result of an operation that is complete. */
static void check(int operation, int kind, const int *in)
{
    int sum = 0, count = kind == ALLREDUCE ? size : rank + 1, root = operation % size;
    for (int r = 0; r < count; r++)
        sum += value(r, operation, 0);
    switch (kind) {
    case ALLREDUCE:
    case SCAN: CHECK(in[0] == sum, "operation %d: the sum is %d and not %d", operation, in[0], sum); break;
    case BCAST: CHECK(in[0] == value(root, operation, 0), "operation %d: rank %d sent %d", operation, root, in[0]); break;
    case ALLGATHER:
    case ALLTOALL:
        for (int r = 0; r < size; r++)
            CHECK(in[r] == value(r, operation, kind == ALLTOALL ? rank : 0), "operation %d: rank %d sent %d", operation, r, in[r]);
    }
}

/* More requests are pending than a communicator has cells. The ranks complete them in different ways. */
static void many_at_a_time(MPI_Comm comm, int round)
{
    static int out[REQUESTS][MOST], in[REQUESTS][MOST];
    MPI_Request requests[REQUESTS];
    MPI_Datatype derived;
    OK(MPI_Type_contiguous(1, MPI_INT, &derived));
    OK(MPI_Type_commit(&derived));
    for (int i = 0; i < REQUESTS; i++) {
        start(i, (i + round) % KINDS, (rank + i) % 3 ? MPI_INT : derived, comm, out[i], in[i], &requests[i]);
        int one = i, sum = -1;
        if (i % 7 == 6) {
            OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
            CHECK(sum == size * i, "the blocking sum is %d", sum);
        }
        if (i % 11 == 10)
            OK(MPI_Barrier(comm));
    }
    int way = (rank + round) % 3, flag = 0;
    for (int i = 0; i < REQUESTS; i++) {
        int next = REQUESTS - 1 - i;
        if (way == 1)
            OK(MPI_Waitany(REQUESTS, requests, &next, MPI_STATUS_IGNORE));
        else if (way == 0)
            OK(MPI_Wait(&requests[next], MPI_STATUS_IGNORE));
        else
            for (flag = 0; !flag;)
                OK(MPI_Test(&requests[next], &flag, MPI_STATUS_IGNORE));
        CHECK(next >= 0 && requests[next] == MPI_REQUEST_NULL, "request %d is not null", next);
        check(next, (next + round) % KINDS, in[next]);
    }
    OK(MPI_Type_free(&derived));
}

/* All ranks but one start operations and free the communicator before that rank starts them.
 * MPI_Comm_free of this library is local, so this program runs only on this library. */
static void freed(int round)
{
    int late = round % size, none = 0, out[KINDS][MOST], in[KINDS][MOST];
    MPI_Comm comm;
    MPI_Request requests[KINDS];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int r = 0; rank == late && r < size; r++)
        if (r != late)
            OK(MPI_Recv(&none, 1, MPI_INT, r, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int kind = 0; kind < KINDS; kind++)
        start(kind, kind, MPI_INT, comm, out[kind], in[kind], &requests[kind]);
    OK(MPI_Comm_free(&comm));
    if (rank != late)
        OK(MPI_Send(&none, 1, MPI_INT, late, 1, MPI_COMM_WORLD));
    OK(MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE));
    for (int kind = 0; kind < KINDS; kind++)
        check(kind, kind, in[kind]);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size <= MOST, "%d ranks", size);
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int round = 0; round < ROUNDS; round++) {
        many_at_a_time(round % 2 ? comm : MPI_COMM_WORLD, round);
        freed(round);
    }
    OK(MPI_Comm_free(&comm));
    return finish("short_collectives");
}
