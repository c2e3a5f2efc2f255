/* A thousand messages of different lengths from rank 0 to rank 1; every byte is checked.
 * After a fifth of the messages, rank 1 prints "ready PID".
 * The test then disconnects a network while the rest of the messages are being sent. */
#include "check.h"
#include <unistd.h>

enum { MESSAGES = 1000, LONGEST = 160 << 10 };

static const int lengths[] = {8, 3000, LONGEST, 48 << 10, 0, 90001, 700, 20000};

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    unsigned char *data = malloc(LONGEST);
    CHECK(data != NULL, "no memory");
    for (int n = 0; n < MESSAGES && rank < 2; n++) {
        int length = lengths[n % (int)(sizeof lengths / sizeof *lengths)];
        if (rank == 0) {
            fill(data, (size_t)length, (unsigned)n);
            OK(MPI_Send(data, length, MPI_BYTE, 1, n, MPI_COMM_WORLD));
        } else {
            MPI_Status status;
            int came;
            OK(MPI_Recv(data, LONGEST, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            OK(MPI_Get_count(&status, MPI_BYTE, &came));
            CHECK(status.MPI_TAG == n && came == length, "message %d with %d bytes instead of message %d with %d", status.MPI_TAG, came, n, length);
            long wrong = differs(data, (size_t)length, (unsigned)n);
            CHECK(wrong < 0, "byte %ld of message %d is another", wrong, n);
            if (n == MESSAGES / 5) {
                printf("ready %d\n", (int)getpid());
                fflush(stdout);
            }
        }
    }
    free(data);
    return finish("thousand");
}
