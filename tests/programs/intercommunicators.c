/* Tests of intercommunicators: creation, split, merge, and every collective between the two groups. */
#include "check.h"

#define TAG 77

static int here, there, mine; /* sizes of the local and the remote group; rank in the local group */
static int side;              /* 0 for the even ranks of the world, 1 for the odd ones */

/* Returns the world rank of rank r of a side. */
static int world_rank(int s, int r) { return 2 * r + s; }

static void shape(MPI_Comm inter)
{
    int flag, n, r, result;
    MPI_Group local, remote, both;
    OK(MPI_Comm_test_inter(inter, &flag));
    CHECK(flag, "not an intercommunicator");
    OK(MPI_Comm_test_inter(MPI_COMM_WORLD, &flag));
    CHECK(!flag, "the world is no intercommunicator");
    OK(MPI_Comm_size(inter, &n));
    OK(MPI_Comm_rank(inter, &r));
    CHECK(n == here && r == mine, "rank %d of %d", r, n);
    OK(MPI_Comm_remote_size(inter, &n));
    CHECK(n == there, "%d on the other side", n);
    OK(MPI_Comm_group(inter, &local));
    OK(MPI_Comm_remote_group(inter, &remote));
    OK(MPI_Group_intersection(local, remote, &both));
    CHECK(both == MPI_GROUP_EMPTY, "the groups overlap");
    OK(MPI_Group_free(&local));
    OK(MPI_Group_free(&remote));
    MPI_Comm twin;
    OK(MPI_Comm_dup(inter, &twin));
    OK(MPI_Comm_compare(inter, twin, &result));
    CHECK(result == MPI_CONGRUENT, "comparison %d", result);
    OK(MPI_Comm_compare(inter, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_UNEQUAL, "comparison %d", result);
    OK(MPI_Comm_free(&twin));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    int value = 0, class;
    OK(MPI_Error_class(MPI_Send(&value, 1, MPI_INT, there, 0, inter), &class));
    CHECK(class == MPI_ERR_RANK, "a rank beyond the remote group: class %d", class);
    OK(MPI_Error_class(MPI_Scan(&value, &n, 1, MPI_INT, MPI_SUM, inter), &class));
    CHECK(class == MPI_ERR_COMM, "a scan between groups: class %d", class);
    OK(MPI_Error_class(MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_SUM, inter), &class));
    CHECK(class == MPI_ERR_BUFFER, "in place between groups: class %d", class);
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL));
}

/* Every rank sends to every rank of the other side. */
static void messages(MPI_Comm inter)
{
    MPI_Request sends[64];
    int me = rank;
    for (int r = 0; r < there; r++)
        OK(MPI_Isend(&me, 1, MPI_INT, r, TAG, inter, &sends[r]));
    /* Messages from even remote ranks are received by rank, the others by a wildcard. */
    for (int i = 0; i < there; i++) {
        MPI_Status status;
        int got, named = 2 * i < there;
        OK(MPI_Recv(&got, 1, MPI_INT, named ? 2 * i : MPI_ANY_SOURCE, TAG, inter, &status));
        CHECK(!named || status.MPI_SOURCE == 2 * i, "rank %d answers for %d", status.MPI_SOURCE, 2 * i);
        CHECK(got == world_rank(!side, status.MPI_SOURCE), "rank %d sent %d", status.MPI_SOURCE, got);
    }
    OK(MPI_Waitall(there, sends, MPI_STATUSES_IGNORE));
}

/* Returns the root argument of an operation whose root is the last rank of side `rooted`. */
static int root_of(int rooted)
{
    int size = rooted == side ? here : there, root = size - 1;
    if (rooted != side)
        return root;
    return mine == root ? MPI_ROOT : MPI_PROC_NULL;
}

