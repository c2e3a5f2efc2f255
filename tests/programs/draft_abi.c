/* A minimal MPI library with the standard ABI's file name but a constant of an ABI draft.
 * Real libraries with such constants are large and not always available;
 * this library has only the functions that the check for drafts calls, for one process. */

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

/* By definition, the error handler of MPI_FILE_NULL is MPI_ERRORS_RETURN. */
int PMPI_File_get_errhandler(void *file, void **handler)
{
    *handler = (void *)(file == (void *)0x118 ? 0x142UL : 0x140UL);
    return 0;
}
