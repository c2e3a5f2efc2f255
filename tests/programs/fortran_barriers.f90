! Twenty barriers by Fortran's procedures: ten on MPI_COMM_WORLD, ten on its duplicate.
program fortran_barriers
  use mpi_f08
  implicit none
  integer :: i, code
  type(MPI_Comm) :: copy

  call MPI_Init()
  call MPI_Comm_dup(MPI_COMM_WORLD, copy)
  do i = 1, 10
    call MPI_Barrier(MPI_COMM_WORLD)
    code = MPI_ERR_OTHER
    call MPI_Barrier(copy, code)
    if (code /= MPI_SUCCESS) stop 3
  end do
  call MPI_Comm_free(copy)
  call MPI_Finalize()
end program fortran_barriers
