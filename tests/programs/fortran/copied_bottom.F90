! Passes as buffer an ordinary variable, MPI_BOTTOM itself, and twice a copy of MPI_BOTTOM, which is reported once.
#include "ways.h"
program copied_bottom
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  DATATYPE :: absolute
  integer(MPI_ADDRESS_KIND) :: address(1)
  integer, target :: number, other
  integer :: ierr

  call MPI_Init(ierr)
  call MPI_Get_address(number, address(1), ierr)
  call MPI_Type_create_hindexed_block(1, 1, address, MPI_INTEGER, absolute, ierr)
  call MPI_Type_commit(absolute, ierr)
  other = 5
  call MPI_Send(other, 0, absolute, MPI_PROC_NULL, 1, MPI_COMM_WORLD, ierr)
  call MPI_Send(MPI_BOTTOM, 1, absolute, MPI_PROC_NULL, 1, MPI_COMM_WORLD, ierr)
  call MPI_Send((MPI_BOTTOM), 1, absolute, MPI_PROC_NULL, 1, MPI_COMM_WORLD, ierr)
  call MPI_Send((MPI_BOTTOM), 1, absolute, MPI_PROC_NULL, 1, MPI_COMM_WORLD, ierr)
  call MPI_Type_free(absolute, ierr)
  call MPI_Finalize(ierr)
end program copied_bottom
