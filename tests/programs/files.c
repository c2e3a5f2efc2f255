/*
 * Tests of files: after every kind of access, the file's contents are compared with the expected ones.
 * The ranks' data interleave in the file and have holes in memory, and some ranks have no data.
 */
#include "check.h"
#include <sys/resource.h>
#include <unistd.h>

static char path[256];

static int value_at(MPI_Offset at)
{
    return (int)(at * 2654435761u >> 7);
}

static MPI_File opened(int amode)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file));
    return file;
}

/* Checks on all ranks that `count` ints of the file, from int `from` on, are as expected. */
static void holds(MPI_File file, MPI_Offset from, int count)
{
    int *seen = malloc(sizeof(int) * (count + 1));
    MPI_Status status;
    int got;
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, from, seen, count, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &got));
    CHECK(got == count, "%d of %d ints", got, count);
    for (int i = 0; i < count; i++)
        CHECK(seen[i] == value_at(from + i), "int %d is %d", i, seen[i]);
    free(seen);
}

/* Each rank's ints interleave with other ranks' in the file, and have holes between them in memory. */
static void interleaved(int block, int each, int collective)
{
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Datatype view, memory;
    MPI_Status status;
    OK(MPI_Type_vector(each, block, block * size, MPI_INT, &view));
    OK(MPI_Type_create_resized(view, 0, (MPI_Aint)sizeof(int) * each * block * size, &view));
    OK(MPI_Type_commit(&view));
    OK(MPI_Type_vector(each * block, 1, 3, MPI_INT, &memory));
    OK(MPI_Type_commit(&memory));
    OK(MPI_File_set_view(file, (MPI_Offset)sizeof(int) * rank * block, MPI_INT, view, "native", MPI_INFO_NULL));
    int *data = calloc(3 * each * block, sizeof(int));
    for (int i = 0; i < each; i++)
        for (int k = 0; k < block; k++)
            data[3 * (i * block + k)] = value_at((MPI_Offset)(i * size + rank) * block + k);
    if (collective)
        OK(MPI_File_write_all(file, data, 1, memory, &status));
    else
        OK(MPI_File_write(file, data, 1, memory, &status));
    int bytes;
    OK(MPI_Get_elements(&status, MPI_INT, &bytes));
    CHECK(bytes == each * block, "%d elements", bytes);
    MPI_Offset position;
    OK(MPI_File_get_position(file, &position));
    CHECK(position == (MPI_Offset)each * block, "at %lld", (long long)position);

    int *back = malloc(sizeof(int) * 3 * each * block);
    memset(back, 0x7f, sizeof(int) * 3 * each * block);
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    if (collective)
        OK(MPI_File_read_all(file, back, 1, memory, &status));
    else
        OK(MPI_File_read(file, back, 1, memory, &status));
    for (int i = 0; i < 3 * each * block; i++)
        CHECK(back[i] == (i % 3 ? 0x7f7f7f7f : data[i]), "int %d is %d", i, back[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    holds(file, 0, each * block * size);
    free(back);
    free(data);
    OK(MPI_Type_free(&view));
    OK(MPI_Type_free(&memory));
    OK(MPI_File_close(&file));
}

/* The shared file pointer: every rank writes its ints once, by independent and by ordered calls. */
static void shared(void)
{
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Status status;
    MPI_Offset at;
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < 50; i++) {
        int mine = rank * 50 + i;
        OK(MPI_File_write_shared(file, &mine, 1, MPI_INT, &status));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_get_position_shared(file, &at));
    CHECK(at == 50 * size, "the shared pointer is at %lld", (long long)at);
    int *all = malloc(sizeof(int) * 50 * size), *seen = calloc(50 * size, sizeof(int));
    OK(MPI_File_read_at_all(file, 0, all, 50 * size, MPI_INT, &status));
    for (int i = 0; i < 50 * size; i++) {
        CHECK(all[i] >= 0 && all[i] < 50 * size, "%d", all[i]);
        CHECK(!seen[all[i]]++, "%d twice", all[i]);
    }
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    /* Rank r writes r ints. */
    int *part = malloc(sizeof(int) * (rank + 1));
    for (int i = 0; i < rank; i++)
        part[i] = value_at(rank * (rank - 1) / 2 + i);
    OK(MPI_File_write_ordered_begin(file, part, rank, MPI_INT));
    OK(MPI_File_write_ordered_end(file, part, &status));
    if (size > 1)
        holds(file, 0, size * (size - 1) / 2);
    free(part);
    free(all);
    free(seen);
    OK(MPI_File_close(&file));
}

/* A read beyond the end of the file returns the existing data and leaves the rest unchanged. */
static void ends(void)
{
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR);
    int data[10], got;
    MPI_Status status;
    MPI_Request request;
    OK(MPI_File_set_size(file, 10));
    memset(data, 0x5a, sizeof data);
    OK(MPI_File_iread_at(file, 4, data, 10, MPI_BYTE, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &got));
    CHECK(got == 6, "%d bytes", got);
    for (int i = 6; i < 10; i++)
        CHECK(((char *)data)[i] == 0x5a, "byte %d of the buffer has changed", i);
    OK(MPI_File_read_at_all(file, 100, data, 3, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &got));
    CHECK(got == 0, "%d ints behind the end", got);
    OK(MPI_File_seek(file, -3, MPI_SEEK_END));
    MPI_Offset at;
    OK(MPI_File_get_position(file, &at));
    CHECK(at == 7, "at %lld", (long long)at);
    CHECK(MPI_File_seek(file, -8, MPI_SEEK_CUR) == MPI_ERR_ARG, "before the beginning");
    OK(MPI_File_close(&file));
}

