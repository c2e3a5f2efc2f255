/*
 * Data representations whose elements have other sizes in the file than in memory.
 * The file views have holes. Positions in etypes use the sizes in the file,
 * and displacements in bytes are not converted (MPI 5.0, section 14.5.1).
 */
#include "check.h"
#include <unistd.h>

static char path[4096];

/* The number of elements of a rank in a row of the file, and the number of rows. */
enum { PART = 3, ROWS = 4, MINE = PART * ROWS };

static MPI_File opened(void)
{
    MPI_File file;
    int amode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    OK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file));
    return file;
}

/* Returns the datatype of this rank's part of a row, in elements. */
static MPI_Datatype row_of(MPI_Datatype element)
{
    int all = PART * size, part = PART, first = PART * rank;
    MPI_Datatype row;
    OK(MPI_Type_create_subarray(1, &all, &part, &first, MPI_ORDER_C, element, &row));
    OK(MPI_Type_commit(&row));
    return row;
}

/* Reads the file's bytes without conversion. */
static void look(MPI_File file, void *bytes, int count)
{
    MPI_Status status;
    int got;
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, 0, bytes, count, MPI_BYTE, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &got));
    CHECK(got == count, "the file has %d bytes, not %d", got, count);
    MPI_Offset length;
    OK(MPI_File_get_size(file, &length));
    CHECK(length == count, "the file has %lld bytes, not %d", (long long)length, count);
}

/* Returns the index in the file of element `i` of rank `who`. */
static int place(int who, int i)
{
    return i / PART * PART * size + who * PART + i % PART;
}

static long value(int who, int i)
{
    return (i % 2 ? -1 : 1) * (0x010203L + 1000 * who + i);
}

/* In external32 a long has four bytes. */
static void longs(int collective)
{
    MPI_File file = opened();
    MPI_Status status;
    MPI_Datatype row = row_of(MPI_LONG);
    long mine[MINE], back[MINE];
    int got;
    for (int i = 0; i < MINE; i++)
        mine[i] = value(rank, i);
    OK(MPI_File_set_view(file, 0, MPI_LONG, row, "external32", MPI_INFO_NULL));
    MPI_Aint extent;
    OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    CHECK(extent == 4, "a long has an extent of %ld", (long)extent);
    OK(MPI_File_get_type_extent(file, row, &extent));
    CHECK(extent == 4 * PART * size, "a row has an extent of %ld", (long)extent);
    MPI_Offset at;
    OK(MPI_File_get_byte_offset(file, PART + 1, &at));
    CHECK(at == 4 * place(rank, PART + 1), "at byte %lld", (long long)at);
    if (collective)
        OK(MPI_File_write_all(file, mine, MINE, MPI_LONG, &status));
    else
        OK(MPI_File_write(file, mine, MINE, MPI_LONG, &status));
    OK(MPI_Get_count(&status, MPI_LONG, &got));
    CHECK(got == MINE, "%d longs were written", got);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &at));
    CHECK(at == MINE, "the view ends at %lld", (long long)at);
    /* Reads more elements than the file has. */
    memset(back, 0x5a, sizeof back);
    OK(MPI_File_read_at(file, PART, back, MINE, MPI_LONG, &status));
    OK(MPI_Get_count(&status, MPI_LONG, &got));
    CHECK(got == MINE - PART, "%d longs were read", got);
    for (int i = 0; i < MINE; i++) {
        long expected = i < got ? mine[PART + i] : 0x5a5a5a5a5a5a5a5aL;
        CHECK(back[i] == expected, "element %d is %lx", i, back[i]);
    }
    MPI_Datatype etype, filetype;
    char name[MPI_MAX_DATAREP_STRING];
    OK(MPI_File_get_view(file, &at, &etype, &filetype, name));
    MPI_Aint lb;
    OK(MPI_Type_get_extent(filetype, &lb, &extent));
    CHECK(extent == (MPI_Aint)sizeof(long) * PART * size, "get_view gives an extent of %ld", (long)extent);
    OK(MPI_Type_free(&filetype));
    unsigned char *all = malloc(4 * MINE * size);
    look(file, all, 4 * MINE * size);
    for (int who = 0; who < size; who++)
        for (int i = 0; i < MINE; i++) {
            const unsigned char *b = all + 4 * place(who, i);
            int there = (int)((unsigned)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3]);
            CHECK(there == value(who, i), "element %d of rank %d is %x", i, who, there);
        }
    free(all);
    OK(MPI_Type_free(&row));
    OK(MPI_File_close(&file));
}

