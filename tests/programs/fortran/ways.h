! One source text for three interfaces: compiled with -DWAY=1 it includes mpif.h, with 2 it uses module mpi, with 3 module mpi_f08.
! Types, components of a status and the comparison of handles differ; everything else is the same.
#if WAY == 3
#define MPI_MODULE use mpi_f08
#define MPI_INCLUDE
#define COMM type(MPI_Comm)
#define DATATYPE type(MPI_Datatype)
#define ERRHANDLER type(MPI_Errhandler)
#define FILE type(MPI_File)
#define GROUP type(MPI_Group)
#define INFO type(MPI_Info)
#define MESSAGE type(MPI_Message)
#define OP type(MPI_Op)
#define REQUEST type(MPI_Request)
#define WIN type(MPI_Win)
#define STATUS type(MPI_Status)
#define STATUSES(N) type(MPI_Status), dimension(N)
#define FIELD(S, F) S%F
#define FIELD_OF(S, I, F) S(I)%F
#define VAL(H) H%MPI_VAL
#else
#if WAY == 2
#define MPI_MODULE use mpi
#define MPI_INCLUDE
#else
#define MPI_MODULE use, intrinsic :: iso_c_binding
#define MPI_INCLUDE include 'mpif.h'
#endif
#define COMM integer
#define DATATYPE integer
#define ERRHANDLER integer
#define FILE integer
#define GROUP integer
#define INFO integer
#define MESSAGE integer
#define OP integer
#define REQUEST integer
#define WIN integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define STATUSES(N) integer, dimension(MPI_STATUS_SIZE, N)
#define FIELD(S, F) S(F)
#define FIELD_OF(S, I, F) S(F, I)
#define VAL(H) H
#endif
