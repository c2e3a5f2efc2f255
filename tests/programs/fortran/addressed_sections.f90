! Array sections as arguments of procedures that store an address, use one element, or partition a buffer.
program addressed_sections
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: parts = 3, per = 2, n = parts * per
  integer :: me, ranks, right, left, i, before
  integer, asynchronous :: row(2, n), vector(3 * n), matrix(4, n), back(3 * n)
  integer, asynchronous, target :: exposed(4)
  integer(MPI_ADDRESS_KIND) :: address, first
  logical :: flag
  type(MPI_Request) :: both(2)
  type(MPI_Win) :: window
  type(MPI_File) :: file
  character(1000) :: folder

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  right = mod(me + 1, ranks)
  left = mod(me + ranks - 1, ranks)

  call MPI_Get_address(vector(3::2), address)
  call MPI_Get_address(vector(3), first)
  call claim(address == first, 'the address of a section is that of its first element')

  ! The partitions are parts of a row, of every third element of a vector, and of whole columns.
  row = -1
  vector = [(1000 * me + i, i = 1, 3 * n)]
  call MPI_Psend_init(vector(::3), parts, int(per, MPI_COUNT_KIND), MPI_INTEGER, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, both(1))
  call MPI_Precv_init(row(2, :), parts, int(per, MPI_COUNT_KIND), MPI_INTEGER, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, both(2))
  call exchange()
  call claim(all(row(2, :) == [(1000 * left + i, i = 1, 3 * n, 3)]), 'partitions of a row')
  call claim(all(row(1, :) == -1), 'the other row stays')
  vector = vector + 7
  call exchange()
  call claim(all(row(2, :) == [(1000 * left + i + 7, i = 1, 3 * n, 3)]), 'and again')
  call free()
  matrix = reshape([(1000 * me + i, i = 1, 4 * n)], [4, n])
  back = -1
  call MPI_Psend_init(matrix(2:3, :), parts, int(2 * per, MPI_COUNT_KIND), MPI_INTEGER, right, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &
       both(1))
  call MPI_Precv_init(back, parts, int(2 * per, MPI_COUNT_KIND), MPI_INTEGER, left, 2, MPI_COMM_WORLD, MPI_INFO_NULL, both(2))
  call exchange()
  call claim(all(back(:2 * n) == reshape(matrix(2:3, :), [2 * n]) + 1000 * (left - me)), 'partitions of columns')
  call free()

  ! Passes sections to a call that uses only one element.
  exposed = 0
  call MPI_Win_create(exposed, int(16, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
  call MPI_Win_lock_all(0, window)
  vector = -1
  call MPI_Fetch_and_op(matrix(1, ::2), vector(2::2), MPI_INTEGER, right, int(me, MPI_ADDRESS_KIND) * 0, MPI_SUM, window)
  call MPI_Win_unlock_all(window)
  call MPI_Win_free(window)
  call claim(vector(2) == 0 .and. vector(1) == -1 .and. vector(4) == -1, 'the old value')
  call claim(exposed(1) == 1000 * left + 1, 'the sum')

  ! Passes sections to both halves of a split collective file access.
  call get_command_argument(1, folder)
  call MPI_File_open(MPI_COMM_SELF, trim(folder)//'/section-'//achar(48 + me), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file)
  call MPI_File_write_at_all_begin(file, 0_MPI_OFFSET_KIND, matrix(3, :), n, MPI_INTEGER)
  call MPI_File_write_at_all_end(file, matrix(3, :), MPI_STATUS_IGNORE)
  vector = -1
  call MPI_File_read_at_all_begin(file, 0_MPI_OFFSET_KIND, vector(2::3), n, MPI_INTEGER)
  call MPI_File_read_at_all_end(file, vector(2::3), MPI_STATUS_IGNORE)
  call claim(all(vector(2::3) == matrix(3, :)) .and. all(vector(1::3) == -1), 'a section is written and read')
  call MPI_File_close(file)
  call finish('addressed_sections')
contains
  subroutine exchange()
    integer :: part
    call MPI_Startall(2, both)
    do part = 1, parts
      call MPI_Pready(part - 1, both(1))
    end do
    call MPI_Waitall(2, both, MPI_STATUSES_IGNORE)
  end subroutine exchange
  subroutine free()
    call MPI_Request_free(both(1))
    call MPI_Request_free(both(2))
  end subroutine free
  include 'check.inc'
end program addressed_sections
