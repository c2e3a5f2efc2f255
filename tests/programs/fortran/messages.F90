! Messages by all send and receive procedures, statuses, and constants that the library recognises by their addresses.
! The ranks form a ring of two or more.
#include "ways.h"
program messages
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  integer, parameter :: n = 40
  integer :: ierr, me, ranks, left, right, i, position, count, index, outcount
  integer :: sent(n), received(n), indices(2)
  real(kind(1d0)) :: numbers(3), copies(3)
  character(200) :: packed
  logical :: flag, done
  COMM :: world
  STATUS :: one
  STATUSES(2) :: two
  REQUEST :: requests(2)
  MESSAGE :: message
  DATATYPE :: pair, column
  integer(MPI_ADDRESS_KIND) :: displacements(2)
  integer(MPI_COUNT_KIND) :: elements
#if WAY == 1
  integer(MPI_ADDRESS_KIND), external :: MPI_Aint_diff
#endif

  call MPI_Init(ierr)
  call claim(ierr == MPI_SUCCESS, 'MPI_Init returns MPI_SUCCESS')
  call MPI_Comm_dup(MPI_COMM_WORLD, world, ierr)
  call MPI_Comm_rank(world, me, ierr)
  call MPI_Comm_size(world, ranks, ierr)
  right = mod(me + 1, ranks)
  left = mod(me + ranks - 1, ranks)

  ! MPI_Sendrecv, with and without a status.
  sent = [(1000 * me + i, i = 1, n)]
  call MPI_Sendrecv(sent, n, MPI_INTEGER, right, 7, received, n, MPI_INTEGER, left, 7, world, one, ierr)
  call claim(all(received == [(1000 * left + i, i = 1, n)]), 'a ring passes on what the left neighbour has sent')
  call claim(FIELD(one, MPI_SOURCE) == left, 'the status names the sender')
  call claim(FIELD(one, MPI_TAG) == 7, 'the status names the tag')
  call MPI_Get_count(one, MPI_INTEGER, count, ierr)
  call claim(count == n, 'the status knows the count')
  call MPI_Get_elements_x(one, MPI_INTEGER, elements, ierr)
  call claim(elements == n, 'the status knows the elements')
  call MPI_Test_cancelled(one, flag, ierr)
  call claim(.not. flag, 'a received message was not cancelled')

  ! Nonblocking messages, completed by each wait and test procedure; indices count from 1.
  received = 0
  call MPI_Irecv(received, n, MPI_INTEGER, left, 8, world, requests(1), ierr)
  call MPI_Isend(sent, n, MPI_INTEGER, right, 8, world, requests(2), ierr)
  call MPI_Waitall(2, requests, two, ierr)
  call claim(FIELD_OF(two, 1, MPI_TAG) == 8, 'the first of two statuses')
  call claim(received(n) == 1000 * left + n, 'Waitall')
  call MPI_Irecv(received, n, MPI_INTEGER, left, 9, world, requests(2), ierr)
  requests(1) = MPI_REQUEST_NULL
  call MPI_Send(sent, 1, MPI_INTEGER, right, 9, world, ierr)
  call MPI_Waitany(2, requests, index, one, ierr)
  call claim(index == 2, 'Waitany counts from 1')
  call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE, ierr)
  call claim(index == MPI_UNDEFINED, 'Waitany without requests has no index')
  call MPI_Irecv(received, n, MPI_INTEGER, left, 10, world, requests(1), ierr)
  call MPI_Irecv(received(2), 1, MPI_INTEGER, MPI_PROC_NULL, 10, world, requests(2), ierr)
  call MPI_Waitsome(2, requests, outcount, indices, MPI_STATUSES_IGNORE, ierr)
  call claim(outcount == 1 .and. indices(1) == 2, 'Waitsome counts from 1')
  ! No rank sends before all ranks have returned from MPI_Waitsome.
  call MPI_Barrier(world, ierr)
  call MPI_Send(sent, 1, MPI_INTEGER, right, 10, world, ierr)
  done = .false.
  do while (.not. done)
    call MPI_Testany(2, requests, index, done, one, ierr)
  end do
  call claim(index == 1, 'Testany counts from 1')
  call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE, ierr)
  call claim(flag, 'Testall of null requests')

  ! Starts persistent requests several times.
  call MPI_Recv_init(received, n, MPI_INTEGER, left, 11, world, requests(1), ierr)
  call MPI_Send_init(sent, n, MPI_INTEGER, right, 11, world, requests(2), ierr)
  do i = 1, 3
    received = 0
    call MPI_Startall(2, requests, ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    ! The two calls above do not name the buffer, so without a precaution the compiler could keep the old contents in registers.
    call MPI_F_sync_reg(received)
    call claim(received(n) == 1000 * left + n, 'a persistent request')
  end do
  call MPI_Request_free(requests(1), ierr)
  call MPI_Request_free(requests(2), ierr)
  call claim(requests(1) == MPI_REQUEST_NULL, 'a freed request is null')

  ! A matched probe, and a receive of the matched message.
  call MPI_Isend(sent, 3, MPI_INTEGER, right, 12, world, requests(1), ierr)
  call MPI_Mprobe(MPI_ANY_SOURCE, 12, world, message, one, ierr)
  call MPI_Get_count(one, MPI_INTEGER, count, ierr)
  call claim(count == 3 .and. FIELD(one, MPI_SOURCE) == left, 'Mprobe')
  call MPI_Mrecv(received, count, MPI_INTEGER, message, MPI_STATUS_IGNORE, ierr)
  call claim(message == MPI_MESSAGE_NULL, 'a received message is null')
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)

  ! Absolute addresses with MPI_BOTTOM as buffer.
  numbers = [1d0, 2d0, 3d0] * (me + 1)
  copies = 0
  call MPI_Get_address(numbers(1), displacements(1), ierr)
  call MPI_Get_address(numbers(3), displacements(2), ierr)
  call claim(MPI_Aint_diff(displacements(2), displacements(1)) == 16, 'addresses are bytes')
  call MPI_Type_create_hindexed(2, [1, 1], displacements, MPI_DOUBLE_PRECISION, pair, ierr)
  call MPI_Type_commit(pair, ierr)
  ! The call below does not name the variables, so the compiler could keep their values in registers.
  call MPI_F_sync_reg(numbers)
  call MPI_Isend(MPI_BOTTOM, 1, pair, right, 13, world, requests(1), ierr)
  call MPI_Recv(copies, 3, MPI_DOUBLE_PRECISION, left, 13, world, one, ierr)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
  call MPI_F_sync_reg(copies)
  call claim(copies(1) == left + 1 .and. copies(2) == 3 * (left + 1), 'MPI_BOTTOM')
  call MPI_Get_elements(one, MPI_DOUBLE_PRECISION, count, ierr)
  call claim(count == 2, 'two elements')
  call MPI_Type_free(pair, ierr)

  ! A row of a matrix, whose elements are 10 apart.
  call MPI_Type_vector(4, 1, 10, MPI_INTEGER, column, ierr)
  call MPI_Type_commit(column, ierr)
  received = 0
  call MPI_Sendrecv(sent, 1, column, right, 14, received, 4, MPI_INTEGER, left, 14, world, MPI_STATUS_IGNORE, ierr)
  call claim(all(received(1:4) == 1000 * left + [1, 11, 21, 31]), 'a vector')
  call MPI_Type_free(column, ierr)

  ! Sends packed data.
  position = 0
  call MPI_Pack(sent, 2, MPI_INTEGER, packed, len(packed), position, world, ierr)
  call MPI_Pack('text', 4, MPI_CHARACTER, packed, len(packed), position, world, ierr)
  call claim(position == 12, 'two integers and four characters')
  call MPI_Sendrecv_replace(packed, position, MPI_PACKED, right, 15, left, 15, world, one, ierr)
  position = 0
  call MPI_Unpack(packed, len(packed), position, received, 2, MPI_INTEGER, world, ierr)
  call claim(received(2) == 1000 * left + 2, 'unpacked')

  ! Messages to and from MPI_PROC_NULL.
  call MPI_Recv(received, 1, MPI_INTEGER, MPI_PROC_NULL, 1, world, one, ierr)
  call claim(FIELD(one, MPI_SOURCE) == MPI_PROC_NULL, 'a message from nowhere')

  call MPI_Comm_free(world, ierr)
  call claim(world == MPI_COMM_NULL, 'a freed communicator is null')
  call finish('messages')
contains
  include 'check.inc'
end program messages
