! Files: explicit offsets, individual and shared pointers, views.
! Accesses are collective or nonblocking; the program's argument is the file name.
#include "ways.h"
program files
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  integer, parameter :: n = 10
  integer :: ierr, me, ranks, i, values(n), copies(n), amode, count, class
  integer(MPI_OFFSET_KIND) :: offset, position
  integer(MPI_ADDRESS_KIND) :: extent
  character(1000) :: path
  character(64) :: representation
  logical :: atomic
  FILE :: fh
  DATATYPE :: type, told_type, told_view
  STATUS :: one
  REQUEST :: request
  INFO :: info

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call get_command_argument(1, path)
  call MPI_File_open(MPI_COMM_WORLD, trim(path) // '/missing   ', MPI_MODE_RDONLY, MPI_INFO_NULL, fh, ierr)
  call MPI_Error_class(ierr, class, i)
  call claim(class == MPI_ERR_NO_SUCH_FILE, 'a missing file is an error that returns')
  ! The file name has trailing blanks.
  path = trim(path) // '/fortran'
  call MPI_File_open(MPI_COMM_WORLD, path, ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, fh, ierr)
  call claim(ierr == MPI_SUCCESS, 'the file is made')
  values = [(100 * me + i, i = 1, n)]

  offset = 4_MPI_OFFSET_KIND * n * me
  call MPI_File_write_at_all(fh, offset, values, n, MPI_INTEGER, one, ierr)
  call MPI_Get_count(one, MPI_INTEGER, count, ierr)
  call claim(count == n, 'all was written')
  ! Data that a rank has written are visible to other ranks after MPI_File_sync.
  call MPI_File_sync(fh, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_File_sync(fh, ierr)
  call MPI_File_get_size(fh, position, ierr)
  call claim(position == 4 * n * ranks, 'the size of the file')
  offset = 4_MPI_OFFSET_KIND * n * mod(me + 1, ranks)
  call MPI_File_iread_at(fh, offset, copies, n, MPI_INTEGER, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  call claim(all(copies == [(100 * mod(me + 1, ranks) + i, i = 1, n)]), 'what another rank has written')

  ! The view of each rank contains every n-th integer of the file, for n ranks.
  call MPI_Type_create_resized(MPI_INTEGER, 0_MPI_ADDRESS_KIND, 4_MPI_ADDRESS_KIND * ranks, type, ierr)
  call MPI_Type_commit(type, ierr)
  offset = 4_MPI_OFFSET_KIND * me
  call MPI_File_set_view(fh, offset, MPI_INTEGER, type, 'native', MPI_INFO_NULL, ierr)
  representation = repeat('x', len(representation))
  call MPI_File_get_view(fh, position, told_type, told_view, representation, ierr)
  call claim(position == offset .and. representation == 'native' .and. told_type == MPI_INTEGER, 'the view')
  call MPI_File_write_all(fh, values, n, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  call MPI_File_get_position(fh, position, ierr)
  call claim(position == n, 'the pointer counts integers')
  call MPI_File_seek(fh, -1_MPI_OFFSET_KIND, MPI_SEEK_CUR, ierr)
  call MPI_File_read(fh, copies, 1, MPI_INTEGER, one, ierr)
  call claim(copies(1) == 100 * me + n, 'the last integer of the view')
  call MPI_File_get_byte_offset(fh, 1_MPI_OFFSET_KIND, position, ierr)
  call claim(position == offset + 4 * ranks, 'the second integer of the view')
  call MPI_File_sync(fh, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_File_sync(fh, ierr)
  call MPI_File_set_view(fh, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
  call MPI_File_read_ordered(fh, copies, 1, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  call claim(copies(1) == 100 * me + 1, 'in the order of the ranks')
  call MPI_File_read_all_begin(fh, copies, ranks, MPI_INTEGER, ierr)
  call MPI_File_read_all_end(fh, copies, one, ierr)
  call claim(all(copies(1:min(n, ranks)) == [(100 * (i - 1) + 1, i = 1, min(n, ranks))]), 'a split access')
  call MPI_File_get_amode(fh, amode, ierr)
  call claim(iand(amode, MPI_MODE_RDWR) /= 0, 'the mode')
  call MPI_File_get_atomicity(fh, atomic, ierr)
  call claim(.not. atomic, 'a file is not atomic unless that is asked for')
  call MPI_File_set_atomicity(fh, .true., ierr)
  call MPI_File_get_atomicity(fh, atomic, ierr)
  call claim(atomic, 'it is now')
  call MPI_File_get_type_extent(fh, MPI_INTEGER, extent, ierr)
  call claim(extent == 4, 'an integer in the file')
  call MPI_File_get_info(fh, info, ierr)
  call MPI_Info_free(info, ierr)
  call MPI_Type_free(type, ierr)
  call MPI_File_close(fh, ierr)
  call claim(fh == MPI_FILE_NULL, 'a closed file is null')
  if (me == 0) call MPI_File_delete(path, MPI_INFO_NULL, ierr)
  call finish('files')
contains
  include 'check.inc'
end program files
