/* Tests of the predefined operators on C types, and of user-defined operators, commutative or not. */
#include "check.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#if defined(__has_include)
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

enum { N = 5 };

/* Returns rank r's number with index i; it is so small that products of eight numbers are exact. */
static int seed(int r, int i)
{
    return (r * 3 + i) % 4 + 1;
}

#define ARITHMETIC(type, mpi_type) \
    do { \
        type in[N], out[N]; \
        for (int i = 0; i < N; i++) \
            in[i] = (type)seed(rank, i); \
        static const struct { const char *name; int which; } ops[] = {{"sum", 0}, {"prod", 1}, {"max", 2}, {"min", 3}}; \
        MPI_Op handles[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN}; \
        for (int o = 0; o < 4; o++) { \
            if (o == 1 && size > 8) \
                continue; \
            OK(MPI_Allreduce(in, out, N, mpi_type, handles[o], MPI_COMM_WORLD)); \
            for (int i = 0; i < N; i++) { \
                type expected = (type)seed(0, i); \
                for (int r = 1; r < size; r++) { \
                    type x = (type)seed(r, i); \
                    switch (ops[o].which) { \
                    case 0: expected = (type)(expected + x); break; \
                    case 1: expected = (type)(expected * x); break; \
                    case 2: if (x > expected) expected = x; break; \
                    case 3: if (x < expected) expected = x; break; \
                    } \
                } \
                CHECK(out[i] == expected, "%s of " #mpi_type ": number %d is %g instead of %g", \
                      ops[o].name, i, (double)out[i], (double)expected); \
            } \
        } \
    } while (0)

