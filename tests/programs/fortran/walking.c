/*
 * Test of random array sections, given by descriptors like those that a compiler creates.
 * Each section is packed and unpacked twice: by module mpi_f08 with the descriptor,
 * and by the C functions with a datatype built from its extents and strides.
 */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 15, MOST = 40000 };

/* The Fortran standard's array descriptor (CFI_cdesc_t), as gfortran and flang lay it out. */
struct descriptor {
    void *base;
    size_t element;
    int version;
    signed char rank, others[3];
    struct {
        ptrdiff_t lower, extent, distance;
    } dim[MAX_RANK];
};

void mpi_pack_f08ts_(struct descriptor *, int *, int *, struct descriptor *, int *, int *, int *, int *);
void mpi_unpack_f08ts_(struct descriptor *, int *, int *, struct descriptor *, int *, int *, int *, int *);
void mpi_allreduce_f08ts_(struct descriptor *, struct descriptor *, int *, int *, int *, int *, int *);
void mpi_iallreduce_f08ts_(struct descriptor *, struct descriptor *, int *, int *, int *, int *, int *, int *);
void mpi_wait_f08_(int *, void *, int *);

static uint32_t state;

static int below(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)n);
}

/* The datatype of one element, or of a part of an element. */
struct element {
    MPI_Datatype type;
    int size, parts;
};

static struct descriptor contiguous(void *base, int bytes)
{
    struct descriptor plain = { .base = base, .element = 1, .version = 1, .rank = 1 };
    plain.dim[0].extent = bytes;
    plain.dim[0].distance = 1;
    return plain;
}

/* Creates a random section of an array at `memory`; returns its number of elements. */
static int section(struct descriptor *d, char *memory, int element)
{
    ptrdiff_t distance = element, first = 0;
    int whole = 1, elements = 1;
    memset(d, 0, sizeof *d);
    d->element = element;
    d->version = 1;
    d->rank = 1 + below(MAX_RANK);
    for (int i = 0; i < d->rank; i++) {
        int extent = below(3) ? 1 : 1 + below(5), step = 1 + below(3);
        if (whole * ((extent - 1) * step + 2) * element > MOST)
            extent = step = 1;
        int length = (extent - 1) * step + 1 + (extent > 1 ? below(2) : 0);
        d->dim[i].extent = extent;
        d->dim[i].distance = distance * step;
        if (below(2)) {
            first += d->dim[i].distance * (extent - 1);
            d->dim[i].distance = -d->dim[i].distance;
        }
        distance *= length;
        whole *= length;
        elements *= extent;
    }
    if (!below(20)) {
        d->dim[below(d->rank)].extent = 0;
        elements = 0;
    }
    d->base = memory + first;
    return elements;
}

/* Returns a datatype of the whole section, from its extents and strides. */
static MPI_Datatype description(const struct descriptor *d, const struct element *e)
{
    MPI_Datatype made;
    MPI_Type_contiguous(e->parts, e->type, &made);
    for (int i = 0; i < d->rank; i++) {
        MPI_Datatype inner = made;
        MPI_Type_create_hvector((int)d->dim[i].extent, 1, d->dim[i].distance, inner, &made);
        MPI_Type_free(&inner);
    }
    MPI_Type_commit(&made);
    return made;
}

static int wrong(const char *what, int number, const struct descriptor *d)
{
    printf("case %d, rank %d of the array, elements of %zu bytes: %s\n", number, d->rank, d->element, what);
    for (int i = 0; i < d->rank; i++)
        printf("  extent %td, distance %td\n", d->dim[i].extent, d->dim[i].distance);
    return 1;
}

static char memory[MOST], other[MOST], again[MOST], packed[MOST], expected[MOST];

