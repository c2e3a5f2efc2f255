/* For the check `--mca coll_base_check true`, with four ranks: members call different collectives and get an error. */
#include "check.h"

static void say(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;
    CHECK(code != MPI_SUCCESS, "%s is not noticed", what);
    OK(MPI_Error_string(code, text, &len));
    if (rank == 0)
        printf("%s:\n  %s\n", what, text);
}

static int waited(int code, MPI_Request *request)
{
    return code != MPI_SUCCESS ? code : MPI_Wait(request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int value[8] = {0}, result[8];
    MPI_Request request;
    MPI_Comm half;
    begin(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    OK(MPI_Comm_set_name(half, "half"));
    OK(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));

    say("another root", MPI_Bcast(value, 4, MPI_INT, rank == 2 ? 1 : 0, MPI_COMM_WORLD));
    say("another count", MPI_Reduce(value, result, rank == 3 ? 2 : 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD));
    say("another operator", MPI_Allreduce(value, result, 2, MPI_INT, rank < 2 ? MPI_MIN : MPI_MAX, MPI_COMM_WORLD));
    say("another order", rank == 0 ? MPI_Barrier(MPI_COMM_WORLD) : MPI_Scan(value, result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    int code = MPI_Iallgather(value, 1, rank == 1 ? MPI_SHORT : MPI_INT, result, 1, rank == 1 ? MPI_SHORT : MPI_INT, MPI_COMM_WORLD, &request);
    say("another length, nonblocking", waited(code, &request));
    int counts[4] = {1, 1, 1, 1}, more[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3}, six[8] = {0};
    if (rank == 1)
        more[2] = 2;
    say("another amount for one member", MPI_Alltoallv(six, more, places, MPI_INT, result, counts, places, MPI_INT, MPI_COMM_WORLD));
    say("another amount for the root", MPI_Gatherv(value, rank == 3 ? 2 : 1, MPI_INT, result, counts, places, MPI_INT, 0, MPI_COMM_WORLD));
    say("another amount than the root's", MPI_Scatterv(six, counts, places, MPI_INT, result, rank == 2 ? 3 : 1, MPI_INT, 0, MPI_COMM_WORLD));
    say("another amount than all expect", MPI_Allgather(value, rank == 0 ? 1 : 2, MPI_INT, result, 2, MPI_INT, MPI_COMM_WORLD));
    say("another amount than all others expect", MPI_Alltoall(six, rank == 0 ? 1 : 2, MPI_INT, result, 2, MPI_INT, MPI_COMM_WORLD));
    code = MPI_Ialltoall(six, rank == 2 ? 0 : 2, MPI_INT, result, 2, MPI_INT, MPI_COMM_WORLD, &request);
    say("the same, nonblocking", waited(code, &request));
    say("another amount of the root itself", MPI_Gather(value, rank == 1 ? 1 : 2, MPI_INT, result, 2, MPI_INT, 1, MPI_COMM_WORLD));
    say("another amount for the root itself", MPI_Scatter(six, 1, MPI_INT, result, rank == 1 ? 2 : 1, MPI_INT, 1, MPI_COMM_WORLD));
    if (rank == 3)
        counts[0] = 2;
    say("other counts of a sum", MPI_Reduce_scatter(six, result, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    say("on a communicator of its own", MPI_Bcast(value, rank / 2 + 1, MPI_INT, 0, half));

    /* After the errors, matching calls still work. */
    for (int i = 0; i < 20; i++) {
        OK(MPI_Allreduce((int[]){rank}, result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK(result[0] == size * (size - 1) / 2, "the sum is %d", result[0]);
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
        OK(MPI_Bcast(value, 3, MPI_INT, i % size, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Comm_free(&half));
    return finish("mismatch");
}
