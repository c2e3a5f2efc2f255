C     Passes a LOGICAL whose value the library does not know: the program has
C     not told the library which values its compiler uses.
      PROGRAM UNSTAT
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER IERR, GRID, PERIOD(2), COORDS(2), DIMS(2), I
      CALL MPI_INIT(IERR)
      DIMS(1) = 1
      DIMS(2) = 1
      DO 10 I = 1, 2
         PERIOD(1) = -1
         PERIOD(2) = 0
         CALL MPI_CART_CREATE(MPI_COMM_SELF, 2, DIMS, PERIOD, 0, GRID,
     &                        IERR)
         CALL MPI_CART_GET(GRID, 2, DIMS, PERIOD, COORDS, IERR)
         PRINT '(A,I0,A,I0)', 'periods ', PERIOD(1), ' ', PERIOD(2)
         CALL MPI_COMM_FREE(GRID, IERR)
   10 CONTINUE
      CALL MPI_FINALIZE(IERR)
      END
