/* Tests of cancelled sends: they complete without a receive (section 3.8.4 of MPI 5.0),
 * and a message arrives if and only if it was not cancelled. */
#include "check.h"

enum { LARGEST = 1 << 20, DATA = 3, SENT = 4 };

static char data[LARGEST], room[LARGEST];

/* Starts a send; `way` selects one of five modes. */
static MPI_Request begun(int way, int n, int to)
{
    MPI_Request request;
    switch (way) {
    case 0: OK(MPI_Isend(data, n, MPI_CHAR, to, DATA, MPI_COMM_WORLD, &request)); break;
    case 1: OK(MPI_Issend(data, n, MPI_CHAR, to, DATA, MPI_COMM_WORLD, &request)); break;
    case 2: OK(MPI_Ibsend(data, n, MPI_CHAR, to, DATA, MPI_COMM_WORLD, &request)); break;
    default:
        OK((way == 3 ? MPI_Send_init : MPI_Ssend_init)(data, n, MPI_CHAR, to, DATA, MPI_COMM_WORLD, &request));
        OK(MPI_Start(&request));
    }
    return request;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    /* Each rank sends to the next rank; a single rank sends to itself. */
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    static char attached[LARGEST + MPI_BSEND_OVERHEAD];
    OK(MPI_Buffer_attach(attached, sizeof attached));
    const int lengths[] = {0, 1, 5000, 100000, LARGEST};
    for (int way = 0; way < 5; way++)
        for (int i = 0; i < 5; i++) {
            int n = lengths[i], cancelled, arrives, count;
            MPI_Status status;
            fill(data, n, way + i);
            MPI_Request request = begun(way, n, to);
            OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, &status));
            OK(MPI_Test_cancelled(&status, &cancelled));
            CHECK(cancelled || (way != 1 && way != 4), "a send of %d bytes that waits for a receive is not cancelled, way %d", n, way);
            if (request != MPI_REQUEST_NULL)
                OK(MPI_Request_free(&request));
            int sent = !cancelled;
            OK(MPI_Sendrecv(&sent, 1, MPI_INT, to, SENT, &arrives, 1, MPI_INT, from, SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (arrives) {
                OK(MPI_Recv(room, LARGEST, MPI_CHAR, from, DATA, MPI_COMM_WORLD, &status));
                OK(MPI_Get_count(&status, MPI_CHAR, &count));
                CHECK(count == n && !memcmp(room, data, n), "%d of %d bytes came, way %d", count, n, way);
            }
            OK(MPI_Barrier(MPI_COMM_WORLD));
            OK(MPI_Iprobe(MPI_ANY_SOURCE, DATA, MPI_COMM_WORLD, &arrives, MPI_STATUS_IGNORE));
            CHECK(!arrives, "%d bytes arrived although they were cancelled, way %d", n, way);
            /* The next round starts after all ranks have checked this one. */
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    void *buffer;
    int length;
    OK(MPI_Buffer_detach(&buffer, &length));
    return finish("taken_back");
}
