/*
 * Failures of the file system: every rank gets the same error class, no rank hangs,
 * only the data file is left, and bytes that no rank writes are unchanged.
 * Arguments: the kind of failure, and a folder.
 */
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[512];
static const char *folder;

/* Checks that the error class equals `wanted` on all ranks. */
static void same_class(int code, int wanted, const char *what)
{
    int class, all[64];
    OK(MPI_Error_class(code, &class));
    OK(MPI_Allgather(&class, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++)
        CHECK(all[i] == wanted, "%s: rank %d has class %d, not %d", what, i, all[i], wanted);
}

/* Checks that the folder contains only the file `name`. */
static void only(const char *name)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank != 0)
        return;
    DIR *all = opendir(folder);
    CHECK(all, "%s cannot be read", folder);
    for (struct dirent *one; (one = readdir(all));)
        CHECK(one->d_name[0] == '.' && strlen(one->d_name) < 3 ? 1 : name && strcmp(one->d_name, name) == 0,
              "%s is left in %s", one->d_name, folder);
    closedir(all);
}

static void interleave(MPI_File file, int piece, int pieces)
{
    MPI_Datatype blocks;
    OK(MPI_Type_vector(pieces, piece, piece * size, MPI_CHAR, &blocks));
    OK(MPI_Type_commit(&blocks));
    OK(MPI_File_set_view(file, (MPI_Offset)rank * piece, MPI_CHAR, blocks, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&blocks));
}

enum { PIECE = 1000, PIECES = 4000 };

/* All kinds of collective accesses fail on a full disk, then smaller ones succeed. */
static void full(void)
{
    MPI_File file;
    MPI_Status status;
    char *data = malloc(PIECE * PIECES);
    memset(data, 'x', PIECE * PIECES);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    interleave(file, PIECE, PIECES);
    same_class(MPI_File_write_all(file, data, PIECE * PIECES, MPI_CHAR, &status), MPI_ERR_NO_SPACE, "interleaved");
    OK(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
    same_class(MPI_File_write_at_all(file, (MPI_Offset)rank * PIECE * PIECES, data, PIECE * PIECES, MPI_CHAR, &status),
               MPI_ERR_NO_SPACE, "apart");
    same_class(MPI_File_write_ordered(file, data, PIECE * PIECES, MPI_CHAR, &status), MPI_ERR_NO_SPACE, "ordered");
    same_class(MPI_File_preallocate(file, (MPI_Offset)1 << 30), MPI_ERR_NO_SPACE, "preallocated");
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_write_at_all(file, (MPI_Offset)rank * 100, data, 100, MPI_CHAR, &status));
    OK(MPI_File_close(&file));
    only("data");
    if (rank == 0)
        OK(MPI_File_delete(path, MPI_INFO_NULL));
    free(data);
}

/* One rank's file size limit lies within an aggregated access;
 * other ranks' data before the limit are written. */
static void limit(void)
{
    MPI_File file;
    MPI_Status status;
    struct rlimit before, less;
    char *data = malloc(PIECE * PIECES);
    memset(data, 'x', PIECE * PIECES);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0, "no limit is known");
    less = before;
    less.rlim_cur = 1 << 20;
    for (int which = 0; which < size; which++) {
        OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
        interleave(file, PIECE, PIECES);
        if (rank == which)
            CHECK(setrlimit(RLIMIT_FSIZE, &less) == 0, "the limit cannot be set");
        int code = MPI_File_write_all(file, data, PIECE * PIECES, MPI_CHAR, &status), class, sum, failed;
        CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0, "the limit cannot be set back");
        /* The limited rank writes data itself only if it is an aggregator;
         * in either case all ranks must get the same result. */
        OK(MPI_Error_class(code, &class));
        failed = class != MPI_SUCCESS;
        OK(MPI_Allreduce(&failed, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK(sum == 0 || sum == size, "%d of %d ranks failed", sum, size);
        CHECK(class == MPI_SUCCESS || class == MPI_ERR_QUOTA, "class %d", class);
        if (which == 0)
            CHECK(class == MPI_ERR_QUOTA, "rank 0 aggregates, and its limit was not met");
        OK(MPI_File_close(&file));
    }
    only(NULL);
    free(data);
}

/* One rank has a separate piece after the interleaved ones, which it may not write,
 * or which lies beyond the end of the file.
 * All other bytes are written, each rank gets its own count, and all ranks get the same error class. */
