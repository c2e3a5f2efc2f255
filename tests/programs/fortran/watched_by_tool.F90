! A C tool replaces MPI functions and counts their calls: MPI_ procedures are counted once,
! PMPI_ procedures are not counted.
#include "ways.h"
program watched_by_tool
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  interface
    integer(4) function calls_of_send() bind(c)
    end function
    integer(4) function calls_of_allreduce() bind(c)
    end function
    integer(4) function calls_of_wait() bind(c)
    end function
  end interface
  integer :: me, ranks, ierr, mine, total, came(4)
  COMM :: dup
  REQUEST :: request

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierr)
  mine = me
  call MPI_Send(mine, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, ierr)
  call MPI_Send(mine, 1, MPI_INTEGER, MPI_PROC_NULL, 1, dup, ierr)
  call claim(calls_of_send() == 2, 'two sends')
  call PMPI_Send(mine, 1, MPI_INTEGER, MPI_PROC_NULL, 1, dup, ierr)
  call claim(calls_of_send() == 2, 'a send under its profiling name')
  call MPI_Allreduce(mine, total, 1, MPI_INTEGER, MPI_SUM, dup, ierr)
  call claim(calls_of_allreduce() == 1 .and. total == ranks * (ranks - 1) / 2, 'a reduction')
  call MPI_Irecv(came, 4, MPI_INTEGER, MPI_PROC_NULL, 1, dup, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call claim(calls_of_wait() == 1, 'a wait')
#if WAY == 3
  ! Passes a section and a large count, without ierror.
  call MPI_Send(came(::2), 2, MPI_INTEGER, MPI_PROC_NULL, 1, dup)
  call MPI_Send(came, 2_MPI_COUNT_KIND, MPI_INTEGER, MPI_PROC_NULL, 1, dup)
  call claim(calls_of_send() == 3, 'a section, and a large count, which has a function of its own')
#endif
  call finish('watched_by_tool')
contains
  include 'check.inc'
end program watched_by_tool