static void rooted(MPI_Comm inter, int to)
{
    int root = root_of(to), chosen = root == MPI_ROOT;
    int value = chosen ? 4711 : -1;
    OK(MPI_Bcast(root == MPI_PROC_NULL ? NULL : &value, 1, MPI_INT, root, inter));
    CHECK(value == (root == MPI_PROC_NULL ? -1 : 4711), "the broadcast brought %d", value);

    int all[64], one = rank, counts[64], at[64];
    for (int i = 0; i < 64; i++)
        all[i] = -1, counts[i] = 1, at[i] = 63 - i;
    OK(MPI_Gather(&one, 1, MPI_INT, all, 1, MPI_INT, root, inter));
    for (int i = 0; chosen && i < there; i++)
        CHECK(all[i] == world_rank(!side, i), "rank %d gave %d", i, all[i]);
    OK(MPI_Gatherv(&one, 1, MPI_INT, all, counts, at, MPI_INT, root, inter));
    for (int i = 0; chosen && i < there; i++)
        CHECK(all[63 - i] == world_rank(!side, i), "rank %d gave %d", i, all[63 - i]);

    for (int i = 0; i < 64; i++)
        all[i] = 100 + i;
    one = -1;
    OK(MPI_Scatter(all, 1, MPI_INT, &one, 1, MPI_INT, root, inter));
    CHECK(to == side ? one == -1 : one == 100 + mine, "the scatter brought %d", one);
    one = -1;
    OK(MPI_Scatterv(all, counts, at, MPI_INT, &one, 1, MPI_INT, root, inter));
    CHECK(to == side ? one == -1 : one == 163 - mine, "the scatter brought %d", one);

    int sum = -1;
    one = rank + 1;
    /* On non-root ranks no argument is significant, not even the datatype. */
    MPI_Datatype mine_too = root == MPI_PROC_NULL ? MPI_DATATYPE_NULL : MPI_INT;
    OK(MPI_Reduce(&one, &sum, 1, mine_too, MPI_SUM, root, inter));
    int expected = 0;
    for (int i = 0; i < there; i++)
        expected += world_rank(!side, i) + 1;
    CHECK(sum == (chosen ? expected : -1), "the sum is %d", sum);
}

static void symmetric(MPI_Comm inter)
{
    int one = rank + 1, sum = -1, expected = 0, all[64], out[64], counts[64], at[64];
    for (int i = 0; i < there; i++)
        expected += world_rank(!side, i) + 1;
    OK(MPI_Barrier(inter));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK(sum == expected, "the sum is %d, not %d", sum, expected);
    MPI_Request request;
    sum = -1;
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum == expected, "the sum is %d, not %d", sum, expected);

    OK(MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, inter));
    for (int i = 0; i < there; i++)
        CHECK(all[i] == world_rank(!side, i) + 1, "rank %d gave %d", i, all[i]);
    for (int i = 0; i < 64; i++)
        counts[i] = 1, at[i] = 63 - i;
    OK(MPI_Allgatherv(&one, 1, MPI_INT, all, counts, at, MPI_INT, inter));
    for (int i = 0; i < there; i++)
        CHECK(all[63 - i] == world_rank(!side, i) + 1, "rank %d gave %d", i, all[63 - i]);

    for (int i = 0; i < there; i++)
        out[i] = 100 * rank + i;
    OK(MPI_Alltoall(out, 1, MPI_INT, all, 1, MPI_INT, inter));
    for (int i = 0; i < there; i++)
        CHECK(all[i] == 100 * world_rank(!side, i) + mine, "rank %d gave %d", i, all[i]);
    for (int i = 0; i < there; i++)
        at[i] = i;
    OK(MPI_Alltoallv(out, counts, at, MPI_INT, all, counts, at, MPI_INT, inter));
    for (int i = 0; i < there; i++)
        CHECK(all[i] == 100 * world_rank(!side, i) + mine, "rank %d gave %d", i, all[i]);

    /* Both groups contribute the same number of elements;
     * each group scatters the other group's sum over its members. */
    int total = here * there, whole[1024], part[64];
    for (int i = 0; i < total; i++)
        whole[i] = i;
    OK(MPI_Reduce_scatter_block(whole, part, there, MPI_INT, MPI_SUM, inter));
    for (int i = 0; i < there; i++)
        CHECK(part[i] == there * (mine * there + i), "element %d is %d", i, part[i]);
    for (int i = 0; i < here; i++)
        counts[i] = there;
    OK(MPI_Reduce_scatter(whole, part, counts, MPI_INT, MPI_SUM, inter));
    for (int i = 0; i < there; i++)
        CHECK(part[i] == there * (mine * there + i), "element %d is %d", i, part[i]);
}

