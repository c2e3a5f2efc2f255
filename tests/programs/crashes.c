/*
 * Rank 1 dies by a signal in a nested function call, whose functions the printed stack must name.
 *
 *     crashes null|overflow|sent|handled
 */
#include "check.h"

#include <signal.h>
#include <unistd.h>

static const char *way;
static volatile int *nowhere;

static void leaves(int signal)
{
    (void)signal;
    _exit(7);
}

__attribute__((noinline)) int innermost_function(int depth)
{
    volatile char frame[4096];
    frame[0] = (char)depth;
    if (!strcmp(way, "overflow"))
        return innermost_function(depth + 1) + frame[0];
    if (!strcmp(way, "sent"))
        raise(SIGSEGV);
    else
        *nowhere = 1;
    return frame[0];
}

__attribute__((noinline)) int middle_function(void)
{
    return innermost_function(1) + 1;
}

int main(int argc, char **argv)
{
    way = argc > 1 ? argv[1] : "null";
    if (!strcmp(way, "handled"))
        signal(SIGSEGV, leaves);
    begin(&argc, &argv);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 1)
        return middle_function();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return finish("crashes");
}
