/* Windows must not exhaust resources: ten thousand in sequence, and two thousand at the same time.
 * They must use no file descriptors, and the number of memory mappings must not grow.
 * A window of more than 4 GiB is accessed beyond 2^32, by displacements that do not fit an int. */
#include "check.h"
#include <dirent.h>

static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    CHECK(d, "cannot open %s", folder);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int lines(const char *path)
{
    int n = 0, c;
    FILE *f = fopen(path, "r");
    CHECK(f, "cannot open %s", path);
    while ((c = fgetc(f)) != EOF)
        n += c == '\n';
    fclose(f);
    return n;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int many = argc > 1 ? atoi(argv[1]) : 10000, alive = many / 5;
    long *base, value = 7;
    MPI_Win win, *wins = malloc(alive * sizeof *wins);
    int descriptors = 0, mappings = 0;
    for (int i = 0; i < many; i++) {
        if (i == many / 10) {
            descriptors = entries("/proc/self/fd");
            mappings = lines("/proc/self/maps");
        }
        OK(MPI_Win_allocate(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        if (i % 100 == 0) {
            CHECK(base[0] == 0, "memory of another window is there: %ld", base[0]);
            OK(MPI_Win_fence(0, win));
            OK(MPI_Put(&value, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win));
            OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
            CHECK(base[0] == 7, "%ld", base[0]);
        }
        OK(MPI_Win_free(&win));
    }
    for (int i = 0; i < alive; i++)
        OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &wins[i]));
    CHECK(entries("/proc/self/fd") <= descriptors, "%d descriptors, not %d", entries("/proc/self/fd"), descriptors);
    for (int i = 0; i < alive; i++)
        OK(MPI_Win_free(&wins[i]));
    /* The C library's heap may add a few mappings. */
    CHECK(lines("/proc/self/maps") <= mappings + 8, "%d mappings, not %d", lines("/proc/self/maps"), mappings);
    free(wins);
    /* Only touched pages use memory. */
    MPI_Aint bytes = (MPI_Aint)5 << 30;
    OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    int next = (rank + 1) % size;
    MPI_Aint far = ((MPI_Aint)9 << 29) + 8 * rank;
    long got = 0, sum = 0;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next, far, 1, MPI_LONG, win));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Get(&got, 1, MPI_LONG, next, far, 1, MPI_LONG, win));
    OK(MPI_Fetch_and_op(&value, &sum, MPI_LONG, next, bytes - 8, MPI_SUM, win));
    OK(MPI_Win_flush(next, win));
    CHECK(got == 7 && sum == 0, "%ld and %ld", got, sum);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    int class, code = MPI_Put(&value, 1, MPI_LONG, next, bytes - 7, 1, MPI_LONG, win);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_RMA_RANGE, "class %d", class);
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Win_free(&win));
    return finish("many_windows");
}
