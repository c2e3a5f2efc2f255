/* Opens the MPI library, or a module that needs one, with dlopen; the first argument is its file name.
 * Interpreters, which are not linked with an MPI library, do the same.
 *
 * With a second argument the program makes no MPI call:
 * it prints that the rank's library is open, and ends when its standard input ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int init_function(int *, char ***);
typedef int size_function(void *, int *);
typedef int finalize_function(void);

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "which library?");
        return 2;
    }
    if (argc > 2) {
        printf("open on rank %s\n", getenv("PMI_RANK"));
        fflush(stdout);
        while (getchar() != EOF)
            continue;
        return 0;
    }
    init_function *init = (init_function *)dlsym(library, "MPI_Init");
    size_function *comm_size = (size_function *)dlsym(library, "MPI_Comm_size");
    finalize_function *finalize = (finalize_function *)dlsym(library, "MPI_Finalize");
    Dl_info where;
    if (!init || !comm_size || !finalize || !dladdr((void *)(intptr_t)init, &where)) {
        fprintf(stderr, "%s is no MPI library\n", argv[1]);
        return 3;
    }
    /* Open MPI's handles are addresses of objects, MPICH's are numbers. */
    void *world = dlsym(library, "ompi_mpi_comm_world");
    int size = 0;
    if (init(NULL, NULL) || comm_size(world ? world : (void *)(intptr_t)0x44000000, &size) || finalize())
        return 4;
    printf("one of %d on %s\n", size, where.dli_fname);
    return 0;
}