#define LOGICAL(type, mpi_type) \
    do { \
        type in[N], out[N]; \
        MPI_Op handles[] = {MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR}; \
        for (int i = 0; i < N; i++) \
            in[i] = (type)(i == 0 ? 0 : seed(rank, i) - 1); \
        for (int o = 0; o < 6; o++) { \
            OK(MPI_Allreduce(in, out, N, mpi_type, handles[o], MPI_COMM_WORLD)); \
            for (int i = 0; i < N; i++) { \
                type e = (type)(i == 0 ? 0 : seed(0, i) - 1); \
                if (o < 3) e = (type)!!e; \
                for (int r = 1; r < size; r++) { \
                    type x = (type)(i == 0 ? 0 : seed(r, i) - 1); \
                    switch (o) { \
                    case 0: e = (type)(e && x); break; \
                    case 1: e = (type)(e || x); break; \
                    case 2: e = (type)(!e != !x); break; \
                    case 3: e = (type)(e & x); break; \
                    case 4: e = (type)(e | x); break; \
                    case 5: e = (type)(e ^ x); break; \
                    } \
                } \
                type seen = o < 3 && size == 1 ? (type)!!out[i] : out[i]; \
                CHECK(seen == e, "operator %d of " #mpi_type ": number %d is %ld instead of %ld", o, i, (long)out[i], (long)e); \
            } \
        } \
    } while (0)

/* Multiplies 2x2 matrices, an operation that is not commutative. */
static void multiply(void *a, void *b, int *count, MPI_Datatype *type)
{
    long (*x)[4] = a, (*y)[4] = b;
    (void)type;
    for (int i = 0; i < *count; i++) {
        long p[4] = {(x[i][0] * y[i][0] + x[i][1] * y[i][2]) % 9973, (x[i][0] * y[i][1] + x[i][1] * y[i][3]) % 9973,
                     (x[i][2] * y[i][0] + x[i][3] * y[i][2]) % 9973, (x[i][2] * y[i][1] + x[i][3] * y[i][3]) % 9973};
        memcpy(y[i], p, sizeof p);
    }
}

static void matrix(int r, int i, long *m)
{
    long fresh[4] = {r + 1, i + 2, 1, r + i};
    memcpy(m, fresh, sizeof fresh);
}

static void users(void)
{
    MPI_Op product;
    MPI_Datatype matrix_type;
    int commutes = 1;
    OK(MPI_Op_create(multiply, 0, &product));
    OK(MPI_Op_commutative(product, &commutes));
    CHECK(!commutes, "the matrix product does not commute");
    OK(MPI_Type_contiguous(4, MPI_LONG, &matrix_type));
    OK(MPI_Type_commit(&matrix_type));

    long in[N][4], out[N][4], expected[N][4], prefix[N][4];
    for (int i = 0; i < N; i++) {
        matrix(rank, i, in[i]);
        matrix(size - 1, i, expected[i]);
        for (int r = size - 2; r >= 0; r--) {
            long m[4];
            int one = 1;
            matrix(r, i, m);
            multiply(m, expected[i], &one, NULL);
        }
        matrix(rank, i, prefix[i]);
        for (int r = rank - 1; r >= 0; r--) {
            long m[4];
            int one = 1;
            matrix(r, i, m);
            multiply(m, prefix[i], &one, NULL);
        }
    }
    OK(MPI_Allreduce(in, out, N, matrix_type, product, MPI_COMM_WORLD));
    CHECK(!memcmp(out, expected, sizeof out), "allreduce multiplied in another order: %ld %ld", out[0][0], expected[0][0]);
    for (int root = 0; root < size; root++) {
        memset(out, 0, sizeof out);
        OK(MPI_Reduce(in, out, N, matrix_type, product, root, MPI_COMM_WORLD));
        CHECK(rank != root || !memcmp(out, expected, sizeof out), "reduce to %d multiplied in another order", root);
    }
    OK(MPI_Scan(in, out, N, matrix_type, product, MPI_COMM_WORLD));
    CHECK(!memcmp(out, prefix, sizeof out), "scan multiplied in another order");
    memcpy(out, in, sizeof out);
    OK(MPI_Reduce_local(in, out, N, matrix_type, product));
    for (int i = 0; i < N; i++) {
        int one = 1;
        long square[4];
        memcpy(square, in[i], sizeof square);
        multiply(in[i], square, &one, NULL);
        CHECK(!memcmp(out[i], square, sizeof square), "reduce_local: matrix %d", i);
    }
    OK(MPI_Type_free(&matrix_type));
    OK(MPI_Op_free(&product));
    CHECK(product == MPI_OP_NULL && matrix_type == MPI_DATATYPE_NULL, "freed handles are still there");
}

static void locations(void)
{
    struct { double value; int index; } in, out;
    struct { int value, index; } in2, out2;
    in.value = (rank * 7) % 5;
    in.index = in2.index = rank;
    in2.value = (rank * 3) % 4;
    double highest = -1;
    int where = -1, lowest = INT_MAX, where2 = -1;
    for (int r = 0; r < size; r++) {
        if ((r * 7) % 5 > highest) {
            highest = (r * 7) % 5;
            where = r;
        }
        if ((r * 3) % 4 < lowest) {
            lowest = (r * 3) % 4;
            where2 = r;
        }
    }
    OK(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
    CHECK(out.value == highest && out.index == where, "the largest is %g at %d", out.value, out.index);
    OK(MPI_Allreduce(&in2, &out2, 1, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD));
    CHECK(out2.value == lowest && out2.index == where2, "the smallest is %d at %d", out2.value, out2.index);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    ARITHMETIC(char, MPI_CHAR);
    ARITHMETIC(signed char, MPI_SIGNED_CHAR);
    ARITHMETIC(unsigned char, MPI_UNSIGNED_CHAR);
    ARITHMETIC(short, MPI_SHORT);
    ARITHMETIC(unsigned short, MPI_UNSIGNED_SHORT);
    ARITHMETIC(int, MPI_INT);
    ARITHMETIC(unsigned, MPI_UNSIGNED);
    ARITHMETIC(long, MPI_LONG);
    ARITHMETIC(unsigned long, MPI_UNSIGNED_LONG);
    ARITHMETIC(long long, MPI_LONG_LONG);
    ARITHMETIC(int8_t, MPI_INT8_T);
    ARITHMETIC(uint16_t, MPI_UINT16_T);
    ARITHMETIC(int32_t, MPI_INT32_T);
    ARITHMETIC(uint64_t, MPI_UINT64_T);
    ARITHMETIC(float, MPI_FLOAT);
    ARITHMETIC(double, MPI_DOUBLE);
    ARITHMETIC(long double, MPI_LONG_DOUBLE);
#if defined(MPIX_C_FLOAT16) && defined(__FLT16_MANT_DIG__)
    if (is_portcullis()) {
        ARITHMETIC(_Float16, MPIX_C_FLOAT16);
    }
#endif
    ARITHMETIC(MPI_Aint, MPI_AINT);
    ARITHMETIC(MPI_Count, MPI_COUNT);
    LOGICAL(char, MPI_CHAR);
    LOGICAL(unsigned char, MPI_UNSIGNED_CHAR);
    LOGICAL(short, MPI_SHORT);
    LOGICAL(int, MPI_INT);
    LOGICAL(unsigned long, MPI_UNSIGNED_LONG);
    LOGICAL(uint8_t, MPI_UINT8_T);
    LOGICAL(MPI_Aint, MPI_AINT);
    LOGICAL(MPI_Offset, MPI_OFFSET);
    LOGICAL(MPI_Count, MPI_COUNT);
    locations();
    users();
    return finish("operators");
}