/* external32 is big-endian on every machine. */
static void portable(void)
{
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Status status;
    int number = 0x01020304 + rank, back = 0;
    unsigned char bytes[4];
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, rank, &number, 1, MPI_INT, &status));
    OK(MPI_File_read_at_all(file, rank, &back, 1, MPI_INT, &status));
    CHECK(back == number, "%x", back);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, 4 * rank, bytes, 4, MPI_BYTE, &status));
    CHECK(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == 3 && bytes[3] == 4 + rank, "%d %d %d %d", bytes[0], bytes[1], bytes[2], bytes[3]);
    OK(MPI_File_close(&file));
}

/* Errors have the same class on all ranks. */
static void mistakes(void)
{
    MPI_File file;
    MPI_Status status;
    int data = 0, class;
#define CLASS(call, expected) \
    do { int code = (call); OK(MPI_Error_class(code, &class)); CHECK(class == expected, #call " is of class %d", class); } while (0)
    CLASS(MPI_File_open(MPI_COMM_WORLD, "/nonexistent/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CLASS(MPI_File_open(MPI_COMM_WORLD, "/", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    CLASS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    CLASS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_FILE_EXISTS);
    if (size > 1) {
        int amode = rank == 1 ? MPI_MODE_RDWR : MPI_MODE_RDONLY;
        CLASS(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file), MPI_ERR_NOT_SAME);
    }
    file = opened(MPI_MODE_RDONLY);
    CLASS(MPI_File_write(file, &data, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    CLASS(MPI_File_read_at(file, -1, &data, 1, MPI_INT, &status), MPI_ERR_ARG);
    CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "nonsense", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    /* One rank passes an invalid offset: the call fails on all ranks with the class of that error. */
    CLASS(MPI_File_read_at_all(file, rank == size - 1 ? -5 : 0, &data, 1, MPI_BYTE, &status), MPI_ERR_ARG);
    OK(MPI_File_close(&file));
    file = opened(MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE);
    CLASS(MPI_File_read(file, &data, 1, MPI_INT, &status), MPI_ERR_ACCESS);
    OK(MPI_File_close(&file));
    CHECK(access(path, F_OK) != 0, "%s is still there", path);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        CLASS(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
}

/* If a system call fails on one rank, that rank lives on and the MPI call fails on all ranks.
 * All ranks get the same error class. */
static void refused(void)
{
    enum { LIMIT = 1 << 20 };
    MPI_File file;
    MPI_Status status;
    int class;
    char *data = calloc(2 * LIMIT, 1);
    OK(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    CLASS(MPI_File_write_all(file, data, rank == size - 1 ? 100 : 0, MPI_CHAR, &status), MPI_ERR_NO_SPACE);
    OK(MPI_File_close(&file));
    file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    struct rlimit before, less;
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0, "no limit is known");
    less = before;
    less.rlim_cur = LIMIT;
    if (rank == size - 1)
        CHECK(setrlimit(RLIMIT_FSIZE, &less) == 0, "the limit cannot be set");
    CLASS(MPI_File_write_at_all(file, (MPI_Offset)rank * 2 * LIMIT, data, 2 * LIMIT, MPI_CHAR, &status), MPI_ERR_QUOTA);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0, "the limit cannot be set back");
    OK(MPI_File_close(&file));
    free(data);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int id = getpid();
    OK(MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD));
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/portcullis-files-%d", folder ? folder : "/tmp", id);
    int blocks[] = { 1, 7, 300 };
    for (int i = 0; i < 3; i++) {
        interleaved(blocks[i], 40, 0);
        interleaved(blocks[i], 40, 1);
    }
    shared();
    ends();
    portable();
    mistakes();
    refused();
    return finish("files");
}
