/*
 * Random file accesses; the file is compared with an array of bytes.
 * Each round draws file views, memory layouts, offsets, counts and families of I/O calls at random.
 * All ranks draw the same numbers, so each rank knows the data that every other rank writes;
 * some ranks write nothing.
 * Arguments: the number of rounds, and the seed.
 */
#include "check.h"
#include <unistd.h>

enum { BYTES = 1 << 17 };

static unsigned char model[BYTES];
static unsigned long state;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % below;
}

/* A rank's view of the file: blocks of `unit * length` bytes, `stride` units apart.
 * The first block is at offset `disp`. */
struct view {
    int unit, length, stride, blocks;
    long disp;
};

/* Returns the file offset of byte `i` of the view. */
static long place(const struct view *v, long i)
{
    long block = (long)v->unit * v->length;
    return v->disp + i / block * v->unit * v->stride + i % block;
}

static MPI_Datatype etype_of(int unit)
{
    MPI_Datatype etype;
    OK(MPI_Type_contiguous(unit, MPI_BYTE, &etype));
    OK(MPI_Type_commit(&etype));
    return etype;
}

static void look_through(MPI_File file, const struct view *v)
{
    MPI_Datatype etype = etype_of(v->unit), blocks, filetype;
    OK(MPI_Type_contiguous(v->length, etype, &blocks));
    OK(MPI_Type_create_resized(blocks, 0, (MPI_Aint)v->unit * v->stride, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, v->disp, etype, filetype, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&etype));
    OK(MPI_Type_free(&blocks));
    OK(MPI_Type_free(&filetype));
}

/* Returns a datatype of `bytes` bytes: contiguous, or with two unused bytes after each byte. */
static MPI_Datatype memory(long bytes, int holes)
{
    MPI_Datatype datatype;
    OK(MPI_Type_vector(bytes, 1, holes ? 3 : 1, MPI_BYTE, &datatype));
    OK(MPI_Type_commit(&datatype));
    return datatype;
}

static void moved(MPI_Status *status, long bytes)
{
    int got;
    OK(MPI_Get_elements(status, MPI_BYTE, &got));
    CHECK(got == bytes, "%d of %ld bytes", got, bytes);
}

/* All ranks write with one family of I/O calls, starting at etype `from` of their views. */
static void write_by(MPI_File file, int family, long from, void *data, MPI_Datatype datatype, long bytes)
{
    MPI_Status status;
    MPI_Request request;
    switch (family) {
    case 0: OK(MPI_File_write_at(file, from, data, 1, datatype, &status)); break;
    case 1: OK(MPI_File_write_at_all(file, from, data, 1, datatype, &status)); break;
    case 2:
        OK(MPI_File_seek(file, from, MPI_SEEK_SET));
        OK(MPI_File_write(file, data, 1, datatype, &status));
        break;
    case 3:
        OK(MPI_File_seek(file, from, MPI_SEEK_SET));
        OK(MPI_File_write_all(file, data, 1, datatype, &status));
        break;
    case 4:
        OK(MPI_File_iwrite_at(file, from, data, 1, datatype, &request));
        OK(MPI_Wait(&request, &status));
        break;
    case 5:
        OK(MPI_File_iwrite_at_all(file, from, data, 1, datatype, &request));
        OK(MPI_Wait(&request, &status));
        break;
    default:
        OK(MPI_File_write_at_all_begin(file, from, data, 1, datatype));
        OK(MPI_File_write_at_all_end(file, data, &status));
    }
    moved(&status, bytes);
}

