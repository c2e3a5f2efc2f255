! A Fortran program that users of Open MPI and MPICH might compile: messages, types, operators,
! attributes, windows, files, groups, persistent requests, a new communicator,
! a generalized request.
program fortran_calls
  use mpi
  implicit none
  integer :: code, me, n, total, largest, dup, op, key, slot, request, win, file, i
  integer :: status(MPI_STATUS_SIZE), left, right
  ! Persistent requests access both arrays, although the calls that complete them do not name the arrays.
  integer, allocatable, volatile :: numbers(:), theirs(:)
  logical :: found
  integer(kind=MPI_ADDRESS_KIND) :: value, expected, size_of_window
  integer(kind=MPI_OFFSET_KIND) :: place
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  character(len=256) :: path
  double precision :: began
  external greater, copied, deleted, queried, freed, cancelled
  integer :: deletions, frees, cancels
  common /callbacks/ deletions, frees, cancels
  integer(kind=MPI_ADDRESS_KIND) :: state
  integer :: pair(2), persistent(2), group, none, both

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, code)
  call MPI_Comm_size(MPI_COMM_WORLD, n, code)
  left = mod(me + n - 1, n)
  right = mod(me + 1, n)
  began = MPI_Wtime()
  call MPI_Get_processor_name(name, i, code)
  call claim(i > 0 .and. len_trim(name) == i, 'the name of the processor')

  call MPI_Allreduce(me, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  call claim(total == n * (n - 1) / 2, 'a sum')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, found, code)
  call claim(found .and. value >= 32767, 'the greatest tag')
  call MPI_Comm_dup(MPI_COMM_WORLD, dup, code)

  expected = 4711 + me
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND, code)
  call MPI_Comm_set_attr(dup, key, expected, code)
  call MPI_Comm_get_attr(dup, key, value, found, code)
  call claim(found .and. value == expected, 'an attribute')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, found, code)
  call claim(.not. found, 'an attribute that was not set')
  call MPI_Comm_dup(dup, i, code)
  call MPI_Comm_get_attr(i, key, value, found, code)
  call claim(found .and. value == expected, 'an attribute that was copied')
  call MPI_Comm_free(i, code)

  call MPI_Comm_free_keyval(key, code)
  deletions = 0
  call MPI_Comm_create_keyval(copied, deleted, key, 5_MPI_ADDRESS_KIND, code)
  call MPI_Comm_set_attr(dup, key, 10_MPI_ADDRESS_KIND, code)
  call MPI_Comm_dup(dup, i, code)
  call MPI_Comm_get_attr(i, key, value, found, code)
  call claim(found .and. value == 15, 'an attribute that a callback has copied')
  call MPI_Comm_free(i, code)
  call MPI_Comm_delete_attr(dup, key, code)
  call claim(deletions == 25, 'attributes that a callback has deleted')

  call MPI_Op_create(greater, .true., op, code)
  largest = me * 3
  call MPI_Allreduce(MPI_IN_PLACE, largest, 1, MPI_INTEGER, op, dup, code)
  call claim(largest == (n - 1) * 3, 'an operator of the program')
  call MPI_Op_free(op, code)

  allocate(numbers(100), theirs(100))
  numbers = (/ (me * 1000 + i, i = 1, 100) /)
  theirs = -1
  call MPI_Type_vector(50, 1, 2, MPI_INTEGER, slot, code)
  call MPI_Type_commit(slot, code)
  call MPI_Irecv(theirs, 1, slot, left, 7, dup, request, code)
  call MPI_Send(numbers, 50, MPI_INTEGER, right, 7, dup, code)
  call MPI_Wait(request, status, code)
  call MPI_Get_count(status, MPI_INTEGER, i, code)
  call claim(i == 50 .and. status(MPI_SOURCE) == left .and. status(MPI_TAG) == 7, 'a status')
  call claim(all(theirs(1::2) == (/ (left * 1000 + i, i = 1, 50) /)) .and. all(theirs(2::2) == -1), 'a vector')
  call MPI_Type_free(slot, code)
  call MPI_Sendrecv(numbers, 100, MPI_INTEGER, right, 8, theirs, 100, MPI_INTEGER, left, 8, dup, MPI_STATUS_IGNORE, code)
  call claim(all(theirs == (/ (left * 1000 + i, i = 1, 100) /)), 'a send and receive')

  call MPI_Send_init(numbers, 10, MPI_INTEGER, right, 9, dup, pair(1), code)
  call MPI_Recv_init(theirs, 10, MPI_INTEGER, left, 9, dup, pair(2), code)
  persistent = pair
  do i = 1, 4
    numbers(1) = i
    theirs(1) = -1
    call MPI_Startall(2, pair, code)
    select case (i)
    case (1)
      call MPI_Waitall(2, pair, MPI_STATUSES_IGNORE, code)
    case (2)
      call MPI_Wait(pair(1), status, code)
      call MPI_Wait(pair(2), status, code)
    case (3)
      call MPI_Waitany(2, pair, slot, status, code)
      call MPI_Waitany(2, pair, slot, status, code)
    case default
      found = .false.
      do while (.not. found)
        call MPI_Testall(2, pair, found, MPI_STATUSES_IGNORE, code)
      end do
    end select
    call claim(theirs(1) == i .and. all(pair == persistent), 'persistent requests stay when they are complete')
  end do
  numbers(1) = me * 1000 + 1
  call MPI_Request_free(pair(1), code)
  call MPI_Request_free(pair(2), code)
  call claim(all(pair == MPI_REQUEST_NULL), 'persistent requests that are freed')
  call MPI_Irecv(theirs, 1, MPI_INTEGER, MPI_PROC_NULL, 1, dup, request, code)
  call MPI_Wait(request, status, code)
  call claim(request == MPI_REQUEST_NULL, 'a request that is complete')
  call MPI_Comm_group(dup, group, code)
  call MPI_Group_incl(group, 0, pair, none, code)
  call claim(none == MPI_GROUP_EMPTY, 'a group without members')
  call MPI_Group_union(none, group, both, code)
  call MPI_Group_size(both, i, code)
  call claim(i == n, 'a union of groups')
  call MPI_Group_free(both, code)
  call MPI_Group_free(group, code)
  call claim(group == MPI_GROUP_NULL, 'a group that is freed')

  size_of_window = 400
  call MPI_Win_create(theirs, size_of_window, 4, MPI_INFO_NULL, dup, win, code)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, found, code)
  call claim(found .and. value == 400, 'the size of a window')
  call MPI_Win_fence(0, win, code)
  call MPI_Put(me, 1, MPI_INTEGER, right, 4_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, code)
  call MPI_Win_fence(0, win, code)
  call claim(theirs(5) == left, 'what was put')
  call MPI_Win_free(win, code)

  call get_command_argument(1, path)
  call MPI_File_open(dup, path, ior(MPI_MODE_CREATE, ior(MPI_MODE_RDWR, MPI_MODE_DELETE_ON_CLOSE)), MPI_INFO_NULL, file, code)
  place = 400 * me
  call MPI_File_write_at_all(file, place, numbers, 100, MPI_INTEGER, MPI_STATUS_IGNORE, code)
  place = 400 * right
  call MPI_File_sync(file, code)
  call MPI_Barrier(dup, code)
  call MPI_File_read_at_all(file, place, theirs, 100, MPI_INTEGER, status, code)
  call claim(all(theirs == (/ (right * 1000 + i, i = 1, 100) /)), 'a file')
  call MPI_File_close(file, code)

  state = 40
  frees = 0
  cancels = 0
  call MPI_Grequest_start(queried, freed, cancelled, state, request, code)
  call MPI_Cancel(request, code)
  call claim(cancels == 41, 'a generalized request that is cancelled before it is complete')
  call MPI_Test(request, found, status, code)
  call claim(.not. found, 'a generalized request that is not complete')
  call MPI_Grequest_complete(request, code)
  call MPI_Wait(request, status, code)
  call MPI_Get_count(status, MPI_INTEGER, i, code)
  call claim(i == 40 .and. status(MPI_SOURCE) == 3 .and. status(MPI_TAG) == 4, 'the status of a generalized request')
  call claim(frees == 40 .and. request == MPI_REQUEST_NULL, 'a generalized request that is freed')

  call MPI_Comm_free_keyval(key, code)
  call MPI_Comm_free(dup, code)
  call claim(dup == MPI_COMM_NULL .and. MPI_Wtime() >= began, 'the end')
  if (me == 0) print '(a, i0, a)', 'all claims of fortran_calls hold on ', n, ' ranks'
  call MPI_Finalize(code)