/* Displacements in bytes are bytes of the file. */
static void bytes_stay(void)
{
    MPI_File file = opened();
    MPI_Status status;
    MPI_Datatype every;
    long mine[2] = { value(rank, 0), value(rank, 1) }, back[2] = { 0 };
    OK(MPI_Type_create_resized(MPI_LONG, 0, 4 * size, &every));
    OK(MPI_Type_commit(&every));
    OK(MPI_File_set_view(file, 4 * rank, MPI_LONG, every, "external32", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, mine, 2, MPI_LONG, &status));
    OK(MPI_File_read_at_all(file, 0, back, 2, MPI_LONG, &status));
    CHECK(back[0] == mine[0] && back[1] == mine[1], "%lx and %lx", back[0], back[1]);
    unsigned char *all = malloc(8 * size);
    look(file, all, 8 * size);
    for (int i = 0; i < 2 * size; i++)
        CHECK(all[4 * i + 3] == (value(i % size, i / size) & 0xff), "element %d ends in %x", i, all[4 * i + 3]);
    free(all);
    OK(MPI_Type_free(&every));
    OK(MPI_File_close(&file));
}

/* A user-defined representation that stores a double as a float. */
static int sizes_asked;

static int extent_there(MPI_Datatype datatype, MPI_Aint *extent, void *extra)
{
    int integers, addresses, types, combiner;
    (void)extra;
    OK(MPI_Type_get_envelope(datatype, &integers, &addresses, &types, &combiner));
    CHECK(combiner == MPI_COMBINER_NAMED, "combiner %d, but only predefined types are asked for", combiner);
    sizes_asked++;
    int bytes;
    OK(MPI_Type_size(datatype, &bytes));
    *extent = datatype == MPI_DOUBLE ? 4 : bytes;
    return MPI_SUCCESS;
}

static int to_file(void *memory, MPI_Datatype datatype, int count, void *there, MPI_Offset position, void *extra)
{
    (void)extra;
    CHECK(datatype == MPI_DOUBLE, "another datatype");
    for (int i = 0; i < count; i++)
        ((float *)there)[i] = (float)((double *)memory)[position + i];
    return MPI_SUCCESS;
}

static int from_file(void *memory, MPI_Datatype datatype, int count, void *there, MPI_Offset position, void *extra)
{
    (void)extra;
    CHECK(datatype == MPI_DOUBLE, "another datatype");
    for (int i = 0; i < count; i++)
        ((double *)memory)[position + i] = ((float *)there)[i];
    return MPI_SUCCESS;
}

static void doubles(void)
{
    OK(MPI_Register_datarep("half as long", from_file, to_file, extent_there, NULL));
    MPI_File file = opened();
    MPI_Status status;
    MPI_Datatype row = row_of(MPI_DOUBLE), pair;
    OK(MPI_Type_contiguous(PART, MPI_DOUBLE, &pair));
    OK(MPI_Type_commit(&pair));
    double mine[MINE], back[MINE];
    int got;
    for (int i = 0; i < MINE; i++)
        mine[i] = value(rank, i) / 4.0;
    OK(MPI_File_set_view(file, 0, pair, row, "half as long", MPI_INFO_NULL));
    CHECK(sizes_asked > 0, "no size was asked for");
    OK(MPI_File_write_at_all(file, 0, mine, MINE, MPI_DOUBLE, &status));
    OK(MPI_File_sync(file));
    OK(MPI_File_read_at(file, 1, back, MINE - PART, MPI_DOUBLE, &status));
    OK(MPI_Get_count(&status, MPI_DOUBLE, &got));
    CHECK(got == MINE - PART, "%d doubles were read", got);
    for (int i = 0; i < got; i++)
        CHECK(back[i] == mine[PART + i], "element %d is %g", i, back[i]);
    float *all = malloc(sizeof(float) * MINE * size);
    look(file, all, (int)sizeof(float) * MINE * size);
    for (int who = 0; who < size; who++)
        for (int i = 0; i < MINE; i++)
            CHECK(all[place(who, i)] == value(who, i) / 4.0f, "element %d of rank %d is %g", i, who, all[place(who, i)]);
    free(all);
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&row));
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int id = getpid();
    OK(MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD));
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/portcullis-representations-%d", folder ? folder : "/tmp", id);
    longs(0);
    longs(1);
    bytes_stay();
    doubles();
    return finish("file_representations");
}
