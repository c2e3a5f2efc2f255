/* Tests of message matching: wildcards, tags in another order, receives posted before or after the message arrives,
 * and messages that must not overtake each other. */
#include "check.h"

enum { EACH = 200 };

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Status status;

    /* Rank 0 receives from any source; each sender's messages arrive in order. */
    if (rank == 0) {
        int *last = calloc(size, sizeof *last);
        for (int i = 0; i < EACH * (size - 1); i++) {
            int got[2];
            OK(MPI_Recv(got, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            int source = status.MPI_SOURCE;
            CHECK(got[0] == source, "a message of %d says it is from %d", source, got[0]);
            CHECK(got[1] == last[source], "message %d of %d came as number %d", got[1], source, last[source]);
            CHECK(status.MPI_TAG == got[1] % 5, "tag %d for message %d", status.MPI_TAG, got[1]);
            last[source]++;
        }
        free(last);
    } else {
        for (int i = 0; i < EACH; i++) {
            int message[2] = {rank, i};
            OK(MPI_Send(message, 2, MPI_INT, 0, i % 5, MPI_COMM_WORLD));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));

    /* Tags are received in the reverse order of their sends. */
    if (size > 1 && rank == 1)
        for (int tag = 0; tag < 50; tag++)
            OK(MPI_Send(&tag, 1, MPI_INT, 0, tag, MPI_COMM_WORLD));
    if (size > 1 && rank == 0)
        for (int tag = 49; tag >= 0; tag--) {
            int got = -1;
            OK(MPI_Recv(&got, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(got == tag, "tag %d brought %d", tag, got);
        }
    OK(MPI_Barrier(MPI_COMM_WORLD));

    /* Receives match in the order in which they were posted, with and without wildcards. */
    if (size > 1 && rank == 0) {
        int got[6], go = 1;
        MPI_Request r[6];
        OK(MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &r[0]));
        OK(MPI_Irecv(&got[1], 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &r[1]));
        OK(MPI_Irecv(&got[2], 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &r[2]));
        OK(MPI_Irecv(&got[3], 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &r[3]));
        OK(MPI_Irecv(&got[4], 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &r[4]));
        OK(MPI_Irecv(&got[5], 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &r[5]));
        OK(MPI_Send(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Waitall(6, r, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 6; i++)
            CHECK(got[i] == i, "receive %d got message %d", i, got[i]);
    }
    if (size > 1 && rank == 1) {
        static const int tags[6] = {3, 3, 3, 4, 4, 3};
        int go;
        OK(MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 6; i++)
            OK(MPI_Send(&i, 1, MPI_INT, 0, tags[i], MPI_COMM_WORLD));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));

    /* A small message must not overtake an earlier large one with the same tag. */
    enum { LARGE = 1 << 20 };
    char *large = calloc(LARGE, 1);
    if (size > 1 && rank == 1) {
        MPI_Request r[2];
        char small = 2;
        large[0] = 1;
        OK(MPI_Isend(large, LARGE, MPI_CHAR, 0, 9, MPI_COMM_WORLD, &r[0]));
        OK(MPI_Isend(&small, 1, MPI_CHAR, 0, 9, MPI_COMM_WORLD, &r[1]));
        OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    }
    if (size > 1 && rank == 0) {
        int count;
        nap(5000);
        OK(MPI_Recv(large, LARGE, MPI_CHAR, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_CHAR, &count));
        CHECK(large[0] == 1 && count == LARGE, "the small message overtook: %d bytes", count);
        OK(MPI_Recv(large, LARGE, MPI_CHAR, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_CHAR, &count));
        CHECK(large[0] == 2 && count == 1, "second message: %d bytes", count);
    }
    free(large);

    /* A wildcard matches only messages of its own communicator. */
    MPI_Comm other;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    if (size > 1 && rank == 1) {
        int a = 1, b = 2;
        OK(MPI_Send(&a, 1, MPI_INT, 0, 1, other));
        OK(MPI_Send(&b, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    }
    if (size > 1 && rank == 0) {
        int got;
        OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(got == 2, "the other communicator's message came: %d", got);
        OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, MPI_STATUS_IGNORE));
        CHECK(got == 1, "%d", got);
    }
    OK(MPI_Comm_free(&other));
    CHECK(other == MPI_COMM_NULL, "a freed communicator is still there");
    return finish("wildcard");
}