static int packs(int number, const struct element *e)
{
    struct descriptor d, plain = contiguous(packed, MOST);
    int elements = section(&d, memory, e->size);
    for (int i = 0; i < MOST; i++)
        memory[i] = (char)below(256);
    int part = elements ? 1 + below(elements) : 0, count = part * e->parts;
    int type = MPI_Type_toint(e->type), comm = MPI_Comm_toint(MPI_COMM_SELF), size = MOST, position = 0, code = -1;
    mpi_pack_f08ts_(&d, &count, &type, &plain, &size, &position, &comm, &code);
    if (code != MPI_SUCCESS)
        return wrong("it is not packed", number, &d);
    MPI_Datatype whole = description(&d, e);
    int at = 0;
    MPI_Pack(d.base, 1, whole, expected, MOST, &at, MPI_COMM_SELF);
    /* Packing the first `part` items must give the beginning of the packed section. */
    if (position != part * e->size || memcmp(packed, expected, position))
        return wrong("packed other elements than the datatype has", number, &d);
    /* Unpacks into an array with other contents. */
    memset(other, 0x55, MOST);
    memcpy(again, other, MOST);
    struct descriptor into = d;
    into.base = other + ((char *)d.base - memory);
    count = elements * e->parts;
    position = 0;
    plain.base = expected;
    mpi_unpack_f08ts_(&plain, &size, &position, &into, &count, &type, &comm, NULL);
    at = 0;
    MPI_Unpack(expected, MOST, &at, again + ((char *)d.base - memory), 1, whole, MPI_COMM_SELF);
    MPI_Type_free(&whole);
    if (memcmp(other, again, MOST))
        return wrong("unpacked to other places than the datatype has", number, &d);
    return 0;
}

/* Reductions copy a section element by element; on one rank the result equals the argument. */
static int reduces(int number)
{
    struct descriptor d, result;
    int elements = section(&d, memory, sizeof(int));
    for (size_t i = 0; i < MOST / sizeof(int); i++)
        ((int *)memory)[i] = below(1000);
    memset(other, 0, MOST);
    result = d;
    result.base = other + ((char *)d.base - memory);
    int count = elements, type = MPI_Type_toint(MPI_INT), op = MPI_Op_toint(MPI_SUM), comm = MPI_Comm_toint(MPI_COMM_SELF);
    int code = -1, request;
    if (number % 2) {
        mpi_allreduce_f08ts_(&d, &result, &count, &type, &op, &comm, &code);
    } else {
        mpi_iallreduce_f08ts_(&d, &result, &count, &type, &op, &comm, &request, &code);
        MPI_Status status;
        mpi_wait_f08_(&request, &status, NULL);
    }
    if (code != MPI_SUCCESS)
        return wrong("it is not reduced", number, &d);
    struct element ints = { MPI_INT, sizeof(int), 1 };
    MPI_Datatype whole = description(&d, &ints);
    int at = 0;
    memset(again, 0, MOST);
    MPI_Pack(d.base, 1, whole, expected, MOST, &at, MPI_COMM_SELF);
    at = 0;
    MPI_Unpack(expected, MOST, &at, again + ((char *)d.base - memory), 1, whole, MPI_COMM_SELF);
    MPI_Type_free(&whole);
    if (memcmp(other, again, MOST))
        return wrong("a reduction has another result", number, &d);
    return 0;
}

int walk(int seed, int cases)
{
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_SHORT, &pair);
    MPI_Type_commit(&pair);
    const struct element elements[] = {
        { MPI_BYTE, 1, 1 }, { MPI_INT, 4, 1 }, { MPI_DOUBLE, 8, 1 }, { MPI_CHAR, 3, 3 }, { MPI_FLOAT, 8, 2 }, { pair, 8, 2 }, { MPI_DOUBLE, 16, 2 },
    };
    int failures = 0;
    state = (uint32_t)seed;
    for (int n = 0; n < cases && !failures; n++)
        failures += packs(n, &elements[n % (int)(sizeof elements / sizeof elements[0])]) + reduces(n);
    MPI_Type_free(&pair);
    fflush(stdout);
    return failures;
}
