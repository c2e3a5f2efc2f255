! Collectives in blocking, nonblocking and persistent form, also with MPI_IN_PLACE.
! The library converts LOGICAL arguments and arrays of handles.
#include "ways.h"
program collectives
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  integer :: ierr, me, ranks, i, total, mine, part, rank_of, dims(2), coords(2), source, target, degree
  integer, allocatable :: all_of(:), counts(:), starts(:), values(:), received(:), zeros(:)
  logical :: flag, periods(2), told(2), remain(2), reorder
  logical, allocatable :: flags(:)
  complex :: z, sum_of_z
  integer :: pairs(2, 2)
  COMM :: grid, row, graph
  REQUEST :: request
  DATATYPE, allocatable :: types(:)
  STATUS :: one
  GROUP :: group, few

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  allocate (all_of(ranks), counts(ranks), starts(ranks), types(ranks), zeros(ranks))
  allocate (values(ranks * (ranks + 1) / 2), received(ranks * (ranks + 1) / 2), flags(ranks))

  mine = me + 1
  call MPI_Allreduce(mine, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call claim(total == ranks * (ranks + 1) / 2, 'a sum')
  total = mine
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
  call claim(total == ranks, 'a maximum in place')
  total = mine
  if (me == ranks - 1) then
    call MPI_Reduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, ranks - 1, MPI_COMM_WORLD, ierr)
    call claim(total == ranks * (ranks + 1) / 2, 'a sum in place at its root')
  else
    call MPI_Reduce(mine, part, 1, MPI_INTEGER, MPI_SUM, ranks - 1, MPI_COMM_WORLD, ierr)
  end if
  z = cmplx(mine, -mine)
  call MPI_Allreduce(z, sum_of_z, 1, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierr)
  call claim(sum_of_z == cmplx(total_of(ranks), -total_of(ranks)), 'a sum of complex numbers')
  pairs(:, 1) = [mod(me + 1, ranks), me]
  call MPI_Allreduce(pairs(:, 1), pairs(:, 2), 1, MPI_2INTEGER, MPI_MINLOC, MPI_COMM_WORLD, ierr)
  call claim(pairs(1, 2) == 0 .and. pairs(2, 2) == ranks - 1, 'the place of a minimum')
  flag = me == ranks - 1
  call MPI_Allreduce(MPI_IN_PLACE, flag, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
  call claim(flag, 'one rank says yes')
  call MPI_Allreduce(me == 0, flag, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  call claim(flag .eqv. ranks == 1, 'all ranks say yes')

  call MPI_Allgather(mine, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call claim(all(all_of == [(i, i = 1, ranks)]), 'Allgather')
  all_of = 0
  all_of(me + 1) = -mine
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_of, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call claim(all(all_of == [(-i, i = 1, ranks)]), 'Allgather in place')
  call MPI_Gather([me == 1], 1, MPI_LOGICAL, flags, 1, MPI_LOGICAL, 0, MPI_COMM_WORLD, ierr)
  if (me == 0) call claim(count(flags) == min(1, ranks - 1), 'gathered logicals')
  counts = [(i, i = 1, ranks)]
  starts = [((i - 1) * i / 2, i = 1, ranks)]
  values(1:mine) = mine
  call MPI_Allgatherv(values, mine, MPI_INTEGER, received, counts, starts, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  do i = 1, ranks
    call claim(all(received(starts(i) + 1:starts(i) + i) == i), 'Allgatherv')
  end do
  call MPI_Scatterv(received, counts, starts, MPI_INTEGER, values, mine, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  call claim(all(values(1:mine) == mine), 'Scatterv')
  values(1:ranks) = [(100 * me + i, i = 1, ranks)]
  call MPI_Alltoall(values, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  call claim(all(all_of == [(100 * i + mine, i = 0, ranks - 1)]), 'Alltoall')
  all_of = 0
  zeros = 1
  types = MPI_INTEGER
  starts = [(4 * (i - 1), i = 1, ranks)]
  call MPI_Ialltoallw(values, zeros, starts, types, all_of, zeros, starts, types, MPI_COMM_WORLD, request, ierr)
  ! The program may overwrite the array of types while the operation is in progress.
  types = MPI_DATATYPE_NULL
  call MPI_Wait(request, one, ierr)
  call claim(all(all_of == [(100 * i + mine, i = 0, ranks - 1)]), 'Ialltoallw')
  call MPI_Scan(mine, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call claim(total == total_of(mine), 'Scan')
  total = 0
  call MPI_Exscan(mine, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (me > 0) call claim(total == total_of(me), 'Exscan')
  values(1:ranks) = me
  call MPI_Reduce_scatter_block(values, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call claim(total == total_of(ranks - 1), 'Reduce_scatter_block')
  total = merge(4711, 0, me == ranks - 1)
  call MPI_Ibcast(total, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call claim(total == 4711, 'Ibcast')
  call MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, request, ierr)
  call MPI_Start(request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Request_free(request, ierr)

  ! A torus: the calls have LOGICAL arrays as input and output arguments.
  dims = 0
  call MPI_Dims_create(ranks, 2, dims, ierr)
  call claim(product(dims) == ranks, 'dimensions for all ranks')
  periods = [.true., .false.]
  reorder = .false.
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, reorder, grid, ierr)
  call MPI_Cart_get(grid, 2, counts(1:2), told, coords, ierr)
  call claim(told(1) .and. .not. told(2), 'the periods come back')
  call MPI_Cart_rank(grid, coords, rank_of, ierr)
  call claim(rank_of == me, 'coordinates have a rank')
  call MPI_Cart_shift(grid, 1, 1, source, target, ierr)
  call claim((source == MPI_PROC_NULL) .eqv. coords(2) == 0, 'the edge of the grid')
  call MPI_Cart_shift(grid, 0, 1, source, target, ierr)
  call claim(source >= 0 .and. target >= 0, 'a ring has no edge')
  remain = [.false., .true.]
  call MPI_Cart_sub(grid, remain, row, ierr)
  call MPI_Comm_size(row, total, ierr)
  call claim(total == dims(2), 'a row of the grid')
  call MPI_Comm_free(row, ierr)
  call MPI_Comm_free(grid, ierr)

  ! A graph in which each rank sends to the next rank.
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [mod(me + ranks - 1, ranks)], MPI_UNWEIGHTED, &
       1, [mod(me + 1, ranks)], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, ierr)
  call MPI_Neighbor_allgather(me, 1, MPI_INTEGER, total, 1, MPI_INTEGER, graph, ierr)
  call claim(total == mod(me + ranks - 1, ranks), 'a neighbour''s rank')
  call MPI_Dist_graph_neighbors_count(graph, degree, total, flag, ierr)
  call claim(degree == 1 .and. total == 1 .and. .not. flag, 'the neighbours have no weights')
  call MPI_Comm_free(graph, ierr)

  call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
  pairs(:, 1) = [0, ranks - 1]
  call MPI_Group_range_incl(group, 1, reshape([0, ranks - 1, 1], [3, 1]), few, ierr)
  call MPI_Group_compare(group, few, total, ierr)
  call claim(total == MPI_IDENT, 'the same group')
  call MPI_Group_free(few, ierr)
  call MPI_Group_free(group, ierr)
  call finish('collectives')
contains
  integer function total_of(n)
    integer, intent(in) :: n
    total_of = n * (n + 1) / 2
  end function total_of
  include 'check.inc'
end program collectives
