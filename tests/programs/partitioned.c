/* Tests of partitioned communication: partitions become ready in any order, requests start several times,
 * and the two sides have different numbers of partitions. */
#include "check.h"

#define ROUNDS 5
#define TAG 21

/* Sends `out` partitions to the next rank and receives `in` from the previous rank;
 * `elements` is the total number of elements. */
static void exchange(int out, int in, int elements)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int *to = malloc(elements * sizeof *to), *from = malloc(elements * sizeof *from);
    MPI_Request requests[2];
    OK(MPI_Precv_init(from, in, elements / in, MPI_INT, before, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Psend_init(to, out, elements / out, MPI_INT, next, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < elements; i++)
            to[i] = rank * 1000003 + round * 1009 + i, from[i] = -1;
        OK(MPI_Startall(2, requests));
        int flag = 1;
        if (round % 2) {
            for (int p = out - 1; p >= 0; p--)
                OK(MPI_Pready(p, requests[1]));
        } else if (out > 2) {
            int *odd = malloc(out * sizeof *odd), n = 0;
            for (int p = 1; p < out; p++)
                odd[n++] = p;
            OK(MPI_Pready_list(n, odd, requests[1]));
            /* The first partition is not ready, so the send cannot be complete. */
            OK(MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE));
            CHECK(!flag, "a send is complete without its first part");
            OK(MPI_Pready_range(0, 0, requests[1]));
            free(odd);
        } else {
            OK(MPI_Pready_range(0, out - 1, requests[1]));
        }
        /* MPI_Parrived may report the last partition before the others have arrived. */
        do
            OK(MPI_Parrived(requests[0], in - 1, &flag));
        while (!flag);
        for (int i = elements / in * (in - 1); i < elements; i++)
            CHECK(from[i] == before * 1000003 + round * 1009 + i, "element %d of %d is %d", i, elements, from[i]);
        MPI_Status statuses[2];
        OK(MPI_Waitall(2, requests, statuses));
        CHECK(statuses[0].MPI_SOURCE == before && statuses[0].MPI_TAG == TAG, "from %d, tag %d", statuses[0].MPI_SOURCE, statuses[0].MPI_TAG);
        for (int i = 0; i < elements; i++)
            CHECK(from[i] == before * 1000003 + round * 1009 + i, "element %d of %d is %d", i, elements, from[i]);
        OK(MPI_Parrived(requests[0], 0, &flag));
        CHECK(flag, "a part of an operation that has ended has not arrived");
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    free(to);
    free(from);
}

/* Two messages with the same tag match in the order of their initialisation. */
static void order(void)
{
    if (rank > 1 || size < 2)
        return;
    int values[2][4], other = 1 - rank;
    MPI_Request requests[4];
    for (int m = 0; m < 2; m++)
        for (int i = 0; i < 4; i++)
            values[m][i] = rank ? -1 : 10 * m + i;
    for (int m = 0; m < 2; m++) {
        if (rank == 0)
            OK(MPI_Psend_init(values[m], 4, 1, MPI_INT, other, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[m]));
        else
            OK(MPI_Precv_init(values[m], 2, 2, MPI_INT, other, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[m]));
    }
    for (int m = 1; m >= 0; m--) {
        OK(MPI_Start(&requests[m]));
        if (rank == 0)
            OK(MPI_Pready_range(0, 3, requests[m]));
    }
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int m = 0; m < 2; m++)
        for (int i = 0; i < 4; i++)
            CHECK(values[m][i] == 10 * m + i, "message %d, element %d is %d", m, i, values[m][i]);
    for (int m = 0; m < 2; m++)
        OK(MPI_Request_free(&requests[m]));
}

