/*
 * Looks up large-count functions by dlsym, as mpi4py does, and calls them.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

typedef int send_function(const void *, long long, MPI_Datatype, int, int, MPI_Comm);
typedef int recv_function(void *, long long, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    send_function *large_send = (send_function *)dlsym(RTLD_DEFAULT, "MPI_Send_c");
    recv_function *large_recv = (recv_function *)dlsym(RTLD_DEFAULT, "MPI_Recv_c");
    int word = -1, other = rank ^ 1;
    if (rank % 2 == 0) {
        OK(large_send ? large_send(&rank, 1, MPI_INT, other, 9, MPI_COMM_WORLD) : MPI_Send(&rank, 1, MPI_INT, other, 9, MPI_COMM_WORLD));
    } else {
        OK(large_recv ? large_recv(&word, 1, MPI_INT, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
                      : MPI_Recv(&word, 1, MPI_INT, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(word == other, "%d came", word);
    }
    return finish("probing");
}
