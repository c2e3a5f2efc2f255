! Array sections as buffers with module mpi_f08: strides, reversed order, parts of matrices and
! components, in blocking, nonblocking, persistent and collective calls.
! The checks show that no compiler passes a copy of a section: received data are in the array itself.
program sections
  use mpi_f08
  implicit none
  type :: point
    integer :: id
    real(kind(1d0)) :: at(3)
  end type point
  integer, parameter :: n = 12
  integer :: me, ranks, right, left, i, j, total, code, class
  character(MPI_MAX_ERROR_STRING) :: text
  integer, asynchronous :: matrix(n, n), plain(n * n), cube(4, 5, 6)
  real(kind(1d0)), asynchronous :: whole(n), half(n)
  type(point), asynchronous :: points(n)
  integer, allocatable :: gathered(:, :)
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status
  type(MPI_Datatype) :: nothing

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  right = mod(me + 1, ranks)
  left = mod(me + ranks - 1, ranks)
  call claim(MPI_SUBARRAYS_SUPPORTED, 'sections are supported')
  call claim(MPI_ASYNC_PROTECTS_NONBLOCKING, 'ASYNCHRONOUS protects buffers')

  ! A row of a matrix, whose elements are n apart; the other rows are unchanged.
  matrix = reshape([(1000 * me + i, i = 1, n * n)], [n, n])
  plain = -1
  call MPI_Sendrecv(matrix(3, :), n, MPI_INTEGER, right, 1, plain, n, MPI_INTEGER, left, 1, MPI_COMM_WORLD, status)
  call claim(all(plain(:n) == [(1000 * left + 3 + n * (i - 1), i = 1, n)]), 'a row is sent')
  call claim(plain(n + 1) == -1, 'and nothing else')
  matrix = 0
  call MPI_Irecv(matrix(5, :), n, MPI_INTEGER, left, 2, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(plain, n, MPI_INTEGER, right, 2, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call claim(all(matrix(5, :) == [(1000 * mod(left + ranks - 1, ranks) + 3 + n * (i - 1), i = 1, n)]), 'a row is received in place')
  call claim(count(matrix /= 0) <= n, 'the other rows stay')

  ! Sends every second element, from the last element on.
  whole = [(me + i / 100d0, i = 1, n)]
  half = 0
  call MPI_Irecv(half(1:n:2), n / 2, MPI_DOUBLE_PRECISION, left, 3, MPI_COMM_WORLD, requests(1))
  call MPI_Send(whole(n:1:-2), n / 2, MPI_DOUBLE_PRECISION, right, 3, MPI_COMM_WORLD)
  call MPI_Wait(requests(1), status)
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, total)
  call claim(total == n / 2, 'the count of a section')
  call claim(all(half(1:n:2) == [(left + i / 100d0, i = n, 1, -2)]), 'reversed order')
  call claim(all(half(2:n:2) == 0), 'between the elements nothing changes')
  ! The first elements of a section.
  half = 0
  call MPI_Sendrecv(whole(1:n:3), 2, MPI_DOUBLE_PRECISION, right, 4, half(2:n:5), 2, MPI_DOUBLE_PRECISION, left, 4, &
       MPI_COMM_WORLD, status)
  call claim(half(2) == left + 0.01d0 .and. half(7) == left + 0.04d0 .and. half(12) == 0, 'two of four elements')

  ! A block of a cube, and one component of an array of a derived type.
  cube = reshape([(i, i = 1, 120)], [4, 5, 6]) + 1000 * me
  plain = 0
  call MPI_Sendrecv(cube(2:3, 1:5:2, 6:2:-2), 18, MPI_INTEGER, right, 5, plain, 18, MPI_INTEGER, left, 5, MPI_COMM_WORLD, status)
  call claim(all(plain(:18) == reshape(cube(2:3, 1:5:2, 6:2:-2), [18]) + 1000 * (left - me)), 'a block of a cube')
  do i = 1, n
    points(i) = point(i, [1d0, 2d0, 3d0] * i + me)
  end do
  call MPI_Sendrecv(points%at(2), n, MPI_DOUBLE_PRECISION, right, 6, half, n, MPI_DOUBLE_PRECISION, left, 6, MPI_COMM_WORLD, status)
  call claim(all(half == [(2d0 * i + left, i = 1, n)]), 'components of a derived type')
  call MPI_Bcast(points(::2)%id, n / 2, MPI_INTEGER, 0, MPI_COMM_WORLD)

  ! The section of a persistent request stays the same for each start.
  call MPI_Recv_init(matrix(1:n:4, 2), n / 4, MPI_INTEGER, left, 7, MPI_COMM_WORLD, requests(1))
  call MPI_Send_init(matrix(2:n:4, 1), n / 4, MPI_INTEGER, right, 7, MPI_COMM_WORLD, requests(2))
  do j = 1, 3
    matrix = 0
    matrix(2:n:4, 1) = [(1000 * me + 10 * j + i, i = 1, n / 4)]
    call MPI_Startall(2, requests)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call claim(all(matrix(1:n:4, 2) == [(1000 * left + 10 * j + i, i = 1, n / 4)]), 'a persistent section')
  end do
  call MPI_Request_free(requests(1))
  call MPI_Request_free(requests(2))

  ! Passes sections to collectives.
  allocate (gathered(2 * ranks, 3))
  gathered = -1
  call MPI_Allgather(matrix(2:10:4, 1), 3, MPI_INTEGER, plain, 3, MPI_INTEGER, MPI_COMM_WORLD)
  call claim(all(plain(:3 * ranks) == [((1000 * j + 30 + i, i = 1, 3), j = 0, ranks - 1)]), 'sections are gathered')
  call MPI_Bcast(gathered(1::2, 2), ranks, MPI_INTEGER, 0, MPI_COMM_WORLD)
  if (me == 0) gathered(2::2, 3) = [(7 * i, i = 1, ranks)]
  call MPI_Ibcast(gathered(2::2, 3), ranks, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1))
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call claim(all(gathered(2::2, 3) == [(7 * i, i = 1, ranks)]), 'a section is broadcast')
  call claim(all(gathered(1::2, 3) == -1), 'between its elements nothing changes')
  whole = me + 1
  half = -1
  call MPI_Allreduce(whole(::3), half(2::3), n / 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  call claim(all(half(2::3) == ranks * (ranks + 1) / 2) .and. half(1) == -1, 'sections are added')
  call MPI_Allreduce(MPI_IN_PLACE, whole(::4), n / 4, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  call claim(all(whole(::4) == ranks) .and. whole(2) == me + 1, 'a section is reduced in place')

  ! Passes sections without elements.
  call MPI_Bcast(plain(5:4), 0, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call MPI_Sendrecv(plain(5:4:2), 0, MPI_INTEGER, right, 8, whole(2:1), 0, MPI_DOUBLE_PRECISION, left, 8, MPI_COMM_WORLD, status)
  ! The C function, not the code for sections, handles elements of zero bytes and an invalid datatype.
  call MPI_Type_contiguous(0, MPI_INTEGER, nothing)
  call MPI_Type_commit(nothing)
  call MPI_Sendrecv(matrix(3, :), 2, nothing, right, 9, matrix(4, :), 2, nothing, left, 9, MPI_COMM_WORLD, status)
  call MPI_Type_free(nothing)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Send(matrix(3, :), n, MPI_DATATYPE_NULL, right, 9, MPI_COMM_WORLD, code)
  call MPI_Error_string(code, text, total)
  call MPI_Error_class(code, class)
  call claim(class == MPI_ERR_TYPE .and. index(text(:total), 'MPI_Type_') == 0, 'the error of a section is that of the call')
  call finish('sections')
contains
  include 'check.inc'
end program sections
