! The smallest program of module mpi; a subroutine includes mpif.h in free form.
program greeting
  use mpi
  implicit none
  integer :: rank, ranks, other, said, ierror, status(MPI_STATUS_SIZE)
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  ranks = count_of_ranks()
  if (rank /= 0) then
    call MPI_Send(rank, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, ierror)
  else
    do other = 1, ranks - 1
      call MPI_Recv(said, 1, MPI_INTEGER, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, status, ierror)
      if (said /= status(MPI_SOURCE)) call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
    end do
    print '(a, i0, a)', 'all claims of greeting hold on ', ranks, ' ranks'
  end if
  call MPI_Finalize(ierror)
contains
  integer function count_of_ranks()
    include 'mpif.h'
    integer :: failed
    call MPI_Comm_size(MPI_COMM_WORLD, count_of_ranks, failed)
  end function count_of_ranks
end program greeting
