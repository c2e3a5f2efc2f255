/* Tests from bug reports about windows in other MPI libraries:
 * wrong values, false errors, hangs, memory growth; each test checks the right result.
 * Argument: the divisor by which loops are shortened (1, 2 or 4). */
#include "check.h"
#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>

static int shorter = 1;

typedef struct { MPI_Win win; char *base; int creates; } Window;

/* Creates a window on the program's or the library's memory; the displacement unit is one byte. */
static Window make(int creates, MPI_Aint bytes, MPI_Comm comm)
{
    Window w = {.creates = creates};
    if (creates) {
        w.base = calloc(1, bytes + 1);
        OK(MPI_Win_create(w.base, bytes, 1, MPI_INFO_NULL, comm, &w.win));
    } else {
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &w.base, &w.win));
        memset(w.base, 0, bytes);
        OK(MPI_Barrier(comm));
    }
    return w;
}

static void unmake(Window *w)
{
    OK(MPI_Win_free(&w->win));
    if (w->creates)
        free(w->base);
}

/* Atomically reads the value at a displacement on rank `target`. */
static long peek(MPI_Win win, int target, MPI_Aint disp)
{
    long value = -1, nothing = 0;
    OK(MPI_Fetch_and_op(&nothing, &value, MPI_LONG, target, disp, MPI_NO_OP, win));
    OK(MPI_Win_flush(target, win));
    return value;
}

/* Since MPI 4.1, MPI_Win_shared_query is valid for any kind of window.
 * Without a rank, it returns the memory of the lowest rank with any memory. */
static void shared_query(int creates)
{
    Window w = make(creates, rank == 0 && size > 1 ? 0 : 64, MPI_COMM_WORLD);
    int first = size > 1;
    for (int r = -1; r < size; r++) {
        MPI_Aint bytes = -1;
        int unit = -1;
        char *theirs = w.base;
        OK(MPI_Win_shared_query(w.win, r < 0 ? MPI_PROC_NULL : r, &bytes, &unit, &theirs));
        int whose = r < 0 ? first : r;
        if (whose == rank && bytes > 0)
            CHECK(theirs == w.base && bytes == 64, "%p, not %p", (void *)theirs, (void *)w.base);
        if (whose != rank && bytes > 0)
            CHECK(theirs != w.base, "the memory of rank %d is told to be that of rank %d", whose, rank);
        if (bytes > 0)
            CHECK(whose != 0 || size == 1, "rank 0 has %ld bytes", (long)bytes);
        else
            CHECK(bytes == 0 && (whose == 0 || !theirs), "no memory of rank %d, at %p", whose, (void *)theirs);
    }
    unmake(&w);
}

/* Memory has the requested alignment in every process that maps it. */
static void alignment(void)
{
    for (int bytes = 16; bytes <= 4096; bytes *= 4) {
        char text[20];
        MPI_Info info;
        MPI_Comm node;
        MPI_Win win;
        char *base;
        int members, unit;
        snprintf(text, sizeof text, "%d", bytes);
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", text));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
        OK(MPI_Comm_size(node, &members));
        OK(MPI_Win_allocate_shared(10 + 30 * rank, 1, info, node, &base, &win));
        for (int r = 0; r < members; r++) {
            MPI_Aint length;
            OK(MPI_Win_shared_query(win, r, &length, &unit, &base));
            CHECK((uintptr_t)base % bytes == 0, "the part of rank %d begins at %p", r, (void *)base);
        }
        OK(MPI_Win_free(&win));
        OK(MPI_Comm_free(&node));
        OK(MPI_Info_free(&info));
    }
}

