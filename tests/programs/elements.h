/* Elements of every predefined datatype: writes small numbers, compares elements,
 * and applies each datatype's operators. */
#ifndef ELEMENTS_H
#define ELEMENTS_H

#include "check.h"
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

/* Classes of types by operator: the rows of the standard's table (section 6.9.2). */
enum { INTEGER, COUNTING, REAL, COMPLEX, LOGICAL, BYTES, PAIR, LETTER };

typedef struct {
    const char *name;
    int kind, extent;
    void (*number)(void *to, int value);
    MPI_Datatype type;
} Type;

enum { LONGEST_ELEMENT = 32 };

/* A pair of a value and an index. */
#define PAIRS(X) \
    X(FLOAT_INT, float, int) X(DOUBLE_INT, double, int) X(LONG_INT, long, int) X(2INT, int, int) X(SHORT_INT, short, int) \
    X(LONG_DOUBLE_INT, long double, int) X(2REAL, float, float) X(2DOUBLE_PRECISION, double, double) X(2INTEGER, int, int)

#define NUMBERS(X) \
    X(SIGNED_CHAR, INTEGER, signed char) X(UNSIGNED_CHAR, INTEGER, unsigned char) X(SHORT, INTEGER, short) \
    X(UNSIGNED_SHORT, INTEGER, unsigned short) X(INT, INTEGER, int) X(UNSIGNED, INTEGER, unsigned) X(LONG, INTEGER, long) \
    X(UNSIGNED_LONG, INTEGER, unsigned long) X(LONG_LONG, INTEGER, long long) X(UNSIGNED_LONG_LONG, INTEGER, unsigned long long) \
    X(INT8_T, INTEGER, int8_t) X(INT16_T, INTEGER, int16_t) X(INT32_T, INTEGER, int32_t) X(INT64_T, INTEGER, int64_t) \
    X(UINT8_T, INTEGER, uint8_t) X(UINT16_T, INTEGER, uint16_t) X(UINT32_T, INTEGER, uint32_t) X(UINT64_T, INTEGER, uint64_t) \
    X(AINT, COUNTING, MPI_Aint) X(OFFSET, COUNTING, MPI_Offset) X(COUNT, COUNTING, MPI_Count) X(INTEGER, COUNTING, int) \
    X(INTEGER1, COUNTING, int8_t) X(INTEGER2, COUNTING, int16_t) X(INTEGER4, COUNTING, int32_t) X(INTEGER8, COUNTING, int64_t) \
    X(FLOAT, REAL, float) X(DOUBLE, REAL, double) X(LONG_DOUBLE, REAL, long double) X(REAL, REAL, float) \
    X(DOUBLE_PRECISION, REAL, double) X(REAL4, REAL, float) X(REAL8, REAL, double) \
    X(C_BOOL, LOGICAL, bool) X(LOGICAL, LOGICAL, int) X(BYTE, BYTES, unsigned char) \
    X(CHAR, LETTER, char) X(CHARACTER, LETTER, char) X(WCHAR, LETTER, wchar_t)

#define COMPLEX_NUMBERS(X) \
    X(C_FLOAT_COMPLEX, COMPLEX, float complex) X(C_DOUBLE_COMPLEX, COMPLEX, double complex) \
    X(C_LONG_DOUBLE_COMPLEX, COMPLEX, long double complex) X(COMPLEX, COMPLEX, float complex) X(DOUBLE_COMPLEX, COMPLEX, double complex)

/* Numbers are small, so that sums and products of a few are exact;
 * logicals are 0 or 1, and complex numbers have two parts. */
#define WRITER(tag, group, ctype) \
    static void number_##tag(void *to, int value) \
    { \
        ctype x = (ctype)(group == LOGICAL ? value % 2 : value); \
        memset(to, 0, sizeof x); \
        /* Only ten bytes of a long double hold the number. */ \
        memcpy(to, &x, group == REAL && sizeof x == 16 ? 10 : sizeof x); \
    }
NUMBERS(WRITER)

#define COMPLEX_WRITER(tag, group, ctype) \
    static void number_##tag(void *to, int value) \
    { \
        ctype x = value + value / 2 * I; \
        size_t part = sizeof x / 2, bytes = part == 16 ? 10 : part; \
        memset(to, 0, sizeof x); \
        memcpy(to, &x, bytes); \
        memcpy((char *)to + part, (char *)&x + part, bytes); \
    }
COMPLEX_NUMBERS(COMPLEX_WRITER)

#define PAIR_WRITER(tag, first, second) \
    typedef struct { first value; second index; } Pair_##tag; \
    static void number_##tag(void *to, int value) \
    { \
        Pair_##tag *pair = to; \
        memset(to, 0, sizeof *pair); \
        pair->value = (first)(value / 3); \
        pair->index = (second)value; \
    }
