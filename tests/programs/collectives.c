/* Every collective is compared with a local computation: blocking and nonblocking, in place or not,
 * with every root, with several sizes, and overlapping on two communicators. */
#include "check.h"
#include <sched.h>

static const int counts[] = {0, 1, 2, 7, 100, 1000, 5000, 40000};
enum { COUNTS = sizeof counts / sizeof *counts };

/* Returns the number with index i of rank r's contribution in test `salt`. */
static int value(int r, int i, int salt)
{
    return (r + 1) * 1000003 + i * 17 + salt * 101;
}

static int *numbers(int n)
{
    int *a = malloc((n + 1) * sizeof *a);
    CHECK(a, "no memory for %d numbers", n);
    for (int i = 0; i < n; i++)
        a[i] = -7;
    a[n] = 0x5EA1;
    return a;
}

static int *mine(int n, int salt)
{
    int *a = numbers(n);
    for (int i = 0; i < n; i++)
        a[i] = value(rank, i, salt);
    return a;
}

static void intact(int *a, int n, const char *what)
{
    CHECK(a[n] == 0x5EA1, "%s wrote behind its %d numbers", what, n);
    free(a);
}

/* Completes a nonblocking call by MPI_Wait or by MPI_Test. */
static void complete(MPI_Request *request, int by_test)
{
    int flag = 0;
    if (!by_test)
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    while (by_test && !flag) {
        OK(MPI_Test(request, &flag, MPI_STATUS_IGNORE));
        /* There may be more ranks than cores. */
        if (!flag)
            sched_yield();
    }
    CHECK(*request == MPI_REQUEST_NULL, "a completed collective is still there");
}

/* Makes the blocking call if `way` is 0, otherwise the nonblocking call. */
#define EITHER(blocking, nonblocking, ...) \
    do { \
        if (way == 0) { OK(blocking(__VA_ARGS__, MPI_COMM_WORLD)); } \
        else { MPI_Request r_; OK(nonblocking(__VA_ARGS__, MPI_COMM_WORLD, &r_)); complete(&r_, way == 2); } \
    } while (0)

static int sum_of(int i, int salt)
{
    unsigned sum = 0;
    for (int r = 0; r < size; r++)
        sum += (unsigned)value(r, i, salt);
    return (int)sum;
}

static void rooted(int n, int root, int way, int salt)
{
    int *a, *all;

    a = rank == root ? mine(n, salt) : numbers(n);
    EITHER(MPI_Bcast, MPI_Ibcast, a, n, MPI_INT, root);
    for (int i = 0; i < n; i++)
        CHECK(a[i] == value(root, i, salt), "bcast from %d: number %d of %d is %d", root, i, n, a[i]);
    intact(a, n, "bcast");

    a = mine(n, salt);
    int *result = numbers(n);
    EITHER(MPI_Reduce, MPI_Ireduce, a, result, n, MPI_INT, MPI_SUM, root);
    for (int i = 0; rank == root && i < n; i++)
        CHECK(result[i] == sum_of(i, salt), "reduce: number %d of %d is %d", i, n, result[i]);
    intact(result, n, "reduce");
    EITHER(MPI_Reduce, MPI_Ireduce, rank == root ? MPI_IN_PLACE : a, a, n, MPI_INT, MPI_SUM, root);
    for (int i = 0; rank == root && i < n; i++)
        CHECK(a[i] == sum_of(i, salt), "reduce in place: number %d of %d is %d", i, n, a[i]);
    intact(a, n, "reduce in place");

    a = mine(n, salt);
    all = numbers(n * size);
    EITHER(MPI_Gather, MPI_Igather, a, n, MPI_INT, all, n, MPI_INT, root);
    for (int k = 0; rank == root && k < n * size; k++)
        CHECK(all[k] == value(k / n, k % n, salt), "gather: number %d is %d", k, all[k]);
    /* The scatter distributes the gathered blocks: each rank receives the block that it contributed. */
    for (int k = 0; rank == root && k < n * size; k++)
        all[k] = value(k / n, k % n, salt + 1);
    EITHER(MPI_Scatter, MPI_Iscatter, all, n, MPI_INT, a, n, MPI_INT, root);
    for (int i = 0; i < n; i++)
        CHECK(a[i] == value(rank, i, salt + 1), "scatter: number %d is %d", i, a[i]);
    intact(a, n, "scatter");
    intact(all, n * size, "gather");

    /* Blocks of different lengths: rank r has n + r numbers; a gap follows each block at the root. */
    int *lengths = malloc(size * sizeof *lengths), *places = malloc(size * sizeof *places), total = 0;
    for (int r = 0; r < size; r++) {
        lengths[r] = n + r;
        places[r] = total;
        total += n + r + 1;
    }
    a = mine(n + rank, salt);
    all = numbers(total);
    EITHER(MPI_Gatherv, MPI_Igatherv, a, n + rank, MPI_INT, all, lengths, places, MPI_INT, root);
    if (rank == root)
        for (int r = 0; r < size; r++) {
            for (int i = 0; i < lengths[r]; i++)
                CHECK(all[places[r] + i] == value(r, i, salt), "gatherv: number %d of %d is %d", i, r, all[places[r] + i]);
            CHECK(all[places[r] + lengths[r]] == -7, "gatherv filled the gap behind %d", r);
        }
    memset(a, 0, (n + rank) * sizeof *a);
    EITHER(MPI_Scatterv, MPI_Iscatterv, all, lengths, places, MPI_INT, a, n + rank, MPI_INT, root);
    for (int i = 0; i < n + rank; i++)
        CHECK(a[i] == value(rank, i, salt), "scatterv: number %d is %d", i, a[i]);
    intact(a, n + rank, "scatterv");
    intact(all, total, "gatherv");
    free(lengths);
    free(places);
}

