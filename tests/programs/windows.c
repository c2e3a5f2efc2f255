/* Tests of one-sided communication: every kind of window, access and epoch,
 * and every error with its own error class. */
#include "check.h"
#include <stdint.h>

#define ALL(kind) for (int kind = 0; kind < 4; kind++)

/* A window of any kind, with its memory; in a dynamic window the memory is attached. */
typedef struct {
    MPI_Win win;
    char *base;       /* memory of this rank */
    MPI_Aint *at;     /* offsets to be added to displacements in bytes, by rank */
    void *given;      /* memory that this program must free */
    int kind;
} Window;

/* The number of increments of a counter; the argument replaces it on slow machines. */
static int times = 500;

static const char *kinds[] = {"create", "allocate", "dynamic", "alloc_mem"};

static Window make(int kind, MPI_Aint bytes)
{
    Window w = {.kind = kind};
    w.at = calloc(size, sizeof *w.at);
    switch (kind) {
    case 0:
        w.base = w.given = calloc(1, bytes + 1);
        OK(MPI_Win_create(w.base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w.win));
        break;
    case 1:
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w.base, &w.win));
        break;
    case 2: {
        MPI_Aint mine;
        w.base = w.given = calloc(1, bytes + 1);
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w.win));
        OK(MPI_Win_attach(w.win, w.base, bytes));
        OK(MPI_Get_address(w.base, &mine));
        OK(MPI_Allgather(&mine, 1, MPI_AINT, w.at, 1, MPI_AINT, MPI_COMM_WORLD));
        break;
    }
    default:
        OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &w.base));
        OK(MPI_Win_create(w.base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w.win));
    }
    memset(w.base, 0, bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return w;
}

static void unmake(Window *w)
{
    if (w->kind == 2) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_detach(w->win, w->base));
    }
    OK(MPI_Win_free(&w->win));
    CHECK(w->win == MPI_WIN_NULL, "the handle stays");
    if (w->kind == 3)
        OK(MPI_Free_mem(w->base));
    free(w->given);
    free(w->at);
}

static void put_and_get(int kind)
{
    enum { N = 5000 };
    Window w = make(kind, N * sizeof(int));
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int *mine = (int *)w.base, *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in);
    for (int i = 0; i < N; i++)
        out[i] = rank * N + i;
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win));
    OK(MPI_Put(out, N, MPI_INT, next, w.at[next], N, MPI_INT, w.win));
    OK(MPI_Win_fence(0, w.win));
    for (int i = 0; i < N; i++)
        CHECK(mine[i] == before * N + i, "%s: element %d is %d", kinds[kind], i, mine[i]);
    OK(MPI_Win_fence(0, w.win));
    OK(MPI_Get(in, N, MPI_INT, next, w.at[next], N, MPI_INT, w.win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win));
    for (int i = 0; i < N; i++)
        CHECK(in[i] == rank * N + i, "%s: element %d is %d", kinds[kind], i, in[i]);
    /* Derived datatypes on both sides: every second element of the origin, every third of the target. */
    MPI_Datatype second, third;
    OK(MPI_Type_vector(100, 1, 2, MPI_INT, &second));
    OK(MPI_Type_vector(100, 1, 3, MPI_INT, &third));
    OK(MPI_Type_commit(&second));
    OK(MPI_Type_commit(&third));
    memset(mine, 0, N * sizeof *mine);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, w.win));
    OK(MPI_Put(out, 1, second, next, w.at[next], 1, third, w.win));
    OK(MPI_Win_flush(next, w.win));
    memset(in, 0, N * sizeof *in);
    OK(MPI_Get(in, 1, second, next, w.at[next], 1, third, w.win));
    OK(MPI_Win_flush_all(w.win));
    for (int i = 0; i < 200; i++)
        CHECK(in[i] == (i % 2 ? 0 : rank * N + i), "%s: element %d is %d", kinds[kind], i, in[i]);
    OK(MPI_Win_unlock_all(w.win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 300; i++)
        CHECK(mine[i] == (i % 3 ? 0 : before * N + i / 3 * 2), "%s: element %d is %d", kinds[kind], i, mine[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* Accesses with requests, with large counts, and to MPI_PROC_NULL. */
    MPI_Request both[2];
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w.win));
    OK(MPI_Rput_c(out, (MPI_Count)N, MPI_INT, next, w.at[next], (MPI_Count)N, MPI_INT, w.win, &both[0]));
    OK(MPI_Rput(out, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w.win, &both[1]));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    OK(MPI_Win_flush(next, w.win));
    memset(in, 0, N * sizeof *in);
    OK(MPI_Rget(in, N, MPI_INT, next, w.at[next], N, MPI_INT, w.win, &both[0]));
    OK(MPI_Rget_c(in, (MPI_Count)1, MPI_INT, MPI_PROC_NULL, 0, (MPI_Count)1, MPI_INT, w.win, &both[1]));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    for (int i = 0; i < N; i++)
        CHECK(in[i] == out[i], "%s: element %d is %d", kinds[kind], i, in[i]);
    OK(MPI_Win_unlock(next, w.win));
    OK(MPI_Type_free(&second));
    OK(MPI_Type_free(&third));
    free(out);
    free(in);
    unmake(&w);
}

