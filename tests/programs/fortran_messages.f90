! Messages by Fortran's procedures; with "hang" both ranks wait for a message that is never sent.
program fortran_messages
  use mpi
  implicit none
  integer :: code, rank, other, word, sum, copy, index
  integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), status(MPI_STATUS_SIZE)
  logical :: there
  character(len=8) :: way

  way = ''
  call get_command_argument(1, way)
  call MPI_Init(code)
  call MPI_Comm_dup(MPI_COMM_WORLD, copy, code)
  call MPI_Comm_rank(copy, rank, code)
  other = 1 - rank
  if (way == 'hang') call MPI_Recv(word, 1, MPI_INTEGER, other, 40 + rank, copy, MPI_STATUS_IGNORE, code)

  ! A message in each direction, with and without a status.
  if (rank == 0) then
    call MPI_Send(7, 1, MPI_INTEGER, 1, 11, MPI_COMM_WORLD, code)
    call MPI_Recv(word, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, copy, MPI_STATUS_IGNORE, code)
    if (word /= 8) stop 3
  else
    call MPI_Probe(0, 11, MPI_COMM_WORLD, status, code)
    call MPI_Recv(word, 1, MPI_INTEGER, MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, status, code)
    if (word /= 7 .or. status(MPI_SOURCE) /= 0) stop 3
    call MPI_Send(8, 1, MPI_INTEGER, 0, 12, copy, code)
  end if

  ! Two nonblocking messages in progress, completed in three ways.
  call MPI_Irecv(word, 1, MPI_INTEGER, other, 13, copy, requests(1), code)
  call MPI_Isend(rank, 1, MPI_INTEGER, other, 13, copy, requests(2), code)
  call MPI_Waitall(2, requests, statuses, code)
  if (word /= other .or. statuses(MPI_TAG, 1) /= 13) stop 4
  call MPI_Irecv(word, 1, MPI_INTEGER, MPI_ANY_SOURCE, 14, copy, requests(1), code)
  call MPI_Isend(rank, 1, MPI_INTEGER, other, 14, copy, requests(2), code)
  call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE, code)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
  call MPI_Irecv(word, 1, MPI_INTEGER, other, 15, copy, requests(1), code)
  call MPI_Ssend(rank, 1, MPI_INTEGER, other, 15, copy, code)
  there = .false.
  do while (.not. there)
    call MPI_Test(requests(1), there, MPI_STATUS_IGNORE, code)
  end do

  call MPI_Allreduce(1, sum, 1, MPI_INTEGER, MPI_SUM, copy, code)
  if (sum /= 2) stop 5
  call MPI_Comm_free(copy, code)
  call MPI_Finalize(code)
end program fortran_messages
