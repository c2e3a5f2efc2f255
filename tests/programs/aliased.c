/* Buffers that overlap are rejected in all variants of all collective calls; valid calls still work. */
#include "check.h"

static int both[64], other[64];
static MPI_Request request;

static void refused(int code, const char *call)
{
    int class_, length;
    char text[MPI_MAX_ERROR_STRING];
    CHECK(code != MPI_SUCCESS, "%s of shared memory was accepted", call);
    OK(MPI_Error_class(code, &class_));
    CHECK(class_ == MPI_ERR_BUFFER, "%s of shared memory has class %d", call, class_);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, "is the same memory as"), "%s of shared memory says: %s", call, text);
}

#define REFUSED(call) refused((call), #call)

/* Checks that the blocking, the nonblocking and the persistent call are refused. */
#define FORMS(name, first, ...)                                                  \
    do {                                                                         \
        REFUSED(MPI_##name(__VA_ARGS__));                                        \
        REFUSED(MPI_I##first(__VA_ARGS__, &request));                            \
        REFUSED(MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request));        \
    } while (0)

/* As FORMS, with int counts and with large counts; for calls without arrays of counts. */
#define BOTH(name, first, ...)                                                   \
    do {                                                                         \
        FORMS(name, first, __VA_ARGS__);                                         \
        REFUSED(MPI_##name##_c(__VA_ARGS__));                                    \
        REFUSED(MPI_I##first##_c(__VA_ARGS__, &request));                        \
        REFUSED(MPI_##name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &request));      \
    } while (0)

static void refusals(MPI_Comm comm)
{
    int counts[16], places[16], bytes[16];
    MPI_Count wide[16];
    MPI_Aint far[16], farther[16];
    MPI_Datatype types[16];
    for (int r = 0; r < size; r++) {
        counts[r] = 2;
        wide[r] = 2;
        places[r] = 2 * r;
        far[r] = 2 * r;
        bytes[r] = 2 * r * (int)sizeof(int);
        farther[r] = bytes[r];
        types[r] = MPI_INT;
    }
    int *own = both + 2 * rank;
    BOTH(Allreduce, allreduce, both, both, 2, MPI_INT, MPI_SUM, comm);
    BOTH(Scan, scan, both, both, 2, MPI_INT, MPI_SUM, comm);
    BOTH(Exscan, exscan, both, both, 2, MPI_INT, MPI_SUM, comm);
    BOTH(Reduce_scatter_block, reduce_scatter_block, both, both, 2, MPI_INT, MPI_SUM, comm);
    FORMS(Reduce_scatter, reduce_scatter, both, both, counts, MPI_INT, MPI_SUM, comm);
    REFUSED(MPI_Reduce_scatter_c(both, both, wide, MPI_INT, MPI_SUM, comm));
    BOTH(Alltoall, alltoall, both, 2, MPI_INT, both, 2, MPI_INT, comm);
    FORMS(Alltoallv, alltoallv, both, counts, places, MPI_INT, both, counts, places, MPI_INT, comm);
    REFUSED(MPI_Alltoallv_c(both, wide, far, MPI_INT, both, wide, far, MPI_INT, comm));
    FORMS(Alltoallw, alltoallw, both, counts, bytes, types, both, counts, bytes, types, comm);
    REFUSED(MPI_Alltoallw_c(both, wide, farther, types, both, wide, farther, types, comm));
    BOTH(Allgather, allgather, own, 2, MPI_INT, both, 2, MPI_INT, comm);
    FORMS(Allgatherv, allgatherv, own, 2, MPI_INT, both, counts, places, MPI_INT, comm);
    REFUSED(MPI_Allgatherv_c(own, 2, MPI_INT, both, wide, far, MPI_INT, comm));

    /* In rooted calls only the root has both buffers; the other ranks' calls follow later. */
    for (int root = 0; root < size; root++) {
        if (rank != root)
            continue;
        BOTH(Reduce, reduce, both, both, 2, MPI_INT, MPI_SUM, root, comm);
        BOTH(Gather, gather, own, 2, MPI_INT, both, 2, MPI_INT, root, comm);
        FORMS(Gatherv, gatherv, own, 2, MPI_INT, both, counts, places, MPI_INT, root, comm);
        REFUSED(MPI_Gatherv_c(own, 2, MPI_INT, both, wide, far, MPI_INT, root, comm));
        BOTH(Scatter, scatter, both, 2, MPI_INT, own, 2, MPI_INT, root, comm);
        FORMS(Scatterv, scatterv, both, counts, places, MPI_INT, own, 2, MPI_INT, root, comm);
        REFUSED(MPI_Scatterv_c(both, wide, far, MPI_INT, own, 2, MPI_INT, root, comm));
    }
    REFUSED(MPI_Reduce_local(both, both, 2, MPI_INT, MPI_SUM));
    REFUSED(MPI_Reduce_local_c(both, both, 2, MPI_INT, MPI_SUM));
}

static void among_neighbours(void)
{
    int counts[4] = {2, 2, 2, 2}, places[4] = {0, 2, 4, 6};
    MPI_Aint bytes[4] = {0, 8, 16, 24};
    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    MPI_Comm ring;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, (int[]){1}, 0, &ring));
    OK(MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN));
    BOTH(Neighbor_alltoall, neighbor_alltoall, both, 2, MPI_INT, both, 2, MPI_INT, ring);
    FORMS(Neighbor_alltoallv, neighbor_alltoallv, both, counts, places, MPI_INT, both, counts, places, MPI_INT, ring);
    FORMS(Neighbor_alltoallw, neighbor_alltoallw, both, counts, bytes, types, both, counts, bytes, types, ring);
    BOTH(Neighbor_allgather, neighbor_allgather, both, 2, MPI_INT, both, 2, MPI_INT, ring);
    FORMS(Neighbor_allgatherv, neighbor_allgatherv, both + 2, 2, MPI_INT, both, counts, places, MPI_INT, ring);
    /* Separate buffers still work. */
    OK(MPI_Neighbor_alltoall(both, 2, MPI_INT, other, 2, MPI_INT, ring));
    OK(MPI_Comm_free(&ring));

    /* At the end of a non-periodic dimension there is no neighbour, so no block is accessed there. */
    int alone = 1;
    OK(MPI_Cart_create(MPI_COMM_SELF, 1, &alone, (int[]){0}, 0, &ring));
    OK(MPI_Neighbor_alltoall(both, 2, MPI_INT, both, 2, MPI_INT, ring));
    OK(MPI_Neighbor_allgather(both, 2, MPI_INT, both, 2, MPI_INT, ring));
    OK(MPI_Comm_free(&ring));
}

/* Valid calls that resemble calls with overlapping buffers. */
static void allowed(MPI_Comm comm)
{
    int counts[16] = {0}, places[16], none[16] = {0};
    int sum = size * (size - 1) / 2;
    for (int r = 0; r < size; r++)
        places[r] = 2 * r;

    /* With a count of zero, equal addresses are valid. */
    OK(MPI_Allreduce(both, both, 0, MPI_INT, MPI_SUM, comm));
    OK(MPI_Alltoall(both, 0, MPI_INT, both, 0, MPI_INT, comm));
    OK(MPI_Allgather(both, 0, MPI_INT, both, 0, MPI_INT, comm));
    OK(MPI_Alltoallv(both, none, places, MPI_INT, both, none, places, MPI_INT, comm));
    OK(MPI_Gather(both, 0, MPI_INT, both, 0, MPI_INT, 0, comm));
    OK(MPI_Reduce_local(both, both, 0, MPI_INT, MPI_SUM));
    OK(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, comm));

    /* Equal addresses in arguments that are not significant, and adjacent blocks, are valid. */
    both[0] = rank;
    OK(MPI_Reduce(rank == 0 ? MPI_IN_PLACE : both, both, 1, MPI_INT, MPI_SUM, 0, comm));
    CHECK(rank != 0 || both[0] == sum, "the sum is %d", both[0]);
    both[0] = rank;
    OK(MPI_Reduce(both, rank == 0 ? other : both, 1, MPI_INT, MPI_SUM, 0, comm));
    CHECK(rank != 0 || other[0] == sum, "the sum is %d", other[0]);
    both[0] = rank;
    OK(MPI_Allreduce(both, both + 1, 1, MPI_INT, MPI_SUM, comm));
    CHECK(both[1] == sum, "the sum is %d", both[1]);
    for (int r = 0; r < size; r++)
        counts[r] = 1;
    for (int r = 0; r < size; r++) {
        places[r] = size + r;
        none[r] = r;
        both[r] = 100 * rank + r;
    }
    OK(MPI_Alltoallv(both, counts, none, MPI_INT, both, counts, places, MPI_INT, comm));
    for (int r = 0; r < size; r++)
        CHECK(both[size + r] == 100 * r + rank, "from %d came %d", r, both[size + r]);

    /* The two halves of a structure begin at the same address but do not overlap. */
    MPI_Datatype low, high;
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &low));
    OK(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){sizeof(int)}, MPI_INT, &high));
    OK(MPI_Type_commit(&low));
    OK(MPI_Type_commit(&high));
    both[0] = rank + 7;
    OK(MPI_Alltoall(MPI_IN_PLACE, 1, low, other, 1, MPI_INT, comm));
    OK(MPI_Bcast(both, 1, low, 0, comm));
    MPI_Comm self;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &self));
    OK(MPI_Allgather(both, 1, low, both, 1, high, self));
    CHECK(both[1] == both[0], "%d became %d", both[0], both[1]);
    OK(MPI_Comm_free(&self));
    OK(MPI_Type_free(&low));
    OK(MPI_Type_free(&high));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (int i = 0; i < 64; i++)
        both[i] = i;
    refusals(MPI_COMM_WORLD);
    for (int i = 0; i < 64; i++)
        CHECK(both[i] == i, "place %d holds %d", i, both[i]);
    among_neighbours();
    int class_, code = MPI_Reduce_local(MPI_IN_PLACE, both, 2, MPI_INT, MPI_SUM);
    OK(MPI_Error_class(code, &class_));
    CHECK(class_ == MPI_ERR_BUFFER, "a local reduction in place has class %d", class_);
    code = MPI_Reduce_local(both, MPI_IN_PLACE, 2, MPI_INT, MPI_SUM);
    OK(MPI_Error_class(code, &class_));
    CHECK(class_ == MPI_ERR_BUFFER, "a local reduction into nothing has class %d", class_);
    allowed(MPI_COMM_WORLD);
    return finish("aliased");
}