static void all_cases(int n, int way, int salt)
{
    int *a = mine(n, salt), *b = numbers(n), *all = numbers(n * size), *out = numbers(n * size);

    EITHER(MPI_Allreduce, MPI_Iallreduce, a, b, n, MPI_INT, MPI_SUM);
    for (int i = 0; i < n; i++)
        CHECK(b[i] == sum_of(i, salt), "allreduce: number %d of %d is %d", i, n, b[i]);
    memcpy(b, a, n * sizeof *b);
    EITHER(MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, b, n, MPI_INT, MPI_MAX);
    for (int i = 0; i < n; i++)
        CHECK(b[i] == value(size - 1, i, salt), "allreduce in place: number %d is %d", i, b[i]);

    EITHER(MPI_Allgather, MPI_Iallgather, a, n, MPI_INT, all, n, MPI_INT);
    for (int k = 0; k < n * size; k++)
        CHECK(all[k] == value(k / n, k % n, salt), "allgather: number %d is %d", k, all[k]);
    memset(all, 0, n * size * sizeof *all);
    memcpy(all + n * rank, a, n * sizeof *a);
    EITHER(MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INT);
    for (int k = 0; k < n * size; k++)
        CHECK(all[k] == value(k / n, k % n, salt), "allgather in place: number %d is %d", k, all[k]);

    /* The values of block j of rank r depend on r * size + j. */
    for (int k = 0; k < n * size; k++)
        out[k] = value(rank * size + k / n, k % n, salt);
    EITHER(MPI_Alltoall, MPI_Ialltoall, out, n, MPI_INT, all, n, MPI_INT);
    for (int k = 0; k < n * size; k++)
        CHECK(all[k] == value(k / n * size + rank, k % n, salt), "alltoall: number %d is %d", k, all[k]);
    EITHER(MPI_Alltoall, MPI_Ialltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, n, MPI_INT);
    for (int k = 0; k < n * size; k++)
        CHECK(out[k] == value(k / n * size + rank, k % n, salt), "alltoall in place: number %d is %d", k, out[k]);

    for (int k = 0; k < n * size; k++)
        out[k] = value(rank, k, salt);
    EITHER(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, out, b, n, MPI_INT, MPI_SUM);
    for (int i = 0; i < n; i++)
        CHECK(b[i] == sum_of(rank * n + i, salt), "reduce_scatter_block: number %d is %d", i, b[i]);

    EITHER(MPI_Scan, MPI_Iscan, a, b, n, MPI_INT, MPI_SUM);
    for (int i = 0; i < n; i++) {
        unsigned sum = 0;
        for (int r = 0; r <= rank; r++)
            sum += (unsigned)value(r, i, salt);
        CHECK(b[i] == (int)sum, "scan: number %d is %d", i, b[i]);
    }
    EITHER(MPI_Exscan, MPI_Iexscan, a, b, n, MPI_INT, MPI_SUM);
    for (int i = 0; rank > 0 && i < n; i++) {
        unsigned sum = 0;
        for (int r = 0; r < rank; r++)
            sum += (unsigned)value(r, i, salt);
        CHECK(b[i] == (int)sum, "exscan: number %d is %d", i, b[i]);
    }
    intact(a, n, "input");
    intact(b, n, "output");
    intact(all, n * size, "gathered output");
    intact(out, n * size, "scattered input");
}

