/* Members die at arbitrary moments of calls that create, use or free a shared object.
 * On the survivors each call must end, with success or a fault tolerance error.
 * Each survivor frees the objects that its calls created.
 * Usage: moments OPERATION[,OPERATION...] SEED, started by mpirun --with-ft ulfm.
 * In each operation one or two members die; the next operation runs on the survivors. */
#include "survival.h"
#include <sys/time.h>
#include <unistd.h>

static const char *program_name, *file_name;

/* The state of an operation: its communicator, the objects created before any member dies,
 * and the objects created during the operation. */
struct work {
    MPI_Comm comm, made, half, whole;
    MPI_Win win;
    MPI_File file;
    int data[64], *base;
};

static MPI_Win quiet(MPI_Win win)
{
    if (win != MPI_WIN_NULL)
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

static int call_dup(struct work *w)
{
    return MPI_Comm_dup(w->comm, &w->made);
}

static int call_idup(struct work *w)
{
    MPI_Request request;
    int error = MPI_Comm_idup(w->comm, &w->made, &request);
    return error ? error : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int call_split(struct work *w)
{
    int me;
    OK(MPI_Comm_rank(w->comm, &me));
    return MPI_Comm_split(w->comm, me % 2, me, &w->made);
}

static int call_split_type(struct work *w)
{
    return MPI_Comm_split_type(w->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &w->made);
}

static int call_create(struct work *w)
{
    MPI_Group all, some;
    int n, first[] = {0};
    OK(MPI_Comm_size(w->comm, &n));
    OK(MPI_Comm_group(w->comm, &all));
    OK(MPI_Group_excl(all, n > 2, first, &some));
    int error = MPI_Comm_create(w->comm, some, &w->made);
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&some));
    return error;
}

static int call_create_group(struct work *w)
{
    MPI_Group all;
    OK(MPI_Comm_group(w->comm, &all));
    int error = MPI_Comm_create_group(w->comm, all, 5, &w->made);
    OK(MPI_Group_free(&all));
    return error;
}

static int call_graph(struct work *w)
{
    int me, n, degree = 1;
    OK(MPI_Comm_rank(w->comm, &me));
    OK(MPI_Comm_size(w->comm, &n));
    int next = (me + 1) % n;
    return MPI_Dist_graph_create(w->comm, 1, &me, &degree, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &w->made);
}

static void prepare_two_groups(struct work *w)
{
    int me;
    OK(MPI_Comm_rank(w->comm, &me));
    OK(MPI_Comm_split(w->comm, me % 2, me, &w->half));
    returning(w->half);
}

static int call_intercomm(struct work *w)
{
    int me;
    OK(MPI_Comm_rank(w->comm, &me));
    return MPI_Intercomm_create(w->half, 0, w->comm, !(me % 2), 7, &w->made);
}

static void prepare_merge(struct work *w)
{
    int me;
    prepare_two_groups(w);
    OK(MPI_Comm_rank(w->comm, &me));
    OK(MPI_Intercomm_create(w->half, 0, w->comm, !(me % 2), 7, &w->whole));
    returning(w->whole);
}

static int call_merge(struct work *w)
{
    int me;
    OK(MPI_Comm_rank(w->comm, &me));
    return MPI_Intercomm_merge(w->whole, me % 2, &w->made);
}

static int call_inter_dup(struct work *w)
{
    return MPI_Comm_dup(w->whole, &w->made);
}

static int call_inter_split(struct work *w)
{
    return MPI_Comm_split(w->whole, 0, 0, &w->made);
}

/* Spawns one process, which ends immediately. */
static int call_spawn(struct work *w)
{
    char *arguments[] = {"child", "1", NULL};
    return MPI_Comm_spawn(program_name, arguments, 1, MPI_INFO_NULL, 0, w->comm, &w->made, MPI_ERRCODES_IGNORE);
}

static int call_win_create(struct work *w)
{
    return MPI_Win_create(w->data, sizeof w->data, sizeof *w->data, MPI_INFO_NULL, w->comm, &w->win);
}

