/* The C functions that attributes.F90 calls. */
#include <mpi.h>
#include <stddef.h>

int seen_by_c(int comm, int keyval)
{
    void *value = NULL;
    int flag = 0;
    MPI_Comm_get_attr(MPI_Comm_fromint(comm), keyval, &value, &flag);
    return flag ? (int)*(MPI_Aint *)value : -1;
}

void set_by_c(int comm, int *keyval)
{
    static int cell = 4321;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, NULL);
    MPI_Comm_set_attr(MPI_Comm_fromint(comm), *keyval, &cell);
}

void message_by_c(int comm, int type, int *status)
{
    int sent[2] = {1, 2}, received[2], me;
    MPI_Status one;
    MPI_Comm_rank(MPI_Comm_fromint(comm), &me);
    MPI_Sendrecv(sent, 1, MPI_Type_fromint(type), me, 17, received, 1, MPI_Type_fromint(type), me, 17, MPI_Comm_fromint(comm), &one);
    MPI_Status_c2f(&one, status);
}