/* Sums with derived datatypes whose data have gaps or do not begin at displacement 0. */
static void derived(int creates)
{
    Window w = make(creates, 40 * sizeof(double), MPI_COMM_WORLD);
    double *cells = (double *)w.base, out[8] = {0, 0, 0, 1, 2, 3, 0, 0}, old[8] = {0};
    MPI_Datatype one, late, gaps;
    MPI_Aint start = 3 * sizeof(double);
    int three = 3, next = (rank + 1) % size;
    OK(MPI_Type_contiguous(1, MPI_DOUBLE, &one));
    OK(MPI_Type_create_hindexed(1, &three, &start, MPI_DOUBLE, &late));
    OK(MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &gaps));
    OK(MPI_Type_commit(&one));
    OK(MPI_Type_commit(&late));
    OK(MPI_Type_commit(&gaps));
    for (int i = 0; i < 40; i++)
        cells[i] = 100;
    OK(MPI_Win_fence(0, w.win));
    OK(MPI_Accumulate(out, 1, late, next, 0, 3, one, MPI_SUM, w.win));
    OK(MPI_Win_fence(0, w.win));
    OK(MPI_Accumulate(out, 1, late, next, 8 * sizeof(double), 1, gaps, MPI_SUM, w.win));
    OK(MPI_Win_fence(0, w.win));
    /* The gaps of the result are unchanged, and the operator reads no origin buffer. */
    OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, old, 1, gaps, next, 0, 3, MPI_DOUBLE, MPI_NO_OP, w.win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win));
    for (int i = 0; i < 3; i++) {
        CHECK(cells[i] == 101 + i, "element %d is %g", i, cells[i]);
        CHECK(cells[8 + 2 * i] == 101 + i && cells[9 + 2 * i] == 100, "element %d is %g", i, cells[8 + 2 * i]);
        CHECK(old[2 * i] == 101 + i && old[2 * i + 1] == 0, "result %d is %g", i, old[2 * i]);
    }
    OK(MPI_Type_free(&one));
    OK(MPI_Type_free(&late));
    OK(MPI_Type_free(&gaps));
    unmake(&w);
}

