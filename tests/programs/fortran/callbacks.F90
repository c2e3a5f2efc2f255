! Procedures of the program that the library calls back: operators, attribute functions of MPI-1 and MPI-2,
! error handlers, generalized requests.
#include "ways.h"
module called
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  integer :: copies = 0, deletions = 0, failures = 0, last_failure = 0, queries = 0, frees = 0, folds = 0
contains
  ! An operator that concatenates decimal digits, so that the result shows the order of the operands.
#if WAY == 3
  subroutine digits(from, into, length, type)
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: from, into
    integer :: length
    DATATYPE :: type
    integer, pointer :: a(:), b(:)
    call c_f_pointer(from, a, [length])
    call c_f_pointer(into, b, [length])
#else
  subroutine digits(a, b, length, type)
    integer :: length
    DATATYPE :: type
    integer :: a(length), b(length)
#endif
    if (type /= MPI_INTEGER) return
    b = 10 * a + b
    folds = folds + 1
  end subroutine digits

  subroutine copied(comm, keyval, extra, value, copy, flag, ierr)
    COMM :: comm
    integer :: keyval, ierr
    integer(MPI_ADDRESS_KIND) :: extra, value, copy
    logical :: flag
    copies = copies + 1
    copy = value + extra
    flag = .true.
    ierr = MPI_SUCCESS
    if (comm == MPI_COMM_NULL .or. keyval == MPI_KEYVAL_INVALID) ierr = MPI_ERR_KEYVAL
  end subroutine copied

  subroutine deleted(comm, keyval, value, extra, ierr)
    COMM :: comm
    integer :: keyval, ierr
    integer(MPI_ADDRESS_KIND) :: value, extra
    deletions = deletions + 1
    ierr = MPI_SUCCESS
    if (extra /= 1000 .or. value < 77 .or. comm == MPI_COMM_NULL .or. keyval == MPI_KEYVAL_INVALID) ierr = MPI_ERR_ARG
  end subroutine deleted

  subroutine failed(comm, code)
    COMM :: comm
    integer :: code
    failures = failures + 1
    last_failure = code
    if (comm == MPI_COMM_NULL) failures = -1
  end subroutine failed

  subroutine query(extra, status, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    STATUS :: status
    integer :: ierr
    queries = queries + 1
    FIELD(status, MPI_SOURCE) = int(extra)
    FIELD(status, MPI_TAG) = 78
    call MPI_Status_set_cancelled(status, .false., ierr)
    call MPI_Status_set_elements(status, MPI_INTEGER, 5, ierr)
  end subroutine query

  subroutine freed(extra, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierr
    frees = frees + int(extra)
    ierr = MPI_SUCCESS
  end subroutine freed

  subroutine cancelled(extra, complete, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierr
    ierr = merge(MPI_SUCCESS, MPI_ERR_OTHER, complete .or. extra > 0)
  end subroutine cancelled
end module called

program callbacks
  use called
  implicit none
  integer :: ierr, me, ranks, i, expected, total, keyval, class, count
  integer(MPI_ADDRESS_KIND) :: value
  integer(MPI_ADDRESS_KIND), parameter :: thousand = 1000, seventy_seven = 77, two = 2
  logical :: flag
  COMM :: first, second
  OP :: op
  ERRHANDLER :: handler, kept
  REQUEST :: request
  STATUS :: one

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)

  call MPI_Op_create(digits, .false., op, ierr)
  call MPI_Op_commutative(op, flag, ierr)
  call claim(.not. flag, 'the operator does not commute')
  expected = 0
  do i = 0, ranks - 1
    expected = 10 * expected + mod(i, 10)
  end do
  call MPI_Allreduce(mod(me, 10), total, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
  call claim(ranks > 9 .or. total == expected .or. ranks == 1, 'operands are taken in the order of the ranks')
  total = 3
  call MPI_Reduce_local(4, total, 1, MPI_INTEGER, op, ierr)
  call claim(total == 43, 'the operator called at once')
  call claim(folds > 0, 'the operator was called with the handle of the datatype')
  call MPI_Op_free(op, ierr)
  call claim(op == MPI_OP_NULL, 'a freed operator is null')

  ! Copies and deletes attributes, by procedures of the program and of MPI.
  call MPI_Comm_create_keyval(copied, deleted, keyval, thousand, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, first, ierr)
  call MPI_Comm_set_attr(first, keyval, seventy_seven, ierr)
  call MPI_Comm_dup(first, second, ierr)
  call claim(copies == 1, 'one attribute was copied')
  call MPI_Comm_get_attr(second, keyval, value, flag, ierr)
  call claim(flag .and. value == 1077, 'the copy has the value that the procedure gave')
  call MPI_Comm_delete_attr(second, keyval, ierr)
  call claim(ierr == MPI_SUCCESS .and. deletions == 1, 'an attribute was deleted')
  call MPI_Comm_get_attr(second, keyval, value, flag, ierr)
  call claim(.not. flag, 'it is gone')
  call MPI_Comm_free(second, ierr)
  call MPI_Comm_free(first, ierr)
  call claim(deletions == 2, 'attributes go with their communicator')
  call MPI_Comm_free_keyval(keyval, ierr)
  call claim(keyval == MPI_KEYVAL_INVALID, 'a freed key is invalid')
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, thousand, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, first, ierr)
  call MPI_Comm_set_attr(first, keyval, seventy_seven, ierr)
  call MPI_Comm_dup(first, second, ierr)
  call MPI_Comm_get_attr(second, keyval, value, flag, ierr)
  call claim(flag .and. value == 77, 'MPI_COMM_DUP_FN copies')
  call MPI_Comm_free(second, ierr)
  call MPI_Comm_free_keyval(keyval, ierr)
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, thousand, ierr)
  call MPI_Comm_set_attr(first, keyval, seventy_seven, ierr)
  call MPI_Comm_dup(first, second, ierr)
  call MPI_Comm_get_attr(second, keyval, value, flag, ierr)
  call claim(.not. flag, 'MPI_COMM_NULL_COPY_FN does not copy')
  call MPI_Comm_free(second, ierr)
  call MPI_Comm_free_keyval(keyval, ierr)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  call claim(flag .and. value >= 32767, 'MPI_TAG_UB is a value, not an address')

  ! Sets and calls an error handler of the program.
  call MPI_Comm_create_errhandler(failed, handler, ierr)
  call MPI_Comm_set_errhandler(first, handler, ierr)
  call MPI_Comm_get_errhandler(first, kept, ierr)
  call claim(kept == handler, 'the error handler is the one that was set')
  call MPI_Errhandler_free(kept, ierr)
  call MPI_Errhandler_free(handler, ierr)
  call MPI_Send(me, 1, MPI_INTEGER, ranks, 0, first, ierr)
  call claim(failures == 1, 'the error handler was called')
  call MPI_Error_class(last_failure, class, ierr)
  call claim(class == MPI_ERR_RANK, 'it was told the class of the error')
  call MPI_Comm_call_errhandler(first, MPI_ERR_OTHER, ierr)
  call claim(failures == 2 .and. last_failure == MPI_ERR_OTHER, 'it was called by the program')
  call MPI_Comm_set_errhandler(first, MPI_ERRORS_RETURN, ierr)
  call MPI_Send(me, 1, MPI_INTEGER, ranks, 0, first, ierr)
  call claim(ierr /= MPI_SUCCESS .and. failures == 2, 'an error is returned')
  call MPI_Comm_free(first, ierr)

  ! A generalized request, which the program completes.
  call MPI_Grequest_start(query, freed, cancelled, two, request, ierr)
  call MPI_Cancel(request, ierr)
  call MPI_Grequest_complete(request, ierr)
  call MPI_Wait(request, one, ierr)
  call MPI_Get_count(one, MPI_INTEGER, count, ierr)
  call claim(FIELD(one, MPI_SOURCE) == 2 .and. FIELD(one, MPI_TAG) == 78 .and. count == 5, 'the status is as the query set it')
  call claim(queries == 1 .and. frees == 2, 'its procedures were called once')
  call finish('callbacks')
contains
  include 'check.inc'
end program callbacks
