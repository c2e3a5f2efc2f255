/* Tests of groups and communicators: creation, comparison, split, use and free. */
#include "check.h"

/* Checks that a communicator works: a sum over all members. */
static void works(MPI_Comm comm)
{
    int r, n, one = 1, sum = 0;
    OK(MPI_Comm_rank(comm, &r));
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == n, "%d of %d were counted", sum, n);
    int token = r, next = (r + 1) % n, before = (r + n - 1) % n;
    OK(MPI_Sendrecv_replace(&token, 1, MPI_INT, next, 1, before, 1, comm, MPI_STATUS_IGNORE));
    CHECK(token == before, "rank %d sent %d", before, token);
    OK(MPI_Barrier(comm));
}

static void groups(void)
{
    MPI_Group world, odd, even, both, none, rest, slice;
    int n, r, result;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_size(world, &n));
    OK(MPI_Group_rank(world, &r));
    CHECK(n == size && r == rank, "rank %d of %d", r, n);

    int *evens = malloc(size * sizeof *evens), count = 0;
    for (int i = 0; i < size; i += 2)
        evens[count++] = i;
    OK(MPI_Group_incl(world, count, evens, &even));
    OK(MPI_Group_excl(world, count, evens, &odd));
    OK(MPI_Group_rank(even, &r));
    CHECK(r == (rank % 2 ? MPI_UNDEFINED : rank / 2), "rank %d in the even group", r);
    OK(MPI_Group_size(odd, &n));
    CHECK(n == size / 2, "%d odd ranks", n);
    OK(MPI_Group_intersection(even, odd, &none));
    CHECK(none == MPI_GROUP_EMPTY, "a rank is even and odd");
    OK(MPI_Group_union(even, odd, &both));
    OK(MPI_Group_compare(both, world, &result));
    CHECK(result == (size <= 2 ? MPI_IDENT : MPI_SIMILAR), "comparison %d", result);
    OK(MPI_Group_difference(world, even, &rest));
    OK(MPI_Group_compare(rest, odd, &result));
    CHECK(result == MPI_IDENT, "comparison %d", result);
    int range[1][3] = {{0, size - 1, 2}};
    OK(MPI_Group_range_incl(world, 1, range, &slice));
    OK(MPI_Group_compare(slice, even, &result));
    CHECK(result == MPI_IDENT, "comparison %d", result);
    int *there = malloc(count * sizeof *there);
    OK(MPI_Group_translate_ranks(even, count, (int[64]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}, world, there));
    for (int i = 0; i < count; i++)
        CHECK(there[i] == 2 * i, "even rank %d is %d in the world", i, there[i]);
    free(evens);
    free(there);
    MPI_Group *all[] = {&world, &odd, &even, &both, &rest, &slice};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i] != MPI_GROUP_EMPTY)
            OK(MPI_Group_free(all[i]));
    }
}

static int copies, deletions;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm; (void)key; (void)extra;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm; (void)key; (void)value; (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

static void attributes(void)
{
    int key, flag, *upper, length;
    char *kept, name[MPI_MAX_OBJECT_NAME];
    MPI_Comm twin;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &flag));
    CHECK(flag && *upper >= 32767, "tag limit %d", flag ? *upper : -1);
    OK(MPI_Comm_create_keyval(copy, forget, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, name));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    OK(MPI_Comm_get_attr(twin, key, &kept, &flag));
    CHECK(flag && kept == name + 1 && copies == 1, "the copy function was called %d times", copies);
    OK(MPI_Comm_set_name(twin, "twin"));
    OK(MPI_Comm_get_name(twin, name, &length));
    CHECK(!strcmp(name, "twin") && length == 4, "named %s", name);
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK(!strcmp(name, "MPI_COMM_WORLD"), "named %s", name);
    OK(MPI_Comm_free(&twin));
    CHECK(deletions == 1, "the delete function was called %d times", deletions);
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &kept, &flag));
    CHECK(!flag && deletions == 2, "deleted %d times", deletions);
    /* A key value is freed while attributes use it: by copies of its handle they
     * can still be read and deleted, and the delete function is called. */
    int again = key, last = key;
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, name));
    OK(MPI_Comm_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID, "key %d", key);
    OK(MPI_Comm_free_keyval(&again));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, last, &kept, &flag));
    CHECK(flag && kept == name, "an attribute went with its key");
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, last));
    CHECK(deletions == 3, "deleted %d times", deletions);
}