/* All ranks increment one counter; each value is fetched exactly once. */
static void counters(int kind)
{
    Window w = make(kind, 64);
    long one = 1, *got = malloc(times * sizeof *got), *all = malloc(times * size * sizeof *all);
    OK(MPI_Win_lock_all(0, w.win));
    for (int i = 0; i < times; i++) {
        OK(MPI_Fetch_and_op(&one, &got[i], MPI_LONG, 0, w.at[0], MPI_SUM, w.win));
        OK(MPI_Win_flush(0, w.win));
        if (i)
            CHECK(got[i] > got[i - 1], "%s: %ld follows %ld", kinds[kind], got[i], got[i - 1]);
    }
    OK(MPI_Win_unlock_all(w.win));
    OK(MPI_Gather(got, times, MPI_LONG, all, times, MPI_LONG, 0, MPI_COMM_WORLD));
    if (rank == 0) {
        char *seen = calloc(times * size, 1);
        for (int i = 0; i < times * size; i++) {
            CHECK(all[i] >= 0 && all[i] < times * size && !seen[all[i]], "%s: %ld", kinds[kind], all[i]);
            seen[all[i]] = 1;
        }
        free(seen);
    }
    /* A lock that is built from compare-and-swap protects a counter that is not atomic. */
    OK(MPI_Win_lock_all(0, w.win));
    for (int i = 0; i < 20; i++) {
        int free_ = 0, taken = 1, was;
        do {
            OK(MPI_Compare_and_swap(&taken, &free_, &was, MPI_INT, 0, w.at[0] + 8, w.win));
            OK(MPI_Win_flush(0, w.win));
        } while (was != 0);
        long value;
        OK(MPI_Get(&value, 1, MPI_LONG, 0, w.at[0] + 16, 1, MPI_LONG, w.win));
        OK(MPI_Win_flush(0, w.win));
        value++;
        OK(MPI_Put(&value, 1, MPI_LONG, 0, w.at[0] + 16, 1, MPI_LONG, w.win));
        OK(MPI_Win_flush(0, w.win));
        OK(MPI_Accumulate(&free_, 1, MPI_INT, 0, w.at[0] + 8, 1, MPI_INT, MPI_REPLACE, w.win));
        OK(MPI_Win_flush(0, w.win));
    }
    OK(MPI_Win_unlock_all(w.win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        CHECK(*(long *)(w.base + 16) == 20L * size, "%s: %ld", kinds[kind], *(long *)(w.base + 16));
    free(got);
    free(all);
    unmake(&w);
}

static void locks(int kind)
{
    Window w = make(kind, 64);
    for (int i = 0; i < 50; i++) {
        int target = i % size;
        long value;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w.win));
        OK(MPI_Get(&value, 1, MPI_LONG, target, w.at[target], 1, MPI_LONG, w.win));
        OK(MPI_Win_flush(target, w.win));
        value++;
        OK(MPI_Put(&value, 1, MPI_LONG, target, w.at[target], 1, MPI_LONG, w.win));
        OK(MPI_Win_unlock(target, w.win));
        if (i % 10 == 3) {
            /* Two numbers are always written together under an exclusive lock, so under a shared lock they must agree. */
            long pair[2];
            OK(MPI_Win_lock_all(0, w.win));
            OK(MPI_Get(pair, 2, MPI_LONG, target, w.at[target] + 16, 2, MPI_LONG, w.win));
            OK(MPI_Win_flush(target, w.win));
            CHECK(pair[0] == pair[1], "%s: %ld and %ld", kinds[kind], pair[0], pair[1]);
            OK(MPI_Win_unlock_all(w.win));
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w.win));
            pair[0]++;
            OK(MPI_Put(&pair[0], 1, MPI_LONG, target, w.at[target] + 16, 1, MPI_LONG, w.win));
            OK(MPI_Win_flush(target, w.win));
            OK(MPI_Put(&pair[0], 1, MPI_LONG, target, w.at[target] + 24, 1, MPI_LONG, w.win));
            OK(MPI_Win_unlock(target, w.win));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long sum = 0, own = *(long *)w.base;
    OK(MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == 50L * size, "%s: %ld", kinds[kind], sum);
    unmake(&w);
}

