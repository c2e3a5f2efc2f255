! Tests of module mpi_f08: array sections, sentinels, statuses, strings, callbacks, attributes.
module claims
  use mpi_f08
  implicit none
  integer :: rank, ranks
  integer :: errors_seen = 0
contains
  subroutine claim(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (.not. holds) then
      write (0, '(a, i0, a, i0, 2a)') 'rank ', rank, ' of ', ranks, ': not true: ', what
      call MPI_Abort(MPI_COMM_WORLD, 99)
    end if
  end subroutine claim

  subroutine larger_of_each(invec, inoutvec, length, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: invec, inoutvec
    integer :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    call claim(datatype == MPI_INTEGER, 'an operator gets the datatype')
    call c_f_pointer(invec, in, [length])
    call c_f_pointer(inoutvec, inout, [length])
    inout = max(in, inout)
  end subroutine larger_of_each

  subroutine copy_doubled(comm, keyval, extra, value_in, value_out, flag, ierror)
    type(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra, value_in, value_out
    logical :: flag
    value_out = 2 * value_in + extra
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine copy_doubled

  subroutine count_error(comm, code)
    type(MPI_Comm) :: comm
    integer :: code
    errors_seen = errors_seen + 1
  end subroutine count_error
end module claims

program claims_f08
  use claims
  implicit none
  integer :: provided, next, previous
  call MPI_Init_thread(MPI_THREAD_SINGLE, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  call claim(MPI_SUBARRAYS_SUPPORTED, 'sections are supported')
  call claim(MPI_ASYNC_PROTECTS_NONBLOCKING, 'ASYNCHRONOUS protects')
  call sections()
  call collectives()
  call statuses()
  call strings()
  call operators_and_errors()
  call attributes()
  call persistent()
  call windows()
  call groups_and_types()
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(a, i0, a)', 'all claims of claims_f08 hold on ', ranks, ' ranks'
  call MPI_Finalize()
contains
  subroutine sections()
    integer, asynchronous :: matrix(6, 8), got(6, 8), column(4), line(0:9)
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: found(2)
    integer :: i, j
    do j = 1, 8
      do i = 1, 6
        matrix(i, j) = 1000 * rank + 10 * i + j
      end do
    end do
    got = -1
    ! Every second row and column, in reverse order.
    call MPI_Sendrecv(matrix(6:1:-2, 1:8:2), 12, MPI_INTEGER, next, 1, &
                      got(1:5:2, 8:1:-2), 12, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    do j = 1, 8
      do i = 1, 6
        if (mod(i, 2) == 1 .and. mod(j, 2) == 0) then
          call claim(got(i, j) == 1000 * previous + 10 * (7 - i) + (9 - j), 'a section arrives where it belongs')
        else
          call claim(got(i, j) == -1, 'nothing else is written')
        end if
      end do
    end do
    ! Sends elements with a stride, without blocking, and receives them into a row of a matrix.
    line = [(100 * rank + i, i = 0, 9)]
    call MPI_Irecv(got(3, 2:5), 4, MPI_INTEGER, previous, 2, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(line(9:0:-3), 4, MPI_INTEGER, next, 2, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, found)
    column = got(3, 2:5)
    call claim(all(column == [(100 * previous + i, i = 9, 0, -3)]), 'a nonblocking section arrives')
    call claim(requests(1) == MPI_REQUEST_NULL, 'a completed request is null')
    ! The first elements of a section, and a section without elements.
    got = 0
    call MPI_Sendrecv(matrix(1, :), 3, MPI_INTEGER, next, 3, got(2, :), 3, MPI_INTEGER, previous, 3, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call claim(got(2, 3) == 1000 * previous + 13 .and. got(2, 4) == 0, 'a prefix is sent')
    call MPI_Sendrecv(matrix(1, 2:1), 0, MPI_INTEGER, next, 4, got(2, 2:1), 0, MPI_INTEGER, previous, 4, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine sections

  subroutine collectives()
    integer :: all(0:ranks - 1), pair(2), rows(2, 0:ranks - 1), total, i
    integer(kind=MPI_COUNT_KIND) :: many
    type(MPI_Request) :: request
    call MPI_Allgather(rank, 1, MPI_INTEGER, all, 1, MPI_INTEGER, MPI_COMM_WORLD)
    call claim(sum(all) == ranks * (ranks - 1) / 2, 'an allgather has all ranks')
    total = rank
    call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call claim(total == ranks * (ranks - 1) / 2, 'MPI_IN_PLACE is recognised')
    many = 2
    pair = [rank, -rank]
    call MPI_Bcast(pair, many, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD)
    call claim(all_are(pair, [ranks - 1, 1 - ranks]), 'a broadcast with a large count')
    pair = [rank, -rank]
    rows = 7
    ! Each rank's pair is received into a column of the first row and of the second row.
    call MPI_Gather(pair, 2, MPI_INTEGER, rows, 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) call claim(all_are(rows(1, :), [(i, i = 0, ranks - 1)]), 'a gather has all ranks')
    call MPI_Iallreduce(rank, total, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call claim(total == ranks - 1, 'a nonblocking reduction')
  end subroutine collectives

  logical function all_are(have, want)
    integer, intent(in) :: have(:), want(:)
    all_are = all(have == want)
  end function all_are

  subroutine statuses()
    type(MPI_Status) :: status, again
    integer :: old(MPI_STATUS_SIZE), count, ierror
    logical :: flag
    double precision :: four(4)
    four = rank
    call MPI_Sendrecv_replace(four, 4, MPI_DOUBLE_PRECISION, next, 5, previous, 5, MPI_COMM_WORLD, status)
    call claim(all(four == previous), 'a buffer is replaced')
    call claim(status%MPI_SOURCE == previous .and. status%MPI_TAG == 5, 'a status has source and tag')
    call MPI_Get_count(status, MPI_DOUBLE_PRECISION, count)
    call claim(count == 4, 'a status has a count')
    call MPI_Status_f082f(status, old, ierror)
    call claim(ierror == MPI_SUCCESS .and. old(MPI_SOURCE) == previous, 'a status becomes integers')
    old(MPI_TAG) = 6
    call MPI_Status_f2f08(old, again)
    call MPI_Get_count(again, MPI_DOUBLE_PRECISION, count)
    call claim(again%MPI_TAG == 6 .and. count == 4, 'integers become a status')
    call MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE)
    call claim(.not. flag, 'nothing is there')
    call MPI_Initialized(flag)
    call claim(flag, 'a logical is true')
  end subroutine statuses

  subroutine strings()
    character(len=MPI_MAX_OBJECT_NAME) :: name
    character(len=3) :: short
    character(len=10000) :: long
    character(len=0) :: none
    integer :: length
    type(MPI_Info) :: info
    logical :: flag
    type(MPI_Comm) :: comm
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_set_name(comm, 'grid of ranks   ')
    call MPI_Comm_get_name(comm, name, length)
    call claim(name == 'grid of ranks' .and. length == 13, 'blanks at the end are no part of a name')
    call MPI_Comm_set_name(comm, none)
    call MPI_Comm_get_name(comm, name, length)
    call claim(name == '' .and. length == 0, 'a name may be empty')
    call MPI_Comm_free(comm)
    call MPI_Info_create(info)
    long = repeat('x', MPI_MAX_INFO_VAL - 1)
    call MPI_Info_set(info, '  key  ', '  value ')
    call MPI_Info_get_valuelen(info, 'key', length, flag)
    call claim(flag .and. length == 5, 'blanks on both sides are no part of keys and values')
    long = 'old'
    call MPI_Info_get(info, 'key', 3, long, flag)
    call claim(flag .and. long == 'val', 'a value is cut and padded with blanks')
    length = 10
    short = '###'
    call MPI_Info_get_string(info, 'key', length, short, flag)
    call claim(flag .and. short == 'val' .and. length == 5, 'a short variable is filled')
    call MPI_Info_free(info)
    call MPI_Error_string(MPI_ERR_TRUNCATE, long(1:MPI_MAX_ERROR_STRING), length)
    call claim(length > 0 .and. long(length:length) /= ' ', 'an error has a text')
  end subroutine strings

  subroutine operators_and_errors()
    type(MPI_Op) :: op
    type(MPI_Errhandler) :: handler
    integer :: mine(3), best(3), code, before
    type(MPI_Comm) :: comm
    call MPI_Op_create(larger_of_each, .true., op)
    mine = [rank, -rank, 5]
    call MPI_Allreduce(mine, best, 3, MPI_INTEGER, op, MPI_COMM_WORLD)
    call claim(all_are(best, [ranks - 1, 0, 5]), 'an operator of the program is applied')
    call MPI_Op_free(op)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_create_errhandler(count_error, handler)
    call MPI_Comm_set_errhandler(comm, handler)
    before = errors_seen
    call MPI_Send(mine, 1, MPI_INTEGER, ranks, 0, comm, code)
    call claim(code /= MPI_SUCCESS .and. errors_seen == before + 1, 'an error handler of the program is called')
    call MPI_Errhandler_free(handler)
    call MPI_Comm_free(comm)
  end subroutine operators_and_errors

  subroutine attributes()
    integer :: keyval
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    type(MPI_Comm) :: comm, copy
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
    call claim(flag .and. value >= 32767, 'the largest tag is known')
    call MPI_Comm_create_keyval(copy_doubled, MPI_COMM_NULL_DELETE_FN, keyval, 1_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_set_attr(comm, keyval, 20_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(comm, copy)
    call MPI_Comm_get_attr(copy, keyval, value, flag)
    call claim(flag .and. value == 41, 'a copy function of the program is called')
    call MPI_Comm_free(copy)
    call MPI_Comm_free(comm)
    call MPI_Comm_free_keyval(keyval)
    call claim(keyval == MPI_KEYVAL_INVALID, 'a freed keyval is invalid')
  end subroutine attributes

  subroutine persistent()
    integer, asynchronous :: from(0:5), to(3)
    type(MPI_Request) :: requests(2)
    integer :: turn, i, index
    logical :: flag
    call MPI_Send_init(from(5:0:-2), 3, MPI_INTEGER, next, 9, MPI_COMM_WORLD, requests(1))
    call MPI_Recv_init(to, 3, MPI_INTEGER, previous, 9, MPI_COMM_WORLD, requests(2))
    do turn = 1, 3
      from = [(100 * turn + 10 * rank + i, i = 0, 5)]
      call MPI_Startall(2, requests)
      call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE)
      call claim(index == 1 .or. index == 2, 'indices begin with 1')
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call claim(all_are(to, [(100 * turn + 10 * previous + i, i = 5, 0, -2)]), 'a persistent section arrives')
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
    call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE)
    call claim(index == MPI_UNDEFINED, 'no index is MPI_UNDEFINED')
    call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE)
    call claim(flag, 'null requests are complete')
  end subroutine persistent

  subroutine windows()
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr) :: base
    type(MPI_Win) :: win
    integer, pointer :: memory(:)
    integer :: two(2)
    call MPI_Win_allocate(40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call c_f_pointer(base, memory, [10])
    memory = 0
    call MPI_Win_fence(0, win)
    two = [rank, rank + 1]
    call MPI_Put(two, 2, MPI_INTEGER, next, 3_MPI_ADDRESS_KIND, 2, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call claim(all_are(memory(4:5), [previous, previous + 1]), 'a put arrives')
    call MPI_Win_free(win)
  end subroutine windows

  subroutine groups_and_types()
    type(MPI_Group) :: world, reversed
    type(MPI_Datatype) :: column
    type(MPI_Comm) :: grid
    integer :: order(ranks), i, dims(2), coords(2), matrix(4, 3), got(4)
    logical :: periods(2), wraps(2)
    call MPI_Comm_group(MPI_COMM_WORLD, world)
    order = [(ranks - i, i = 1, ranks)]
    call MPI_Group_incl(world, ranks, order, reversed)
    call MPI_Group_rank(reversed, i)
    call claim(i == ranks - 1 - rank, 'a group is reversed')
    call MPI_Group_free(reversed)
    call MPI_Group_free(world)
    matrix = reshape([(i, i = 1, 12)], [4, 3])
    call MPI_Type_vector(3, 1, 4, MPI_INTEGER, column)
    call MPI_Type_commit(column)
    call MPI_Sendrecv(matrix, 1, column, next, 4, got, 3, MPI_INTEGER, previous, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call claim(all_are(got(1:3), [1, 5, 9]), 'a line of a matrix is a vector')
    call MPI_Type_free(column)
    dims = [ranks, 1]
    periods = [.true., .false.]
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., grid)
    call MPI_Cart_get(grid, 2, dims, wraps, coords)
    call claim(wraps(1) .and. .not. wraps(2) .and. coords(1) == rank, 'a grid has its periods')
    call MPI_Comm_free(grid)
  end subroutine groups_and_types
end program claims_f08
