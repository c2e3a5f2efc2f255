/* Test of basic queries: ranks, names and versions. */
#include "check.h"

int main(int argc, char **argv)
{
    int flag, version, subversion, length;
    char name[MPI_MAX_PROCESSOR_NAME], library[MPI_MAX_LIBRARY_VERSION_STRING];

    OK(MPI_Initialized(&flag));
    CHECK(!flag, "initialized before MPI_Init");
    OK(MPI_Get_version(&version, &subversion));
    CHECK(version >= 4, "version %d.%d", version, subversion);
    OK(MPI_Get_library_version(library, &length));
    CHECK(length > 0 && (size_t)length == strlen(library), "length %d of \"%s\"", length, library);

    begin(&argc, &argv);
    CHECK(rank >= 0 && rank < size, "rank %d", rank);
    if (argc > 1)
        CHECK(size == atoi(argv[1]), "started as one of %d", size);
    OK(MPI_Get_processor_name(name, &length));
    CHECK(length > 0 && (size_t)length == strlen(name), "length %d of \"%s\"", length, name);
    OK(MPI_Initialized(&flag));
    CHECK(flag, "not initialized after MPI_Init");
    OK(MPI_Finalized(&flag));
    CHECK(!flag, "finalized too early");
    double t = MPI_Wtime(), tick = MPI_Wtick();
    CHECK(tick > 0 && tick < 1, "tick %g", tick);
    nap(2000);
    CHECK(MPI_Wtime() - t >= 0.002, "the clock stands still");
    printf("Hello from %d of %d\n", rank, size);
    fflush(stdout);
    return finish("hello");
}
