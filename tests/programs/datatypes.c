/* Tests of derived datatypes: sizes, extents, packing, and messages with different layouts on the two sides. */
#include "check.h"

#include <stddef.h>

static int partner;

/* Sends `count` items of `type` from `data`; the partner receives `bytes` packed bytes.
 * Then packed bytes are sent back and received as `type`. */
static void through(const void *data, int count, MPI_Datatype type, const void *packed, int bytes, const char *name)
{
    MPI_Aint lower, extent;
    int size_of, seen;
    MPI_Status status;
    OK(MPI_Type_size(type, &size_of));
    CHECK(size_of * count == bytes, "%s: %d times %d bytes instead of %d", name, count, size_of, bytes);
    OK(MPI_Type_get_extent(type, &lower, &extent));

    char *got = malloc(bytes + 1);
    OK(MPI_Sendrecv(data, count, type, partner, 1, got, bytes, MPI_BYTE, partner, 1, MPI_COMM_WORLD, &status));
    CHECK(!memcmp(got, packed, bytes), "%s: sent as something else", name);
    OK(MPI_Get_count(&status, type, &seen));
    CHECK(seen == count, "%s: counted %d of %d", name, seen, count);

    /* Unpacking writes only the bytes that belong to the type. */
    size_t span = (size_t)extent * count + 64;
    unsigned char *spread = malloc(span), *mask = malloc(span);
    memset(spread, 0xAB, span);
    OK(MPI_Sendrecv(packed, bytes, MPI_BYTE, partner, 2, spread, count, type, partner, 2, MPI_COMM_WORLD, &status));
    memset(mask, 0, span);
    char *ones = malloc(bytes + 1);
    memset(ones, 1, bytes);
    int position = 0;
    OK(MPI_Unpack(ones, bytes, &position, mask, count, type, MPI_COMM_SELF));
    CHECK(position == bytes, "%s: unpacked %d of %d", name, position, bytes);
    for (size_t i = 0; i < span; i++) {
        if (mask[i])
            CHECK(spread[i] == ((const unsigned char *)data)[i], "%s: byte %zu is wrong", name, i);
        else
            CHECK(spread[i] == 0xAB, "%s: byte %zu lies in a hole and was written", name, i);
    }
    position = 0;
    memset(got, 0, bytes);
    OK(MPI_Pack(data, count, type, got, bytes, &position, MPI_COMM_SELF));
    CHECK(position == bytes && !memcmp(got, packed, bytes), "%s: packed as something else", name);
    free(ones); free(mask); free(spread); free(got);
}

/* Packs without MPI: copies the bytes at `offsets` of each item; items are `extent` bytes apart. */
static char *by_hand(const void *data, int count, MPI_Aint extent, const int *offsets, int n, int *bytes)
{
    *bytes = n * count;
    char *packed = malloc(*bytes + 1);
    for (int c = 0; c < count; c++)
        for (int i = 0; i < n; i++)
            packed[c * n + i] = ((const char *)data)[c * extent + offsets[i]];
    return packed;
}

static void extent_is(MPI_Datatype type, MPI_Aint lower, MPI_Aint extent, const char *name)
{
    MPI_Aint l, e;
    OK(MPI_Type_get_extent(type, &l, &e));
    CHECK(l == lower && e == extent, "%s: from %ld, extent %ld instead of %ld, %ld", name, (long)l, (long)e, (long)lower, (long)extent);
}

static void check_type(MPI_Datatype *type, const void *data, int count, const int *offsets, int n, MPI_Aint extent, const char *name)
{
    int bytes;
    OK(MPI_Type_commit(type));
    extent_is(*type, 0, extent, name);
    char *packed = by_hand(data, count, extent, offsets, n, &bytes);
    through(data, count, *type, packed, bytes, name);
    free(packed);
    OK(MPI_Type_free(type));
    CHECK(*type == MPI_DATATYPE_NULL, "%s: a freed type is still there", name);
}

/* Stores the offsets of all bytes of `items` items of `width` bytes, which begin at `starts`.
 * Returns the number of offsets. */
static int spell(int *offsets, const int *starts, int items, int width)
{
    int n = 0;
    for (int i = 0; i < items; i++)
        for (int b = 0; b < width; b++)
            offsets[n++] = starts[i] + b;
    return n;
}

/* Packing in external32, the portable representation, gives the bytes that the standard specifies;
 * unpacking restores the original data. */
