! Tests of windows on memory of the program and of the library, given by an address or a C_PTR:
! puts, gets, accumulates, epochs.
#include "ways.h"
program windows
  MPI_MODULE
#if WAY != 1
  use, intrinsic :: iso_c_binding
#endif
  implicit none
  MPI_INCLUDE
  integer, parameter :: n = 8
  integer :: ierr, me, ranks, right, i, unit, old, model
#if WAY == 1
  integer :: memory(n)
#else
  integer, asynchronous :: memory(n)
#endif
  integer :: values(n)
  integer, pointer :: shared(:), other(:)
  integer(MPI_ADDRESS_KIND) :: bytes, size_of, disp
  logical :: flag
  type(c_ptr) :: base
  WIN :: win
  REQUEST :: request
  GROUP :: group, everyone
  COMM :: node

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  right = mod(me + 1, ranks)
  bytes = 4 * n

  ! A window on an array of the program.
  memory = -1
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, size_of, flag, ierr)
  call claim(flag .and. size_of == bytes, 'the size of a window')
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, size_of, flag, ierr)
  call claim(flag .and. size_of == 4, 'its unit')
  call MPI_Win_get_attr(win, MPI_WIN_BASE, size_of, flag, ierr)
  call MPI_Get_address(memory, disp, ierr)
  call claim(flag .and. size_of == disp, 'its base')
  values = [(100 * me + i, i = 1, n)]
  call MPI_Win_fence(0, win, ierr)
  disp = 0
  call MPI_Put(values, n, MPI_INTEGER, right, disp, n, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call MPI_F_sync_reg(memory)
  call claim(all(memory == [(100 * mod(me + ranks - 1, ranks) + i, i = 1, n)]), 'what the left neighbour has put')
  values = 0
  call MPI_Get(values, n, MPI_INTEGER, right, disp, n, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call claim(all(values == [(100 * me + i, i = 1, n)]), 'what was put comes back')
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierr)
  memory = 0
  call MPI_F_sync_reg(memory)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  disp = 1
  call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win, ierr)
  call MPI_Accumulate([me + 1], 1, MPI_INTEGER, 0, disp, 1, MPI_INTEGER, MPI_SUM, win, ierr)
  call MPI_Win_unlock(0, win, ierr)
  call MPI_Win_lock_all(0, win, ierr)
  disp = 2
  call MPI_Fetch_and_op(1, old, MPI_INTEGER, 0, disp, MPI_SUM, win, ierr)
  call MPI_Win_flush(0, win, ierr)
  call claim(old >= 0 .and. old < ranks, 'a counter is drawn from')
  call MPI_Rput(me, 1, MPI_INTEGER, right, 3_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call MPI_Win_unlock_all(win, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win, ierr)
  ! No call since the creation of the window names its memory.
  call MPI_F_sync_reg(memory)
  if (me == 0) call claim(memory(2) == ranks * (ranks + 1) / 2 .and. memory(3) == ranks, 'sums of all ranks')
  call claim(memory(4) == mod(me + ranks - 1, ranks), 'a put with a request')
  call MPI_Win_unlock(me, win, ierr)
  call MPI_Comm_group(MPI_COMM_WORLD, everyone, ierr)
  call MPI_Win_get_group(win, group, ierr)
  call MPI_Win_post(group, 0, win, ierr)
  call MPI_Win_start(group, 0, win, ierr)
  call MPI_Win_complete(win, ierr)
  call MPI_Win_wait(win, ierr)
  call MPI_Group_free(group, ierr)
  call MPI_Group_free(everyone, ierr)
  call MPI_Win_free(win, ierr)
  call claim(win == MPI_WIN_NULL, 'a freed window is null')

  ! A window on memory of the library.
  call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
  call c_f_pointer(base, shared, [n])
  call MPI_Win_fence(0, win, ierr)
  call MPI_Put(values, n, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, n, MPI_INTEGER, win, ierr)
  call MPI_Win_fence(0, win, ierr)
  call claim(shared(1) == 100 * mod(me + ranks - 1, ranks) + 1, 'memory of the library')
  call MPI_Win_free(win, ierr)

  call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node, ierr)
  call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, node, base, win, ierr)
  call c_f_pointer(base, shared, [n])
  call MPI_Comm_rank(node, i, ierr)
  call MPI_Win_fence(0, win, ierr)
  shared = i
  call MPI_Win_fence(0, win, ierr)
  call MPI_Win_shared_query(win, 0, size_of, unit, base, ierr)
  call c_f_pointer(base, other, [n])
  call claim(size_of == bytes .and. unit == 4 .and. all(other == 0), 'the memory of rank 0')
  call MPI_Win_get_attr(win, MPI_WIN_MODEL, disp, flag, ierr)
  model = int(disp)
  call claim(flag .and. (model == MPI_WIN_UNIFIED .or. model == MPI_WIN_SEPARATE), 'the memory model')
  call MPI_Win_fence(0, win, ierr)
  call MPI_Win_free(win, ierr)
  call MPI_Comm_free(node, ierr)

  call MPI_Alloc_mem(bytes, MPI_INFO_NULL, base, ierr)
  call c_f_pointer(base, shared, [n])
  shared = me
  call MPI_Allreduce(MPI_IN_PLACE, shared, n, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
  call claim(all(shared == ranks - 1), 'allocated memory')
  call MPI_Free_mem(shared, ierr)
  call finish('windows')
contains
  include 'check.inc'
end program windows