/* Fetch-and-update is atomic also for many elements, with MPI_NO_OP, and at the target itself. */
static void one_step(int creates)
{
    enum { N = 100 };
    const int times = 60 / shorter;
    Window w = make(creates, N * sizeof(long), MPI_COMM_WORLD);
    long ones[N], old[N], sum[N] = {0}, all[N];
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    OK(MPI_Win_lock_all(rank % 2 ? MPI_MODE_NOCHECK : 0, w.win));
    for (int i = 0; i < times; i++) {
        OK(MPI_Get_accumulate(ones, N, MPI_LONG, old, N, MPI_LONG, 0, 0, N, MPI_LONG, MPI_SUM, w.win));
        OK(MPI_Win_flush(0, w.win));
        for (int k = 0; k < N; k++)
            sum[k] += old[k];
        OK(MPI_Get_accumulate(NULL, 0, MPI_INT, all, N, MPI_LONG, 0, 0, N, MPI_LONG, MPI_NO_OP, w.win));
        OK(MPI_Win_flush(0, w.win));
        for (int k = 0; k < N; k++)
            CHECK(all[k] > old[k] && all[k] <= times * size, "element %d is %ld after %ld", k, all[k], old[k]);
    }
    OK(MPI_Win_unlock_all(w.win));
    OK(MPI_Allreduce(sum, all, N, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    /* Each value from 0 on was fetched exactly once. */
    long each = (long)times * size;
    for (int k = 0; k < N; k++)
        CHECK(all[k] == each * (each - 1) / 2, "element %d was fetched as %ld in all, not %ld", k, all[k], each * (each - 1) / 2);
    unmake(&w);
}

/* Neighbouring ranks replace each other's numbers in both directions at the same time;
 * afterwards every number must be in exactly one place. */
static void replacing(int creates)
{
    Window w = make(creates, sizeof(long), MPI_COMM_WORLD);
    long mine = 1 + rank, sum = 0, all = 0;
    OK(MPI_Win_lock_all(0, w.win));
    for (int i = 0; i < 200 / shorter; i++) {
        int to = (rank + (i % 2 ? 1 : size - 1)) % size;
        OK(MPI_Get_accumulate(&mine, 1, MPI_LONG, &sum, 1, MPI_LONG, to, 0, 1, MPI_LONG, MPI_REPLACE, w.win));
        OK(MPI_Win_flush(to, w.win));
        mine = sum;
    }
    OK(MPI_Win_unlock_all(w.win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    mine += *(long *)w.base;
    OK(MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == (long)size * (size + 1) / 2, "the numbers add up to %ld", all);
    unmake(&w);
}

#define SWAPS(ctype, mpitype) \
    do { \
        ctype five = 5, six = 6, was = 9; \
        MPI_Aint last = 64 - sizeof(ctype); \
        int target = size - 1; \
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w.win)); \
        OK(MPI_Put(&five, 1, mpitype, target, last, 1, mpitype, w.win)); \
        OK(MPI_Win_flush(target, w.win)); \
        OK(MPI_Compare_and_swap(&five, &six, &was, mpitype, target, last, w.win)); \
        OK(MPI_Win_flush(target, w.win)); \
        CHECK(was == 5, "compared with %d without a match, was %d", (int)six, (int)was); \
        OK(MPI_Compare_and_swap(&six, &five, &was, mpitype, target, last, w.win)); \
        OK(MPI_Win_flush(target, w.win)); \
        CHECK(was == 5, "something was written where the comparison failed: %d", (int)was); \
        OK(MPI_Get(&was, 1, mpitype, target, last, 1, mpitype, w.win)); \
        OK(MPI_Win_unlock(target, w.win)); \
        CHECK(was == 6, "nothing was written: %d", (int)was); \
    } while (0)

/* Compare-and-swap works for every size, on the last element, and on a rank's own memory. */
static void swapping(int creates)
{
    Window w = make(creates, 64, MPI_COMM_WORLD);
    SWAPS(int8_t, MPI_INT8_T);
    SWAPS(uint16_t, MPI_UINT16_T);
    SWAPS(int, MPI_INT);
    SWAPS(int64_t, MPI_INT64_T);
    unmake(&w);
}

/* When the request of an access is complete, the data are available, whatever their layout;
 * every completion call accepts the request. */
static void requests(int creates)
{
    enum { N = 20000 };
    Window w = make(creates, N * sizeof(int), MPI_COMM_WORLD);
    int next = (rank + 1) % size, *in = malloc(2 * N * sizeof *in), flag;
    MPI_Datatype every;
    MPI_Request both[3];
    for (int i = 0; i < N; i++)
        ((int *)w.base)[i] = i;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_vector(N, 1, 2, MPI_INT, &every));
    OK(MPI_Type_commit(&every));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w.win));
    for (int how = 0; how < 4; how++) {
        int some, which[3], done = 0;
        memset(in, 0xff, 2 * N * sizeof *in);
        OK(MPI_Rget(in, 1, every, next, 0, N, MPI_INT, w.win, &both[0]));
        OK(MPI_Rget(in + 1, 1, MPI_INT, next, 0, 1, MPI_INT, w.win, &both[1]));
        both[2] = MPI_REQUEST_NULL;
        switch (how) {
        case 0: OK(MPI_Waitall(3, both, MPI_STATUSES_IGNORE)); break;
        case 1: do OK(MPI_Testall(3, both, &flag, MPI_STATUSES_IGNORE)); while (!flag); break;
        case 2:
            while (done < 2) {
                OK(MPI_Waitsome(3, both, &some, which, MPI_STATUSES_IGNORE));
                done += some;
            }
            break;
        default:
            for (; done < 2; done++)
                OK(MPI_Waitany(3, both, which, MPI_STATUS_IGNORE));
        }
        OK(MPI_Testall(3, both, &flag, MPI_STATUSES_IGNORE));
        CHECK(flag && both[0] == MPI_REQUEST_NULL, "requests that are over are not over");
        for (int i = 0; i < N; i++)
            CHECK(in[2 * i] == i, "way %d: element %d is %d", how, i, in[2 * i]);
        CHECK(in[1] == 0 && in[3] == -1, "%d and %d", in[1], in[3]);
    }
    OK(MPI_Win_unlock(next, w.win));
    OK(MPI_Type_free(&every));
    free(in);
    unmake(&w);
}

