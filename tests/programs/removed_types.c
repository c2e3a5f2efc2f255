/* MPI_LB and MPI_UB, which MPI-3.0 removed, and datatypes that exist only in MPICH or in Open MPI.
 *
 * Only these libraries' compilers compile this program, because the standard's header lacks the names. */
#include "check.h"

#ifdef OPEN_MPI
/* By default, Open MPI's header defines these names as text that causes a compile-time error. */
#undef MPI_LB
#undef MPI_UB
extern struct ompi_predefined_datatype_t ompi_mpi_lb, ompi_mpi_ub;
extern struct ompi_predefined_datatype_t ompi_mpi_2cplex, ompi_mpi_2dblcplex;
#define MPI_LB ((MPI_Datatype)(void *)&ompi_mpi_lb)
#define MPI_UB ((MPI_Datatype)(void *)&ompi_mpi_ub)
#undef MPI_Type_struct
#endif
int MPI_Type_struct(int count, int *lengths, MPI_Aint *displacements, MPI_Datatype *types, MPI_Datatype *made);

static void spans(int count, MPI_Aint *displacements, MPI_Datatype *types, MPI_Aint begin, MPI_Aint length)
{
    int lengths[4] = { 1, 1, 1, 1 };
    MPI_Datatype made;
    MPI_Aint lower, extent;
    int bytes;
    OK(MPI_Type_struct(count, lengths, displacements, types, &made));
    OK(MPI_Type_get_extent(made, &lower, &extent));
    OK(MPI_Type_size(made, &bytes));
    CHECK(lower == begin && extent == length, "from %ld, %ld bytes, not from %ld, %ld", (long)lower, (long)extent,
          (long)begin, (long)length);
    CHECK(bytes == 4, "%d bytes of data, not 4", bytes);
    OK(MPI_Type_free(&made));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    spans(1, (MPI_Aint[]){ 8 }, (MPI_Datatype[]){ MPI_INT }, 8, 4);
    spans(2, (MPI_Aint[]){ 0, 32 }, (MPI_Datatype[]){ MPI_INT, MPI_UB }, 0, 32);
    spans(3, (MPI_Aint[]){ -8, 0, 24 }, (MPI_Datatype[]){ MPI_LB, MPI_INT, MPI_UB }, -8, 32);
    spans(4, (MPI_Aint[]){ 16, -16, 0, -4 }, (MPI_Datatype[]){ MPI_UB, MPI_LB, MPI_INT, MPI_LB }, -16, 32);
#ifdef OPEN_MPI
    /* The addresses make the program need these symbols; the types are never used. */
    void *volatile pairs[] = { &ompi_mpi_2cplex, &ompi_mpi_2dblcplex };
    CHECK(pairs[0] != pairs[1], "two datatypes are one");
#endif
    return finish("removed_types");
}
