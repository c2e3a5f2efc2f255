// Output that is still in the buffer of std::cout when the program calls MPI_Abort.
#include <mpi.h>

#include <iostream>

int main(int argc, char **argv)
{
    std::ios::sync_with_stdio(false);
    MPI_Init(&argc, &argv);
    std::cout << "a line\n" << "a beginning";
    MPI_Abort(MPI_COMM_WORLD, 42);
}
