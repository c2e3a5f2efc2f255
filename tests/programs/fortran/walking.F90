! Random array sections of rank 1 to 15, whose descriptors the C part (walking.c) creates:
! the library packs a section to the same bytes as MPI_Pack with an equivalent datatype.
program walking
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int) function walk(seed, cases) bind(C)
      import :: c_int
      integer(c_int), value :: seed, cases
    end function walk
  end interface
  integer :: me

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call claim(walk(4711 + me, 600) == 0, 'a section and the datatype that describes it have the same elements')
  call finish('walking')
contains
  include 'check.inc'
end program walking
