/*
 * Programs that hang because of a common mistake, for the hang report.
 *
 *     hang crossed|tag|missing|part|computes|exception|left|collective|started|root|absent|any|waitall|second|polls|shift|inner|straggler|self|length|buffering|parted
 *
 * No program ends by itself, except "buffering" if sends are buffered; run with a time limit.
 */
#include "check.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "crossed";
    int word = 1;
    begin(&argc, &argv);
    int other = 1 - rank;
    if (!strcmp(way, "crossed"))
        OK(MPI_Ssend(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD));
    if (!strcmp(way, "tag")) {
        if (rank == 0)
            OK(MPI_Ssend(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(&word, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (!strcmp(way, "missing")) {
        if (rank == 0)
            OK(MPI_Ssend(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD));
        else
            OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (!strcmp(way, "part")) {
        /* Ranks 0 and 1 wait for each other; rank 2 makes no MPI calls. */
        if (rank < 2)
            OK(MPI_Recv(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (;;)
            usleep(1000);
    }
    if (!strcmp(way, "buffering")) {
        /* Both ranks send before they receive, and hang unless the sends are buffered. */
        OK(MPI_Send(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD));
        OK(MPI_Recv(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MPI_Finalize();
        return 0;
    }
    if (!strcmp(way, "parted")) {
        /* The ranks connect with a spawned job and disconnect again before they hang. */
        MPI_Comm other_job, parent;
        OK(MPI_Comm_get_parent(&parent));
        if (parent != MPI_COMM_NULL) {
            OK(MPI_Comm_disconnect(&parent));
            MPI_Finalize();
            return 0;
        }
        OK(MPI_Comm_spawn(argv[0], argv + 1, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other_job, MPI_ERRCODES_IGNORE));
        OK(MPI_Comm_disconnect(&other_job));
        OK(MPI_Recv(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (!strcmp(way, "computes")) {
        while (rank == 1)
            pause();
        OK(MPI_Recv(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (!strcmp(way, "exception")) {
        /* Rank 1 ends as Python does after an exception: mpi4py finalizes. Rank 0 waits for a message. */
        if (rank == 0)
            OK(MPI_Recv(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        fputs("Traceback (most recent call last):\n  File \"prog.py\", line 3, in <module>\n    main()\nValueError: bad\n", stderr);
        MPI_Finalize();
        return 0;
    }
    if (!strcmp(way, "left")) {
        if (rank == 0)
            OK(MPI_Recv(&word, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MPI_Finalize();
        return 0;
    }
    if (!strcmp(way, "collective")) {
        if (rank == 0)
            OK(MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        else
            OK(MPI_Barrier(MPI_COMM_WORLD));
    }
#if MPI_VERSION >= 4 /* Open MPI 4.1 has no persistent collective operations. */
    if (!strcmp(way, "started")) {
        /* Rank 0 waits for a nonblocking operation, and rank 1 for a persistent one. */
        int words[2];
        MPI_Request persistent, request;
        OK(MPI_Bcast_init(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent));
        if (rank == 0) {
            OK(MPI_Iallgather(&word, 1, MPI_INT, words, 1, MPI_INT, MPI_COMM_WORLD, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Start(&persistent));
            OK(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
        }
    }
#endif
    if (!strcmp(way, "length")) {
        /* The root sends less data than the other rank expects, and continues. */
        static int words[4000];
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Scatter(words, rank == 0 ? 1 : 2000, MPI_INT, words + 2000, rank == 0 ? 1 : 2000, MPI_INT, 0, MPI_COMM_WORLD));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (!strcmp(way, "root")) {
        /* Each rank names the other rank as root of the broadcast. */
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Bcast(&word, 1, MPI_INT, other, MPI_COMM_WORLD));
    }
    if (!strcmp(way, "absent")) {
        /* The last rank calls another collective than the other ranks, and rank 1 computes. */
        while (rank == 1)
            pause();
        if (rank == size - 1)
            OK(MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD));
        else
            OK(MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    }
    if (!strcmp(way, "any")) {
        if (rank == 0)
            OK(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        else
            OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (!strcmp(way, "waitall")) {
        MPI_Request requests[2];
        if (rank == 0) {
            OK(MPI_Irecv(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[0]));
            OK(MPI_Irecv(&word, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &requests[1]));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        }
        while (rank == 1)
            pause();
    }
    if (!strcmp(way, "second")) {
        /* The first of two messages arrives; the second message is never sent. */
        MPI_Request requests[2];
        if (rank == 0) {
            OK(MPI_Irecv(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[0]));
            OK(MPI_Irecv(&word, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &requests[1]));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        }
        OK(MPI_Ssend(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD));
        while (rank == 1)
            pause();
    }
    if (!strcmp(way, "polls")) {
        /* Rank 0 polls for a message that rank 1 never sends. */
        MPI_Request request;
        int there = 0;
        if (rank == 0) {
            OK(MPI_Irecv(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request));
            while (!there)
                OK(MPI_Test(&request, &there, MPI_STATUS_IGNORE));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (!strcmp(way, "shift")) {
        /* All ranks except the last exchange a word around the ring; the last rank waits in a barrier. */
        if (rank < size - 1)
            OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 5, &word, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (!strcmp(way, "inner")) {
        /* Rank 0 of this communicator is the last rank of the job, because the ranks are reversed. */
        MPI_Comm turned;
        OK(MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned));
        if (rank == 0)
            OK(MPI_Recv(&word, 1, MPI_INT, 0, 5, turned, MPI_STATUS_IGNORE));
        else if (rank == 1)
            OK(MPI_Barrier(turned));
        else
            OK(MPI_Ssend(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
    }
    if (!strcmp(way, "straggler")) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        while (rank == 1)
            pause();
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (!strcmp(way, "self"))
        OK(MPI_Ssend(&word, 1, MPI_INT, rank, 1, MPI_COMM_WORLD));
    return finish("hang");
}
