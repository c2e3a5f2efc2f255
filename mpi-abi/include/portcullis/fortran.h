/* MPI_Fint and the conversions between handles of C and of Fortran, which the standard C ABI leaves out.
 *
 * The ABI has MPI_X_toint and MPI_X_fromint in their place (MPI 5.0, chapter 20), since only a Fortran compiler knows its INTEGER.
 * For programs that were written before: here an INTEGER is a C int, as it is with every usual compiler and its usual options.
 * Include it after or instead of mpi.h, or let the compiler do so: mpicc -include portcullis/fortran.h
 */
/* An option that lets the compiler include it reaches the assembly files of a project as well. */
#if !defined(PORTCULLIS_FORTRAN_H) && !defined(__ASSEMBLER__)
#define PORTCULLIS_FORTRAN_H

#include <mpi.h>

typedef int MPI_Fint;

#define MPI_Comm_c2f(handle) MPI_Comm_toint(handle)
#define MPI_Comm_f2c(integer) MPI_Comm_fromint(integer)
#define MPI_Errhandler_c2f(handle) MPI_Errhandler_toint(handle)
#define MPI_Errhandler_f2c(integer) MPI_Errhandler_fromint(integer)
#define MPI_File_c2f(handle) MPI_File_toint(handle)
#define MPI_File_f2c(integer) MPI_File_fromint(integer)
#define MPI_Group_c2f(handle) MPI_Group_toint(handle)
#define MPI_Group_f2c(integer) MPI_Group_fromint(integer)
#define MPI_Info_c2f(handle) MPI_Info_toint(handle)
#define MPI_Info_f2c(integer) MPI_Info_fromint(integer)
#define MPI_Message_c2f(handle) MPI_Message_toint(handle)
#define MPI_Message_f2c(integer) MPI_Message_fromint(integer)
#define MPI_Op_c2f(handle) MPI_Op_toint(handle)
#define MPI_Op_f2c(integer) MPI_Op_fromint(integer)
#define MPI_Request_c2f(handle) MPI_Request_toint(handle)
#define MPI_Request_f2c(integer) MPI_Request_fromint(integer)
#define MPI_Session_c2f(handle) MPI_Session_toint(handle)
#define MPI_Session_f2c(integer) MPI_Session_fromint(integer)
#define MPI_Type_c2f(handle) MPI_Type_toint(handle)
#define MPI_Type_f2c(integer) MPI_Type_fromint(integer)
#define MPI_Win_c2f(handle) MPI_Win_toint(handle)
#define MPI_Win_f2c(integer) MPI_Win_fromint(integer)

#endif
