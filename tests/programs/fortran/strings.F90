! Tests of strings: output arguments are padded with blanks, input arguments lose their trailing blanks;
! the strings are empty, all blanks, or 10,000 characters long.
#include "ways.h"
program strings
  MPI_MODULE
  implicit none
  MPI_INCLUDE
  integer :: ierr, me, length, class, code, keys, i
  logical :: flag
  character(MPI_MAX_OBJECT_NAME) :: name
  character(MPI_MAX_ERROR_STRING) :: text
  character(MPI_MAX_PROCESSOR_NAME) :: host
  character(MPI_MAX_LIBRARY_VERSION_STRING) :: version
  character(MPI_MAX_INFO_KEY) :: key
  character(10000) :: long
  character(3) :: short
  character(12) :: value
  character(0) :: nothing
  COMM :: comm
  DATATYPE :: type
  INFO :: info

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)

  ! Tests names of communicators and datatypes.
  name = repeat('x', len(name))
  call MPI_Comm_get_name(comm, name, length, ierr)
  call claim(length == 0 .and. name == ' ', 'a new communicator has no name, and the variable is blank')
  call MPI_Comm_set_name(comm, '  two words  ', ierr)
  name = repeat('x', len(name))
  call MPI_Comm_get_name(comm, name, length, ierr)
  call claim(length == 11 .and. name == '  two words', 'blanks before a name stay, those after it go')
  call MPI_Comm_set_name(comm, nothing, ierr)
  call MPI_Comm_get_name(comm, name, length, ierr)
  call claim(length == 0 .and. name == ' ', 'a name of length 0')
  call MPI_Comm_set_name(comm, '     ', ierr)
  call MPI_Comm_get_name(comm, name, length, ierr)
  call claim(length == 0 .and. name == ' ', 'a blank name')
  long = 'n'
  long(10000:) = 'e'
  call MPI_Comm_set_name(comm, 'short', ierr)
  call MPI_Comm_get_name(comm, long, length, ierr)
  call claim(long == 'short' .and. length == 5, 'a variable of 10,000 characters is blank after the name')
  long = repeat('y', len(long))
  call MPI_Comm_set_name(comm, long, ierr)
  call MPI_Comm_get_name(comm, name, length, ierr)
  call claim(length == MPI_MAX_OBJECT_NAME .and. name(:length) == long(:length), 'a name of 10,000 characters is cut')
  call MPI_Type_contiguous(3, MPI_INTEGER, type, ierr)
  call MPI_Type_set_name(type, 'three', ierr)
  call MPI_Type_get_name(type, name, length, ierr)
  call claim(name == 'three', 'the name of a type')
  call MPI_Type_free(type, ierr)
  call MPI_Type_get_name(MPI_DOUBLE_PRECISION, name, length, ierr)
  call claim(name == 'MPI_DOUBLE_PRECISION', 'the name of a predefined type')

  ! Tests the name of the host, the version of the library, and texts of errors.
  call MPI_Get_processor_name(host, length, ierr)
  call claim(length > 0 .and. len_trim(host) == length, 'the name of the host')
  call MPI_Get_library_version(version, length, ierr)
  call claim(length > 0 .and. length <= len(version), 'the version of the library')
  call MPI_Error_string(MPI_ERR_TRUNCATE, text, length, ierr)
  call claim(length > 0 .and. len_trim(text) == length, 'the text of an error')
  call MPI_Add_error_class(class, ierr)
  call MPI_Add_error_code(class, code, ierr)
  call MPI_Add_error_string(code, 'an error of our own  ', ierr)
  call MPI_Error_string(code, text, length, ierr)
  call claim(text == 'an error of our own' .and. length == 19, 'the text of an added error')

  ! Tests info keys and values.
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, ' key ', '  value  ', ierr)
  value = repeat('x', len(value))
  call MPI_Info_get(info, 'key', len(value), value, flag, ierr)
  call claim(flag .and. value == 'value', 'blanks around a key and a value go')
  call MPI_Info_get_valuelen(info, 'key   ', length, flag, ierr)
  call claim(flag .and. length == 5, 'the length of a value')
  short = 'xxx'
  call MPI_Info_get(info, 'key', len(short), short, flag, ierr)
  call claim(flag .and. short == 'val', 'a value is cut to the length of the variable')
  length = len(value)
  value = repeat('x', len(value))
  call MPI_Info_get_string(info, 'key', length, value, flag, ierr)
  call claim(flag .and. value == 'value' .and. length == 5, 'Info_get_string gives the length that is needed')
  value = repeat('x', len(value))
  call MPI_Info_get(info, 'other', len(value), value, flag, ierr)
  call claim(.not. flag, 'a key that is not there')
  call MPI_Info_get_nkeys(info, keys, ierr)
  call MPI_Info_get_nthkey(info, 0, key, ierr)
  call claim(keys == 1 .and. key == 'key', 'the first key has the number 0')
  call MPI_Info_delete(info, 'key ', ierr)
  call MPI_Info_free(info, ierr)
  call claim(info == MPI_INFO_NULL, 'a freed info is null')

  ! Sends characters as data.
  long = ' '
  if (me == 0) long = repeat('0123456789', 1000)
  call MPI_Bcast(long, len(long), MPI_CHARACTER, 0, MPI_COMM_WORLD, ierr)
  call claim(long(9991:) == '0123456789', '10,000 characters as data')
  call MPI_Bcast(nothing, 0, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierr)
  do i = 1, 3
    call MPI_Bcast(long(i:), 3, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierr)
  end do
  call claim(long(2:4) == '123', 'a part of a string as data')

  call MPI_Comm_free(comm, ierr)
  call finish('strings')
contains
  include 'check.inc'
end program strings
