! Attributes that C and Fortran share, and handles that are passed between the languages (the C part is attributes.c).
#include "ways.h"
program attributes
  MPI_MODULE
#if WAY != 1
  use, intrinsic :: iso_c_binding
#endif
  implicit none
  MPI_INCLUDE
  interface
    ! Reads the attribute in C, and returns the integer to which its pointer points, or a negative number.
    function seen_by_c(comm, keyval) bind(c)
      import :: c_int
      integer(c_int), value :: comm, keyval
      integer(c_int) :: seen_by_c
    end function seen_by_c
    ! Creates a key in C and sets its attribute, which duplicates copy: the address of an int with the value 4321.
    subroutine set_by_c(comm, keyval) bind(c)
      import :: c_int
      integer(c_int), value :: comm
      integer(c_int) :: keyval
    end subroutine set_by_c
    ! Sends a message to this rank in C with Fortran's handles, and fills in the Fortran status.
    subroutine message_by_c(comm, type, status) bind(c)
      import :: c_int
      integer(c_int), value :: comm, type
      integer(c_int) :: status(*)
    end subroutine message_by_c
  end interface
  integer :: ierr, me, keyval, c_key, count, raw(MPI_STATUS_SIZE)
  STATUS :: one
  integer(MPI_ADDRESS_KIND) :: value
  integer(MPI_ADDRESS_KIND), parameter :: zero = 0, wide = 98765
  integer, pointer :: from_c
  logical :: flag
  COMM :: comm, copy
  DATATYPE :: pair

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)

  ! The attribute is set in Fortran; C reads a pointer to the value.
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, zero, ierr)
  call MPI_Comm_set_attr(comm, keyval, wide, ierr)
  call claim(seen_by_c(VAL(comm), keyval) == 98765, 'C sees a pointer to the value that Fortran has set')

  ! The attribute is set in C; Fortran reads the pointer as an integer.
  call set_by_c(VAL(comm), c_key)
  call MPI_Comm_get_attr(comm, c_key, value, flag, ierr)
  call claim(flag, 'an attribute of C is there')
  call c_f_pointer(transfer(value, c_null_ptr), from_c)
  call claim(from_c == 4321, 'Fortran sees the pointer that C has set')
  call MPI_Comm_dup(comm, copy, ierr)
  call MPI_Comm_get_attr(copy, c_key, value, flag, ierr)
  call claim(flag, 'C''s attribute was copied by a call from Fortran')
  call claim(seen_by_c(VAL(copy), keyval) == 98765, 'so was Fortran''s')
  call MPI_Comm_free(copy, ierr)
  call MPI_Comm_free_keyval(c_key, ierr)
  call MPI_Comm_free_keyval(keyval, ierr)

  ! Passes handles to C, and gets a status from C.
  call MPI_Type_contiguous(2, MPI_INTEGER, pair, ierr)
  call MPI_Type_commit(pair, ierr)
  call message_by_c(VAL(comm), VAL(pair), raw)
  call claim(raw(MPI_SOURCE) == me .and. raw(MPI_TAG) == 17, 'a status of C is one of Fortran')
#if WAY == 3
  call MPI_Status_f2f08(raw, one, ierr)
#else
  one = raw
#endif
  call MPI_Get_count(one, pair, count, ierr)
  call claim(count == 1, 'with its count')
  call MPI_Type_free(pair, ierr)
  call MPI_Comm_free(comm, ierr)
  call finish('attributes')
contains
  include 'check.inc'
end program attributes
