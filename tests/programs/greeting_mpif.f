C     The smallest program of mpif.h in fixed form; the continued line
C     shows that the constants fit into the columns of fixed form.
      PROGRAM GREETING
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER RANK, RANKS, OTHER, SAID, IERR, STATUS(MPI_STATUS_SIZE)
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, RANKS, IERR)
      IF (RANK .NE. 0) THEN
        CALL MPI_SEND(RANK, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, IERR)
      ELSE
        DO 10 OTHER = 1, RANKS - 1
          CALL MPI_RECV(SAID, 1, MPI_INTEGER, MPI_ANY_SOURCE, 7,
     &      MPI_COMM_WORLD, STATUS, IERR)
          IF (SAID .NE. STATUS(MPI_SOURCE))
     &      CALL MPI_ABORT(MPI_COMM_WORLD, 1, IERR)
   10   CONTINUE
        PRINT '(A, I0, A)', 'all claims of greeting hold on ', RANKS,
     &    ' ranks'
      END IF
      CALL MPI_FINALIZE(IERR)
      END
