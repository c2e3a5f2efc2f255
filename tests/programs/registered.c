/* Messages, puts and gets around the lengths from which a network accesses registered memory.
 * Every byte is checked. With "steps", each rank prints each step when it is done. */
#include "check.h"

enum { LONGEST = 1 << 20 };

static int prints;

static void step(const char *what, int bytes)
{
    if (prints)
        fprintf(stderr, "rank %d: %s of %d bytes\n", rank, what, bytes);
}

static void message(char *buffer, int bytes)
{
    if (rank == 0) {
        fill(buffer, bytes, bytes);
        OK(MPI_Send(buffer, bytes, MPI_CHAR, 1, 5, MPI_COMM_WORLD));
        step("send", bytes);
    } else if (rank == 1) {
        memset(buffer, 0, bytes);
        OK(MPI_Recv(buffer, bytes, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        long wrong = differs(buffer, bytes, bytes);
        CHECK(wrong < 0, "byte %ld of %d", wrong, bytes);
        step("receive", bytes);
    }
}

/* Puts to the next rank's memory, and gets the same bytes back. */
static void accesses(MPI_Win win, char *buffer, int bytes)
{
    int next = (rank + 1) % size;
    fill(buffer, bytes, rank + bytes);
    OK(MPI_Put(buffer, bytes, MPI_CHAR, next, 0, bytes, MPI_CHAR, win));
    OK(MPI_Win_flush(next, win));
    step("put and flush", bytes);
    memset(buffer, 0, bytes);
    OK(MPI_Get(buffer, bytes, MPI_CHAR, next, 0, bytes, MPI_CHAR, win));
    OK(MPI_Win_flush(next, win));
    long wrong = differs(buffer, bytes, rank + bytes);
    CHECK(wrong < 0, "byte %ld of %d", wrong, bytes);
    step("get and flush", bytes);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    prints = argc > 1 && !strcmp(argv[1], "steps");
    int before = (rank + size - 1) % size;
    char *buffer = malloc(LONGEST), *memory;
    const int lengths[] = {8, 100000, (256 << 10) - 1, 256 << 10, LONGEST};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    for (int i = 0; size > 1 && i < LENGTHS; i++)
        message(buffer, lengths[i]);
    MPI_Win win;
    OK(MPI_Win_allocate(LONGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < LENGTHS; i++)
        accesses(win, buffer, lengths[i]);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_fence(0, win));
    long wrong = differs(memory, LONGEST, before + LONGEST);
    CHECK(wrong < 0, "byte %ld of the window", wrong);
    fill(buffer, 8, rank);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(buffer, 8, MPI_CHAR, (rank + 1) % size, 16, 8, MPI_CHAR, win));
    OK(MPI_Win_fence(0, win));
    CHECK(differs(memory + 16, 8, before) < 0, "a put between fences");
    step("put between fences", 8);
    OK(MPI_Win_free(&win));
    free(buffer);
    return finish("registered");
}