static int call_win_allocate(struct work *w)
{
    return MPI_Win_allocate(64, 1, MPI_INFO_NULL, w->comm, &w->base, &w->win);
}

static int call_win_shared(struct work *w)
{
    return MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, w->comm, &w->base, &w->win);
}

static int call_win_dynamic(struct work *w)
{
    return MPI_Win_create_dynamic(MPI_INFO_NULL, w->comm, &w->win);
}

static void prepare_win(struct work *w)
{
    OK(call_win_create(w));
    quiet(w->win);
    OK(MPI_Win_fence(0, w->win));
}

static int call_win_fence(struct work *w)
{
    int me, n;
    OK(MPI_Comm_rank(w->comm, &me));
    OK(MPI_Comm_size(w->comm, &n));
    int error = MPI_Put(w->data, 1, MPI_INT, (me + 1) % n, 1, 1, MPI_INT, w->win);
    return error ? error : MPI_Win_fence(0, w->win);
}

static void prepare_locked_win(struct work *w)
{
    OK(call_win_create(w));
    quiet(w->win);
    OK(MPI_Win_lock_all(0, w->win));
}

/* Accumulates to the program's own memory use locks; a member that dies may hold one. */
static int call_accumulate(struct work *w)
{
    static const int ones[64];
    int n, error = 0;
    OK(MPI_Comm_size(w->comm, &n));
    for (int i = 0; !error && i < 300; i++)
        error = MPI_Accumulate(ones, 64, MPI_INT, i % n, 0, 64, MPI_INT, MPI_SUM, w->win);
    int ended = MPI_Win_unlock_all(w->win);
    return error ? error : ended;
}

static int call_win_free(struct work *w)
{
    return MPI_Win_free(&w->win);
}

static int call_file_open(struct work *w)
{
    return MPI_File_open(w->comm, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &w->file);
}

static void prepare_file(struct work *w)
{
    OK(call_file_open(w));
}

static int call_file_write(struct work *w)
{
    int me;
    OK(MPI_Comm_rank(w->comm, &me));
    int error = MPI_File_write_at_all(w->file, me * (MPI_Offset)sizeof w->data, w->data, 64, MPI_INT, MPI_STATUS_IGNORE);
    return error ? error : MPI_File_write_ordered(w->file, w->data, 64, MPI_INT, MPI_STATUS_IGNORE);
}

static int call_file_close(struct work *w)
{
    return MPI_File_close(&w->file);
}

static void prepare_dup(struct work *w)
{
    OK(call_dup(w));
    returning(w->made);
}

static int call_free(struct work *w)
{
    return MPI_Comm_free(&w->made);
}

static int call_disconnect(struct work *w)
{
    return MPI_Comm_disconnect(&w->made);
}

static const struct operation {
    const char *name;
    void (*prepare)(struct work *);
    int (*call)(struct work *);
    /* True if the call must succeed on the survivors, for example a call that frees an object. */
    int succeeds;
} operations[] = {
    {"dup", NULL, call_dup, 0},
    {"idup", NULL, call_idup, 0},
    {"split", NULL, call_split, 0},
    {"split_type", NULL, call_split_type, 0},
    {"create", NULL, call_create, 0},
    {"create_group", NULL, call_create_group, 0},
    {"graph", NULL, call_graph, 0},
    {"intercomm", prepare_two_groups, call_intercomm, 0},
    {"merge", prepare_merge, call_merge, 0},
    {"inter_dup", prepare_merge, call_inter_dup, 0},
    {"inter_split", prepare_merge, call_inter_split, 0},
    {"spawn", NULL, call_spawn, 0},
    {"win_create", NULL, call_win_create, 0},
    {"win_allocate", NULL, call_win_allocate, 0},
    {"win_shared", NULL, call_win_shared, 0},
    {"win_dynamic", NULL, call_win_dynamic, 0},
    {"win_fence", prepare_win, call_win_fence, 0},
    {"accumulate", prepare_locked_win, call_accumulate, 0},
    {"win_free", prepare_win, call_win_free, 1},
    {"file_open", NULL, call_file_open, 0},
    {"file_write", prepare_file, call_file_write, 0},
    {"file_close", prepare_file, call_file_close, 1},
    {"free", prepare_dup, call_free, 1},
    {"disconnect", prepare_dup, call_disconnect, 1},
};

