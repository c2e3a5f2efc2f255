/*
 * Test of file hints: supported hints are returned with their effective values, others are not.
 * A hint that differs between ranks has no effect and causes no hang.
 * A file's contents do not depend on its hints.
 * Arguments: the mode of new files, and the number of pieces that each rank writes.
 */
#include "check.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[300];
/* The number of each rank's pieces. */
static int each = 300;

/* Returns the effective value of a hint, or "" if the hint is not returned. */
static const char *used(MPI_File file, const char *key)
{
    static char value[MPI_MAX_INFO_VAL + 1];
    int length = sizeof value, flag;
    MPI_Info info;
    OK(MPI_File_get_info(file, &info));
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    OK(MPI_Info_free(&info));
    if (!flag)
        value[0] = 0;
    return value;
}

#define USED(file, key, wanted) \
    do { const char *is = used(file, key); CHECK(strcmp(is, wanted) == 0, key " is \"%s\", not \"%s\"", is, wanted); } while (0)

static MPI_File opened(MPI_Info info)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file));
    return file;
}

/* Writes and reads interleaved pieces with a hole after each group of pieces; the holes must stay unchanged. */
static void pieces(MPI_File file, int piece)
{
    MPI_Datatype blocks;
    MPI_Status status;
    const int group = piece * (size + 1);
    unsigned char *data = malloc(each * piece), *back = malloc(each * piece), *whole = malloc((long)each * group), *hole = malloc(piece);
    memset(hole, 0xee, piece);
    memset(whole, 0xee, (long)each * group);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    if (rank == 0)
        OK(MPI_File_write_at(file, 0, whole, each * group, MPI_BYTE, &status));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_vector(each, piece, group, MPI_BYTE, &blocks));
    OK(MPI_Type_commit(&blocks));
    OK(MPI_File_set_view(file, (MPI_Offset)rank * piece, MPI_BYTE, blocks, "native", MPI_INFO_NULL));
    for (int round = 0; round < 4; round++) {
        fill(data, each * piece, rank * 4 + round);
        if (round % 2 == 0)
            OK(MPI_File_write_at_all(file, 0, data, each * piece, MPI_BYTE, &status));
        else
            OK(MPI_File_write_at(file, 0, data, each * piece, MPI_BYTE, &status));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        memset(back, 0, each * piece);
        if (round < 2)
            OK(MPI_File_read_at_all(file, 0, back, each * piece, MPI_BYTE, &status));
        else
            OK(MPI_File_read_at(file, 0, back, each * piece, MPI_BYTE, &status));
        CHECK(memcmp(data, back, each * piece) == 0, "round %d of pieces of %d bytes", round, piece);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, 0, whole, each * group, MPI_BYTE, &status));
    for (int i = 0; i < each; i++)
        CHECK(!memcmp(whole + (long)i * group + size * piece, hole, piece), "hole %d was written", i);
    OK(MPI_Type_free(&blocks));
    free(data);
    free(back);
    free(whole);
    free(hole);
}

static void with(const char *key, const char *value)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, value));
    MPI_File file = opened(info);
    OK(MPI_Info_free(&info));
    pieces(file, 1);
    pieces(file, 100);
    pieces(file, 5000);
    OK(MPI_File_close(&file));
}

/* Checks a new file's permissions: those of rank 0's hint file_perm, less the process's umask. */
static void mode(const char *wanted, const char *given)
{
    struct stat is;
    MPI_Info info = MPI_INFO_NULL;
    if (given) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "file_perm", rank == 0 ? given : "666"));
    }
    MPI_File file = opened(info);
    USED(file, "file_perm", wanted);
    mode_t mask = umask(0);
    umask(mask);
    unsigned all = (unsigned)strtoul(wanted, 0, 8) & ~mask;
    CHECK(stat(path, &is) == 0 && (is.st_mode & 07777) == all, "the mode is %o, not %o", is.st_mode & 07777, all);
    if (given) {
        OK(MPI_Info_set(info, "file_perm", "777"));
        OK(MPI_File_set_info(file, info));
        USED(file, "file_perm", wanted);
        OK(MPI_Info_free(&info));
    }
    OK(MPI_File_close(&file));
}

/* Argument: the default permissions, if a file of hints sets them. */
int main(int argc, char **argv)
{
    begin(&argc, &argv);
    const char *usual = argc > 1 ? argv[1] : "666";
    if (argc > 2)
        each = atoi(argv[2]);
    int id = getpid();
    OK(MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD));
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/portcullis-file-hints-%d", folder ? folder : "/tmp", id);

    mode(usual, 0);
    mode("640", "640");
    mode(usual, "mine");
    MPI_File file = opened(MPI_INFO_NULL);
    USED(file, "cb_buffer_size", "4194304");
    USED(file, "romio_cb_write", "automatic");
    USED(file, "collective_buffering", "true");
    USED(file, "filename", path);
    USED(file, "striping_factor", "");
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "cb_buffer_size", "65536"));
    OK(MPI_Info_set(info, "striping_factor", "4"));
    OK(MPI_Info_set(info, "cb_nodes", "none"));
    OK(MPI_Info_set(info, "romio_ds_write", "disable"));
    OK(MPI_File_set_info(file, info));
    USED(file, "cb_buffer_size", "65536");
    USED(file, "romio_ds_write", "disable");
    USED(file, "striping_factor", "");
    OK(MPI_Info_free(&info));
    pieces(file, 700);
    OK(MPI_File_close(&file));

    /* Each rank passes a different value; rank 0's is used. */
    char number[20];
    OK(MPI_Info_create(&info));
    snprintf(number, sizeof number, "%d", 100000 + rank);
    OK(MPI_Info_set(info, "cb_buffer_size", number));
    OK(MPI_Info_set(info, "romio_cb_write", rank % 2 ? "disable" : "enable"));
    snprintf(number, sizeof number, "%d", 1 + rank);
    OK(MPI_Info_set(info, "cb_nodes", number));
    file = opened(info);
    USED(file, "cb_buffer_size", "100000");
    USED(file, "romio_cb_write", "enable");
    USED(file, "cb_nodes", "1");
    pieces(file, 30);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", rank == size - 1 ? info : MPI_INFO_NULL));
    USED(file, "cb_buffer_size", "100000");
    OK(MPI_Info_free(&info));
    OK(MPI_File_close(&file));

    static const char *const hints[][2] = {
        { "cb_nodes", "1000" }, { "cb_buffer_size", "4096" }, { "romio_cb_read", "disable" },
        { "romio_cb_write", "enable" }, { "romio_ds_read", "enable" }, { "romio_ds_read", "disable" },
        { "romio_ds_write", "enable" }, { "access_style", "random" }, { "collective_buffering", "false" },
        { "ind_rd_buffer_size", "4096" }, { "ind_wr_buffer_size", "4096" },
    };
    for (unsigned i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strcmp(hints[i][0], "romio_ds_write") != 0 || size == 1)
            with(hints[i][0], hints[i][1]);
    return finish("file_hints");
}
