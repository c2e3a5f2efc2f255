! For compilers with a flag that makes REAL 8 bytes long and, in gfortran and flang,
! DOUBLE PRECISION 16 bytes: the functions for the clock still return 8 bytes.
#include "ways.h"
program wide_reals
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  integer :: ierr
  real(selected_real_kind(15)) :: began, ended

  call MPI_Init(ierr)
  call claim(kind(1.0) == kind(began), 'REAL has 8 bytes')
  began = MPI_Wtime()
  do
    ended = MPI_Wtime()
    if (ended > began) exit
    call claim(ended == began .and. began > 0, 'the clock moves forward')
  end do
  call claim(MPI_Wtick() > 0 .and. MPI_Wtick() < 1, 'the clock has a resolution')
  began = PMPI_Wtime()
  call claim(began >= ended .and. PMPI_Wtick() == MPI_Wtick(), 'the clock under its profiling name')
  call finish('wide_reals')
contains
  include 'check.inc'
end program wide_reals
