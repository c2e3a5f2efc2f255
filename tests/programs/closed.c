/* The rank of the first argument, or every rank, closes the descriptors above 2 that it has inherited, before MPI_Init. */
#include "check.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    const char *own = getenv("PMI_RANK");
    if (argc < 2 || (own && !strcmp(own, argv[1])))
        for (int descriptor = 3; descriptor < 256; descriptor++)
            close(descriptor);
    begin(&argc, &argv);
    return finish("closed");
}