/* A loop of local flushes, or of flushes of another window, lets other ranks make progress. */
static void progress(int creates)
{
    Window w = make(creates, 64, MPI_COMM_WORLD), v = make(creates, 64, MPI_COMM_WORLD);
    long one = 1;
    int next = (rank + 1) % size;
    OK(MPI_Win_lock_all(0, w.win));
    OK(MPI_Win_lock_all(0, v.win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_SUM, w.win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_SUM, v.win));
    OK(MPI_Win_flush(next, v.win));
    OK(MPI_Win_flush(next, w.win));
    /* Loops until the neighbour has added to this rank's window;
       the neighbour first needs the lock. */
    while (peek(w.win, rank, 0) == 0 || peek(v.win, rank, 0) == 0)
        OK(MPI_Win_flush_local(next, w.win));
    OK(MPI_Win_unlock_all(v.win));
    OK(MPI_Win_unlock_all(w.win));
    /* The barrier is needed because a waiting exclusive lock blocks later shared locks,
     * which other ranks may still need in the loop above. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* Rank 0 waits on one window for a rank that waits on another window. */
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, w.win));
        OK(MPI_Put(&one, 1, MPI_LONG, size - 1, 8, 1, MPI_LONG, w.win));
        OK(MPI_Win_unlock(size - 1, w.win));
    }
    OK(MPI_Win_fence(0, v.win));
    if (rank == size - 1)
        CHECK(((long *)w.base)[1] == 1, "%ld", ((long *)w.base)[1]);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, v.win));
    unmake(&v);
    unmake(&w);
}

/* A rank that reads its own memory in a loop receives the accesses of other ranks, whichever calls are in the loop,
 * and also while its own access to another rank is not flushed.
 * Each rank waits in this way for its predecessor, before it writes to its successor. */
enum { LOCKS, LOCKS_OF_ALL, FLUSHES, REQUESTS, LOOPS };

static void read_until_written(MPI_Win win, int loop)
{
    long value = 0, nothing = 0;
    int next = (rank + 1) % size, is_locked = loop == LOCKS && next != rank;
    MPI_Aint disp = loop * sizeof(long), unread = LOOPS * sizeof(long);
    if (is_locked)
        OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    if (loop == FLUSHES || loop == REQUESTS)
        OK(MPI_Win_lock_all(0, win));
    if (is_locked || loop == FLUSHES)
        OK(MPI_Put(&nothing, 1, MPI_LONG, next, unread, 1, MPI_LONG, win));
    while (value == 0) {
        MPI_Request request;
        if (loop == LOCKS)
            OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, MPI_MODE_NOCHECK, win));
        else if (loop == LOCKS_OF_ALL)
            OK(MPI_Win_lock_all(0, win));
        if (loop == REQUESTS) {
            OK(MPI_Rget_accumulate(&nothing, 1, MPI_LONG, &value, 1, MPI_LONG, rank, disp, 1, MPI_LONG, MPI_NO_OP, win, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else
            OK(MPI_Fetch_and_op(&nothing, &value, MPI_LONG, rank, disp, MPI_NO_OP, win));
        if (loop == LOCKS)
            OK(MPI_Win_unlock(rank, win));
        else if (loop == LOCKS_OF_ALL)
            OK(MPI_Win_unlock_all(win));
        else if (loop == FLUSHES)
            OK(MPI_Win_flush(rank, win));
    }
    if (is_locked)
        OK(MPI_Win_unlock(next, win));
    if (loop == FLUSHES || loop == REQUESTS)
        OK(MPI_Win_unlock_all(win));
}

static void reading_in_a_loop(int creates)
{
    Window w = make(creates, (LOOPS + 1) * sizeof(long), MPI_COMM_WORLD);
    long one = 1;
    int next = (rank + 1) % size;
    for (int loop = 0; loop < LOOPS; loop++) {
        if (rank > 0)
            read_until_written(w.win, loop);
        OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w.win));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, next, loop * sizeof(long), 1, MPI_LONG, MPI_REPLACE, w.win));
        OK(MPI_Win_unlock(next, w.win));
        if (rank == 0)
            read_until_written(w.win, loop);
    }
    unmake(&w);
}

/* Each rank locks two neighbours in a global order, alternately shared and exclusive.
 * Some locks pass MPI_MODE_NOCHECK. */
