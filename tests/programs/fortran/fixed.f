C     Fixed form, upper case, mpif.h and implicit interfaces: the style
C     of most old programs, with procedures that MPI-3 removed.
      PROGRAM FIXED
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER IERR, ME, RANKS, I, KEY, EXTRA, VALUE, SIZE, TYPE
      INTEGER STATUS(MPI_STATUS_SIZE), ADDR, LENGTH(2), DISP(2)
      INTEGER TYPES(2), HANDLR
      LOGICAL FLAG
      DOUBLE PRECISION X(10), Y(10)
      INTEGER K, PACKED(40)
      COMMON /BLOCK/ X, K
      EXTERNAL GRUMBL
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, ME, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, RANKS, IERR)
      DO 10 I = 1, 10
         X(I) = DBLE(ME + I)
   10 CONTINUE
      K = 100 + ME
      CALL MPI_ALLREDUCE(X, Y, 10, MPI_DOUBLE_PRECISION, MPI_SUM,
     &                   MPI_COMM_WORLD, IERR)
      CALL CLAIM(Y(10) .EQ. DBLE(RANKS*10 + RANKS*(RANKS-1)/2), 1)
C     Creates a structure datatype by MPI-1 procedures.
      TYPES(1) = MPI_DOUBLE_PRECISION
      TYPES(2) = MPI_INTEGER
      LENGTH(1) = 10
      LENGTH(2) = 1
      DISP(1) = 0
      DISP(2) = 80
      CALL MPI_TYPE_STRUCT(2, LENGTH, DISP, TYPES, TYPE, IERR)
      CALL MPI_TYPE_COMMIT(TYPE, IERR)
      CALL MPI_TYPE_EXTENT(TYPE, SIZE, IERR)
      CALL CLAIM(SIZE .EQ. 84 .OR. SIZE .EQ. 88, 2)
C     The members of the structure have the offsets of the program.
      I = 0
      CALL MPI_PACK(X, 1, TYPE, PACKED, 160, I, MPI_COMM_SELF, IERR)
      I = 0
      CALL MPI_UNPACK(PACKED, 160, I, Y, 10, MPI_DOUBLE_PRECISION,
     &                MPI_COMM_SELF, IERR)
      CALL MPI_UNPACK(PACKED, 160, I, VALUE, 1, MPI_INTEGER,
     &                MPI_COMM_SELF, IERR)
      CALL CLAIM(Y(10) .EQ. X(10) .AND. VALUE .EQ. 100 + ME, 9)
      CALL MPI_BCAST(X, 1, TYPE, 0, MPI_COMM_WORLD, IERR)
      CALL CLAIM(X(10) .EQ. 10D0 .AND. K .EQ. 100, 3)
      CALL MPI_TYPE_FREE(TYPE, IERR)
C     Sets and reads attributes by MPI-1 procedures.
      CALL MPI_KEYVAL_CREATE(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN,
     &                       KEY, EXTRA, IERR)
      CALL MPI_ATTR_PUT(MPI_COMM_WORLD, KEY, -5, IERR)
      CALL MPI_ATTR_GET(MPI_COMM_WORLD, KEY, VALUE, FLAG, IERR)
      CALL CLAIM(FLAG .AND. VALUE .EQ. -5, 4)
      CALL MPI_ATTR_DELETE(MPI_COMM_WORLD, KEY, IERR)
      CALL MPI_KEYVAL_FREE(KEY, IERR)
      CALL MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, VALUE, FLAG, IERR)
      CALL CLAIM(FLAG .AND. VALUE .GE. 32767, 5)
C     Sets an error handler by MPI-1 procedures.
      CALL MPI_ERRHANDLER_CREATE(GRUMBL, HANDLR, IERR)
      CALL MPI_ERRHANDLER_SET(MPI_COMM_WORLD, HANDLR, IERR)
      VALUE = 0
      CALL MPI_SEND(VALUE, 1, MPI_INTEGER, RANKS, 0, MPI_COMM_WORLD,
     &              IERR)
      CALL CLAIM(K .EQ. -1, 6)
      CALL MPI_ERRHANDLER_SET(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL,
     &                        IERR)
      CALL MPI_ERRHANDLER_FREE(HANDLR, IERR)
C     A message to the rank itself.
      CALL MPI_SENDRECV(ME, 1, MPI_INTEGER, ME, 3, VALUE, 1,
     &     MPI_INTEGER, ME, MPI_ANY_TAG, MPI_COMM_WORLD, STATUS, IERR)
      CALL CLAIM(VALUE .EQ. ME .AND. STATUS(MPI_TAG) .EQ. 3, 7)
      CALL CLAIM(MPI_WTIME() .GE. 0D0 .AND. MPI_WTICK() .GT. 0D0, 8)
      CALL MPI_BARRIER(MPI_COMM_WORLD, IERR)
      IF (ME .EQ. 0) THEN
         WRITE (*, '(A,I0,A)') 'all claims of fixed hold on ', RANKS,
     &                         ' ranks'
      END IF
      CALL MPI_FINALIZE(IERR)
      END

      SUBROUTINE GRUMBL(COMM, CODE)
      INTEGER COMM, CODE, K
      DOUBLE PRECISION X(10)
      COMMON /BLOCK/ X, K
      IF (CODE .NE. 0) K = -1
      END

      SUBROUTINE CLAIM(HOLDS, NUMBER)
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      LOGICAL HOLDS
      INTEGER NUMBER, IERR
      IF (HOLDS) RETURN
      WRITE (*, '(A,I0)') 'not true: claim ', NUMBER
      CALL MPI_ABORT(MPI_COMM_WORLD, 99, IERR)
      END
