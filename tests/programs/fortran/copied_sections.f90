! Array sections in nonblocking and persistent collectives that compute, or that have a block for each rank.
! The library keeps a copy of the section until the request is complete,
! whichever procedure completes the request. Data between the section's elements must not change.
program copied_sections
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_intptr_t, c_null_ptr
  use mpi_f08
  implicit none
  integer, parameter :: n = 6, w = 2 * n
  integer :: me, ranks, round, sum_of, outcount, which, indices(3)
  integer, asynchronous :: i, mine(w), other(w), grid(3, w)
  integer, asynchronous, target :: result(w)
  integer, allocatable, asynchronous :: received(:), square(:, :)
  integer, allocatable, asynchronous, target :: blocks(:)
  integer, allocatable :: counts(:)
  integer, pointer, asynchronous :: nowhere(:)
  logical :: flag
  type(MPI_Request) :: request, three(3)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  sum_of = ranks * (ranks + 1) / 2
  allocate (blocks(2 * ranks), received(2 * ranks), square(2 * ranks, 3), counts(ranks))
  counts = 1

  ! The library must not take a section without elements for a sentinel, even before its first copy.
  call MPI_Gather(mine(5:4:2), 0, MPI_INTEGER, result(5:4:2), 0, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call MPI_Iallreduce(mine(5:4:2), result(5:4:2), 0, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)

  ! Reductions; every procedure that completes requests completes some of them.
  call fresh()
  call MPI_Iallreduce(mine(1::2), result(2::2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call claim(all(result(2::2) == [(sum_of * i, i = 1, w, 2)]), 'Iallreduce of sections')
  call claim(all(result(1::2) == -1), 'between the elements of the result nothing changes')
  call claim(request == MPI_REQUEST_NULL, 'the request is complete')

  call fresh()
  call MPI_Iallreduce(MPI_IN_PLACE, mine(w:1:-2), n, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, request)
  call test_until_complete(request)
  call claim(all(mine(2::2) == [(ranks * i, i = 2, w, 2)]), 'Iallreduce in place, in reversed order')
  call claim(all(mine(1::2) == [((me + 1) * i, i = 1, w, 2)]), 'the elements between stay')

  ! Only the root gets a result; the other ranks may use their result arrays during the operation.
  call fresh()
  call MPI_Ireduce(mine(::3), result(::3), w / 3, MPI_INTEGER, MPI_SUM, ranks - 1, MPI_COMM_WORLD, three(1))
  if (me /= ranks - 1) result = 5
  call MPI_Waitall(1, three, MPI_STATUSES_IGNORE)
  if (me == ranks - 1) then
    call claim(all(result(::3) == [(sum_of * i, i = 1, w, 3)]) .and. result(2) == -1, 'Ireduce at its root')
  else
    call claim(all(result == 5), 'Ireduce elsewhere')
  end if

  ! A buffer that is significant at the root only need not be valid elsewhere.
  call fresh()
  nowhere => result
  if (me /= 0) call c_f_pointer(transfer(64_c_intptr_t, c_null_ptr), nowhere, [w])
  call MPI_Reduce(mine(::3), nowhere(::3), w / 3, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  if (me == 0) call claim(all(result(::3) == [(sum_of * i, i = 1, w, 3)]) .and. result(2) == -1, 'Reduce at its root')
  call fresh()
  call MPI_Ireduce(mine(::3), nowhere(::3), w / 3, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  if (me == 0) call claim(all(result(::3) == [(sum_of * i, i = 1, w, 3)]) .and. result(2) == -1, 'Ireduce at its root, again')
  call fresh()
  blocks = [(7 * i, i = 1, 2 * ranks)]
  nowhere => blocks
  if (me /= 0) call c_f_pointer(transfer(64_c_intptr_t, c_null_ptr), nowhere, [2 * ranks])
  call MPI_Scatter(nowhere(::2), 1, MPI_INTEGER, other, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call claim(other(1) == 7 * (2 * me + 1), 'Scatter of a section')
  call MPI_Gather(other, 1, MPI_INTEGER, nowhere(2::2), 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  if (me == 0) call claim(all(blocks(2::2) == [(7 * i, i = 1, 2 * ranks, 2)]), 'Gather to a section')

  call fresh()
  call MPI_Iscan(mine(::2), result(::2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, three(1))
  call MPI_Iexscan(mine(2::2), other(2::2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, three(2))
  call MPI_Iallreduce(mine(2), grid(2, :), 1, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD, three(3))
  do i = 1, 3
    call MPI_Waitany(3, three, which, MPI_STATUS_IGNORE)
    call claim(which >= 1 .and. which <= 3, 'one of three')
    call claim(three(which) == MPI_REQUEST_NULL, 'and it is complete')
  end do
  call claim(all(result(::2) == [(me * (me + 1) / 2 * i + (me + 1) * i, i = 1, w, 2)]), 'Iscan')
  if (me > 0) call claim(all(other(2::2) == [(me * (me + 1) / 2 * i, i = 2, w, 2)]), 'Iexscan')
  call claim(grid(2, 1) == 2 .and. all(grid(1, :) == -1) .and. all(grid(2, 2:) == -1), 'one element of a row')

  call fresh()
  square = -1
  square(1::2, 2) = [(me + i, i = 1, ranks)]
  call MPI_Ireduce_scatter(square(1::2, 2), result(3::4), counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, three(1))
  call MPI_Ireduce_scatter_block(square(1::2, 2), other(4::4), 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, three(2))
  three(3) = MPI_REQUEST_NULL
  i = 0
  do while (i < 2)
    call MPI_Testsome(3, three, outcount, indices, MPI_STATUSES_IGNORE)
    i = i + outcount
  end do
  call claim(result(3) == sum_of - ranks + ranks * (me + 1) .and. result(7) == -1, 'Ireduce_scatter')
  call claim(other(4) == result(3) .and. other(3) == -1, 'Ireduce_scatter_block')

  ! After MPI_Request_get_status the result is in the array; what the program stores there afterwards is kept.
  call fresh()
  call MPI_Iallreduce(mine(1::2), result(2::2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
  flag = .false.
  do while (.not. flag)
    call MPI_Request_get_status(request, flag, MPI_STATUS_IGNORE)
  end do
  call claim(all(result(2::2) == [(sum_of * i, i = 1, w, 2)]), 'the result of a request that is still there')
  result(2) = 77
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call claim(result(2) == 77, 'the wait changes nothing any more')

  ! Collectives that have a block for each rank.
  square = -1
  call MPI_Iallgather(me, 1, MPI_INTEGER, square(2::2, 1), 1, MPI_INTEGER, MPI_COMM_WORLD, three(1))
  blocks = [(me, i = 1, 2 * ranks)]
  call MPI_Ialltoall(blocks(::2), 1, MPI_INTEGER, square(1::2, 3), 1, MPI_INTEGER, MPI_COMM_WORLD, three(2))
  received = -1
  i = me + 10
  call MPI_Igather(i, 1, MPI_INTEGER, received(::2), 1, MPI_INTEGER, 0, MPI_COMM_WORLD, three(3))
  call MPI_Waitsome(3, three, outcount, indices, MPI_STATUSES_IGNORE)
  call MPI_Waitall(3, three, MPI_STATUSES_IGNORE)
  call claim(all(square(2::2, 1) == [(i, i = 0, ranks - 1)]) .and. all(square(1::2, 1) == -1), 'Iallgather')
  call claim(all(square(1::2, 3) == [(i, i = 0, ranks - 1)]) .and. all(square(2::2, 3) == -1), 'Ialltoall')
  if (me == 0) call claim(all(received(::2) == [(i + 10, i = 0, ranks - 1)]), 'Igather')
  call claim(all(received(2::2) == -1), 'Igather leaves the other elements')
  received = [(100 * i, i = 1, 2 * ranks)]
  call MPI_Iscatter(received(2::2), 1, MPI_INTEGER, which, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call claim(which == 200 * (me + 1), 'Iscatter')

  ! Persistent requests: each start reads the section's current values.
  call fresh()
  call MPI_Allreduce_init(mine(1::2), result(2::2), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, three(1))
  call MPI_Allreduce_init(MPI_IN_PLACE, other(1::3), w / 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, three(2))
  do round = 1, 4
    mine = [((me + 1) * i * round, i = 1, w)]
    other = round + me
    result = -1
    if (round == 1) then
      call MPI_Start(three(1))
      call MPI_Start(three(2))
    else
      call MPI_Startall(2, three)
    end if
    select case (round)
    case (1)
      call MPI_Waitall(2, three, MPI_STATUSES_IGNORE)
    case (2)
      call MPI_Waitany(2, three, which, MPI_STATUS_IGNORE)
      call MPI_Waitany(2, three, which, MPI_STATUS_IGNORE)
    case (3)
      call test_until_complete(three(1))
      call test_until_complete(three(2))
    case default
      ! MPICH 5.0.2 rejects the second MPI_Testall of persistent collectives.
      flag = fails_testall()
      if (flag) call MPI_Waitall(2, three, MPI_STATUSES_IGNORE)
      do while (.not. flag)
        call MPI_Testall(2, three, flag, MPI_STATUSES_IGNORE)
      end do
    end select
    call claim(all(result(2::2) == [(sum_of * i * round, i = 1, w, 2)]), 'a persistent reduction')
    call claim(all(result(1::2) == -1), 'a persistent reduction leaves the elements between')
    call claim(all(other(1::3) == round + ranks - 1) .and. all(other(2::3) == round + me), 'a persistent reduction in place')
  end do
  call MPI_Request_free(three(1))
  call MPI_Request_free(three(2))
  ! During the operation, the result argument of a non-root rank belongs to the program.
  call MPI_Reduce_init(mine(::3), result(::3), w / 3, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, MPI_INFO_NULL, request)
  call fresh()
  call MPI_Start(request)
  if (me /= 0) result = 6
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  if (me /= 0) call claim(all(result == 6), 'a result elsewhere stays as it is')
  if (me == 0) call claim(all(result(::3) == [(sum_of * i, i = 1, w, 3)]) .and. result(2) == -1, 'a persistent Reduce at its root')
  call MPI_Request_free(request)

  call finish('copied_sections')
contains
  subroutine test_until_complete(one)
    type(MPI_Request), intent(inout) :: one
    logical :: done
    done = .false.
    do while (.not. done)
      call MPI_Test(one, done, MPI_STATUS_IGNORE)
    end do
  end subroutine test_until_complete

  logical function fails_testall()
    character(MPI_MAX_LIBRARY_VERSION_STRING) :: version
    integer :: length
    call MPI_Get_library_version(version, length)
    fails_testall = index(version, 'MPICH') > 0
  end function fails_testall

  subroutine fresh()
    mine = [((me + 1) * i, i = 1, w)]
    result = -1
    other = -1
    grid = -1
  end subroutine fresh
  include 'check.inc'
end program copied_sections
