/*
 * Blocking sends of more short messages than the receiver buffers;
 * the receives are in the reverse order.
 *
 *     other_order BYTES MESSAGES
 */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 3, "needs a length and a number of messages");
    int bytes = atoi(argv[1]), messages = atoi(argv[2]);
    unsigned char *data = malloc(bytes);
    if (rank > 0)
        for (int tag = 0; tag < messages; tag++) {
            fill(data, bytes, tag + rank);
            OK(MPI_Send(data, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD));
        }
    else
        for (int tag = messages - 1; tag >= 0; tag--)
            for (int from = 1; from < size; from++) {
                OK(MPI_Recv(data, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                CHECK(differs(data, bytes, tag + from) < 0, "byte %ld of message %d of rank %d", differs(data, bytes, tag + from), tag, from);
            }
    free(data);
    return finish("other_order");
}