/* Post-start epochs around a ring; the groups differ between rounds, and some posts come early. */
static void post_start(int kind)
{
    Window w = make(kind, size * sizeof(int));
    MPI_Group world, origins, targets;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    int *cells = (int *)w.base;
    for (int round = 1; round <= 30; round++) {
        int to = (rank + round) % size, from = (rank + size - round % size) % size;
        OK(MPI_Group_incl(world, 1, &from, &origins));
        OK(MPI_Group_incl(world, 1, &to, &targets));
        OK(MPI_Win_post(origins, 0, w.win));
        OK(MPI_Win_start(targets, 0, w.win));
        OK(MPI_Put(&round, 1, MPI_INT, to, w.at[to] + rank * (MPI_Aint)sizeof(int), 1, MPI_INT, w.win));
        OK(MPI_Win_complete(w.win));
        if (round % 3 == 0) {
            int over = 0;
            while (!over)
                OK(MPI_Win_test(w.win, &over));
        } else
            OK(MPI_Win_wait(w.win));
        CHECK(cells[from] == round, "%s: round %d finds %d of rank %d", kinds[kind], round, cells[from], from);
        OK(MPI_Group_free(&origins));
        OK(MPI_Group_free(&targets));
    }
    /* All ranks expose their windows to all ranks. */
    OK(MPI_Win_post(world, 0, w.win));
    OK(MPI_Win_start(world, 0, w.win));
    for (int to = 0; to < size; to++) {
        int value = 1000 * rank + to;
        OK(MPI_Put(&value, 1, MPI_INT, to, w.at[to] + rank * (MPI_Aint)sizeof(int), 1, MPI_INT, w.win));
    }
    OK(MPI_Win_complete(w.win));
    OK(MPI_Win_wait(w.win));
    for (int from = 0; from < size; from++)
        CHECK(cells[from] == 1000 * from + rank, "%s: %d of rank %d", kinds[kind], cells[from], from);
    OK(MPI_Group_free(&world));
    unmake(&w);
}

