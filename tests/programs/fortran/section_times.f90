! Benchmark of array sections of 10^6 elements: passed in place, and copied by the program and then passed.
! Prints medians of many repetitions in milliseconds of CPU time,
! which other processes do not lengthen.
! Run this program manually on one process, which sends to itself;
! the results are in docs/measured/notes/fortran.md.
program section_times
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer, parameter :: n = 1000000, runs = 31
  real(real64), allocatable, asynchronous :: matrix(:, :), column(:), there(:), small(:)
  real(real64) :: by_hand(runs), in_place(runs), start
  integer :: run
  type(MPI_Request) :: request

  call MPI_Init()
  allocate (matrix(4, n), column(n), there(n), small(n))
  matrix = 1
  there = 0
  column = 0
  small = 0
  print '(a)', 'operation                          by hand   in place'
  do run = 1, runs
    call cpu_time(start)
    call MPI_Irecv(there, n, MPI_REAL8, 0, 1, MPI_COMM_SELF, request)
    column = matrix(2, :)
    call MPI_Send(column, n, MPI_REAL8, 0, 1, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call cpu_time(by_hand(run))
    by_hand(run) = by_hand(run) - start
    call cpu_time(start)
    call MPI_Irecv(there, n, MPI_REAL8, 0, 1, MPI_COMM_SELF, request)
    call MPI_Send(matrix(2, :), n, MPI_REAL8, 0, 1, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call cpu_time(in_place(run))
    in_place(run) = in_place(run) - start
  end do
  call row('send of every fourth real(8)')
  do run = 1, runs
    call cpu_time(start)
    call MPI_Irecv(column, n, MPI_REAL8, 0, 1, MPI_COMM_SELF, request)
    call MPI_Send(there, n, MPI_REAL8, 0, 1, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    matrix(2, :) = column
    call cpu_time(by_hand(run))
    by_hand(run) = by_hand(run) - start
    call cpu_time(start)
    call MPI_Irecv(matrix(2, :), n, MPI_REAL8, 0, 1, MPI_COMM_SELF, request)
    call MPI_Send(there, n, MPI_REAL8, 0, 1, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call cpu_time(in_place(run))
    in_place(run) = in_place(run) - start
  end do
  call row('receive to every fourth real(8)')
  do run = 1, runs
    call cpu_time(start)
    column = matrix(2, :)
    call MPI_Allreduce(column, small, n, MPI_REAL8, MPI_SUM, MPI_COMM_SELF)
    matrix(3, :) = small
    call cpu_time(by_hand(run))
    by_hand(run) = by_hand(run) - start
    call cpu_time(start)
    call MPI_Allreduce(matrix(2, :), matrix(3, :), n, MPI_REAL8, MPI_SUM, MPI_COMM_SELF)
    call cpu_time(in_place(run))
    in_place(run) = in_place(run) - start
  end do
  call row('Allreduce')
  do run = 1, runs
    call cpu_time(start)
    column = matrix(2, :)
    call MPI_Iallreduce(column, small, n, MPI_REAL8, MPI_SUM, MPI_COMM_SELF, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    matrix(3, :) = small
    call cpu_time(by_hand(run))
    by_hand(run) = by_hand(run) - start
    call cpu_time(start)
    call MPI_Iallreduce(matrix(2, :), matrix(3, :), n, MPI_REAL8, MPI_SUM, MPI_COMM_SELF, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call cpu_time(in_place(run))
    in_place(run) = in_place(run) - start
  end do
  call row('Iallreduce and Wait')
  do run = 1, runs
    call cpu_time(start)
    call MPI_Irecv(there, n, MPI_REAL8, 0, 1, MPI_COMM_SELF, request)
    column = reshape(matrix(2:3, 1:n:2), [n])
    call MPI_Send(column, n, MPI_REAL8, 0, 1, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call cpu_time(by_hand(run))
    by_hand(run) = by_hand(run) - start
    call cpu_time(start)
    call MPI_Irecv(there, n, MPI_REAL8, 0, 1, MPI_COMM_SELF, request)
    call MPI_Send(matrix(2:3, 1:n:2), n, MPI_REAL8, 0, 1, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call cpu_time(in_place(run))
    in_place(run) = in_place(run) - start
  end do
  call row('send of a part of a matrix')
  call MPI_Finalize()
contains
  subroutine row(what)
    character(*), intent(in) :: what
    character(32) :: name
    name = what
    print '(a,2f11.2)', name, 1d3 * median(by_hand), 1d3 * median(in_place)
  end subroutine row

  real(real64) function median(times)
    real(real64), intent(inout) :: times(runs)
    integer :: i, at
    real(real64) :: least
    do i = 1, runs / 2 + 1
      at = i - 1 + minloc(times(i:), 1)
      least = times(at)
      times(at) = times(i)
      times(i) = least
    end do
    median = times(runs / 2 + 1)
  end function median
end program section_times