static const struct operation *operation_of(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (!strcmp(operations[i].name, name))
            return &operations[i];
    CHECK(0, "%s is unknown", name);
    return NULL;
}

/* Runs the operation, in which some members die; returns a communicator of the survivors. */
static MPI_Comm lose_in(const struct operation *operation, MPI_Comm comm)
{
    struct work w = {comm, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL, MPI_WIN_NULL, MPI_FILE_NULL, {0}, NULL};
    int n, me, living, one = 1, sum = 0;
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Comm_rank(comm, &me));
    if (operation->prepare)
        operation->prepare(&w);
    /* All members draw the same numbers. In some runs a revocation ends the calls of the survivors. */
    int victims[2] = {(int)below(n), (int)below(n)}, die_alone = n < 4 || below(2), revokes = !below(4);
    long life[2] = {1 + (long)below(3000), 1 + (long)below(3000)};
    OK(MPI_Barrier(comm));
    for (int i = 0; i < 2 - die_alone; i++)
        if (me == victims[i])
            setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, life[i]}}, NULL);
    int error = operation->call(&w);
    CHECK(!error || of_faults(error), "%s gives class %d", operation->name, class_of(error));
    CHECK(!error || !operation->succeeds, "%s gives class %d, though the living end what they have", operation->name, class_of(error));
    if (me == victims[0] || (!die_alone && me == victims[1]))
        for (;;)
            pause();
    quiet(w.win);
    int had_file = w.file != MPI_FILE_NULL || operation->call == call_file_close, any_had = 0;
    /* A member that got an object frees it, although other members may have got an error. */
    if (w.win != MPI_WIN_NULL)
        OK(MPI_Win_free(&w.win));
    if (w.file != MPI_FILE_NULL)
        OK(MPI_File_close(&w.file));
    if (w.made != MPI_COMM_NULL)
        OK(MPI_Comm_free(&w.made));
    if (w.half != MPI_COMM_NULL)
        OK(MPI_Comm_free(&w.half));
    if (w.whole != MPI_COMM_NULL)
        OK(MPI_Comm_free(&w.whole));
    MPI_Comm left;
    int any = 0, dead = die_alone || victims[0] == victims[1] ? 1 : 2;
    if (revokes)
        OK(MPIX_Comm_revoke(comm));
    else
        TRY(MPIX_Comm_agree(comm, &any));
    OK(MPIX_Comm_shrink(comm, &left));
    returning(left);
    OK(MPI_Comm_size(left, &living));
    CHECK(living == n - dead, "after %s %d of %d are there", operation->name, living, n);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left));
    CHECK(sum == living, "after %s %d of %d are there", operation->name, sum, living);
    OK(MPI_Allreduce(&had_file, &any_had, 1, MPI_INT, MPI_MAX, left));
    CHECK(!any_had || access(file_name, F_OK), "after %s %s is there, which a rank has closed", operation->name, file_name);
    OK(MPI_Barrier(left));
    /* The file may exist even if opening it has failed on all members. */
    unlink(file_name);
    OK(MPI_Barrier(left));
    return left;
}

int main(int argc, char **argv)
{
    survive(&argc, &argv);
    if (!strcmp(argv[1], "child"))
        return MPI_Finalize();
    CHECK(argc > 3, "%s OPERATIONS SEED FILE", *argv);
    program_name = argv[0];
    file_name = argv[3];
    signal(SIGALRM, SIG_DFL);
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    returning(comm);
    for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ","))
        comm = lose_in(operation_of(name), comm);
    int me;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_free(&comm));
    if (me == 0)
        printf("all claims of moments hold on %d ranks\n", size);
    OK(MPI_Finalize());
    return 0;
}
