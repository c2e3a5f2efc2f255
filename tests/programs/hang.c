/*
 * Programs that hang because of a common mistake, for the hang report.
 *
 *     hang crossed|tag|missing|part|computes|stopped|exception|left|collective|started|root|absent|any|waitall|second|polls|shift|inner|straggler|inter|self|length|buffering|parted|threads|beside|several
 *
 * In "threads", "beside" and "several" threads of a rank wait on communicators of their own (threads_lanes).
 * No program ends by itself, except "buffering" if sends are buffered; run with a time limit.
 */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { COMMS = 4 };

static MPI_Comm comms[COMMS];

/* Waits for a message that no rank sends. With four lanes, comms[2] and comms[3] belong to lanes other than 0. */
static void *receives(void *unused)
{
    int word;
    OK(MPI_Recv(&word, 1, MPI_INT, 1 - rank, 70, comms[3], MPI_STATUS_IGNORE));
    return unused;
}

/* Rank 0 sends with a tag that rank 1 does not receive. */
static void *exchanges(void *unused)
{
    int word = 1;
    MPI_Request request;
    if (rank == 0) {
        OK(MPI_Ssend(&word, 1, MPI_INT, 1, 71, comms[2]));
    } else {
        OK(MPI_Irecv(&word, 1, MPI_INT, 0, 72, comms[2], &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    return unused;
}

/* Waits for the first of several messages that no rank sends. */
static void *receives_any(void *unused)
{
    int words[COMMS], index;
    MPI_Request requests[COMMS];
    for (int i = 0; i < COMMS; i++)
        OK(MPI_Irecv(&words[i], 1, MPI_INT, 1 - rank, 73, comms[i], &requests[i]));
    OK(MPI_Waitany(COMMS, requests, &index, MPI_STATUS_IGNORE));
    return unused;
}

/* Starts the threads of one of these ways; the first thread waits for the others, or in MPI_COMM_WORLD. */
static void threads(const char *way)
{
    int is_several = !strcmp(way, "several"), word;
    pthread_t first, second;
    for (int i = 0; i < COMMS; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    CHECK(!pthread_create(&first, NULL, is_several ? receives_any : receives, NULL), "no thread for %s", way);
    CHECK(!pthread_create(&second, NULL, exchanges, NULL), "no second thread for %s", way);
    if (!strcmp(way, "beside"))
        OK(MPI_Recv(&word, 1, MPI_INT, 1 - rank, 74, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    pthread_join(first, NULL);
    pthread_join(second, NULL);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "crossed";
    int word = 1, level;
    int is_threaded = !strcmp(way, "threads") || !strcmp(way, "beside") || !strcmp(way, "several");
    if (is_threaded)
        OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    else
        OK(MPI_Init(&argc, &argv));
    introduce();
    int other = 1 - rank;
    if (is_threaded)
        threads(way);
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
    if (!strcmp(way, "stopped")) {
        while (rank == 1)
            raise(SIGSTOP);
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
    if (!strcmp(way, "inter")) {
        /* Rank 0 is one group of the intercommunicator, and does not call the barrier. */
        MPI_Comm group, inter;
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank > 0, 0, &group));
        OK(MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 9, &inter));
        while (rank == 0)
            pause();
        OK(MPI_Barrier(inter));
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
