/*
 * Long nonblocking reads progress while the program computes, from the page cache or the disk.
 * They return the right bytes and count, and leave the rest of the buffer unchanged.
 * Requests may be freed early.
 * Argument: a folder.
 */
#include "check.h"
#include <fcntl.h>
#include <unistd.h>

enum { MIB = 1 << 20, LENGTH = 12 * MIB + 4321 };

static char path[4096];
/* The contents of the file. */
static char *all;

/* Evicts the file from the page cache, as far as the system allows it. */
static void forget(void)
{
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && fsync(fd) == 0, "%s cannot be synchronised", path);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static void came(MPI_Status *status, const char *data, long from, long wanted, long there)
{
    int got;
    OK(MPI_Get_count(status, MPI_BYTE, &got));
    CHECK(got == there, "%d bytes, not %ld", got, there);
    CHECK(memcmp(data, all + from, there) == 0, "%ld bytes from byte %ld on are others", there, from);
    const char *rest = data + there;
    CHECK(there == wanted || (*rest == 0x5a && !memcmp(rest, rest + 1, wanted - there - 1)), "bytes behind the %ld were written", there);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 2, "%d arguments", argc - 1);
    snprintf(path, sizeof path, "%s/data", argv[1]);
    all = malloc(LENGTH);
    fill(all, LENGTH, 0);
    if (rank == 0) {
        FILE *file = fopen(path, "w");
        CHECK(file && fwrite(all, 1, LENGTH, file) == LENGTH && fclose(file) == 0, "%s cannot be written", path);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_File file;
    MPI_Status status;
    MPI_Request request;
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    char *data = malloc(LENGTH);
    for (int cold = 1; cold >= 0; cold--)
        for (int how = 0; how < 3; how++) {
            if (cold)
                forget();
            OK(MPI_Barrier(MPI_COMM_WORLD));
            /* Every rank reads from a different byte on, and beyond the end of the file. */
            long from = 1000003L * (rank % 4) + how, wanted = LENGTH - (rank % 4) * 4096, there = LENGTH - from;
            if (there > wanted)
                there = wanted;
            memset(data, 0x5a, LENGTH);
            OK(MPI_File_seek(file, from, MPI_SEEK_SET));
            OK(MPI_File_iread(file, data, (int)wanted, MPI_BYTE, &request));
            MPI_Offset at;
            OK(MPI_File_get_position(file, &at));
            CHECK(at == from + wanted, "the pointer is at %lld", (long long)at);
            int done = how != 0;
            while (!done)
                OK(MPI_Test(&request, &done, &status));
            if (how == 1)
                OK(MPI_Wait(&request, &status));
            if (how == 2) {
                /* Messages progress during the read. */
                int mine = rank, sum;
                OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
                CHECK(sum == size * (size - 1) / 2, "%d", sum);
                OK(MPI_Waitall(1, &request, &status));
            }
            CHECK(request == MPI_REQUEST_NULL, "the request is still there");
            came(&status, data, from, wanted, there);
        }
    /* Several reads in progress, and a read whose request the program frees. */
    forget();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Request both[2];
    MPI_Status of[2];
    memset(data, 0x5a, LENGTH);
    OK(MPI_File_iread_at(file, 0, data, 5 * MIB, MPI_BYTE, &both[0]));
    OK(MPI_File_iread_at_all(file, 6 * MIB, data + 5 * MIB, 5 * MIB, MPI_BYTE, &both[1]));
    OK(MPI_Waitall(2, both, of));
    came(&of[0], data, 0, 5 * MIB, 5 * MIB);
    came(&of[1], data + 5 * MIB, 6 * MIB, 5 * MIB, 5 * MIB);
    forget();
    OK(MPI_File_iread_at(file, 0, data, LENGTH, MPI_BYTE, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int result = finish("file_meanwhile");
    free(data);
    free(all);
    return result;
}
