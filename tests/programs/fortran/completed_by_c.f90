! C code completes the request of a Fortran collective whose buffer is a copy of an array section.
! The C function does not know the section, so the array does not get the result.
! The library reports this at MPI_Finalize at the latest.
program completed_by_c
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine wait_in_c(request) bind(C)
      import :: c_int
      integer(c_int), value :: request
    end subroutine wait_in_c
  end interface
  integer, parameter :: n = 4
  integer, asynchronous :: numbers(2 * n), sums(2 * n)
  integer :: me, token, number
  type(MPI_Request) :: request

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  numbers = 1
  sums = -1
  ! Rank 1 enters only when rank 0 has an incomplete request.
  if (me == 1) call MPI_Recv(token, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Iallreduce(numbers(::2), sums(::2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
  if (me == 0) then
    call MPI_Send(me, 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD)
    number = request%MPI_VAL
    call wait_in_c(number)
    call claim(all(sums == -1), 'the result is not in the array')
  else
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call claim(all(sums(::2) == 2) .and. all(sums(2::2) == -1), 'a Fortran procedure copies the result')
  end if
  call finish('completed_by_c')
contains
  include 'check.inc'
end program completed_by_c