static void apart(void)
{
    enum { EACH = PIECE * 100 };
    MPI_File file;
    MPI_Status status;
    MPI_Datatype blocks;
    struct rlimit before, less;
    int got;
    char *data = malloc(EACH), *back = malloc(EACH), *all = malloc((long)EACH * size);
    memset(data, 'a' + rank, EACH);
    const int others = size - 1, alone = rank == size - 1;
    const MPI_Offset behind = (MPI_Offset)EACH * others;
    OK(MPI_Type_vector(100, PIECE, PIECE * others, MPI_CHAR, &blocks));
    OK(MPI_Type_commit(&blocks));
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0, "no limit is known");
    less = before;
    less.rlim_cur = behind + EACH / 2;
    for (int limited = 0; limited < 2; limited++) {
        OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
        OK(MPI_File_set_view(file, alone ? behind : (MPI_Offset)rank * PIECE, MPI_CHAR, alone ? MPI_CHAR : blocks, "native", MPI_INFO_NULL));
        if (alone && limited)
            CHECK(setrlimit(RLIMIT_FSIZE, &less) == 0, "the limit cannot be set");
        same_class(MPI_File_write_all(file, data, EACH, MPI_CHAR, &status), limited ? MPI_ERR_QUOTA : MPI_SUCCESS, "written");
        CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0, "the limit cannot be set back");
        /* The file has no data beyond its end. */
        if (rank == 0)
            CHECK(truncate(path, behind + (limited ? 0 : EACH / 4)) == 0, "it cannot be cut");
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_File_read_at_all(file, 0, back, EACH, MPI_CHAR, &status));
        OK(MPI_Get_count(&status, MPI_CHAR, &got));
        int wanted = !alone ? EACH : limited ? 0 : EACH / 4;
        CHECK(got == wanted && memcmp(back, data, wanted) == 0, "%d bytes, not %d", got, wanted);
        OK(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
        OK(MPI_File_read_at_all(file, 0, all, EACH * others, MPI_CHAR, &status));
        for (int i = 0; i < EACH * others; i++)
            CHECK(all[i] == 'a' + i / PIECE % others, "byte %d is %d", i, all[i]);
        OK(MPI_File_close(&file));
    }
    OK(MPI_Type_free(&blocks));
    only(NULL);
    free(data);
    free(back);
    free(all);
}