static void neighbours(int creates)
{
    Window w = make(creates, 64, MPI_COMM_WORLD);
    long sum = 0;
    for (int i = 0; i < 60 / shorter; i++) {
        int a = rank, b = (rank + 1) % size, low = a < b ? a : b, high = a < b ? b : a;
        OK(MPI_Win_lock(i % 3 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, low, 0, w.win));
        if (high != low)
            OK(MPI_Win_lock(i % 3 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, high, 0, w.win));
        if (i % 3) {
            long value;
            OK(MPI_Get(&value, 1, MPI_LONG, high, 0, 1, MPI_LONG, w.win));
            OK(MPI_Win_flush(high, w.win));
            value++;
            OK(MPI_Put(&value, 1, MPI_LONG, high, 0, 1, MPI_LONG, w.win));
        }
        OK(MPI_Win_unlock(low, w.win));
        if (high != low)
            OK(MPI_Win_unlock(high, w.win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Allreduce(w.base, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == 40L / shorter * size, "%ld", sum);
    /* Locks with and without MPI_MODE_NOCHECK are held together; each unlock must match its lock. */
    for (int i = 0; i < 20 / shorter; i++) {
        for (int r = 0; r < size; r++)
            OK(MPI_Win_lock(MPI_LOCK_SHARED, r, (r + i) % 2 ? MPI_MODE_NOCHECK : 0, w.win));
        for (int r = 0; r < size; r++)
            OK(MPI_Win_unlock(r, w.win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win));
    OK(MPI_Win_unlock(0, w.win));
    /* A lock epoch may follow a fence. */
    OK(MPI_Win_fence(0, w.win));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % size, 0, w.win));
    OK(MPI_Win_unlock((rank + 1) % size, w.win));
    unmake(&w);
}

/* A shared lock that is requested during an exclusive lock must wait: it must be neither lost nor granted early. */
static void readers_and_writers(int creates)
{
    Window w = make(creates, 64, MPI_COMM_WORLD);
    for (int i = 0; i < 100 / shorter; i++) {
        long pair[2];
        if ((i + rank) % 3 == 0) {
            pair[0] = pair[1] = 100 * i + rank;
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win));
            OK(MPI_Put(&pair[0], 1, MPI_LONG, 0, 0, 1, MPI_LONG, w.win));
            OK(MPI_Win_flush(0, w.win));
            OK(MPI_Put(&pair[1], 1, MPI_LONG, 0, 8, 1, MPI_LONG, w.win));
        } else {
            OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.win));
            OK(MPI_Get(pair, 2, MPI_LONG, 0, 0, 2, MPI_LONG, w.win));
            OK(MPI_Win_flush(0, w.win));
            CHECK(pair[0] == pair[1], "%ld and %ld", pair[0], pair[1]);
        }
        OK(MPI_Win_unlock(0, w.win));
    }
    unmake(&w);
}

/* A post for the next epoch is not counted for the current epoch.
 * Rank 0 exposes its window to each rank in turn, and the other ranks may be late. */
static void turns(int creates)
{
    Window w = make(creates, 64, MPI_COMM_WORLD);
    MPI_Group world, other, first;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, (int[]){0}, &first));
    for (int round = 0; round < 12 / shorter; round++)
        for (int origin = 1; origin < size; origin++) {
            long value = 10 * round + origin;
            if (rank == 0) {
                OK(MPI_Group_incl(world, 1, &origin, &other));
                OK(MPI_Win_post(other, 0, w.win));
                OK(MPI_Win_wait(w.win));
                CHECK(*(long *)w.base == value, "round %d: %ld, not %ld", round, *(long *)w.base, value);
                OK(MPI_Group_free(&other));
            } else if (rank == origin) {
                if (round % 3 == 1)
                    nap(300);
                OK(MPI_Win_start(first, 0, w.win));
                OK(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, w.win));
                OK(MPI_Win_complete(w.win));
            }
        }
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&first));
    unmake(&w);
}

/* Each rank attaches a different number of adjacent regions, large and small; some ranks attach none. */
static void attaching(void)
{
    enum { PIECE = 64 };
    MPI_Win win;
    int pieces = rank * 70 % 150, max = 150;
    char *memory = calloc(max, PIECE), *large = calloc(1, 3 << 20);
    MPI_Aint mine, bases[64], value = 0;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < pieces; i++)
        OK(MPI_Win_attach(win, memory + i * PIECE, PIECE));
    OK(MPI_Win_attach(win, large, 3 << 20));
    OK(MPI_Get_address(memory, &mine));
    OK(MPI_Allgather(&mine, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD));
    for (int to = 0; to < size; to++) {
        int theirs = to * 70 % 150;
        MPI_Aint one = 1;
        /* The access crosses the boundary between two attached regions. */
        for (int i = 0; i + 1 < theirs; i += 7) {
            char both[PIECE];
            OK(MPI_Get(both, PIECE, MPI_CHAR, to, bases[to] + i * PIECE + PIECE / 2, PIECE, MPI_CHAR, win));
            OK(MPI_Accumulate(&one, 1, MPI_AINT, to, bases[to] + i * PIECE, 1, MPI_AINT, MPI_SUM, win));
        }
    }
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i + 1 < pieces; i += 7) {
        memcpy(&value, memory + i * PIECE, sizeof value);
        CHECK(value == size, "piece %d holds %ld", i, (long)value);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = pieces - 1; i >= 0; i--)
        OK(MPI_Win_detach(win, memory + i * PIECE));
    OK(MPI_Win_detach(win, large));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    free(memory);
    free(large);
}