static void read_by(MPI_File file, int family, long from, void *data, MPI_Datatype datatype, long bytes)
{
    MPI_Status status;
    MPI_Request request;
    switch (family) {
    case 0: OK(MPI_File_read_at(file, from, data, 1, datatype, &status)); break;
    case 1: OK(MPI_File_read_at_all(file, from, data, 1, datatype, &status)); break;
    case 2:
        OK(MPI_File_seek(file, from, MPI_SEEK_SET));
        OK(MPI_File_read(file, data, 1, datatype, &status));
        break;
    case 3:
        OK(MPI_File_seek(file, from, MPI_SEEK_SET));
        OK(MPI_File_read_all(file, data, 1, datatype, &status));
        break;
    case 4:
        OK(MPI_File_iread_at(file, from, data, 1, datatype, &request));
        OK(MPI_Wait(&request, &status));
        break;
    case 5:
        OK(MPI_File_iread_all(file, data, 1, datatype, &request));
        OK(MPI_Wait(&request, &status));
        break;
    default:
        OK(MPI_File_read_at_all_begin(file, from, data, 1, datatype));
        OK(MPI_File_read_at_all_end(file, data, &status));
    }
    moved(&status, bytes);
}

static void one_round(MPI_File file, int round)
{
    /* The ranks' blocks interleave: rank r has blocks r, r + size, ...
     * Unused units lie between the blocks. */
    int unit = 1 + draw(16), length = 1 + draw(40), gap = draw(3), stride = (length + gap) * size;
    int blocks = 1 + draw(BYTES / (unit * stride) > 200 ? 200 : BYTES / (unit * stride) + 1);
    long skipped = draw(8), most = (long)unit * stride * blocks;
    if (skipped + most > BYTES)
        return;
    int family = draw(7), holes = draw(2), back = draw(7), salt = draw(256);
    int idle = draw(4) == 0 ? (int)draw(size) : -1;
    long from = draw(length), etypes = (long)length * blocks - from;

    struct view mine = { unit, length, stride, blocks, 0 };
    unsigned char *data = malloc(3 * BYTES + 3);
    for (int r = 0; r < size; r++) {
        struct view v = mine;
        v.disp = skipped + (long)unit * (length + gap) * r;
        for (long i = 0; r != idle && i < etypes * unit; i++)
            model[place(&v, from * unit + i)] = (unsigned char)(i * 7 + salt + r);
    }
    mine.disp = skipped + (long)unit * (length + gap) * rank;
    long bytes = rank == idle ? 0 : etypes * unit;
    for (long i = 0; i < bytes; i++)
        data[i * (holes ? 3 : 1)] = (unsigned char)(i * 7 + salt + rank);
    look_through(file, &mine);
    MPI_Datatype datatype = memory(bytes, holes);
    write_by(file, family, from, data, datatype, bytes);
    OK(MPI_Type_free(&datatype));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));

    /* Reads through another view: the data of another rank, or of all ranks. */
    struct view seen = { 1, BYTES, BYTES, 1, 0 };
    if (draw(2)) {
        seen = mine;
        seen.disp = skipped + (long)unit * (length + gap) * ((rank + 1) % size);
    } else {
        etypes = BYTES;
        from = back == 5 ? 0 : draw(100);
        etypes -= from;
    }
    if (back == 5)
        etypes += from, from = 0;
    long wanted = etypes * seen.unit;
    MPI_Offset end;
    OK(MPI_File_get_size(file, &end));
    CHECK(end == BYTES, "the file has %lld bytes", (long long)end);
    holes = draw(2);
    memset(data, 0xee, 3 * BYTES + 3);
    look_through(file, &seen);
    datatype = memory(wanted, holes);
    read_by(file, back, from, data, datatype, wanted);
    OK(MPI_Type_free(&datatype));
    for (long i = 0; i < wanted; i++) {
        long at = place(&seen, from * seen.unit + i);
        unsigned char got = data[i * (holes ? 3 : 1)];
        CHECK(got == model[at], "round %d: byte %ld is %d and should be %d, written by family %d, read by %d", round, at, got, model[at], family, back);
        CHECK(!holes || data[i * 3 + 1] == 0xee, "round %d: a hole in memory was written", round);
    }
    free(data);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 100, id = getpid();
    state = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
    OK(MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD));
    char path[256];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/portcullis-accesses-%d", folder ? folder : "/tmp", id);
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_set_size(file, BYTES));
    for (int round = 0; round < rounds; round++) {
        OK(MPI_File_set_atomicity(file, draw(8) == 0));
        one_round(file, round);
    }
    OK(MPI_File_close(&file));
    return finish("file_accesses");
}