static void shared_segments(void)
{
    MPI_Comm node;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    int me, members;
    OK(MPI_Comm_rank(node, &me));
    OK(MPI_Comm_size(node, &members));
    for (int noncontiguous = 0; noncontiguous < 2; noncontiguous++) {
        MPI_Info info;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", noncontiguous ? "true" : "false"));
        int *mine, unit;
        MPI_Win win;
        MPI_Aint bytes;
        /* Rank 0 has no memory, so another rank is the first with memory. */
        MPI_Aint own = me == 0 && members > 1 ? 0 : 10 * (MPI_Aint)sizeof(int);
        OK(MPI_Win_allocate_shared(own, sizeof(int), info, node, &mine, &win));
        OK(MPI_Info_free(&info));
        OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
        for (int i = 0; i < own / (MPI_Aint)sizeof(int); i++)
            mine[i] = me * 100 + i;
        OK(MPI_Win_sync(win));
        OK(MPI_Barrier(node));
        OK(MPI_Win_sync(win));
        char *expected = NULL;
        for (int r = 0; r < members; r++) {
            int *theirs;
            OK(MPI_Win_shared_query(win, r, &bytes, &unit, &theirs));
            CHECK(bytes == (r == 0 && members > 1 ? 0 : 10 * (MPI_Aint)sizeof(int)), "%ld bytes of rank %d", (long)bytes, r);
            CHECK(unit == sizeof(int), "unit %d", unit);
            for (int i = 0; i < bytes / (MPI_Aint)sizeof(int); i++)
                CHECK(theirs[i] == r * 100 + i, "element %d of rank %d is %d", i, r, theirs[i]);
            if (!noncontiguous && expected && bytes)
                CHECK((char *)theirs == expected, "rank %d does not begin where rank %d ends", r, r - 1);
            expected = bytes ? (char *)theirs + bytes : expected;
        }
        int *first, *same;
        OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first));
        OK(MPI_Win_shared_query(win, members > 1 ? 1 : 0, &bytes, &unit, &same));
        CHECK(first == same, "not the lowest rank with memory");
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Win_free(&win));
    }
    /* MPI_Win_shared_query also works for this kind of window. */
    Window w = make(1, 64);
    MPI_Aint bytes;
    int unit;
    void *base;
    OK(MPI_Win_shared_query(w.win, rank, &bytes, &unit, &base));
    CHECK(bytes == 64 && base == w.base, "%ld bytes", (long)bytes);
    unmake(&w);
    OK(MPI_Comm_free(&node));
}

