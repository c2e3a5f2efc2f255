C     Acts as if compiled so that .TRUE. is -1: passes integers as LOGICAL,
C     and tells the library both values before it initializes MPI.
      PROGRAM LOGICS
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER IERR, FLAG, YES, NO, GRID, DIMS(2), PERIOD(2), COORDS(2)
      INTEGER RANKS, ME
      CALL MPI_ABI_SET_FORTRAN_BOOLEANS(4, -1, 0, IERR)
      CALL MPI_INITIALIZED(FLAG, IERR)
      IF (FLAG .NE. 0) STOP 1
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, ME, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, RANKS, IERR)
      CALL MPI_INITIALIZED(FLAG, IERR)
      CALL CLAIM(FLAG .EQ. -1, 1)
      CALL MPI_ABI_GET_FORTRAN_BOOLEANS(4, YES, NO, FLAG, IERR)
      CALL CLAIM(YES .EQ. -1 .AND. NO .EQ. 0 .AND. FLAG .EQ. -1, 2)
C     LOGICAL arguments of the library, input and output.
      DIMS(1) = RANKS
      DIMS(2) = 1
      PERIOD(1) = -1
      PERIOD(2) = 0
      CALL MPI_CART_CREATE(MPI_COMM_WORLD, 2, DIMS, PERIOD, 0, GRID,
     &                     IERR)
      PERIOD(1) = 5
      PERIOD(2) = 5
      CALL MPI_CART_GET(GRID, 2, DIMS, PERIOD, COORDS, IERR)
      CALL CLAIM(PERIOD(1) .EQ. -1 .AND. PERIOD(2) .EQ. 0, 3)
      CALL MPI_COMM_FREE(GRID, IERR)
C     Checks the LOGICAL results of a probe and of a query.
      CALL MPI_IPROBE(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, FLAG,
     &                MPI_STATUS_IGNORE, IERR)
      CALL CLAIM(FLAG .EQ. 0, 4)
      CALL MPI_COMM_TEST_INTER(MPI_COMM_WORLD, FLAG, IERR)
      CALL CLAIM(FLAG .EQ. 0, 5)
      IF (ME .EQ. 0) PRINT '(A,I0,A)',
     &   'all claims of logicals hold on ', RANKS, ' ranks'
      CALL MPI_FINALIZE(IERR)
      END

      SUBROUTINE CLAIM(HOLDS, NUMBER)
      LOGICAL HOLDS
      INTEGER NUMBER, IERR
      INCLUDE 'mpif.h'
      IF (HOLDS) RETURN
      PRINT *, 'not true: claim', NUMBER
      CALL MPI_ABORT(MPI_COMM_WORLD, 99, IERR)
      END
