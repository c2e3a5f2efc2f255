! A user-defined data representation: an integer is stored in eight bytes with the opposite sign.
#include "ways.h"
module converted
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  integer :: extents = 0, writes = 0, reads = 0
contains
  subroutine extent_there(type, extent, extra, ierr)
    DATATYPE :: type
    integer(MPI_ADDRESS_KIND) :: extent, extra
    integer :: ierr, size
    extents = extents + 1
    call MPI_Type_size(type, size, ierr)
    extent = size
    if (type == MPI_INTEGER) extent = extra
    ierr = MPI_SUCCESS
  end subroutine extent_there

#if WAY == 3
  subroutine to_file(memory, type, count, there, position, extra, ierr)
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: memory, there
    integer, pointer :: values(:)
    integer(8), pointer :: stored(:)
#else
  subroutine to_file(values, type, count, stored, position, extra, ierr)
    integer :: values(*)
    integer(8) :: stored(*)
#endif
    DATATYPE :: type
    integer :: count, ierr, i
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra
#if WAY == 3
    call c_f_pointer(memory, values, [int(position) + count])
    call c_f_pointer(there, stored, [count])
#endif
    writes = writes + count
    ierr = MPI_SUCCESS
    if (type /= MPI_INTEGER .or. extra /= 8) ierr = MPI_ERR_CONVERSION
    do i = 1, count
      stored(i) = -values(position + i)
    end do
  end subroutine to_file

#if WAY == 3
  subroutine from_file(memory, type, count, there, position, extra, ierr)
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: memory, there
    integer, pointer :: values(:)
    integer(8), pointer :: stored(:)
#else
  subroutine from_file(values, type, count, stored, position, extra, ierr)
    integer :: values(*)
    integer(8) :: stored(*)
#endif
    DATATYPE :: type
    integer :: count, ierr, i
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra
#if WAY == 3
    call c_f_pointer(memory, values, [int(position) + count])
    call c_f_pointer(there, stored, [count])
#endif
    reads = reads + count
    ierr = MPI_SUCCESS
    if (type /= MPI_INTEGER .or. extra /= 8) ierr = MPI_ERR_CONVERSION
    do i = 1, count
      values(position + i) = int(-stored(i))
    end do
  end subroutine from_file
end module converted

program representations
  use converted
  implicit none
  integer, parameter :: n = 10
  integer :: ierr, me, ranks, i, class, values(n), copies(n)
  integer(8) :: raw(n)
  integer(MPI_OFFSET_KIND) :: start
  integer(MPI_ADDRESS_KIND) :: eight, extent
  character(1000) :: path
  FILE :: fh
  STATUS :: one

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call get_command_argument(1, path)
  path = trim(path) // '/represented'
  eight = 8
  call MPI_Register_datarep('eight bytes', from_file, to_file, extent_there, eight, ierr)
  call claim(ierr == MPI_SUCCESS, 'the representation is registered')
  call MPI_Register_datarep('eight bytes  ', from_file, to_file, extent_there, eight, ierr)
  call MPI_Error_class(ierr, class, i)
  call claim(class == MPI_ERR_DUP_DATAREP, 'a name is registered once')

  call MPI_File_open(MPI_COMM_WORLD, path, ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, fh, ierr)
  start = 0
  call MPI_File_set_view(fh, start, MPI_INTEGER, MPI_INTEGER, 'eight bytes', MPI_INFO_NULL, ierr)
  call claim(ierr == MPI_SUCCESS, 'a view with the representation')
  call MPI_File_get_type_extent(fh, MPI_INTEGER, extent, ierr)
  call claim(extent == 8 .and. extents > 0, 'an integer has eight bytes in the file')
  values = [(1000 * me + i, i = 1, n)]
  start = n * me
  call MPI_File_write_at_all(fh, start, values, n, MPI_INTEGER, one, ierr)
  call claim(ierr == MPI_SUCCESS .and. writes == n, 'the integers are converted on their way to the file')
  call MPI_File_sync(fh, ierr)
  copies = 0
  call MPI_File_read_at_all(fh, start, copies, n, MPI_INTEGER, one, ierr)
  call claim(all(copies == values) .and. reads == n, 'and on their way back')
  start = 0
  call MPI_File_set_view(fh, start, MPI_INTEGER8, MPI_INTEGER8, 'native', MPI_INFO_NULL, ierr)
  start = n * me
  call MPI_File_read_at_all(fh, start, raw, n, MPI_INTEGER8, one, ierr)
  call claim(all(raw == -values), 'what the file has')
  call MPI_File_close(fh, ierr)
  if (me == 0) call MPI_File_delete(path, MPI_INFO_NULL, ierr)
  call finish('representations')
contains
  include 'check.inc'
end program representations
