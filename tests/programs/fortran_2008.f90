! Test of the Fortran 2008 interface: handles and statuses have derived types, and ierror is optional.
program fortran_2008
  use mpi_f08
  implicit none
  integer :: me, n, total, sent(4), came(4)
  type(MPI_Comm) :: dup
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call MPI_Comm_dup(MPI_COMM_WORLD, dup)
  sent = me
  call MPI_Irecv(came, 4, MPI_INTEGER, mod(me + n - 1, n), 1, dup, request)
  call MPI_Send(sent, 4, MPI_INTEGER, mod(me + 1, n), 1, dup)
  call MPI_Wait(request, status)
  call MPI_Allreduce(me, total, 1, MPI_INTEGER, MPI_SUM, dup)
  if (any(came /= mod(me + n - 1, n)) .or. status%MPI_SOURCE /= came(1) .or. total /= n * (n - 1) / 2) then
    print *, 'not true:', me, came, status%MPI_SOURCE, total
    call MPI_Abort(dup, 99)
  end if
  call MPI_Comm_free(dup)
  if (me == 0) print '(a, i0, a)', 'all claims of fortran_2008 hold on ', n, ' ranks'
  call MPI_Finalize()
end program