static void readonly(void)
{
    MPI_File file;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    same_class(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_READ_ONLY, "created");
    char there[600];
    snprintf(there, sizeof there, "%s/there", folder);
    char seen[3] = "";
    MPI_Status status;
    OK(MPI_File_open(MPI_COMM_WORLD, there, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_read_shared(file, seen, 1, MPI_CHAR, &status));
    same_class(MPI_File_write_at_all(file, 0, seen, 1, MPI_CHAR, &status), MPI_ERR_READ_ONLY, "written");
    OK(MPI_File_close(&file));
    same_class(MPI_File_open(MPI_COMM_WORLD, there, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_READ_ONLY, "opened for writing");
    only("there");
}

/* Opening must fail for a folder, a path through a file, a name that is too long, and a missing file. */
static void names(void)
{
    MPI_File file;
    char name[6000];
    const int create = MPI_MODE_CREATE | MPI_MODE_RDWR;
    same_class(MPI_File_open(MPI_COMM_WORLD, folder, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE, "a folder");
    same_class(MPI_File_open(MPI_COMM_WORLD, folder, create, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE, "a folder for writing");
    snprintf(name, sizeof name, "%s/", folder);
    memset(name + strlen(name), 'n', 300);
    name[strlen(folder) + 301] = 0;
    same_class(MPI_File_open(MPI_COMM_WORLD, name, create, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE, "a long name");
    snprintf(name, sizeof name, "%s/missing/file", folder);
    same_class(MPI_File_open(MPI_COMM_WORLD, name, create, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE, "a missing folder");
    OK(MPI_File_open(MPI_COMM_WORLD, path, create, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    snprintf(name, sizeof name, "%s/data/file", folder);
    same_class(MPI_File_open(MPI_COMM_WORLD, name, create, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE, "a file on the way");
    same_class(MPI_File_open(MPI_COMM_WORLD, path, create | MPI_MODE_EXCL, MPI_INFO_NULL, &file), MPI_ERR_FILE_EXISTS, "an existing file");
    only("data");
    /* Opening a symbolic link to itself must fail. */
    snprintf(name, sizeof name, "%s/loop", folder);
    if (rank == 0)
        CHECK(symlink("loop", name) == 0, "no link can be made");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    same_class(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE, "a loop");
    if (rank == 0) {
        CHECK(unlink(name) == 0, "the link stays");
        OK(MPI_File_delete(path, MPI_INFO_NULL));
    }
}

/* The file is unlinked while open: accesses still work, and MPI_MODE_DELETE_ON_CLOSE finds no file. */
static void removed(void)
{
    MPI_File file;
    MPI_Status status;
    char data[100], back[100];
    int got;
    memset(data, 'a' + rank, sizeof data);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_write_ordered(file, data, 100, MPI_CHAR, &status));
    if (rank == 0)
        CHECK(unlink(path) == 0, "it cannot be removed");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_read_at_all(file, rank * 100, back, 100, MPI_CHAR, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &got));
    CHECK(got == 100 && memcmp(data, back, 100) == 0, "%d bytes", got);
    OK(MPI_File_close(&file));
    only(NULL);
}

/* Another process truncates the open file.
 * Each rank gets the true count, and the rest of its buffer is unchanged. */
static void cut(void)
{
    MPI_File file;
    MPI_Status status;
    int got;
    char *data = malloc(PIECE * 100), *back = malloc(PIECE * 100);
    memset(data, 'a' + rank, PIECE * 100);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    interleave(file, PIECE, 100);
    OK(MPI_File_write_all(file, data, PIECE * 100, MPI_CHAR, &status));
    /* The new end lies within the last rank's piece of block 50. */
    long end = (50L * size + size - 1) * PIECE + PIECE / 2;
    if (rank == 0)
        CHECK(truncate(path, end) == 0, "it cannot be cut");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memset(back, '?', PIECE * 100);
    OK(MPI_File_read_at_all(file, 0, back, PIECE * 100, MPI_CHAR, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &got));
    int wanted = rank == size - 1 ? 50 * PIECE + PIECE / 2 : 51 * PIECE;
    CHECK(got == wanted, "%d bytes, not %d", got, wanted);
    CHECK(memcmp(back, data, wanted) == 0, "other bytes");
    for (int i = wanted; i < PIECE * 100; i++)
        CHECK(back[i] == '?', "byte %d was touched", i);
    OK(MPI_File_close(&file));
    only(NULL);
    free(data);
    free(back);
}

/* Two handles of one file, and two files with the same base name;
 * each handle has a separate shared file pointer. */
static void twice(void)
{
    MPI_File first, second, other;
    MPI_Status status;
    MPI_Offset at;
    char name[600], letter = 'x', seen;
    const int amode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    snprintf(name, sizeof name, "%s/sub", folder);
    if (rank == 0)
        CHECK(mkdir(name, 0700) == 0, "no folder can be made");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    strcat(name, "/data");
    OK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &first));
    OK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &second));
    OK(MPI_File_open(MPI_COMM_WORLD, name, amode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &other));
    OK(MPI_File_write_shared(first, &letter, 1, MPI_CHAR, &status));
    OK(MPI_File_sync(first));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_get_position_shared(first, &at));
    CHECK(at == size, "the first pointer is at %ld", (long)at);
    OK(MPI_File_get_position_shared(second, &at));
    CHECK(at == 0, "the second pointer is at %ld", (long)at);
    OK(MPI_File_get_position_shared(other, &at));
    CHECK(at == 0, "the other pointer is at %ld", (long)at);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_sync(second));
    OK(MPI_File_read_ordered(second, &seen, 1, MPI_CHAR, &status));
    CHECK(seen == 'x', "the second handle reads %d", seen);
    OK(MPI_File_close(&other));
    OK(MPI_File_close(&second));
    OK(MPI_File_close(&first));
    if (rank == 0) {
        *strrchr(name, '/') = 0;
        CHECK(rmdir(name) == 0, "something is left in %s", name);
        OK(MPI_File_delete(path, MPI_INFO_NULL));
    }
    only(NULL);
}

/* Endless collective writes, during which the test kills a rank. */
static void forever(void)
{
    MPI_File file;
    MPI_Status status;
    char *data = calloc(PIECE * PIECES, 1);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    interleave(file, PIECE, PIECES);
    OK(MPI_File_write_all(file, data, PIECE * PIECES, MPI_CHAR, &status));
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    for (;;)
        OK(MPI_File_write_at_all(file, 0, data, PIECE * PIECES, MPI_CHAR, &status));
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*does)(void); } all[] = {
        { "full", full }, { "limit", limit }, { "apart", apart }, { "readonly", readonly }, { "names", names },
        { "removed", removed }, { "cut", cut }, { "twice", twice }, { "forever", forever },
    };
    begin(&argc, &argv);
    CHECK(argc == 3, "%d arguments", argc);
    folder = argv[2];
    snprintf(path, sizeof path, "%s/data", folder);
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, argv[1]) == 0) {
            all[i].does();
            return finish("file_faults");
        }
    CHECK(0, "%s is no fault", argv[1]);
}