static void check_external(void)
{
    struct { long l; double d; short s; } out[2] = {{-2, 1.0, 0x1234}, {3, -2.0, -1}}, in[2];
    static const unsigned char bytes[28] = {
        0xff, 0xff, 0xff, 0xfe, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x12, 0x34,
        0, 0, 0, 3, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    MPI_Datatype type;
    MPI_Aint at = 0, length;
    unsigned char packed[32];
    OK(MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 8, 16}, (MPI_Datatype[]){MPI_LONG, MPI_DOUBLE, MPI_SHORT}, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Pack_external_size("external32", 2, type, &length));
    CHECK(length == 28, "%ld bytes", (long)length);
    OK(MPI_Pack_external("external32", out, 2, type, packed, sizeof packed, &at));
    CHECK(at == 28 && !memcmp(packed, bytes, 28), "packed %ld other bytes", (long)at);
    MPI_Count large = 0;
    OK(MPI_Unpack_external_c("external32", packed, 28, &large, in, 2, type));
    CHECK(large == 28, "unpacked %lld bytes", (long long)large);
    for (int i = 0; i < 2; i++)
        CHECK(in[i].l == out[i].l && in[i].d == out[i].d && in[i].s == out[i].s, "structure %d is another", i);

    long double third = 1.0L / 3, back = 0;
    at = 0;
    OK(MPI_Pack_external("external32", &third, 1, MPI_LONG_DOUBLE, packed, 16, &at));
    CHECK(packed[0] == 0x3f && packed[1] == 0xfd && packed[2] == 0x55, "%02x%02x%02x", packed[0], packed[1], packed[2]);
    at = 0;
    OK(MPI_Unpack_external("external32", packed, 16, &at, &back, 1, MPI_LONG_DOUBLE));
    CHECK(back == third, "%Lg", back);

    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    at = 20;
    CHECK(MPI_Pack_external("external32", out, 1, type, packed, 32, &at) == MPI_ERR_TRUNCATE && at == 20, "at %ld", (long)at);
    CHECK(MPI_Pack_external("internal", out, 1, type, packed, 32, &at) == MPI_ERR_ARG, "another representation was packed");
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Type_free(&type));
}

