/* A library with the standard ABI's name and a constant of an ABI draft, for one process and with few functions, for the check that reports drafts.
 * Real libraries with such constants are large and not always available; this one has only what the check needs. */

#define NOTHING(name) int name(void) { return 0; }

NOTHING(MPI_Init)
NOTHING(MPI_Finalize)
NOTHING(PMPI_Comm_dup)
NOTHING(PMPI_Comm_split_type)
NOTHING(PMPI_Send)
NOTHING(PMPI_Recv)
NOTHING(PMPI_Isend)
NOTHING(PMPI_Test)
NOTHING(PMPI_Iprobe)
NOTHING(PMPI_Barrier)
NOTHING(PMPI_Allgather)
NOTHING(PMPI_Win_allocate_shared)
NOTHING(PMPI_Win_shared_query)
NOTHING(PMPI_Win_free)
NOTHING(PMPI_Comm_create_keyval)
NOTHING(PMPI_Comm_compare)
NOTHING(PMPI_Comm_call_errhandler)
NOTHING(PMPI_Comm_set_attr)
NOTHING(PMPI_Comm_get_attr)
NOTHING(PMPI_Query_thread)

int PMPI_Comm_rank(void *comm, int *rank)
{
    *rank = comm == (void *)0x101 ? 0 : -1;
    return 0;
}

int PMPI_Comm_size(void *comm, int *size)
{
    *size = comm == (void *)0x101;
    return 0;
}

int PMPI_Get_library_version(char *text, int *length)
{
    *length = __builtin_sprintf(text, "Draft MPI 0.9\n");
    return 0;
}

/* The null file's error handler is by definition MPI_ERRORS_RETURN. */
int PMPI_File_get_errhandler(void *file, void **handler)
{
    *handler = (void *)(file == (void *)0x118 ? 0x142UL : 0x140UL);
    return 0;
}
