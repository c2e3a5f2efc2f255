/* What the test programs share: a claim that ends the job with a sentence when it does not hold, and the last line that says it all held. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size;

__attribute__((noreturn, format(printf, 4, 5)))
static void refute(const char *file, int line, const char *what, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: rank %d of %d: %s: ", file, line, rank, size, what);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 99);
    abort();
}

/* CHECK(claim, "what was seen", ...) */
#define CHECK(claim, ...) \
    do { if (!(claim)) refute(__FILE__, __LINE__, "not true: " #claim, __VA_ARGS__); } while (0)

/* An MPI call that has to succeed. */
#define OK(call) \
    do { int ok_code = (call); if (ok_code != MPI_SUCCESS) refute(__FILE__, __LINE__, #call, "returned %d", ok_code); } while (0)

/* Which one we are, for the sentences; after MPI_Init or MPI_Init_thread. */
static void introduce(void)
{
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
}

__attribute__((unused)) static void begin(int *argc, char ***argv)
{
    OK(MPI_Init(argc, argv));
    introduce();
}

/* Whether the library is Portcullis: what the standard leaves to a library is claimed of ours alone. */
__attribute__((unused)) static int is_portcullis(void)
{
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    OK(MPI_Get_library_version(name, &length));
    return strstr(name, "Portcullis") != NULL;
}

/* Every rank got here: rank 0 says so, and the runner looks for this line. */
static void announce(const char *name)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        printf("all claims of %s hold on %d ranks\n", name, size);
        fflush(stdout);
    }
}

__attribute__((unused)) static int finish(const char *name)
{
    announce(name);
    OK(MPI_Finalize());
    return 0;
}

/* Nanoseconds of a clock that all processes of one machine share. */
__attribute__((unused)) static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

__attribute__((unused)) static void nap(long microseconds)
{
    struct timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&t, NULL);
}

/* A byte that depends on where it is and on whose it is. */
__attribute__((unused)) static unsigned char pattern(size_t i, unsigned salt)
{
    return (unsigned char)(i * 31 + (i >> 8) * 7 + salt * 131 + 5);
}

__attribute__((unused)) static void fill(void *data, size_t n, unsigned salt)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)data)[i] = pattern(i, salt);
}

/* The first byte that differs, or -1. */
__attribute__((unused)) static long differs(const void *data, size_t n, unsigned salt)
{
    for (size_t i = 0; i < n; i++)
        if (((const unsigned char *)data)[i] != pattern(i, salt))
            return (long)i;
    return -1;
}

#endif
