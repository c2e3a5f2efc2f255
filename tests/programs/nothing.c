/* Ranks that receive no data, or whose buffer is not significant, pass a null buffer;
 * with the given numbers of elements, data travel in cells, by single copies or in messages. */
#include "check.h"

static const int lengths[] = {0, 1, 40, 3000, 24000};

static long sum_of(long place)
{
    return (long)size * place + (long)size * (size - 1) / 2;
}

/* Makes the blocking, nonblocking or persistent call (`way` 0, 1 or 2). */
static void reduce_scatter(int way, const long *data, long *room, const int *counts)
{
    MPI_Request request;
    switch (way) {
    case 0: OK(MPI_Reduce_scatter(data, room, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD)); return;
    case 1: OK(MPI_Ireduce_scatter(data, room, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request)); break;
    default:
        OK(MPI_Reduce_scatter_init(data, room, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (way == 2)
        OK(MPI_Request_free(&request));
}

/* In turn, each rank receives all results of a reduce-scatter, and the other ranks receive none. */
static void all_to_one(int n)
{
    long *data = malloc((n + 1) * sizeof *data), *room = malloc((n + 1) * sizeof *room);
    int *counts = calloc(size, sizeof *counts), *starts = calloc(size, sizeof *starts);
    for (int way = 0; way < 3; way++)
        for (int one = 0; one < size; one++) {
            for (int i = 0; i < size; i++)
                counts[i] = i == one ? n : 0;
            for (int i = 0; i < n; i++)
                data[i] = i + rank, room[i] = -1;
            reduce_scatter(way, data, rank == one ? room : NULL, counts);
            for (int i = 0; rank == one && i < n; i++)
                CHECK(room[i] == sum_of(i), "way %d: element %d of %d is %ld", way, i, n, room[i]);
            /* The data of rank `one` are gathered at the root and scattered back. */
            OK(MPI_Gatherv(rank == one ? data : NULL, counts[rank], MPI_LONG, rank ? NULL : room, rank ? NULL : counts, rank ? NULL : starts, MPI_LONG, 0, MPI_COMM_WORLD));
            OK(MPI_Scatterv(rank ? NULL : room, rank ? NULL : counts, rank ? NULL : starts, MPI_LONG, rank == one ? data : NULL, counts[rank], MPI_LONG, 0, MPI_COMM_WORLD));
            for (int i = 0; rank == one && i < n; i++)
                CHECK(data[i] == i + rank, "element %d of %d came back as %ld", i, n, data[i]);
        }
    free(data), free(room), free(counts), free(starts);
}

/* Rank 0 gets no result of an exclusive scan, and only the root gets that of a reduction (6.9.1, 6.11.2). */
static void before_the_first(int n)
{
    long *data = malloc((n + 1) * sizeof *data), *room = malloc((n + 1) * sizeof *room);
    MPI_Request request;
    for (int way = 0; way < 3; way++) {
        for (int i = 0; i < n; i++)
            data[i] = i + rank, room[i] = -1;
        long *to = rank ? room : NULL;
        if (way == 0) {
            OK(MPI_Exscan(data, to, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
        } else {
            if (way == 1) {
                OK(MPI_Iexscan(data, to, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request));
            } else {
                OK(MPI_Exscan_init(data, to, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
                OK(MPI_Start(&request));
            }
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            if (way == 2)
                OK(MPI_Request_free(&request));
        }
        for (int i = 0; rank && i < n; i++)
            CHECK(room[i] == (long)rank * i + (long)rank * (rank - 1) / 2, "element %d of %d is %ld", i, n, room[i]);
        OK(MPI_Reduce(data, to, n, MPI_LONG, MPI_SUM, size - 1, MPI_COMM_WORLD));
        for (int i = 0; rank && rank == size - 1 && i < n; i++)
            CHECK(room[i] == sum_of(i), "element %d of %d is %ld", i, n, room[i]);
    }
    free(data), free(room);
}

/* Every rank sends to rank 0 only: most ranks receive no block, and rank 0 sends none (8.6). */
static void without_neighbours(void)
{
    int sources[64], target = 0, mine = rank, got[64], *none = NULL;
    MPI_Comm star;
    for (int i = 1; i < size; i++)
        sources[i - 1] = i;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank ? 0 : size - 1, sources, MPI_UNWEIGHTED, rank ? 1 : 0, &target, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &star));
    OK(MPI_Neighbor_alltoall(rank ? &mine : none, 1, MPI_INT, rank ? none : got, 1, MPI_INT, star));
    for (int i = 1; rank == 0 && i < size; i++)
        CHECK(got[i - 1] == i, "%d came from %d", got[i - 1], i);
    memset(got, 0, sizeof got);
    OK(MPI_Neighbor_allgather(rank ? &mine : none, 1, MPI_INT, rank ? none : got, 1, MPI_INT, star));
    for (int i = 1; rank == 0 && i < size; i++)
        CHECK(got[i - 1] == i, "%d came from %d", got[i - 1], i);
    OK(MPI_Comm_free(&star));
}

/* A rank that sends no data may pass no datatype. */
static void without_types(void)
{
    int *zeros = calloc(size, sizeof *zeros), partner = (rank ^ 1) < size ? rank ^ 1 : rank;
    MPI_Datatype *types = malloc(size * sizeof *types);
    for (int i = 0; i < size; i++)
        types[i] = MPI_DATATYPE_NULL;
    OK(MPI_Sendrecv(NULL, 0, MPI_DATATYPE_NULL, partner, 1, NULL, 0, MPI_DATATYPE_NULL, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Bcast(NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Allgatherv(NULL, 0, MPI_DATATYPE_NULL, NULL, zeros, zeros, MPI_DATATYPE_NULL, MPI_COMM_WORLD));
    OK(MPI_Alltoallv(NULL, zeros, zeros, MPI_DATATYPE_NULL, NULL, zeros, zeros, MPI_DATATYPE_NULL, MPI_COMM_WORLD));
    OK(MPI_Alltoallw(NULL, zeros, zeros, types, NULL, zeros, zeros, types, MPI_COMM_WORLD));
    free(zeros), free(types);
}

/* A nonempty block needs a datatype, even if an empty block before it has none. */
static void with_a_type_too_few(void)
{
    int *counts = calloc(size, sizeof *counts), *starts = calloc(size, sizeof *starts), class;
    int *data = calloc(size, sizeof *data), *room = calloc(size, sizeof *room);
    MPI_Datatype *types = malloc(size * sizeof *types);
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (int i = 0; i < size; i++)
        types[i] = MPI_DATATYPE_NULL;
    counts[size - 1] = 1;
    MPI_Error_class(MPI_Alltoallw(data, counts, starts, types, room, counts, starts, types, comm), &class);
    CHECK(class == MPI_ERR_TYPE, "class %d", class);
    MPI_Error_class(MPI_Alltoallv(data, counts, starts, MPI_DATATYPE_NULL, room, counts, starts, MPI_DATATYPE_NULL, comm), &class);
    CHECK(class == MPI_ERR_TYPE, "class %d", class);
    OK(MPI_Comm_free(&comm));
    free(counts), free(starts), free(data), free(room), free(types);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    without_types();
    with_a_type_too_few();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        all_to_one(lengths[i]);
        if (size > 1)
            before_the_first(lengths[i]);
    }
    without_neighbours();
    return finish("nothing");
}