static void uneven(int n, int way, int salt)
{
    int *lengths = malloc(size * sizeof *lengths), *places = malloc(size * sizeof *places), total = 0;
    for (int r = 0; r < size; r++) {
        lengths[r] = r % 3 == 2 ? 0 : n + r;
        places[r] = total;
        total += lengths[r] + 1;
    }
    int *a = mine(lengths[rank], salt), *all = numbers(total);
    EITHER(MPI_Allgatherv, MPI_Iallgatherv, a, lengths[rank], MPI_INT, all, lengths, places, MPI_INT);
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < lengths[r]; i++)
            CHECK(all[places[r] + i] == value(r, i, salt), "allgatherv: number %d of %d is %d", i, r, all[places[r] + i]);
        CHECK(all[places[r] + lengths[r]] == -7, "allgatherv filled the gap behind %d", r);
    }
    intact(a, lengths[rank], "allgatherv input");
    intact(all, total, "allgatherv");

    /* Rank r sends (r + j) % 4 * n numbers to rank j. */
    int *to = malloc(size * sizeof *to), *to_at = malloc(size * sizeof *to), out_total = 0;
    for (int r = 0; r < size; r++) {
        to[r] = (rank + r) % 4 * n;
        to_at[r] = out_total;
        out_total += to[r];
    }
    int *out = numbers(out_total), *in = numbers(out_total);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < to[r]; i++)
            out[to_at[r] + i] = value(rank * size + r, i, salt);
    EITHER(MPI_Alltoallv, MPI_Ialltoallv, out, to, to_at, MPI_INT, in, to, to_at, MPI_INT);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < to[r]; i++)
            CHECK(in[to_at[r] + i] == value(r * size + rank, i, salt), "alltoallv: number %d of %d is %d", i, r, in[to_at[r] + i]);

    /* The same exchange with a datatype per partner and displacements in bytes (MPI_Alltoallw). */
    MPI_Datatype *types = malloc(size * sizeof *types);
    for (int r = 0; r < size; r++) {
        types[r] = MPI_INT;
        to_at[r] *= (int)sizeof(int);
    }
    memset(in, 0, out_total * sizeof *in);
    EITHER(MPI_Alltoallw, MPI_Ialltoallw, out, to, to_at, types, in, to, to_at, types);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < to[r]; i++)
            CHECK(in[to_at[r] / (int)sizeof(int) + i] == value(r * size + rank, i, salt), "alltoallw: number %d of %d", i, r);
    intact(out, out_total, "alltoallw input");
    intact(in, out_total, "alltoallw");

    int whole = 0, before = 0;
    for (int r = 0; r < size; r++) {
        before += r < rank ? lengths[r] : 0;
        whole += lengths[r];
    }
    a = mine(whole, salt);
    int *part = numbers(lengths[rank]);
    EITHER(MPI_Reduce_scatter, MPI_Ireduce_scatter, a, part, lengths, MPI_INT, MPI_SUM);
    for (int i = 0; i < lengths[rank]; i++)
        CHECK(part[i] == sum_of(before + i, salt), "reduce_scatter: number %d is %d", i, part[i]);
    intact(a, whole, "reduce_scatter input");
    intact(part, lengths[rank], "reduce_scatter");
    free(types); free(to); free(to_at); free(lengths); free(places);
}

/* Several collectives in progress on two communicators, completed in another order than started. */
static void overlapping(void)
{
    enum { FLIGHT = 12 };
    MPI_Comm other;
    MPI_Request requests[FLIGHT];
    int in[FLIGHT], out[FLIGHT];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    for (int i = 0; i < FLIGHT; i++) {
        in[i] = value(rank, i, 3);
        OK(MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, i % 2 ? other : MPI_COMM_WORLD, &requests[i]));
    }
    for (int i = FLIGHT - 1; i >= 0; i -= 2)
        OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    OK(MPI_Waitall(FLIGHT, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < FLIGHT; i++)
        CHECK(out[i] == sum_of(i, 3), "collective %d gave %d", i, out[i]);
    OK(MPI_Comm_free(&other));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int largest = argc > 1 ? atoi(argv[1]) : counts[COUNTS - 1];
    for (int c = 0; c < COUNTS && counts[c] <= largest; c++) {
        for (int way = 0; way < 3; way++) {
            for (int root = 0; root < size; root += size > 4 ? size - 1 : 1)
                rooted(counts[c], root, way, c * 10 + way);
            all_cases(counts[c], way, c * 10 + way);
            uneven(counts[c], way, c * 10 + way);
            MPI_Request r;
            OK(MPI_Ibarrier(MPI_COMM_WORLD, &r));
            complete(&r, way == 2);
        }
    }
    overlapping();
    return finish("collectives");
}