/* Fortran datatypes by precision: one handle per kind, valid for operators, never freed. */
static void check_fortran_kinds(void)
{
    MPI_Datatype real, again, whole, pair, old;
    int integers, addresses, types, combiner, digits[2];
    OK(MPI_Type_create_f90_real(15, 300, &real));
    OK(MPI_Type_create_f90_real(15, 300, &again));
    CHECK(real == again, "the same kind has two handles");
    OK(MPI_Type_get_envelope(real, &integers, &addresses, &types, &combiner));
    CHECK(integers == 2 && !addresses && !types && combiner == MPI_COMBINER_F90_REAL, "%d integers, combiner %d", integers, combiner);
    OK(MPI_Type_get_contents(real, 2, 0, 0, digits, NULL, NULL));
    CHECK(digits[0] == 15 && digits[1] == 300, "%d, %d", digits[0], digits[1]);

    double mine = rank + 1, sum = 0;
    OK(MPI_Allreduce(&mine, &sum, 1, real, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size * (size + 1) / 2.0, "the sum is %g", sum);

    OK(MPI_Type_create_f90_integer(18, &whole));
    OK(MPI_Type_contiguous(2, whole, &pair));
    OK(MPI_Type_get_contents(pair, 1, 0, 1, digits, NULL, &old));
    CHECK(old == whole && digits[0] == 2, "%d of another handle", digits[0]);
    OK(MPI_Type_free(&pair));

    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CHECK(MPI_Type_free(&old) == MPI_ERR_TYPE, "a predefined type was freed");
    CHECK(MPI_Type_create_f90_integer(39, &old) == MPI_ERR_ARG, "there is an integer of 39 digits");
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    partner = (rank ^ 1) < size ? rank ^ 1 : rank;
    static char data[1 << 20];
    static int offsets[4096], starts[1024];
    fill(data, sizeof data, 3);
    MPI_Datatype type, inner;

    OK(MPI_Type_contiguous(10, MPI_INT, &type));
    for (int i = 0; i < 10; i++)
        starts[i] = 4 * i;
    check_type(&type, data, 7, offsets, spell(offsets, starts, 10, 4), 40, "contiguous");

    /* A column of a matrix of 16 columns. */
    OK(MPI_Type_vector(20, 1, 16, MPI_DOUBLE, &type));
    for (int i = 0; i < 20; i++)
        starts[i] = i * 16 * 8;
    check_type(&type, data, 1, offsets, spell(offsets, starts, 20, 8), 19 * 128 + 8, "vector");
    OK(MPI_Type_vector(20, 3, 5, MPI_SHORT, &type));
    int n = 0;
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 3; j++)
            starts[n++] = (i * 5 + j) * 2;
    check_type(&type, data, 50, offsets, spell(offsets, starts, n, 2), (19 * 5 + 3) * 2, "vector of blocks");
    OK(MPI_Type_create_hvector(6, 2, 37, MPI_CHAR, &type));
    n = 0;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 2; j++)
            starts[n++] = i * 37 + j;
    check_type(&type, data, 100, offsets, spell(offsets, starts, n, 1), 5 * 37 + 2, "hvector");

    /* The blocks are in list order, which differs from memory order. */
    OK(MPI_Type_indexed(3, (int[]){2, 1, 4}, (int[]){10, 0, 3}, MPI_INT, &type));
    static const int list[] = {40, 44, 0, 12, 16, 20, 24};
    /* The extent of 12 ints ends after the last byte in memory. */
    check_type(&type, data, 9, offsets, spell(offsets, list, 7, 4), 48, "indexed");
    OK(MPI_Type_create_indexed_block(3, 2, (int[]){4, 0, 8}, MPI_SHORT, &type));
    static const int blocks[] = {8, 10, 0, 2, 16, 18};
    check_type(&type, data, 9, offsets, spell(offsets, blocks, 6, 2), 20, "indexed_block");
    OK(MPI_Type_create_hindexed(2, (int[]){1, 3}, (MPI_Aint[]){0, 9}, MPI_CHAR, &type));
    static const int odd[] = {0, 9, 10, 11};
    check_type(&type, data, 33, offsets, spell(offsets, odd, 4, 1), 12, "hindexed");

    /* An array of structures with padding. */
    struct item { char c; double d; short s[3]; int i; };
    MPI_Aint places[] = {offsetof(struct item, c), offsetof(struct item, d), offsetof(struct item, s), offsetof(struct item, i)};
    MPI_Datatype kinds[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT};
    OK(MPI_Type_create_struct(4, (int[]){1, 1, 3, 1}, places, kinds, &inner));
    OK(MPI_Type_create_resized(inner, 0, sizeof(struct item), &type));
    OK(MPI_Type_free(&inner));
    n = 0;
    static const int widths[] = {1, 8, 6, 4};
    for (int p = 0; p < 4; p++)
        for (int b = 0; b < widths[p]; b++)
            offsets[n++] = (int)places[p] + b;
    check_type(&type, data, 1000, offsets, n, sizeof(struct item), "struct");

    /* Deeply nested types: a sub-cube, and a transposition by resized types. */
    OK(MPI_Type_create_subarray(3, (int[]){6, 7, 8}, (int[]){2, 3, 4}, (int[]){1, 2, 3}, MPI_ORDER_C, MPI_INT, &type));
    n = 0;
    for (int x = 1; x < 3; x++)
        for (int y = 2; y < 5; y++)
            for (int z = 3; z < 7; z++)
                starts[n++] = ((x * 7 + y) * 8 + z) * 4;
    check_type(&type, data, 3, offsets, spell(offsets, starts, n, 4), 6 * 7 * 8 * 4, "subarray");

    enum { EDGE = 60 };
    static int matrix[EDGE][EDGE], turned[EDGE][EDGE];
    for (int i = 0; i < EDGE; i++)
        for (int j = 0; j < EDGE; j++)
            matrix[i][j] = i * 1000 + j;
    MPI_Datatype column;
    OK(MPI_Type_vector(EDGE, 1, EDGE, MPI_INT, &column));
    OK(MPI_Type_create_resized(column, 0, sizeof(int), &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Sendrecv(matrix, EDGE * EDGE, MPI_INT, partner, 3, turned, EDGE, type, partner, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < EDGE; i++)
        for (int j = 0; j < EDGE; j++)
            CHECK(turned[j][i] == matrix[i][j], "row %d, column %d is %d", j, i, turned[j][i]);
    /* The type is also used in a collective. */
    OK(MPI_Bcast(turned, EDGE, type, 0, MPI_COMM_WORLD));
    CHECK(turned[3][5] == 5003, "after the broadcast %d", turned[3][5]);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&column));

    /* A large strided message, beyond every eager limit, received with another stride. */
    enum { LARGE = 60000 };
    MPI_Datatype two, three;
    int *from = calloc(2 * LARGE, sizeof *from), *to = calloc(3 * LARGE, sizeof *to);
    for (int i = 0; i < 2 * LARGE; i++)
        from[i] = i;
    OK(MPI_Type_vector(LARGE, 1, 2, MPI_INT, &two));
    OK(MPI_Type_vector(LARGE, 1, 3, MPI_INT, &three));
    OK(MPI_Type_commit(&two));
    OK(MPI_Type_commit(&three));
    OK(MPI_Sendrecv(from, 1, two, partner, 4, to, 1, three, partner, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < LARGE; i++) {
        CHECK(to[3 * i] == 2 * i, "number %d is %d", i, to[3 * i]);
        CHECK(i == LARGE - 1 || (to[3 * i + 1] == 0 && to[3 * i + 2] == 0), "the hole behind number %d was written", i);
    }
    OK(MPI_Type_free(&two));
    OK(MPI_Type_free(&three));
    free(from);
    free(to);

    /* Half an item is received: MPI_Get_elements returns its elements, MPI_Get_count MPI_UNDEFINED. */
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 4}, (MPI_Datatype[]){MPI_INT, MPI_INT}, &type));
    OK(MPI_Type_commit(&type));
    char few[24];
    MPI_Status status;
    int count;
    OK(MPI_Sendrecv(data, 3, MPI_INT, partner, 5, few, 3, type, partner, 5, MPI_COMM_WORLD, &status));
    OK(MPI_Get_elements(&status, type, &count));
    CHECK(count == 3, "%d elements", count);
    OK(MPI_Get_count(&status, type, &count));
    CHECK(count == MPI_UNDEFINED, "%d items", count);
    OK(MPI_Type_free(&type));
    check_external();
    check_fortran_kinds();
    return finish("datatypes");
}
