/* A job that knows nothing of checkpoints: a stencil with halos and reductions, a window, a shared
 * file and a second thread in MPI. The last line of output depends on every step.
 *
 * images STEPS PAUSE_US FILE
 * Rank 0 prints a line for each step. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

enum { CELLS = 5000, LONG = 200000 };

static double cells[CELLS + 2];
static MPI_Comm beside;
static int steps;

/* The second thread: reductions on a communicator of its own. */
static void *reduces(void *total)
{
    for (int i = 0; i < steps; i++) {
        double mine = (rank + 1) * 0.5 + i, all;
        OK(MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, beside));
        *(double *)total += all;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int level;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    introduce();
    CHECK(argc == 4 && level == MPI_THREAD_MULTIPLE, "%d arguments, level %d", argc, level);
    steps = atoi(argv[1]);
    int pause = atoi(argv[2]), left = (rank + size - 1) % size, right = (rank + 1) % size;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &beside));
    double *shared, reduced = 0, total = 0;
    MPI_Win win;
    OK(MPI_Win_allocate(8 * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &win));
    for (int i = 0; i < 8; i++)
        shared[i] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, argv[3], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    double *sent = malloc(LONG * sizeof *sent), *received = malloc(LONG * sizeof *received);
    CHECK(sent && received, "no memory");
    for (int i = 0; i < CELLS + 2; i++)
        cells[i] = rank + i * 0.001;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, reduces, &reduced) == 0, "no thread");
    for (int step = 0; step < steps; step++) {
        OK(MPI_Sendrecv(&cells[1], 1, MPI_DOUBLE, left, 1, &cells[CELLS + 1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Sendrecv(&cells[CELLS], 1, MPI_DOUBLE, right, 2, &cells[0], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        double before = cells[0], sum = 0, all, one = 1, old;
        for (int i = 1; i <= CELLS; i++) {
            double mean = (before + cells[i] + cells[i + 1]) / 3;
            before = cells[i];
            sum += cells[i] = mean;
        }
        OK(MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        for (int i = 0; i < LONG; i++)
            sent[i] = all + i;
        MPI_Request requests[2];
        OK(MPI_Irecv(received, LONG, MPI_DOUBLE, left, 3, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(sent, LONG, MPI_DOUBLE, right, 3, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        total += all + received[step % LONG];
        OK(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
        OK(MPI_Fetch_and_op(&one, &old, MPI_DOUBLE, right, step % 8, MPI_SUM, win));
        OK(MPI_Win_unlock(right, win));
        char line[32];
        int length = snprintf(line, sizeof line, "%10d %10.6f\n", step, all / CELLS);
        MPI_Offset at = ((MPI_Offset)step * size + rank) * length;
        OK(MPI_File_write_at(file, at, line, length, MPI_CHAR, MPI_STATUS_IGNORE));
        if (rank == 0) {
            printf("step %d\n", step);
            fflush(stdout);
        }
        usleep(pause);
    }
    CHECK(pthread_join(thread, NULL) == 0, "no end of the thread");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    for (int i = 0; i < 8; i++)
        total += shared[i] * (i + 1);
    OK(MPI_Win_unlock(rank, win));
    total += reduced;
    double all;
    OK(MPI_Reduce(&total, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD));
    OK(MPI_File_close(&file));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&beside));
    free(sent);
    free(received);
    if (rank == 0)
        printf("result %.17g\n", all);
    OK(MPI_Finalize());
    return 0;
}