static int class_of(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

#define FAILS(call, expected) \
    do { int code = class_of(call); CHECK(code == expected, "class %d, not " #expected, code); } while (0)

static void mistakes(void)
{
    Window w = make(1, 80);
    MPI_Group world;
    int value = 7;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN));
    FAILS(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, w.win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock(0, w.win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock_all(w.win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_complete(w.win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_wait(w.win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush(0, w.win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock(1, 0, 0, w.win), MPI_ERR_LOCKTYPE);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, w.win), MPI_ERR_RANK);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 1 << 20, w.win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_attach(w.win, &value, 4), MPI_ERR_RMA_FLAVOR);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.win));
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_fence(0, w.win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_free(&w.win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Put(&value, 1, MPI_INT, 0, 77, 1, MPI_INT, w.win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Get(&value, 1, MPI_INT, 0, -1, 1, MPI_INT, w.win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Get(&value, 1, MPI_INT, 0, PTRDIFF_MAX, 1, MPI_INT, w.win), MPI_ERR_RMA_RANGE);
    if (size > 1)
        FAILS(MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, w.win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, w.win), MPI_ERR_OP);
    FAILS(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_FLOAT, MPI_SUM, w.win), MPI_ERR_TYPE);
    /* The window is still usable. */
    OK(MPI_Put(&value, 1, MPI_INT, 0, 4, 1, MPI_INT, w.win));
    OK(MPI_Win_unlock(0, w.win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        CHECK(((int *)w.base)[1] == 7, "%d", ((int *)w.base)[1]);
    FAILS(MPI_Rput(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, w.win, &(MPI_Request){0}), MPI_ERR_RMA_SYNC);
    unmake(&w);
    /* Errors of accesses to memory that was never attached or has been detached. */
    w = make(2, 64);
    OK(MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN));
    int code, next = (rank + 1) % size;
    OK(MPI_Win_lock_all(0, w.win));
    code = MPI_Put(&value, 1, MPI_INT, next, w.at[next] + 64, 1, MPI_INT, w.win);
    if (code == MPI_SUCCESS)
        code = MPI_Win_flush(next, w.win);
    CHECK(class_of(code) == MPI_ERR_RMA_RANGE, "class %d", class_of(code));
    OK(MPI_Put(&value, 1, MPI_INT, next, w.at[next] + 60, 1, MPI_INT, w.win));
    OK(MPI_Win_unlock_all(w.win));
    FAILS(MPI_Win_attach(w.win, w.base + 8, 8), MPI_ERR_RMA_ATTACH);
    FAILS(MPI_Win_detach(w.win, w.base + 8), MPI_ERR_BASE);
    OK(MPI_Group_free(&world));
    unmake(&w);
}

static void attached_regions(void)
{
    enum { REGIONS = 1000 };
    static int memory[REGIONS];
    MPI_Win win;
    MPI_Aint mine, *bases = malloc(size * sizeof *bases);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    for (int i = 0; i < REGIONS; i++)
        OK(MPI_Win_attach(win, &memory[i], sizeof(int)));
    for (int i = 0; i < REGIONS; i += 2)
        OK(MPI_Win_detach(win, &memory[i]));
    OK(MPI_Get_address(memory, &mine));
    OK(MPI_Allgather(&mine, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    /* Every second region is still attached, and the others are not. */
    for (int i = 0; i < REGIONS; i += 97) {
        int none = 0, to = (rank + 1) % size;
        MPI_Aint at = MPI_Aint_add(bases[to], i * sizeof(int));
        int code = MPI_Accumulate(&none, 1, MPI_INT, to, at, 1, MPI_INT, MPI_SUM, win);
        if (code == MPI_SUCCESS)
            code = MPI_Win_flush(to, win);
        int expected = i % 2 ? MPI_SUCCESS : MPI_ERR_RMA_RANGE;
        CHECK(class_of(code) == expected, "region %d: class %d", i, class_of(code));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < REGIONS; i += 2)
        OK(MPI_Win_attach(win, &memory[i], sizeof(int)));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < REGIONS; i++) {
        int to = i % size, one = 1;
        OK(MPI_Accumulate(&one, 1, MPI_INT, to, MPI_Aint_add(bases[to], i * sizeof(int)), 1, MPI_INT, MPI_SUM, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < REGIONS; i++)
        CHECK(memory[i] == (i % size == rank ? size : 0), "region %d holds %d", i, memory[i]);
    OK(MPI_Win_free(&win));
    free(bases);
}

static int deleted;

static int count_deletion(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)win, (void)keyval, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static void what_hangs_on_windows(void)
{
    int keyval, flag, *number, length;
    void *value;
    MPI_Aint *bytes;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Info info;
    Window w = make(1, 128);
    OK(MPI_Win_get_name(w.win, name, &length));
    CHECK(length == 0, "a new window is called %s", name);
    OK(MPI_Win_set_name(w.win, "blackboard"));
    OK(MPI_Win_get_name(w.win, name, &length));
    CHECK(strcmp(name, "blackboard") == 0, "%s", name);
    OK(MPI_Win_get_attr(w.win, MPI_WIN_BASE, &value, &flag));
    CHECK(flag && value == w.base, "%p", value);
    OK(MPI_Win_get_attr(w.win, MPI_WIN_SIZE, &bytes, &flag));
    CHECK(flag && *bytes == 128, "%ld", (long)*bytes);
    OK(MPI_Win_get_attr(w.win, MPI_WIN_DISP_UNIT, &number, &flag));
    CHECK(flag && *number == 1, "%d", *number);
    OK(MPI_Win_get_attr(w.win, MPI_WIN_CREATE_FLAVOR, &number, &flag));
    CHECK(flag && *number == MPI_WIN_FLAVOR_ALLOCATE, "%d", *number);
    OK(MPI_Win_get_attr(w.win, MPI_WIN_MODEL, &number, &flag));
    CHECK(flag && *number == MPI_WIN_UNIFIED, "%d", *number);
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, count_deletion, &keyval, NULL));
    OK(MPI_Win_set_attr(w.win, keyval, &keyval));
    OK(MPI_Win_get_attr(w.win, keyval, &value, &flag));
    CHECK(flag && value == &keyval, "%p", value);
    OK(MPI_Win_delete_attr(w.win, keyval));
    OK(MPI_Win_set_attr(w.win, keyval, &keyval));
    OK(MPI_Win_get_info(w.win, &info));
    char text[MPI_MAX_INFO_VAL + 1];
    OK(MPI_Info_get(info, "no_locks", MPI_MAX_INFO_VAL, text, &flag));
    CHECK(flag && strcmp(text, "false") == 0, "%s", text);
    OK(MPI_Info_set(info, "mpi_accumulate_granularity", "8"));
    OK(MPI_Info_set(info, "colour", "green"));
    OK(MPI_Win_set_info(w.win, info));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_get_info(w.win, &info));
    OK(MPI_Info_get(info, "mpi_accumulate_granularity", MPI_MAX_INFO_VAL, text, &flag));
    CHECK(flag && strcmp(text, "8") == 0, "%s", text);
    OK(MPI_Info_get(info, "colour", MPI_MAX_INFO_VAL, text, &flag));
    CHECK(!flag, "%s", text);
    OK(MPI_Info_free(&info));
    MPI_Group group, world;
    OK(MPI_Win_get_group(w.win, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    int alike;
    OK(MPI_Group_compare(group, world, &alike));
    CHECK(alike == MPI_IDENT, "%d", alike);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    CHECK(MPI_Win_fromint(MPI_Win_toint(w.win)) == w.win, "the handle changes");
    unmake(&w);
    CHECK(deleted == 2, "%d", deleted);
    OK(MPI_Win_free_keyval(&keyval));
    /* The memory has the requested alignment. */
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "8192"));
    MPI_Win win;
    char *base;
    OK(MPI_Win_allocate(100, 1, info, MPI_COMM_WORLD, &base, &win));
    CHECK((uintptr_t)base % 8192 == 0, "%p", (void *)base);
    OK(MPI_Win_free(&win));
    OK(MPI_Info_free(&info));
}

/* With an operator that ignores the origin data, the origin buffer may be null (section 12.3.4 of MPI 5.0). */
static void reads_by_accumulating(int kind)
{
    Window w = make(kind, 400);
    int *mine = (int *)w.base, result[50], next = (rank + 1) % size;
    for (int i = 0; i < 100; i++)
        mine[i] = rank * 100 + i;
    OK(MPI_Win_sync(w.win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w.win));
    MPI_Datatype every;
    OK(MPI_Type_vector(50, 1, 2, MPI_INT, &every));
    OK(MPI_Type_commit(&every));
    OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, result, 50, MPI_INT, next, w.at[next], 1, every, MPI_NO_OP, w.win));
    OK(MPI_Win_flush(next, w.win));
    for (int i = 0; i < 50; i++)
        CHECK(result[i] == next * 100 + 2 * i, "%s: element %d is %d", kinds[kind], i, result[i]);
    MPI_Request request;
    OK(MPI_Rget_accumulate(NULL, 0, MPI_BYTE, result, 50, MPI_INT, next, w.at[next], 50, MPI_INT, MPI_NO_OP, w.win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 50; i++)
        CHECK(result[i] == next * 100 + i, "%s: element %d is %d", kinds[kind], i, result[i]);
    OK(MPI_Win_unlock(next, w.win));
    OK(MPI_Type_free(&every));
    unmake(&w);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (argc > 1)
        times = atoi(argv[1]);
    ALL(kind) {
        put_and_get(kind);
        counters(kind);
        locks(kind);
        post_start(kind);
        reads_by_accumulating(kind);
    }
    shared_segments();
    attached_regions();
    mistakes();
    what_hangs_on_windows();
    return finish("windows");
}
