/* A job with checkpoint and restart: a stencil with halos, reductions, a window and a file.
 * The last line of output depends on every step.
 *
 * checkpoints STEPS [protect | handlers | connects] [file NAME] [threads 1] [port NAME]
 *     protect   the library saves the memory (the default); handlers: functions of the program save it
 *     file NAME each step writes a line to the shared file NAME
 *     threads 1 initializes at MPI_THREAD_MULTIPLE
 *     port NAME a file: a job that accepts a connection writes its port's name to it,
 *               and a job that only connects and disconnects reads the name
 * The variable CHECKPOINTS contains what a restarted job must not repeat:
 *     request N the program requests a checkpoint before step N, and waits until it is taken or refused
 *     await N   the program waits before step N until a checkpoint is taken; stop N: until it is asked to stop
 *     die N     one rank dies by SIGKILL before step N
 *     pause US  each rank sleeps for US microseconds after each step
 *     fault N   at the step of the request, an operation is pending that cannot be saved, see `disturb`
 * A spawned job has the argument "child" and ends when the connection is closed. */
#include "check.h"
#include <mpi-ext.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

enum { CELLS = 1000 };

struct state {
    int64_t step;
    double cells[CELLS + 2];
    double total;
    double window[8];
};

static struct state state;
static int saves, loads;

/* Returns the number that follows `name` in the variable CHECKPOINTS. */
static long option(const char *name, long otherwise)
{
    const char *text = getenv("CHECKPOINTS"), *found = text ? strstr(text, name) : NULL;
    return found ? atol(found + strlen(name)) : otherwise;
}

static const char *word(int argc, char **argv, const char *name)
{
    for (int i = 2; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return NULL;
}

static int save(const char *folder, void *extra_state)
{
    char path[MPIX_MAX_CHECKPOINT_FOLDER + 32];
    snprintf(path, sizeof path, "%s/state", folder);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(extra_state, sizeof(struct state), 1, file) != 1 || fclose(file) != 0)
        return 1;
    /* A checkpoint handler may call MPI. */
    int one = 1, all = 0;
    OK(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == size, "%d of %d", all, size);
    saves++;
    return 0;
}

static int load(const char *folder, void *extra_state)
{
    char path[MPIX_MAX_CHECKPOINT_FOLDER + 32], known[MPIX_MAX_CHECKPOINT_FOLDER];
    int restarted, length;
    OK(MPIX_Checkpoint_restarted(&restarted, known, &length));
    CHECK(restarted && strcmp(known, folder) == 0 && length == (int)strlen(folder), "%s, %s", known, folder);
    snprintf(path, sizeof path, "%s/state", folder);
    FILE *file = fopen(path, "rb");
    if (!file || fread(extra_state, sizeof(struct state), 1, file) != 1)
        return 1;
    loads++;
    return fclose(file);
}

/* A second thread that is inside MPI: its receive is active when `inside` is set. */
static atomic_int inside;

static void *waits_inside(void *number)
{
    MPI_Request mine;
    OK(MPI_Irecv(number, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &mine));
    atomic_store(&inside, 1);
    OK(MPI_Wait(&mine, MPI_STATUS_IGNORE));
    return NULL;
}

/* Writes the name of a port for another job. */
static void give_port(const char *name, const char *port)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.new", name);
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(port, file) >= 0 && fclose(file) == 0 && rename(path, name) == 0, "%s", name);
}

/* Connects to the job that wrote its port's name, and disconnects. */
static void connect_and_leave(const char *name)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm others;
    if (rank == 0) {
        FILE *file;
        while (!(file = fopen(name, "r")))
            usleep(1000);
        CHECK(fgets(port, sizeof port, file) != NULL, "%s", name);
        fclose(file);
    }
    OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others));
    OK(MPI_Comm_disconnect(&others));
}