contains
  subroutine claim(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print *, 'not true: ', what
    call MPI_Abort(MPI_COMM_WORLD, 99, code)
  end subroutine
end program

subroutine greater(mine, both, length, kind)
  integer :: length, kind, mine(length), both(length)
  both = max(mine, both)
end subroutine

! The copied value is the sum of the value and the extra state.
subroutine copied(comm, key, extra, value, copy, flag, code)
  use mpi
  integer :: comm, key, code
  integer(kind=MPI_ADDRESS_KIND) :: extra, value, copy
  logical :: flag
  copy = value + extra
  flag = .true.
  code = MPI_SUCCESS
end subroutine

subroutine deleted(comm, key, value, extra, code)
  use mpi
  integer :: comm, key, code, deletions, frees, cancels
  integer(kind=MPI_ADDRESS_KIND) :: value, extra
  common /callbacks/ deletions, frees, cancels
  if (extra == 5) deletions = deletions + int(value)
  code = MPI_SUCCESS
end subroutine

! The callbacks of a generalized request; their argument `extra` is the number of integers in the status.
subroutine queried(extra, status, code)
  use mpi
  integer(kind=MPI_ADDRESS_KIND) :: extra
  integer :: status(MPI_STATUS_SIZE), code
  call MPI_Status_set_elements(status, MPI_INTEGER, int(extra), code)
  call MPI_Status_set_cancelled(status, .false., code)
  status(MPI_SOURCE) = 3
  status(MPI_TAG) = 4
  code = MPI_SUCCESS
end subroutine

subroutine freed(extra, code)
  use mpi
  integer(kind=MPI_ADDRESS_KIND) :: extra
  integer :: code, deletions, frees, cancels
  common /callbacks/ deletions, frees, cancels
  frees = frees + int(extra)
  code = MPI_SUCCESS
end subroutine

subroutine cancelled(extra, complete, code)
  use mpi
  integer(kind=MPI_ADDRESS_KIND) :: extra
  logical :: complete
  integer :: code, deletions, frees, cancels
  common /callbacks/ deletions, frees, cancels
  cancels = int(extra) + merge(100, 1, complete)
  code = MPI_SUCCESS
end subroutine