/* The sender's datatype describes columns, the receiver's rows. */
static void typed(void)
{
    enum { N = 12 };
    int next = (rank + 1) % size, before = (rank + size - 1) % size, to[N][N], from[N][N];
    MPI_Datatype column, shifted;
    OK(MPI_Type_vector(N, 1, N, MPI_INT, &column));
    OK(MPI_Type_create_resized(column, 0, sizeof(int), &shifted));
    OK(MPI_Type_commit(&shifted));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            to[i][j] = rank * 1000 + i * N + j, from[i][j] = -1;
    MPI_Request requests[2];
    OK(MPI_Psend_init(to, 6, 2, shifted, next, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    /* Four partitions of three rows; the sender's partitions have other boundaries. */
    OK(MPI_Precv_init(from, 4, 3 * N, MPI_INT, before, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Startall(2, requests));
    for (int p = 0; p < 6; p++)
        OK(MPI_Pready((p * 5) % 6, requests[0]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            CHECK(from[j][i] == before * 1000 + i * N + j, "row %d, column %d is %d", j, i, from[j][i]);
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));

    /* Each partition of the sender has one element, which is shorter than an element of the receiver. */
    OK(MPI_Psend_init(to, N * N, 1, MPI_INT, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(from, 3, 4, shifted, before, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Startall(2, requests));
    OK(MPI_Pready_range(0, N * N - 1, requests[0]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            CHECK(from[j][i] == before * 1000 + i * N + j, "row %d, column %d is %d", j, i, from[j][i]);
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&shifted));
}

/* Rank 0 sends `sent` bytes in two partitions; rank 1 has `room` bytes in four partitions; started twice. */
static void unequal(int sent, int room)
{
    if (rank > 1 || size < 2)
        return;
    int class, count, other = 1 - rank;
    char *data = calloc(1, sent > room ? sent : room);
    MPI_Request request;
    MPI_Status status;
    MPI_Comm comm;
    MPI_Group all, pair;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 2, (int[]){0, 1}, &pair));
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, pair, 0, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    if (rank == 0)
        OK(MPI_Psend_init(data, 2, sent / 2, MPI_CHAR, other, 4, comm, MPI_INFO_NULL, &request));
    else
        OK(MPI_Precv_init(data, 4, room / 4, MPI_CHAR, other, 4, comm, MPI_INFO_NULL, &request));
    for (int start = 0; start < 2; start++) {
        if (rank == 0)
            fill(data, sent, start);
        OK(MPI_Start(&request));
        if (rank == 0)
            OK(MPI_Pready_range(0, 1, request));
        int code = MPI_Wait(&request, &status);
        OK(MPI_Error_class(code, &class));
        /* Other libraries need not report the truncation to the sender. */
        int may_not_know = rank == 0 && class == MPI_SUCCESS && !is_portcullis();
        CHECK(may_not_know || class == (sent > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "%d bytes into %d: class %d at start %d", sent, room, class, start);
        if (rank == 1 && sent <= room) {
            OK(MPI_Get_count(&status, MPI_CHAR, &count));
            CHECK(count == sent && status.MPI_SOURCE == other && status.MPI_TAG == 4,
                  "%d bytes of rank %d, tag %d", count, status.MPI_SOURCE, status.MPI_TAG);
            CHECK(differs(data, sent, start) < 0, "byte %ld is wrong", differs(data, sent, start));
        }
    }
    OK(MPI_Request_free(&request));
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&pair));
    OK(MPI_Group_free(&all));
    free(data);
}

static void mistakes(void)
{
    int value = 0, class;
    MPI_Request request;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Psend_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_INFO_NULL, &request));
    OK(MPI_Error_class(MPI_Pready(0, request), &class));
    CHECK(class == MPI_ERR_REQUEST, "before the start: class %d", class);
    OK(MPI_Start(&request));
    OK(MPI_Error_class(MPI_Pready(1, request), &class));
    CHECK(class == MPI_ERR_ARG, "a part that does not exist: class %d", class);
    OK(MPI_Pready(0, request));
    OK(MPI_Error_class(MPI_Pready(0, request), &class));
    CHECK(class == MPI_ERR_ARG, "ready twice: class %d", class);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    OK(MPI_Precv_init(&value, 1, 1, MPI_INT, 0, 0, comm, MPI_INFO_NULL, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Error_class(MPI_Precv_init(&value, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_INFO_NULL, &request), &class));
    CHECK(class == MPI_ERR_RANK, "from any source: class %d", class);
    OK(MPI_Error_class(MPI_Psend_init(&value, 0, 1, MPI_INT, 0, 0, comm, MPI_INFO_NULL, &request), &class));
    CHECK(class == MPI_ERR_ARG, "no parts: class %d", class);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    exchange(1, 1, 10);
    exchange(4, 4, 64);
    exchange(3, 5, 60);
    exchange(60, 1, 60);
    exchange(7, 2, 14 * 5000);
    exchange(2, 9, 18 * 40000);
    order();
    typed();
    for (int i = 0; i < 3; i++) {
        int bytes = (int[]){8, 4096, 4 << 20}[i];
        unequal(bytes / 2, bytes);
        unequal(bytes, bytes);
        unequal(2 * bytes, bytes);
    }
    mistakes();
    return finish("partitioned");
}
