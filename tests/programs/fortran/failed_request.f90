! A call that fails makes no request: the program's variable keeps the one of an active collective, whose copied section gets the result.
program failed_request
  use mpi_f08
  implicit none
  integer, parameter :: n = 4
  integer, asynchronous :: numbers(2 * n), sums(2 * n)
  integer :: me, token, code
  type(MPI_Request) :: request

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  numbers = 1
  sums = -1
  ! Rank 1 takes part only when rank 0's calls have failed.
  if (me == 1) call MPI_Recv(token, 1, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Iallreduce(numbers(::2), sums(::2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
  if (me == 0) then
    call MPI_Isend(token, 1, MPI_INTEGER, 99, 1, MPI_COMM_WORLD, request, code)
    call claim(code /= MPI_SUCCESS, 'no rank has that number')
    call MPI_Ibcast(token, 1, MPI_INTEGER, 99, MPI_COMM_WORLD, request, code)
    call claim(code /= MPI_SUCCESS, 'no root has that number')
    call MPI_Send(me, 1, MPI_INTEGER, 1, 1, MPI_COMM_WORLD)
  end if
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call claim(all(sums(::2) == 2) .and. all(sums(2::2) == -1), 'the result is in the section')
  call finish('failed_request')
contains
  include 'check.inc'
end program failed_request
