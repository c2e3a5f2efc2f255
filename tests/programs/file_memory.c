/*
 * The memory that an access needs must not grow with the number of pieces of a rank's view:
 * a thousand and ten million pieces (or the argument's number of pieces), in independent and in collective accesses.
 */
#include "check.h"
#include <unistd.h>

enum { PIECE = 2 };

/* Returns the peak memory of this process since the last reset, in KiB. */
static long most(int reset)
{
    if (reset) {
        FILE *refs = fopen("/proc/self/clear_refs", "w");
        CHECK(refs && fputs("5", refs) >= 0 && fclose(refs) == 0, "the highest mark cannot be set back");
    }
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status, "no status");
    char line[200];
    long kib = -1;
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    fclose(status);
    return kib;
}

/* Returns the memory that an access needs in addition, in KiB. */
static long needs(const char *path, long pieces, int collective)
{
    MPI_File file;
    MPI_Datatype piece, view;
    MPI_Status status;
    char *data = malloc(PIECE * pieces);
    memset(data, 'a' + rank, PIECE * pieces);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_Type_contiguous(PIECE, MPI_CHAR, &piece));
    OK(MPI_Type_create_resized(piece, 0, (MPI_Aint)PIECE * (collective ? size : 2), &view));
    OK(MPI_Type_commit(&view));
    OK(MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_CHAR, view, "native", MPI_INFO_NULL));
    if (!collective) {
        MPI_Info info;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "romio_ds_write", "enable"));
        OK(MPI_File_set_info(file, info));
        OK(MPI_Info_free(&info));
    }
    long before = most(1);
    if (collective) {
        OK(MPI_File_write_at_all(file, 0, data, PIECE * pieces, MPI_CHAR, &status));
        OK(MPI_File_read_at_all(file, 0, data, PIECE * pieces, MPI_CHAR, &status));
    } else {
        OK(MPI_File_write_at(file, 0, data, PIECE * pieces, MPI_CHAR, &status));
        OK(MPI_File_read_at(file, 0, data, PIECE * pieces, MPI_CHAR, &status));
    }
    long after = most(0);
    for (long i = 0; i < PIECE * pieces; i += 997)
        CHECK(data[i] == 'a' + rank, "byte %ld is %d", i, data[i]);
    OK(MPI_Type_free(&piece));
    OK(MPI_Type_free(&view));
    OK(MPI_File_close(&file));
    free(data);
    return after - before;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    char path[300];
    long most_pieces = argc > 1 ? atol(argv[1]) : 10000000;
    int id = getpid();
    OK(MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD));
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/portcullis-file-memory-%d", folder ? folder : "/tmp", id);
    for (int collective = size > 1; collective >= 0; collective--) {
        /* An independent write writes the gaps between pieces back, which would undo other ranks' concurrent writes. */
        if (!collective && size > 1)
            break;
        long few = needs(path, 1000, collective);
        long many = needs(path, most_pieces, collective);
        /* The limit is twice an aggregator's buffers;
           a list would take 24 bytes per piece: 240 MiB for ten million pieces, 72 MiB for three million. */
        CHECK(many < few + (40 << 10), "%ld KiB for a thousand pieces, %ld for %ld", few, many, most_pieces);
    }
    return finish("file_memory");
}