PAIRS(PAIR_WRITER)

#define NUMBER_ROW(tag, group, ctype) {"MPI_" #tag, group, sizeof(ctype), number_##tag, MPI_DATATYPE_NULL},
#define PAIR_ROW(tag, first, second) {"MPI_" #tag, PAIR, sizeof(Pair_##tag), number_##tag, MPI_DATATYPE_NULL},
static Type types[] = {NUMBERS(NUMBER_ROW) COMPLEX_NUMBERS(NUMBER_ROW) PAIRS(PAIR_ROW)};
enum { TYPES = sizeof types / sizeof *types };

/* Fills in the MPI handles at run time: in C they need not be compile-time constants. */
static void name_types(void)
{
#define NUMBER_HANDLE(tag, group, ctype) MPI_##tag,
#define PAIR_HANDLE(tag, first, second) MPI_##tag,
    MPI_Datatype all[] = {NUMBERS(NUMBER_HANDLE) COMPLEX_NUMBERS(NUMBER_HANDLE) PAIRS(PAIR_HANDLE)};
    for (int i = 0; i < TYPES; i++) {
        MPI_Aint lb, extent;
        types[i].type = all[i];
        OK(MPI_Type_get_extent(all[i], &lb, &extent));
        CHECK(extent == types[i].extent, "%s has %ld bytes in C: %d", types[i].name, (long)extent, types[i].extent);
    }
}

/* Returns true if the type has padding bytes, which an operator leaves unspecified. */
static int has_padding(const Type *t)
{
    return strstr(t->name, "LONG_DOUBLE") != NULL;
}

/* Compares two elements without padding, including the last six bytes of a long double. */
static int same_element(const Type *t, const void *a, const void *b)
{
    if (!strcmp(t->name, "MPI_LONG_DOUBLE"))
        return memcmp(a, b, 10) == 0;
    if (!strcmp(t->name, "MPI_C_LONG_DOUBLE_COMPLEX"))
        return memcmp(a, b, 10) == 0 && memcmp((const char *)a + 16, (const char *)b + 16, 10) == 0;
    if (!strcmp(t->name, "MPI_LONG_DOUBLE_INT"))
        return memcmp(a, b, 10) == 0 && memcmp((const char *)a + 16, (const char *)b + 16, sizeof(int)) == 0;
    char pa[LONGEST_ELEMENT], pb[LONGEST_ELEMENT];
    int at = 0, bt = 0;
    OK(MPI_Pack(a, 1, t->type, pa, sizeof pa, &at, MPI_COMM_SELF));
    OK(MPI_Pack(b, 1, t->type, pb, sizeof pb, &bt, MPI_COMM_SELF));
    return at == bt && memcmp(pa, pb, at) == 0;
}

/* Computes `inout = in op inout` as for accumulates; only data bytes change. */
static void apply_element(const Type *t, MPI_Op op, const void *in, void *inout)
{
    char element[LONGEST_ELEMENT], packed[LONGEST_ELEMENT];
    int at = 0, end = 0;
    if (op == MPI_NO_OP)
        return;
    memcpy(element, inout, t->extent);
    if (op == MPI_REPLACE)
        memcpy(element, in, t->extent);
    else
        OK(MPI_Reduce_local(in, element, 1, t->type, op));
    OK(MPI_Pack(element, 1, t->type, packed, sizeof packed, &end, MPI_COMM_SELF));
    OK(MPI_Unpack(packed, end, &at, inout, 1, t->type, MPI_COMM_SELF));
}

/* Returns operator `which` of a type, modulo the number of its operators;
 * if `exact`, an operator whose result does not depend on the order. */
static MPI_Op operator_of(const Type *t, unsigned which, int exact)
{
    MPI_Op bits[] = {MPI_BAND, MPI_BOR, MPI_BXOR};
    MPI_Op integer[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    MPI_Op real[] = {MPI_SUM, MPI_MIN, MPI_MAX, MPI_PROD}, complex_[] = {MPI_SUM, MPI_PROD};
    switch (t->kind) {
    case INTEGER: return integer[which % 10];
    /* Fortran integers and multi-language types do not support logical operators. */
    case COUNTING: return integer[which % 7];
    case REAL: return real[which % (exact ? 3 : 4)];
    case COMPLEX: return complex_[which % (exact ? 1 : 2)];
    case LOGICAL: return integer[7 + which % 3];
    case BYTES: return bits[which % 3];
    case PAIR: return which % 2 ? MPI_MINLOC : MPI_MAXLOC;
    default: return MPI_REPLACE;
    }
}

/* Returns true if MPI_Compare_and_swap supports the type (section 12.3.4). */
static int is_swappable(const Type *t)
{
    return t->kind == INTEGER || t->kind == COUNTING || t->kind == LOGICAL || t->kind == BYTES;
}
#endif
