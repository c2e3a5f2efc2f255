! The communication patterns of five cluster benchmarks with little data; each result is checked:
! IS sorts integers by buckets, CG and MG solve Poisson's equation,
! FT transforms a matrix and back, LU passes a wavefront through the ranks.
! A second argument, a power of two, multiplies the lengths of all dimensions.
#include "ways.h"
program kernels
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  integer, parameter :: dp = kind(1d0)
  real(dp), parameter :: pi = 3.14159265358979323846_dp
  integer :: ierr, me, ranks, below, above, times
  character(16) :: argument

  times = 1
  call get_command_argument(2, argument)
  if (argument /= '') read (argument, *) times
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  below = merge(me - 1, MPI_PROC_NULL, me > 0)
  above = merge(me + 1, MPI_PROC_NULL, me < ranks - 1)
  call sort_integers()
  call conjugate_gradient()
  call fourier_transform()
  call multigrid()
  call wavefront()
  call finish('kernels')
contains
  include 'check.inc'

  ! Every rank counts its keys per bucket; the ranks exchange counts and then keys;
  ! each rank sorts its bucket.
  subroutine sort_integers()
    integer, parameter :: largest = 2**16
    integer :: to(0:ranks - 1), from(0:ranks - 1), to_at(0:ranks - 1), from_at(0:ranks - 1)
    integer, allocatable :: keys(:), ordered(:), bucket(:), counts(:)
    integer :: n, i, owner, width, at(0:ranks - 1), sums(2), all_sums(2), edge, last
    width = (largest + ranks - 1) / ranks
    n = 5000 * times
    allocate (keys(n), ordered(n))
    do i = 1, n
      keys(i) = int(modulo(me * 7919_8 + i * 104729_8 + int(i, 8)**2, int(largest, 8)))
    end do
    to = 0
    do i = 1, n
      owner = keys(i) / width
      to(owner) = to(owner) + 1
    end do
    call MPI_Alltoall(to, 1, MPI_INTEGER, from, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    to_at = [(sum(to(0:i - 1)), i = 0, ranks - 1)]
    from_at = [(sum(from(0:i - 1)), i = 0, ranks - 1)]
    at = to_at
    do i = 1, n
      owner = keys(i) / width
      at(owner) = at(owner) + 1
      ordered(at(owner)) = keys(i)
    end do
    allocate (bucket(sum(from) + 1), counts(me * width:(me + 1) * width - 1))
    call MPI_Alltoallv(ordered, to, to_at, MPI_INTEGER, bucket, from, from_at, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    counts = 0
    do i = 1, sum(from)
      counts(bucket(i)) = counts(bucket(i)) + 1
    end do
    sums = [sum(from), 0]
    edge = -1
    do i = me * width, (me + 1) * width - 1
      sums(2) = ieor(sums(2), mod(counts(i), 2) * i)
      if (counts(i) > 0) last = i
      if (counts(i) > 0 .and. edge < 0) edge = i
    end do
    call MPI_Allreduce(sums(1), all_sums(1), 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call claim(all_sums(1) == n * ranks, 'IS: no key was lost')
    call MPI_Allreduce(sums(2), all_sums(2), 1, MPI_INTEGER, MPI_BXOR, MPI_COMM_WORLD, ierr)
    sums(1) = 0
    do i = 1, n
      sums(1) = ieor(sums(1), keys(i))
    end do
    call MPI_Allreduce(MPI_IN_PLACE, sums, 1, MPI_INTEGER, MPI_BXOR, MPI_COMM_WORLD, ierr)
    call claim(sums(1) == all_sums(2), 'IS: the keys are those that there were')
    owner = -1
    call MPI_Sendrecv(last, 1, MPI_INTEGER, above, 1, owner, 1, MPI_INTEGER, below, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call claim(owner < edge, 'IS: the order goes on from rank to rank')
  end subroutine sort_integers

  ! Receives the row above and the row below this rank's rows from its neighbours.
  subroutine halo(u, columns, rows)
    integer, intent(in) :: columns, rows
    real(dp), intent(inout) :: u(0:columns + 1, 0:rows + 1)
    REQUEST :: requests(4)
    call MPI_Irecv(u(1, 0), columns, MPI_DOUBLE_PRECISION, below, 21, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Irecv(u(1, rows + 1), columns, MPI_DOUBLE_PRECISION, above, 22, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Isend(u(1, rows), columns, MPI_DOUBLE_PRECISION, above, 21, MPI_COMM_WORLD, requests(3), ierr)
    call MPI_Isend(u(1, 1), columns, MPI_DOUBLE_PRECISION, below, 22, MPI_COMM_WORLD, requests(4), ierr)
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
  end subroutine halo

  ! Applies the five-point Laplacian; the values at the boundary are zero.
  subroutine laplace(u, v, columns, rows)
    integer, intent(in) :: columns, rows
    real(dp), intent(inout) :: u(0:columns + 1, 0:rows + 1)
    real(dp), intent(out) :: v(columns, rows)
    integer :: i, j
    call halo(u, columns, rows)
    do j = 1, rows
      do i = 1, columns
        v(i, j) = 4 * u(i, j) - u(i - 1, j) - u(i + 1, j) - u(i, j - 1) - u(i, j + 1)
      end do
    end do
  end subroutine laplace

  real(dp) function total(mine)
    real(dp), intent(in) :: mine
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  end function total

  subroutine conjugate_gradient()
    real(dp), allocatable :: x(:, :), r(:, :), q(:, :), b(:, :), p(:, :), known(:, :)
    real(dp) :: rho, old, alpha, least
    integer :: columns, rows, i, j, step
    columns = 24 * times
    rows = 6 * times
    allocate (x(columns, rows), r(columns, rows), q(columns, rows), b(columns, rows))
    allocate (p(0:columns + 1, 0:rows + 1), known(0:columns + 1, 0:rows + 1))
    known = 0
    do j = 1, rows
      known(1:columns, j) = [(sin(0.3_dp * i) + 0.1_dp * (me * rows + j), i = 1, columns)]
    end do
    call laplace(known, b, columns, rows)
    x = 0
    r = b
    p = 0
    p(1:columns, 1:rows) = r
    rho = total(sum(r * r))
    least = 1e-24_dp * rho
    do step = 1, 200 * times
      call laplace(p, q, columns, rows)
      alpha = rho / total(sum(p(1:columns, 1:rows) * q))
      x = x + alpha * p(1:columns, 1:rows)
      r = r - alpha * q
      old = rho
      rho = total(sum(r * r))
      if (rho < least) exit
      p(1:columns, 1:rows) = r + rho / old * p(1:columns, 1:rows)
    end do
    r = x - known(1:columns, 1:rows)
    call claim(total(sum(r**2)) < 1e-15_dp * total(sum(x**2)), 'CG: the solution is the one that was known')
  end subroutine conjugate_gradient

  ! Transforms a matrix along its first dimension; the columns are distributed over the ranks.
  subroutine dft(a, n, columns, sign)
    integer, intent(in) :: n, columns, sign
    complex(dp), intent(inout) :: a(n, columns)
    complex(dp) :: turned(n), root(0:n - 1)
    integer :: i, j, k
    root = [(exp(cmplx(0, sign * 2 * pi * i / n, dp)), i = 0, n - 1)]
    do k = 1, columns
      do i = 1, n
        turned(i) = (0, 0)
        do j = 1, n
          turned(i) = turned(i) + a(j, k) * root(mod((i - 1) * (j - 1), n))
        end do
      end do
      a(:, k) = turned / sqrt(real(n, dp))
    end do
  end subroutine dft

  ! Transposes the matrix; its columns stay distributed. Each rank gets one block.
  subroutine transpose_all(a, n, columns)
    integer, intent(in) :: n, columns
    complex(dp), intent(inout) :: a(n, columns)
    complex(dp), allocatable :: sent(:, :, :), received(:, :, :)
    integer :: i
    allocate (sent(columns, columns, 0:ranks - 1), received(columns, columns, 0:ranks - 1))
    do i = 0, ranks - 1
      sent(:, :, i) = transpose(a(i * columns + 1:(i + 1) * columns, :))
    end do
    call MPI_Alltoall(sent, columns**2, MPI_DOUBLE_COMPLEX, received, columns**2, MPI_DOUBLE_COMPLEX, MPI_COMM_WORLD, ierr)
    do i = 0, ranks - 1
      a(i * columns + 1:(i + 1) * columns, :) = received(:, :, i)
    end do
  end subroutine transpose_all

  subroutine fourier_transform()
    complex(dp), allocatable :: a(:, :), b(:, :)
    real(dp) :: energy
    integer :: columns, i, j, n
    columns = 6 * times
    n = columns * ranks
    allocate (a(n, columns), b(n, columns))
    do j = 1, columns
      a(:, j) = [(cmplx(mod(i * 7 + (me * columns + j) * 3, 11), mod(i * j, 5), dp), i = 1, n)]
    end do
    b = a
    energy = total(sum(abs(a)**2))
    call dft(b, n, columns, -1)
    call transpose_all(b, n, columns)
    call dft(b, n, columns, -1)
    call claim(abs(total(sum(abs(b)**2)) - energy) < 1e-9_dp * energy, 'FT: the transform keeps the energy')
    call claim(total(sum(abs(b - a)**2)) > 1e-3_dp * energy, 'FT: the transform changes the matrix')
    call dft(b, n, columns, 1)
    call transpose_all(b, n, columns)
    call dft(b, n, columns, 1)
    call claim(total(sum(abs(b - a)**2)) < 1e-18_dp * energy, 'FT: the inverse transform gives the matrix back')
  end subroutine fourier_transform

  ! One V-cycle for 4u - (sum of the neighbours) = f; each level halves the number of rows, down to one row per rank.
  recursive subroutine cycle(u, f, columns, rows)
    integer, intent(in) :: columns, rows
    real(dp), intent(inout) :: u(0:columns + 1, 0:rows + 1)
    real(dp), intent(in) :: f(columns, rows)
    real(dp), allocatable :: r(:, :), coarse_u(:, :), coarse_f(:, :)
    integer :: sweep, i, j
    allocate (r(columns, rows), coarse_u(0:columns / 2 + 1, 0:rows / 2 + 1), coarse_f(columns / 2, rows / 2))
    do sweep = 1, merge(3, 200, rows > 1)
      call laplace(u, r, columns, rows)
      u(1:columns, 1:rows) = u(1:columns, 1:rows) + 0.2_dp * (f - r)
    end do
    if (rows == 1) return
    call laplace(u, r, columns, rows)
    r = f - r
    do j = 1, rows / 2
      coarse_f(:, j) = [(sum(r(2 * i - 1:2 * i, 2 * j - 1:2 * j)), i = 1, columns / 2)]
    end do
    coarse_u = 0
    call cycle(coarse_u, coarse_f, columns / 2, rows / 2)
    do j = 1, rows
      u(1:columns, j) = u(1:columns, j) + 0.5_dp * [(coarse_u((i + 1) / 2, (j + 1) / 2), i = 1, columns)]
    end do
    do sweep = 1, 3
      call laplace(u, r, columns, rows)
      u(1:columns, 1:rows) = u(1:columns, 1:rows) + 0.2_dp * (f - r)
    end do
  end subroutine cycle

  subroutine multigrid()
    real(dp), allocatable :: u(:, :), f(:, :), r(:, :)
    real(dp) :: before, after
    integer :: columns, rows, step
    columns = 16 * times
    rows = 8 * times
    allocate (u(0:columns + 1, 0:rows + 1), f(columns, rows), r(columns, rows))
    u = 0
    f = 0
    if (me == 0) f(3, 2) = 1
    if (me == ranks - 1) f(13, 6) = f(13, 6) - 1
    before = total(sum(f**2))
    ! With more levels, the coarse ones correct less of the error, so more cycles are needed.
    do step = 1, 12 * times
      call cycle(u, f, columns, rows)
      call laplace(u, r, columns, rows)
      after = total(sum((f - r)**2))
      if (after < 1e-6_dp * before) exit
    end do
    call claim(after < 1e-6_dp * before, 'MG: the cycles solve it')
  end subroutine multigrid

  ! v(i, j) depends on its left and lower neighbours, so the ranks compute their blocks one after the other.
  subroutine wavefront()
    integer, parameter :: block = 8
    real(dp), allocatable :: v(:, :), serial(:, :)
    integer :: columns, rows, i, j, first
    columns = 32 * times
    rows = 5 * times
    allocate (v(0:columns, 0:rows), serial(0:columns, 0:rows * ranks))
    serial = 1
    do j = 1, rows * ranks
      do i = 1, columns
        serial(i, j) = 0.5_dp * serial(i - 1, j) + 0.25_dp * serial(i, j - 1) + mod(i * j, 3)
      end do
    end do
    v = 1
    do first = 1, columns, block
      call MPI_Recv(v(first, 0), block, MPI_DOUBLE_PRECISION, below, first, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      do j = 1, rows
        do i = first, first + block - 1
          v(i, j) = 0.5_dp * v(i - 1, j) + 0.25_dp * v(i, j - 1) + mod(i * (me * rows + j), 3)
        end do
      end do
      call MPI_Send(v(first, rows), block, MPI_DOUBLE_PRECISION, above, first, MPI_COMM_WORLD, ierr)
    end do
    call claim(all(v(:, 1:) == serial(:, me * rows + 1:(me + 1) * rows)), 'LU: the wavefront computes what one process would')
  end subroutine wavefront
end program kernels
