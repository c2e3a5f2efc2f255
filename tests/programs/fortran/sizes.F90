! Tests of the sizes of Fortran types: the sizes that the program sets before MPI_Init and reads again,
! the sizes of datatypes, and the sizes of variables.
#include "ways.h"
program sizes
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  INFO :: stated, read_again
  character(MPI_MAX_INFO_VAL) :: value
  integer :: ierr, bytes
  logical :: found
#if WAY != 1
  real(4) :: single
  real(8) :: double(3, 2)
  complex(8) :: pair
  logical :: truth
  character :: letter
#endif

  call MPI_Info_create(stated, ierr)
  call MPI_Info_set(stated, 'mpi_logical_size', '4', ierr)
  call MPI_Info_set(stated, 'mpi_integer_size', '4', ierr)
  call MPI_Info_set(stated, 'mpi_real_size', '4', ierr)
  call MPI_Info_set(stated, 'mpi_double_precision_size', '8', ierr)
  call MPI_Abi_set_fortran_info(stated, ierr)
  call claim(ierr == MPI_SUCCESS, 'the program states its sizes')
  call MPI_Info_free(stated, ierr)
  call MPI_Init(ierr)
  call MPI_Abi_get_fortran_info(read_again, ierr)
  call MPI_Info_get(read_again, 'mpi_integer_size', len(value), value, found, ierr)
  call claim(found .and. value == '4', 'the size of an INTEGER')
  call MPI_Info_get(read_again, 'mpi_double_precision_size', len(value), value, found, ierr)
  call claim(found .and. value == '8', 'the size of a DOUBLE PRECISION')
  call MPI_Info_free(read_again, ierr)
  call MPI_Type_size(MPI_LOGICAL, bytes, ierr)
  call claim(bytes == 4, 'the size of MPI_LOGICAL')
#if WAY != 1
  call MPI_Sizeof(single, bytes, ierr)
  call claim(bytes == 4, 'the size of a REAL(4)')
  call MPI_Sizeof(double, bytes, ierr)
  call claim(bytes == 8, 'the size of an element of an array')
  call MPI_Sizeof(pair, bytes, ierr)
  call claim(bytes == 16, 'the size of a COMPLEX(8)')
  call MPI_Sizeof(truth, bytes, ierr)
  call claim(bytes == 4, 'the size of a LOGICAL')
  call MPI_Sizeof(letter, bytes, ierr)
  call claim(bytes == 1, 'the size of a CHARACTER')
#endif
  call finish('sizes')
contains
  include 'check.inc'
end program sizes