/* Starts an operation that a checkpoint cannot save. */
static void disturb(long what, MPI_Win win, char *program, const char *port_file)
{
    static int sent, received;
    static MPI_Request left = MPI_REQUEST_NULL;
    static pthread_t thread;
    static MPI_Comm children, others;
    char port[MPI_MAX_PORT_NAME] = "";
    static char *child[] = {"1", "child", NULL};
    int next = (rank + 1) % size;
    switch (what) {
    case 1: /* a message without a receive */
        if (rank == 0)
            OK(MPI_Send(&sent, 1, MPI_INT, next, 9, MPI_COMM_WORLD));
        break;
    case 2: /* an active receive */
        if (rank == 1)
            OK(MPI_Irecv(&received, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &left));
        break;
    case 3: /* an open epoch */
        if (rank == 0)
            OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
        break;
    case 4: /* a second thread in MPI_Wait */
        if (rank == 1) {
            CHECK(pthread_create(&thread, NULL, waits_inside, &received) == 0, "no thread");
            while (!atomic_load(&inside))
                usleep(100);
        }
        break;
    case 5: /* a spawned job */
        OK(MPI_Comm_spawn(program, child, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
        break;
    case 6: /* a job of another mpirun */
        if (rank == 0) {
            OK(MPI_Open_port(MPI_INFO_NULL, port));
            give_port(port_file, port);
        }
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others));
        if (rank == 0)
            OK(MPI_Close_port(port));
        break;
    case -1:
        if (rank == 1)
            OK(MPI_Recv(&received, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        break;
    case -2:
        if (rank == 0)
            OK(MPI_Send(&sent, 1, MPI_INT, 1, 9, MPI_COMM_WORLD));
        if (rank == 1)
            OK(MPI_Wait(&left, MPI_STATUS_IGNORE));
        break;
    case -3:
        if (rank == 0)
            OK(MPI_Win_unlock(next, win));
        break;
    case -4:
        if (rank == 0)
            OK(MPI_Send(&sent, 1, MPI_INT, 1, 9, MPI_COMM_WORLD));
        if (rank == 1)
            CHECK(pthread_join(thread, NULL) == 0, "no end of the thread");
        break;
    case -5:
        OK(MPI_Comm_disconnect(&children));
        break;
    case -6:
        OK(MPI_Comm_disconnect(&others));
        break;
    }
}

static void step(MPI_Win win, double *shared, MPI_File file)
{
    int up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, down = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    double *cells = state.cells;
    MPI_Request halos[4];
    OK(MPI_Irecv(&cells[0], 1, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &halos[0]));
    OK(MPI_Irecv(&cells[CELLS + 1], 1, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &halos[1]));
    OK(MPI_Isend(&cells[CELLS], 1, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &halos[2]));
    OK(MPI_Isend(&cells[1], 1, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &halos[3]));
    OK(MPI_Waitall(4, halos, MPI_STATUSES_IGNORE));
    double before = cells[0];
    /* The values are integers, so the sum does not depend on which rank is where. */
    int64_t mine = 0, sum;
    for (int i = 1; i <= CELLS; i++) {
        double here = cells[i];
        cells[i] = here + 0.25 * (before - 2 * here + cells[i + 1]);
        before = here;
        mine += (int64_t)(cells[i] * 65536) * i;
    }
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    double all = (double)sum / 65536;
    state.total += all / (1 + state.step);
    /* Each rank adds to the window of the next rank. */
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(&all, 1, MPI_DOUBLE, (rank + 1) % size, state.step % 8, 1, MPI_DOUBLE, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memcpy(state.window, shared, sizeof state.window);
    if (file != MPI_FILE_NULL) {
        char line[64];
        int length = snprintf(line, sizeof line, "%08ld %04d %a\n", (long)state.step, rank, state.total);
        line[length - 1] = ' ';
        memset(line + length, ' ', sizeof line - length);
        line[63] = '\n';
        OK(MPI_File_write_at_all(file, 64 * (state.step * size + rank), line, 64, MPI_CHAR, MPI_STATUS_IGNORE));
    }
}

int main(int argc, char **argv)
{
    int level, what, taken = 0, failed = 0, restored = 0, stopped = 0, asked = 0;
    long steps = argc > 1 ? atol(argv[1]) : 20;
    int wanted = word(argc, argv, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    OK(MPI_Init_thread(&argc, &argv, wanted, &level));
    introduce();
    MPI_Comm parent;
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        OK(MPI_Comm_disconnect(&parent));
        OK(MPI_Finalize());
        return 0;
    }
    if (argc > 2 && strcmp(argv[2], "connects") == 0) {
        connect_and_leave(word(argc, argv, "port"));
        OK(MPI_Finalize());
        return 0;
    }
    int by_hand = argc > 2 && strcmp(argv[2], "handlers") == 0;
    long request = option("request ", -1), die = option("die ", -1), fault = option("fault ", 0);
    long await = option("await ", -1), stop = option("stop ", -1), pause = option("pause ", 0);
    const char *name = word(argc, argv, "file");

    for (int i = 1; i <= CELLS; i++)
        state.cells[i] = (rank * 31 + i * 17) % 101;
    if (by_hand)
        OK(MPIX_Checkpoint_handlers(save, load, &state));
    else {
        OK(MPIX_Checkpoint_protect(1, &state.step, 1, MPI_INT64_T));
        OK(MPIX_Checkpoint_protect(2, state.cells, CELLS + 2, MPI_DOUBLE));
        OK(MPIX_Checkpoint_protect(3, &state.total, 1, MPI_DOUBLE));
        OK(MPIX_Checkpoint_protect(4, state.window, 8, MPI_DOUBLE));
    }
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Win win;
    double *shared;
    OK(MPI_Win_allocate(sizeof state.window, sizeof(double), MPI_INFO_NULL, comm, &shared, &win));
    MPI_File file = MPI_FILE_NULL;
    if (name)
        OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    memset(shared, 0, sizeof state.window);

    for (; state.step < steps; state.step++) {
        if (fault && state.step == request)
            disturb(fault, win, argv[0], word(argc, argv, "port"));
        for (;;) {
            OK(MPIX_Checkpoint_point(comm, &what));
            taken += what == MPIX_CHECKPOINT_TAKEN || what == MPIX_CHECKPOINT_STOP;
            failed += what == MPIX_CHECKPOINT_FAILED;
            restored += what == MPIX_CHECKPOINT_RESTORED;
            stopped = what == MPIX_CHECKPOINT_STOP;
            if (what == MPIX_CHECKPOINT_RESTORED) {
                memcpy(shared, state.window, sizeof state.window);
                OK(MPI_Barrier(comm));
                break;
            }
            if (state.step == request && !asked) {
                asked = 1;
                if (rank == 0)
                    OK(MPIX_Checkpoint_request(comm));
            }
            /* While another job is connected, mpirun refuses a request without pausing the ranks. */
            int waits = what == MPIX_CHECKPOINT_NONE && (state.step == await || (state.step == request && fault != 5));
            if (stopped || !(waits || state.step == stop))
                break;
        }
        if (stopped)
            break;
        if (fault && state.step == request)
            disturb(-fault, win, argv[0], word(argc, argv, "port"));
        if (state.step == die && rank == size - 1)
            raise(SIGKILL);
        step(win, shared, file);
        if (pause)
            usleep((useconds_t)pause);
    }
    if (by_hand)
        CHECK(saves == taken && loads == restored, "%d saved, %d taken, %d loaded, %d restored", saves, taken, loads, restored);
    if (file != MPI_FILE_NULL)
        OK(MPI_File_close(&file));
    double sum = state.total;
    for (int i = 0; i < 8; i++)
        sum += state.window[i] * (i + 1);
    uint64_t mine, all;
    memcpy(&mine, &sum, sizeof mine);
    mine *= 2 * (uint64_t)rank + 1;
    OK(MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_BXOR, comm));
    if (rank == 0 && !stopped) {
        printf("result %016llx after %ld steps\n", (unsigned long long)all, (long)state.step);
        fprintf(stderr, "taken %d, failed %d, restored %d\n", taken, failed, restored);
    }
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}
