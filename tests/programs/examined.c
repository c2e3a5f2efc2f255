/* Messages and collectives of lengths for every protocol; every byte is checked, under valgrind. */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int partner = (rank ^ 1) < size ? rank ^ 1 : rank;
    for (int i = 0; i < 5; i++) {
        int bytes = (int[]){8, 5000, 64 << 10, 300000, 1 << 20}[i];
        unsigned char *to = malloc(bytes), *from = malloc(bytes);
        fill(to, bytes, rank);
        OK(MPI_Sendrecv(to, bytes, MPI_BYTE, partner, 1, from, bytes, MPI_BYTE, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(differs(from, bytes, partner) < 0, "byte %ld of %d", differs(from, bytes, partner), bytes);
        free(from);
        from = malloc(bytes);
        if (rank == 0)
            fill(from, bytes, 7);
        OK(MPI_Bcast(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
        CHECK(differs(from, bytes, 7) < 0, "byte %ld of %d", differs(from, bytes, 7), bytes);
        free(from);
        from = malloc(bytes);
        OK(MPI_Allreduce(to, from, bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD));
        for (int at = 0; at < bytes; at++) {
            unsigned char all = 0;
            for (int r = 0; r < size; r++)
                all ^= pattern(at, r);
            CHECK(from[at] == all, "byte %d of %d", at, bytes);
        }
        free(to);
        free(from);
    }
    return finish("examined");
}