/* Splits by hardware resource: by the resource's name, and by the next level of the hierarchy. */
static void hardware(void)
{
    MPI_Info here, wanted;
    MPI_Comm part;
    char value[16];
    int flag, len = sizeof value, n;
    /* The resource names are library-specific. */
    if (!is_portcullis())
        return;
    OK(MPI_Get_hw_resource_info(&here));
    OK(MPI_Info_get_string(here, "hwloc://Machine", &len, value, &flag));
    CHECK(flag && !strcmp(value, "true"), "confined to this machine: %s", value);
    OK(MPI_Info_create(&wanted));
    OK(MPI_Info_set(wanted, "mpi_hw_resource_type", "hwloc://Machine"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, wanted, &part));
    OK(MPI_Comm_size(part, &n));
    CHECK(n == size, "%d of %d on this machine", n, size);
    works(part);
    OK(MPI_Comm_free(&part));

    len = sizeof value;
    OK(MPI_Info_get_string(here, "hwloc://PU", &len, value, &flag));
    OK(MPI_Info_set(wanted, "mpi_hw_resource_type", "hwloc://PU"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, wanted, &part));
    CHECK(flag && (part != MPI_COMM_NULL) == !strcmp(value, "true"), "confined to a processor: %s", value);
    if (part != MPI_COMM_NULL)
        OK(MPI_Comm_free(&part));
    OK(MPI_Info_set(wanted, "mpi_hw_resource_type", "hwloc://Toaster"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, wanted, &part));
    CHECK(part == MPI_COMM_NULL, "there are %d toasters", 1);
    OK(MPI_Info_free(&wanted));

    OK(MPI_Info_create(&wanted));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, wanted, &part));
    if (part != MPI_COMM_NULL) {
        OK(MPI_Comm_size(part, &n));
        CHECK(n < size, "the next level has all %d", n);
        len = 0;
        OK(MPI_Info_get_string(wanted, "mpi_hw_resource_type", &len, NULL, &flag));
        CHECK(flag, "the level of %d processes has no name", n);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Info_set(wanted, "mpi_pset_name", "mpi://SELF"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, wanted, &part));
    OK(MPI_Comm_size(part, &n));
    CHECK(n == 1, "%d in the set of one", n);
    OK(MPI_Comm_free(&part));
    OK(MPI_Info_free(&wanted));
    OK(MPI_Info_free(&here));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int result, r, n;
    MPI_Comm comm, other;

    works(MPI_COMM_WORLD);
    works(MPI_COMM_SELF);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    works(comm);
    OK(MPI_Comm_compare(comm, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_CONGRUENT, "comparison %d", result);
    OK(MPI_Comm_compare(comm, comm, &result));
    CHECK(result == MPI_IDENT, "comparison %d", result);
    MPI_Request request;
    OK(MPI_Comm_idup(comm, &other, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    works(other);
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_free(&comm));

    /* Splits by three colours; the keys reverse the rank order. */
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 3, -rank, &comm));
    OK(MPI_Comm_rank(comm, &r));
    OK(MPI_Comm_size(comm, &n));
    int members = (size - rank % 3 + 2) / 3;
    CHECK(n == members, "%d members instead of %d", n, members);
    CHECK(r == members - 1 - rank / 3, "rank %d", r);
    works(comm);
    /* Splits the split communicator again; with equal keys the rank order is kept. */
    OK(MPI_Comm_split(comm, r / 2, 0, &other));
    OK(MPI_Comm_rank(other, &n));
    CHECK(n == r % 2, "rank %d", n);
    works(other);
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &comm));
    CHECK((comm == MPI_COMM_NULL) == (rank == 0), "rank 0 wanted no communicator");
    if (comm != MPI_COMM_NULL) {
        works(comm);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
    OK(MPI_Comm_size(comm, &n));
    CHECK(n == size, "%d of %d share the machine", n, size);
    works(comm);
    OK(MPI_Comm_free(&comm));

    /* All ranks call MPI_Comm_create; only members of the group call MPI_Comm_create_group. */
    MPI_Group world, first;
    int half = (size + 1) / 2, range[1][3] = {{half - 1, 0, -1}};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_range_incl(world, 1, range, &first));
    OK(MPI_Comm_create(MPI_COMM_WORLD, first, &comm));
    CHECK((comm != MPI_COMM_NULL) == (rank < half), "membership");
    if (rank < half) {
        OK(MPI_Comm_rank(comm, &r));
        CHECK(r == half - 1 - rank, "rank %d", r);
        works(comm);
        OK(MPI_Comm_free(&comm));
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, first, 17, &comm));
        works(comm);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_free(&first));
    OK(MPI_Group_free(&world));

    /* Many communicators are created and freed in sequence: freed context IDs are reused. */
    for (int i = 0; i < 300; i++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        if (i % 50 == 0)
            works(comm);
        OK(MPI_Comm_free(&comm));
    }
    groups();
    attributes();
    hardware();
    return finish("communicators");
}
