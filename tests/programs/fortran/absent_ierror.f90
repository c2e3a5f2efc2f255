! Calls without ierror, with ierror, and with an optional dummy argument of the caller that is absent.
! The cases are: common arguments, derived datatypes, sections, sentinels, and failing calls.
program absent_ierror
  use mpi_f08
  implicit none
  integer :: me, ranks, code, class, ignored
  type(MPI_Datatype) :: pair
  type(MPI_Comm) :: twin

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Type_contiguous(2, MPI_INTEGER, pair)
  call MPI_Type_commit(pair)
  call all_of_them()
  code = -1
  call all_of_them(code)
  call claim(code == MPI_SUCCESS, 'ierror is set')

  ! With MPI_ERRORS_RETURN a call returns, whether or not it has an ierror argument.
  call MPI_Comm_dup(MPI_COMM_SELF, twin)
  call MPI_Comm_set_errhandler(twin, MPI_ERRORS_RETURN)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call failing()
  code = MPI_SUCCESS
  call failing(code)
  call MPI_Error_class(code, class, ignored)
  call claim(class == MPI_ERR_RANK, 'ierror has the code of the error')
  call MPI_Comm_free(twin)
  call MPI_Type_free(pair)
  call finish('absent_ierror')
contains
  subroutine all_of_them(ierror)
    integer, optional, intent(out) :: ierror
    integer, asynchronous :: single, row(4), there(4)
    type(MPI_Request) :: request
    type(MPI_Comm) :: other
    character(MPI_MAX_OBJECT_NAME) :: name
    integer :: length
    single = me + 1
    row = [1, 2, 3, 4]
    there = 0
    call MPI_Isend(single, 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, request, ierror)
    call MPI_Recv(there, 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call claim(there(1) == me + 1, 'a scalar')
    call MPI_Irecv(there, 2, pair, me, 2, MPI_COMM_WORLD, request, ierror)
    call MPI_Send(row, 2, pair, me, 2, MPI_COMM_WORLD, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call claim(all(there == row), 'a derived datatype')
    call MPI_Irecv(there, 4, MPI_INTEGER, me, 3, MPI_COMM_WORLD, request, ierror)
    call MPI_Send(row(4:1:-1), 4, MPI_INTEGER, me, 3, MPI_COMM_WORLD, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call claim(all(there == row(4:1:-1)), 'a section')
    call MPI_Allreduce(MPI_IN_PLACE, single, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
    call claim(single == ranks, 'a sentinel')
    call MPI_Bcast(single, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    call MPI_Comm_dup(MPI_COMM_SELF, other, ierror)
    call MPI_Comm_set_name(other, 'a name', ierror)
    call MPI_Bcast(single, 1, MPI_INTEGER, 0, other, ierror)
    call MPI_Comm_get_name(other, name, length, ierror)
    call claim(name == 'a name', 'a string')
    call MPI_Comm_free(other, ierror)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
  end subroutine all_of_them

  subroutine failing(ierror)
    integer, optional, intent(out) :: ierror
    integer :: value
    value = 1
    call MPI_Send(value, 1, MPI_INTEGER, 5, 4, MPI_COMM_SELF, ierror)
    call MPI_Send(value, 1, MPI_INTEGER, 5, 4, twin, ierror)
  end subroutine failing
  include 'check.inc'
end program absent_ierror
