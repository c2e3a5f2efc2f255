/* Shared code of the test programs: checks that end the job with a message if they fail,
 * and the final line that reports that all checks passed. */
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

/* CHECK(condition, "format of the values", ...) ends the job if the condition is false. */
#define CHECK(claim, ...) \
    do { if (!(claim)) refute(__FILE__, __LINE__, "not true: " #claim, __VA_ARGS__); } while (0)

/* OK(call) makes an MPI call that must succeed. */
#define OK(call) \
    do { int ok_code = (call); if (ok_code != MPI_SUCCESS) refute(__FILE__, __LINE__, #call, "returned %d", ok_code); } while (0)

/* Sets `rank` and `size` for messages; called after MPI_Init or MPI_Init_thread. */
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

/* As `begin`, at MPI_THREAD_MULTIPLE if the first argument is "threads". */
__attribute__((unused)) static void begin_at_level(int *argc, char ***argv)
{
    int level, has_threads = *argc > 1 && !strcmp((*argv)[1], "threads");
    OK(MPI_Init_thread(argc, argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level));
    introduce();
}

/* Returns true if the library is Portcullis; other libraries may differ where the standard leaves a choice. */
__attribute__((unused)) static int is_portcullis(void)
{
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    OK(MPI_Get_library_version(name, &length));
    return strstr(name, "Portcullis") != NULL;
}

/* After a barrier, rank 0 prints the line that the test runner expects. */
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

/* Returns the time in nanoseconds of a clock that all processes of a machine share. */
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

/* The pattern repeats after this number of bytes. */
enum { PERIOD = 1 << 16 };

/* Returns byte `i` of a pattern; `salt` distinguishes patterns, for example those of different ranks. */
__attribute__((unused)) static unsigned char pattern(size_t i, unsigned salt)
{
    return (unsigned char)(i * 31 + (i >> 8) * 7 + salt * 131 + 5);
}

__attribute__((unused)) static void fill(void *data, size_t n, unsigned salt)
{
    unsigned char *bytes = (unsigned char *)data;
    for (size_t i = 0; i < n && i < PERIOD; i++)
        bytes[i] = pattern(i, salt);
    /* Copies instead of computations: the programs are compiled without optimisation. */
    for (size_t i = PERIOD; i < n; i += PERIOD)
        memcpy(bytes + i, bytes, n - i < PERIOD ? n - i : (size_t)PERIOD);
}

/* Returns the index of the first byte that differs from the pattern, or -1. */
__attribute__((unused)) static long differs(const void *data, size_t n, unsigned salt)
{
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < n && i < PERIOD; i++)
        if (bytes[i] != pattern(i, salt))
            return (long)i;
    /* The first period is right; the others must repeat it. */
    if (n <= PERIOD || !memcmp(bytes + PERIOD, bytes, n - PERIOD))
        return -1;
    for (size_t i = PERIOD;; i++)
        if (bytes[i] != bytes[i - PERIOD])
            return (long)i;
}

#endif