static void children(MPI_Comm inter)
{
    /* Creates an intercommunicator of only the first rank of each side. */
    MPI_Group local, first;
    MPI_Comm small, part, whole;
    OK(MPI_Comm_group(inter, &local));
    OK(MPI_Group_incl(local, 1, (int[]){0}, &first));
    OK(MPI_Comm_create(inter, first, &small));
    CHECK((small != MPI_COMM_NULL) == (mine == 0), "rank %d is in the small one", mine);
    if (small != MPI_COMM_NULL) {
        int n, token = rank, got;
        OK(MPI_Comm_remote_size(small, &n));
        CHECK(n == 1, "%d on the other side", n);
        OK(MPI_Sendrecv(&token, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, small, MPI_STATUS_IGNORE));
        CHECK(got == 1 - rank, "the other one is %d", got);
        OK(MPI_Comm_free(&small));
    }
    OK(MPI_Group_free(&local));
    OK(MPI_Group_free(&first));

    /* A colour that occurs on one side only creates no communicator. */
    int lonely = mine == 0 && here > there, color = lonely ? 99 : mine % 2;
    OK(MPI_Comm_split(inter, color, -mine, &part));
    int others = color == 0 ? (there + 1) / 2 : color == 1 ? there / 2 : 0;
    int lonely_there = there > here && color == 0;
    others -= lonely_there;
    CHECK((part != MPI_COMM_NULL) == (others > 0), "rank %d has %d others", mine, others);
    if (part != MPI_COMM_NULL) {
        int n, one = 1, sum;
        OK(MPI_Comm_remote_size(part, &n));
        CHECK(n == others, "%d others, not %d", n, others);
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, part));
        CHECK(sum == n, "%d of %d were counted", sum, n);
        OK(MPI_Comm_free(&part));
    }

    for (int high = 0; high < 2; high++) {
        int r, n;
        OK(MPI_Intercomm_merge(inter, side == high, &whole));
        OK(MPI_Comm_rank(whole, &r));
        OK(MPI_Comm_size(whole, &n));
        CHECK(n == size && r == (side == high ? there : 0) + mine, "rank %d of %d", r, n);
        int one = 1, sum;
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, whole));
        CHECK(sum == size, "%d of %d were counted", sum, size);
        OK(MPI_Comm_free(&whole));
    }
}

/* A wrong argument of a leader fails the call on its whole group, and no rank hangs. */
static void astray(MPI_Comm half)
{
    MPI_Comm none = MPI_COMM_NULL;
    int class;
    MPI_Errhandler before;
    if (!is_portcullis())
        return;
    OK(MPI_Comm_get_errhandler(half, &before));
    OK(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));
    OK(MPI_Error_class(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, size, TAG, &none), &class));
    CHECK(class == MPI_ERR_RANK && none == MPI_COMM_NULL, "no such leader: class %d", class);
    OK(MPI_Error_class(MPI_Intercomm_create(half, 0, MPI_COMM_NULL, 0, TAG, &none), &class));
    CHECK(class == MPI_ERR_COMM && none == MPI_COMM_NULL, "no peer communicator: class %d", class);
    OK(MPI_Error_class(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 0, -2, &none), &class));
    CHECK(class == MPI_ERR_TAG && none == MPI_COMM_NULL, "a negative tag: class %d", class);
    OK(MPI_Comm_set_errhandler(half, before));
    OK(MPI_Errhandler_free(&before));

    /* If no communicator is created, errors call the error handler of MPI_COMM_SELF. */
    MPI_Group ours;
    OK(MPI_Comm_group(half, &ours));
    OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &before));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    int code = MPI_Intercomm_create_from_groups(ours, 0, ours, size, "astray", MPI_INFO_NULL, MPI_ERRORS_RETURN, &none);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_RANK && none == MPI_COMM_NULL, "a leader that is not there: class %d", class);
    code = MPI_Intercomm_create_from_groups(ours, 0, MPI_GROUP_NULL, 0, "astray", MPI_INFO_NULL, MPI_ERRORS_RETURN, &none);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_GROUP && none == MPI_COMM_NULL, "no group: class %d", class);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, before));
    OK(MPI_Errhandler_free(&before));

    /* If either group is empty, the call is local (section 7.6.2 of MPI 5.0).
     * It creates no communicator, even if only one rank makes the call. */
    MPI_Comm made = half;
    OK(MPI_Intercomm_create_from_groups(ours, 0, MPI_GROUP_EMPTY, 0, "empty", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
    CHECK(made == MPI_COMM_NULL, "the remote group is empty");
    if (rank == 0) {
        made = half;
        OK(MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, ours, 0, "empty", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
        CHECK(made == MPI_COMM_NULL, "the local group is empty");
        made = half;
        OK(MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, MPI_GROUP_EMPTY, 0, "empty", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
        CHECK(made == MPI_COMM_NULL, "both groups are empty");
    }
    OK(MPI_Group_free(&ours));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (size < 2)
        return finish("intercommunicators");
    side = rank % 2;
    MPI_Comm half, inter, copy;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half));
    astray(half);
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, TAG, &inter));
    OK(MPI_Comm_free(&half));
    here = side ? size / 2 : (size + 1) / 2;
    there = size - here;
    mine = rank / 2;
    MPI_Request request;
    OK(MPI_Comm_idup(inter, &copy, &request));
    shape(inter);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Comm both[] = {inter, copy};
    for (int i = 0; i < 2; i++) {
        messages(both[i]);
        rooted(both[i], 0);
        rooted(both[i], 1);
        symmetric(both[i]);
        children(both[i]);
    }
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_disconnect(&copy));
    return finish("intercommunicators");
}
