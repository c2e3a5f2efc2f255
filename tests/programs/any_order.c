/* Persistent collectives that each rank starts in a different order (section 6.13).
 * Other collectives run between the starts. */
#include "check.h"

enum { OPERATIONS = 6, ROUNDS = 20, N = 300 };

static int one[OPERATIONS][N], all[OPERATIONS][100 * N];

static void make(MPI_Comm comm, MPI_Request *requests)
{
    int last = size - 1;
    OK(MPI_Bcast_init(one[0], N, MPI_INT, 0, comm, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Allreduce_init(one[2], all[2], N, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[2]));
    OK(MPI_Allgather_init(one[3], 3, MPI_INT, all[3], 3, MPI_INT, comm, MPI_INFO_NULL, &requests[3]));
    /* Two requests of the same operation with the same arguments. */
    OK(MPI_Bcast_init(one[4], N, MPI_INT, last, comm, MPI_INFO_NULL, &requests[4]));
    OK(MPI_Bcast_init(one[5], N, MPI_INT, last, comm, MPI_INFO_NULL, &requests[5]));
}

static void prepare(int round)
{
    for (int op = 0; op < OPERATIONS; op++)
        for (int i = 0; i < N; i++)
            one[op][i] = 1000 * round + 100 * op + i + rank;
}

static void look(int round)
{
    for (int i = 0; i < N; i++) {
        int base = 1000 * round + i, last = size - 1;
        CHECK(one[0][i] == base, "the first broadcast brought %d", one[0][i]);
        CHECK(all[2][i] == size * (base + 200) + size * last / 2, "the sum is %d", all[2][i]);
        CHECK(one[4][i] == base + 400 + last, "the second broadcast brought %d", one[4][i]);
        CHECK(one[5][i] == base + 500 + last, "the third broadcast brought %d", one[5][i]);
    }
    for (int r = 0; r < size; r++)
        CHECK(all[3][3 * r] == 1000 * round + 300 + r, "rank %d gave %d", r, all[3][3 * r]);
}

/* Starts all requests; the first one differs between ranks and rounds.
 * If `promised`, the order is the same on all ranks. */
static void run(MPI_Comm comm, int promised)
{
    MPI_Request requests[OPERATIONS];
    make(comm, requests);
    for (int round = 0; round < ROUNDS; round++) {
        int sum, first = promised ? round : round + rank, up = promised || rank % 2;
        prepare(round);
        for (int i = 0; i < OPERATIONS; i++) {
            /* Calls a blocking collective, after a different number of starts on each rank. */
            if (i == (promised ? 3 : rank % OPERATIONS))
                OK(MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, comm));
            OK(MPI_Start(&requests[(up ? first + i : first + OPERATIONS - i) % OPERATIONS]));
        }
        CHECK(sum == size * round, "the sum between is %d", sum);
        OK(MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE));
        look(round);
    }
    for (int i = 0; i < OPERATIONS; i++)
        OK(MPI_Request_free(&requests[i]));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    run(MPI_COMM_WORLD, 0);
    MPI_Comm comm;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_strict_persistent_collective_ordering", "true"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    OK(MPI_Info_free(&info));
    run(comm, 1);
    OK(MPI_Comm_free(&comm));
    return finish("any_order");
}
