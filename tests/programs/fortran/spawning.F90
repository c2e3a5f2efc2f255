! Tests of spawns: arrays of arguments that are padded with blanks and end with a blank string;
! only the root's arguments are significant.
#include "ways.h"
program spawning
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  integer :: ierr, me, ranks, codes(4), total, root, remote
  character(1000) :: program_name, commands(2)
  character(20) :: arguments(4), many(2, 3), told
  COMM :: parent, children
  INFO :: infos(2)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Comm_get_parent(parent, ierr)
  if (parent /= MPI_COMM_NULL) then
    ! A spawned process sends the number of its arguments and its first argument.
    call get_command_argument(1, told)
    call MPI_Recv(root, 1, MPI_INTEGER, MPI_ANY_SOURCE, 2, parent, MPI_STATUS_IGNORE, ierr)
    call MPI_Reduce(command_argument_count(), total, 1, MPI_INTEGER, MPI_SUM, root, parent, ierr)
    if (me == 0) call MPI_Send(told, len(told), MPI_CHARACTER, root, 1, parent, ierr)
    call MPI_Comm_disconnect(parent, ierr)
    call MPI_Finalize(ierr)
    stop
  end if

  call get_command_argument(0, program_name)
  root = ranks - 1
  arguments = [character(20) :: 'first one', 'second', ' ', 'beyond the end']
  codes = -1
  if (me == root) then
    call MPI_Comm_spawn(program_name, arguments, 2, MPI_INFO_NULL, root, MPI_COMM_WORLD, children, codes, ierr)
    call claim(all(codes == [MPI_SUCCESS, MPI_SUCCESS, -1, -1]), 'codes of two processes')
  else
    call MPI_Comm_spawn('', MPI_ARGV_NULL, 0, MPI_INFO_NULL, root, MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE, ierr)
  end if
  call MPI_Comm_remote_size(children, remote, ierr)
  call claim(remote == 2, 'two children')
  call meet(4, 'first one')

  many(1, :) = [character(20) :: 'of the first', ' ', ' ']
  many(2, :) = [character(20) :: 'of', 'the second', ' ']
  commands = program_name
  infos = MPI_INFO_NULL
  call MPI_Comm_spawn_multiple(2, commands, many, [1, 1], infos, root, MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE, ierr)
  call meet(3, 'of the first')
  call MPI_Comm_spawn(program_name, MPI_ARGV_NULL, 1, MPI_INFO_NULL, root, MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE, ierr)
  call meet(0, ' ')
  call finish('spawning')
contains
  subroutine meet(expected, first)
    integer, intent(in) :: expected
    character(*), intent(in) :: first
    integer :: as, child
    as = merge(MPI_ROOT, MPI_PROC_NULL, me == root)
    call MPI_Comm_remote_size(children, remote, ierr)
    do child = 0, remote - 1
      if (me == root) call MPI_Send(root, 1, MPI_INTEGER, child, 2, children, ierr)
    end do
    call MPI_Reduce(0, total, 1, MPI_INTEGER, MPI_SUM, as, children, ierr)
    if (me == root) then
      call claim(total == expected, 'the number of arguments')
      call MPI_Recv(told, len(told), MPI_CHARACTER, 0, 1, children, MPI_STATUS_IGNORE, ierr)
      call claim(told == first, 'the first argument')
    end if
    call MPI_Comm_disconnect(children, ierr)
  end subroutine meet
  include 'check.inc'
end program spawning
