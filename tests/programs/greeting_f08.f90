! The smallest program of module mpi_f08: every rank sends a greeting, and rank 0 checks them all.
program greeting
  use mpi_f08
  implicit none
  type(MPI_Comm) :: world
  type(MPI_Status) :: status
  integer :: rank, ranks, other, said
  call MPI_Init()
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, rank)
  call MPI_Comm_size(world, ranks)
  if (rank /= 0) then
    call MPI_Send(rank, 1, MPI_INTEGER, 0, 7, world)
  else
    do other = 1, ranks - 1
      call MPI_Recv(said, 1, MPI_INTEGER, MPI_ANY_SOURCE, 7, world, status)
      if (said /= status%MPI_SOURCE) call MPI_Abort(world, 1)
    end do
    print '(a, i0, a)', 'all claims of greeting hold on ', ranks, ' ranks'
  end if
  call MPI_Finalize()
end program greeting