/* Supported hints are returned with their effective values. */
static void hints(void)
{
    static const char *const keys[] = {"no_locks", "accumulate_ordering", "accumulate_ops", "same_size", "same_disp_unit", "mpi_accumulate_granularity"};
    Window w = make(0, 64, MPI_COMM_WORLD);
    MPI_Info info;
    char text[MPI_MAX_INFO_VAL + 1];
    int flag;
    OK(MPI_Win_get_info(w.win, &info));
    for (int i = 0; i < (int)(sizeof keys / sizeof *keys); i++) {
        OK(MPI_Info_get(info, keys[i], MPI_MAX_INFO_VAL, text, &flag));
        CHECK(flag, "%s is not told", keys[i]);
    }
    OK(MPI_Info_free(&info));
    unmake(&w);
}

/* Memory use does not grow during a stream of gets. */
static void streams(int creates)
{
    enum { BYTES = 1 << 18 };
    Window w = make(creates, BYTES, MPI_COMM_WORLD);
    char *in = malloc(BYTES);
    struct rusage before, after;
    OK(MPI_Win_lock_all(0, w.win));
    for (int i = 0; i < 200 / shorter; i++) {
        MPI_Request request;
        if (i == 20)
            getrusage(RUSAGE_SELF, &before);
        OK(MPI_Rget(in, BYTES, MPI_CHAR, (rank + 1) % size, 0, BYTES, MPI_CHAR, w.win, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    getrusage(RUSAGE_SELF, &after);
    OK(MPI_Win_unlock_all(w.win));
    /* The allowed growth is half of the data that all gets since the first measurement have transferred. */
    long most = (200 / shorter - 20) * (BYTES / 2 / 1024L);
    CHECK(after.ru_maxrss - before.ru_maxrss < most, "%ld KiB, then %ld", before.ru_maxrss, after.ru_maxrss);
    free(in);
    unmake(&w);
}

typedef struct { Window w; int rounds; } Thread;

static void *of_its_own(void *argument)
{
    Thread *t = argument;
    long one = 1, old;
    int next = (rank + 1) % size;
    for (int i = 0; i < t->rounds; i++) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, t->w.win));
        OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, next, 0, MPI_SUM, t->w.win));
        OK(MPI_Win_flush(next, t->w.win));
        CHECK(old == i, "%ld at %d", old, i);
        OK(MPI_Win_unlock(next, t->w.win));
    }
    return NULL;
}

/* Threads with separate windows do not wait for each other. */
static void threads(int creates)
{
    enum { THREADS = 3 };
    Thread all[THREADS];
    pthread_t ids[THREADS];
    for (int i = 0; i < THREADS; i++)
        all[i] = (Thread){make(creates, 64, MPI_COMM_WORLD), 100 / shorter};
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&ids[i], NULL, of_its_own, &all[i]) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < THREADS; i++)
        unmake(&all[i].w);
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    introduce();
    CHECK(size <= 64, "%d ranks", size);
    if (argc > 1)
        shorter = atoi(argv[1]);
    for (int creates = 0; creates < 2; creates++) {
        shared_query(creates);
        derived(creates);
        one_step(creates);
        replacing(creates);
        swapping(creates);
        requests(creates);
        progress(creates);
        reading_in_a_loop(creates);
        neighbours(creates);
        readers_and_writers(creates);
        turns(creates);
        streams(creates);
        if (provided == MPI_THREAD_MULTIPLE)
            threads(creates);
    }
    alignment();
    attaching();
    hints();
    return finish("window_reports");
}
