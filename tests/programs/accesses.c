/* Test of one-sided communication: random accesses against a sequential model.
 *
 * Every rank generates the accesses of all ranks from one seed and executes its own.
 * Block `o` of each window is private: only origin `o` accesses it, so its contents are known
 * even after several accumulates in one epoch, which are ordered.
 * The rest is shared by all origins: commutative accumulates, of one type and operator per phase.
 * Each rank chooses at random between functions with and without requests and large counts.
 * Arguments: the number of phases for each kind of window, and the seed. */
#include "layouts.h"

enum { BLOCK = 2048, SHARED = 2048, MOST_RANKS = 32, MOST_KEPT = 4096 };

/* States of two random generators: `common` is equal on all ranks, `own` differs between ranks. */
static uint64_t common, own;

static unsigned next(uint64_t *state, unsigned below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((*state >> 33) % below);
}

static unsigned draw(unsigned below) { return next(&common, below); }
static unsigned coin(unsigned below) { return next(&own, below); }

enum { CREATE, UNALIGNED, ALLOC_MEM, MIXED, ALLOCATE, CONTIGUOUS, NONCONTIGUOUS, DYNAMIC, DYNAMIC_ALLOC_MEM, KINDS };
static const char *const kinds[] = {"create", "unaligned", "alloc_mem", "mixed", "allocate", "shared", "shared noncontiguous", "dynamic", "dynamic alloc_mem"};

static MPI_Win win;
static char *base, *model[MOST_RANKS], *given;
static MPI_Aint at[MOST_RANKS];
static int kind, unit[MOST_RANKS], has_locks;

static int is_dynamic(void) { return kind == DYNAMIC || kind == DYNAMIC_ALLOC_MEM; }
static int is_from_mpi(void) { return kind == ALLOC_MEM || kind == DYNAMIC_ALLOC_MEM || (kind == MIXED && rank % 2 == 0); }
static MPI_Aint bytes_of(int r) { return size * BLOCK + SHARED + 64 * r; }
static MPI_Aint displacement(int target, MPI_Aint offset) { return at[target] + offset / unit[target]; }

static MPI_Info hints(void)
{
    static const char *const orders[] = {"rar,raw,war,waw", "raw,war,rar,waw"}, *const sizes[] = {"0", "1", "8", "4096"};
    MPI_Info info;
    OK(MPI_Info_create(&info));
    has_locks = is_dynamic() || draw(3) > 0;
    OK(MPI_Info_set(info, "no_locks", has_locks ? "false" : "true"));
    if (draw(2))
        OK(MPI_Info_set(info, "accumulate_ordering", orders[draw(2)]));
    if (draw(2))
        OK(MPI_Info_set(info, "mpi_accumulate_granularity", sizes[draw(4)]));
    if (draw(2))
        OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", kind == NONCONTIGUOUS ? "true" : "false"));
    OK(MPI_Info_set(info, "same_disp_unit", "false"));
    OK(MPI_Info_set(info, "nobody_knows", "true"));
    return info;
}

/* Creates a window; returns false if a shared window is impossible, with members on several nodes. */
static int make_window(void)
{
    static const int units[] = {1, 1, 2, 8, 32};
    MPI_Info info = hints();
    MPI_Aint bytes = bytes_of(rank), mine;
    for (int r = 0; r < size; r++) {
        model[r] = calloc(1, bytes_of(r));
        at[r] = 0;
        unit[r] = is_dynamic() ? 1 : units[draw(5)];
    }
    int together = 1;
    if (kind == CONTIGUOUS || kind == NONCONTIGUOUS) {
        MPI_Comm node;
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
        OK(MPI_Comm_size(node, &together));
        OK(MPI_Comm_free(&node));
        together = together == size;
    }
    given = NULL;
    if (is_from_mpi())
        OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &base));
    else if (kind == CREATE || kind == MIXED || kind == DYNAMIC)
        base = given = aligned_alloc(64, bytes);
    else if (kind == UNALIGNED)
        base = (given = malloc(bytes + 64)) + 3;
    if (!together) {
        /* Members on different nodes cannot share a window's memory. */
    } else if (kind == ALLOCATE)
        OK(MPI_Win_allocate(bytes, unit[rank], info, MPI_COMM_WORLD, &base, &win));
    else if (kind == CONTIGUOUS || kind == NONCONTIGUOUS)
        OK(MPI_Win_allocate_shared(bytes, unit[rank], info, MPI_COMM_WORLD, &base, &win));
    else if (is_dynamic()) {
        OK(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win));
        /* Attaches the memory as two adjacent regions. */
        OK(MPI_Win_attach(win, base, bytes / 2));
        OK(MPI_Win_attach(win, base + bytes / 2, bytes - bytes / 2));
        OK(MPI_Get_address(base, &mine));
        OK(MPI_Allgather(&mine, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    } else
        OK(MPI_Win_create(base, bytes, unit[rank], info, MPI_COMM_WORLD, &win));
    OK(MPI_Info_free(&info));
    if (together)
        memset(base, 0, bytes);
    return together;
}

static void unmake_window(int made)
{
    if (made && is_dynamic()) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_detach(win, base + bytes_of(rank) / 2));
        OK(MPI_Win_detach(win, base));
    }
    if (made)
        OK(MPI_Win_free(&win));
    if (is_from_mpi())
        OK(MPI_Free_mem(base));
    free(given);
    for (int r = 0; r < size; r++)
        free(model[r]);
}

enum { FENCE, PSCW, LOCK_ALL, LOCKS, LOCK_EACH, SYNCS };
static int sync_kind, nocheck;
/* The targets that each origin may access in this phase, as a bit mask. */
static unsigned may_access[MOST_RANKS];

static int is_passive(void) { return sync_kind >= LOCK_ALL; }

/* The buffers that must exist until an access's epoch ends, and the expected result of a fetch. */
typedef struct { const Type *type; Layout result; char *got, *due; int what, target; } Check;
static Check checks[MOST_KEPT];
static void *kept[MOST_KEPT];
static int n_checks, n_kept;

static char *room_for(const Type *t)
{
    CHECK(n_kept < MOST_KEPT, "%d buffers", n_kept);
    return kept[n_kept++] = calloc(4 * MOST_ELEMENTS, t->extent);
}

static void settle(void)
{
    for (int i = 0; i < n_checks; i++) {
        Check *c = &checks[i];
        for (int k = 0; k < c->result.n; k++) {
            int place = c->result.place[k] * c->type->extent;
            CHECK(same_element(c->type, c->due + place, c->got + place), "%s, sync %d: access %d to rank %d brought another element %d of %s",
                kinds[kind], sync_kind, c->what, c->target, k, c->type->name);
        }
    }
    for (int i = 0; i < n_kept; i++)
        free(kept[i]);
    n_checks = n_kept = 0;
}

enum { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, SWAP };

typedef struct {
    int what, target;
    MPI_Aint disp;
    const char *origin, *compare;
    char *result;
    Layout from, there, into;
    const Type *type;
    MPI_Op op;
} Access;

/* Calls one of a function's four variants at random; those with a request only in passive epochs. */
#define FORMS(name, ...) \
    switch (coin(is_passive() ? 4 : 2)) { \
    case 0: OK(MPI_##name(__VA_ARGS__, win)); break; \
    case 1: OK(MPI_##name##_c(__VA_ARGS__, win)); break; \
    case 2: OK(MPI_R##name(__VA_ARGS__, win, &request)); break; \
    default: OK(MPI_R##name##_c(__VA_ARGS__, win, &request)); \
    }
#define MPI_RPut MPI_Rput
#define MPI_RGet MPI_Rget
#define MPI_RAccumulate MPI_Raccumulate
#define MPI_RGet_accumulate MPI_Rget_accumulate
#if MPI_VERSION >= 4
#define MPI_RPut_c MPI_Rput_c
#define MPI_RGet_c MPI_Rget_c
#define MPI_RAccumulate_c MPI_Raccumulate_c
#define MPI_RGet_accumulate_c MPI_Rget_accumulate_c
#else /* Before MPI 4.0 there are no large-count functions. */
#define MPI_Put_c MPI_Put
#define MPI_Get_c MPI_Get
#define MPI_Accumulate_c MPI_Accumulate
#define MPI_Get_accumulate_c MPI_Get_accumulate
#define MPI_RPut_c MPI_Rput
#define MPI_RGet_c MPI_Rget
#define MPI_RAccumulate_c MPI_Raccumulate
#define MPI_RGet_accumulate_c MPI_Rget_accumulate
#endif

/* Executes an access; returns true if the result is already available. */
static int perform(const Access *a)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const Layout *f = &a->from, *t = &a->there, *r = &a->into;
    int reads = a->op == MPI_NO_OP && coin(2);
    switch (a->what) {
    case PUT: FORMS(Put, a->origin, f->count, f->type, a->target, a->disp, t->count, t->type); break;
    case GET: FORMS(Get, a->result, r->count, r->type, a->target, a->disp, t->count, t->type); break;
    case ACCUMULATE: FORMS(Accumulate, a->origin, f->count, f->type, a->target, a->disp, t->count, t->type, a->op); break;
    case GET_ACCUMULATE:
        /* An operator that ignores the origin gets no origin buffer. */
        FORMS(Get_accumulate, reads ? NULL : a->origin, reads ? 0 : f->count, reads ? MPI_BYTE : f->type,
            a->result, r->count, r->type, a->target, a->disp, t->count, t->type, a->op);
        break;
    case FETCH_AND_OP: OK(MPI_Fetch_and_op(reads ? NULL : a->origin, a->result, a->type->type, a->target, a->disp, a->op, win)); break;
    default: OK(MPI_Compare_and_swap(a->origin, a->compare, a->result, a->type->type, a->target, a->disp, win));
    }
    if (request == MPI_REQUEST_NULL)
        return 0;
    if (coin(2))
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    else
        for (int over = 0; !over;)
            OK(MPI_Test(&request, &over, MPI_STATUS_IGNORE));
    return a->what == GET || a->what == GET_ACCUMULATE;
}

/* Generates an access of `o` to elements at byte `start` of a target's window.
 * Rank `o` executes the access; every rank applies it to the model. */
static void access_model(int o, int target, int what, const Type *t, int n, MPI_Op op, int start)
{
    Access a = {.what = what, .target = target, .disp = displacement(target, start), .type = t, .op = op};
    if (what >= FETCH_AND_OP)
        n = 1;
    a.from = make_layout(t, n, what >= FETCH_AND_OP ? 0 : draw(LAYOUTS), 2 + draw(2));
    a.there = make_layout(t, n, what >= FETCH_AND_OP ? 0 : draw(LAYOUTS), 2 + draw(2));
    a.into = make_layout(t, n, what >= FETCH_AND_OP ? 0 : draw(LAYOUTS), 2 + draw(2));
    char *origin = room_for(t), *compare = room_for(t), *due = room_for(t), *cells = model[target] + start;
    a.origin = origin, a.compare = compare, a.result = room_for(t);
    for (int i = 0; i < n; i++) {
        t->number(origin + a.from.place[i] * t->extent, (int)draw(7));
        memcpy(due + a.into.place[i] * t->extent, cells + a.there.place[i] * t->extent, t->extent);
    }
    if (what == SWAP) {
        /* The compare value equals the window's contents, or differs from them in one bit. */
        memcpy(compare, cells, t->extent);
        if (draw(2))
            compare[0] ^= 1;
        op = memcmp(compare, cells, t->extent) ? MPI_NO_OP : MPI_REPLACE;
    }
    for (int i = 0; i < n && what != GET; i++)
        apply_element(t, what == PUT ? MPI_REPLACE : op, origin + a.from.place[i] * t->extent, cells + a.there.place[i] * t->extent);
    if (o == rank) {
        int is_there = perform(&a);
        int fetches = what == GET || what >= GET_ACCUMULATE;
        if (fetches)
            checks[n_checks++] = (Check){t, a.into, a.result, due, what, target};
        for (int i = 0; is_there && i < n; i++)
            CHECK(same_element(t, due + a.into.place[i] * t->extent, a.result + a.into.place[i] * t->extent),
                "%s: request %d of rank %d is complete, but element %d of %s is not there", kinds[kind], what, target, i, t->name);
        if (is_passive())
            switch (coin(6)) {
            case 0: OK(MPI_Win_flush(target, win)); break;
            case 1: OK(MPI_Win_flush_local(target, win)); break;
            case 2: OK(MPI_Win_flush_all(win)); break;
            case 3: OK(MPI_Win_flush_local_all(win)); break;
            }
    }
    drop_layout(&a.from, t), drop_layout(&a.there, t), drop_layout(&a.into, t);
}

/* Chooses a number of elements; four times this number of elements fits into `room` bytes.
 * Returns the offset of the first element. */
static int place(const Type *t, int target, int room, int *n, int from)
{
    int most = room / (4 * t->extent), step = t->extent > unit[target] ? t->extent : unit[target];
    *n = 1 + draw(most < MOST_ELEMENTS ? most : MOST_ELEMENTS);
    return from + step * draw((room - 4 * *n * t->extent) / step + 1);
}

/* Accesses half of block `o`: one put or get, or several accumulates. */
static void half_block(int o, int target, int half)
{
    const Type *t = &types[draw(TYPES)];
    int n, start = place(t, target, BLOCK / 2, &n, o * BLOCK + half * BLOCK / 2);
    if (draw(3) == 0) {
        access_model(o, target, draw(2) ? PUT : GET, t, n, MPI_NO_OP, start);
        return;
    }
    /* The block's contents are arbitrary, and an addition to them may be undefined.
     * So valid elements of this type are stored first. */
    char *ones = room_for(t);
    for (int i = 0; i < 4 * n; i++) {
        t->number(ones + i * t->extent, 1);
        apply_element(t, MPI_REPLACE, ones + i * t->extent, model[target] + start + i * t->extent);
    }
    if (o == rank)
        OK(MPI_Accumulate(ones, 4 * n, t->type, target, displacement(target, start), 4 * n, t->type, MPI_REPLACE, win));
    for (int more = 1 + draw(4); more > 0; more--) {
        int what = ACCUMULATE + draw(is_swappable(t) ? 4 : 3);
        MPI_Op op = draw(4) ? operator_of(t, draw(60), 0) : MPI_REPLACE;
        /* All bytes of the block are compared, so no operator may leave padding unspecified. */
        if (has_padding(t))
            op = MPI_REPLACE;
        if (what > ACCUMULATE && draw(4) == 0)
            op = MPI_NO_OP;
        access_model(o, target, what, t, n, op, start);
    }
}

/* Makes accesses to the shared part whose result does not depend on their order. */
static void shared_part(int o, int target, const Type *t, MPI_Op op)
{
    int n, start = place(t, target, SHARED, &n, size * BLOCK), shape = draw(LAYOUTS), gap = 2 + draw(2);
    Access a = {.what = draw(2) ? ACCUMULATE : GET_ACCUMULATE, .target = target, .disp = displacement(target, start), .type = t, .op = op};
    a.from = make_layout(t, n, draw(LAYOUTS), gap);
    a.there = make_layout(t, n, shape, gap);
    a.into = make_layout(t, n, draw(LAYOUTS), gap);
    char *origin = room_for(t);
    a.origin = origin, a.result = room_for(t);
    for (int i = 0; i < n; i++) {
        t->number(origin + a.from.place[i] * t->extent, (int)draw(5));
        apply_element(t, op, origin + a.from.place[i] * t->extent, model[target] + start + a.there.place[i] * t->extent);
    }
    if (o == rank)
        perform(&a);
    drop_layout(&a.from, t), drop_layout(&a.there, t), drop_layout(&a.into, t);
}

/* Returns a target that `o` may access, or -1. */
static int some_target(int o)
{
    int first = draw(size);
    for (int i = 0; i < size; i++)
        if (may_access[o] >> (first + i) % size & 1)
            return (first + i) % size;
    return -1;
}

static MPI_Group group_of(int targets)
{
    int ranks[MOST_RANKS], n = 0;
    MPI_Group all, some;
    for (int r = 0; r < size; r++)
        if (targets ? may_access[rank] >> r & 1 : may_access[r] >> rank & 1)
            ranks[n++] = r;
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Group_incl(all, n, ranks, &some));
    OK(MPI_Group_free(&all));
    return some;
}

static void begin_epoch(int asserts)
{
    MPI_Group origins, targets;
    switch (sync_kind) {
    case FENCE: OK(MPI_Win_fence(asserts ? MPI_MODE_NOPRECEDE : 0, win)); break;
    case PSCW:
        origins = group_of(0), targets = group_of(1);
        OK(MPI_Win_post(origins, nocheck ? MPI_MODE_NOCHECK : 0, win));
        /* With MPI_MODE_NOCHECK the program must ensure that the post precedes the start. */
        if (nocheck)
            OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_start(targets, nocheck ? MPI_MODE_NOCHECK : 0, win));
        OK(MPI_Group_free(&origins));
        OK(MPI_Group_free(&targets));
        break;
    case LOCK_ALL: OK(MPI_Win_lock_all(coin(2) ? MPI_MODE_NOCHECK : 0, win)); break;
    case LOCKS: for (int r = 0; r < size; r++) OK(MPI_Win_lock(MPI_LOCK_SHARED, r, coin(3) ? 0 : MPI_MODE_NOCHECK, win));
    }
}

static void end_epoch(int asserts)
{
    switch (sync_kind) {
    case FENCE: OK(MPI_Win_fence(MPI_MODE_NOSUCCEED | (asserts ? MPI_MODE_NOSTORE | MPI_MODE_NOPUT : 0), win)); break;
    case PSCW:
        OK(MPI_Win_complete(win));
        if (coin(2))
            OK(MPI_Win_wait(win));
        else
            for (int over = 0; !over;)
                OK(MPI_Win_test(win, &over));
        break;
    case LOCK_ALL: OK(MPI_Win_unlock_all(win)); break;
    case LOCKS: for (int r = size - 1; r >= 0; r--) OK(MPI_Win_unlock(r, win));
    }
}

/* Between take_hold and let_go a rank may access its own part of the window with loads and stores. */
static void take_hold(void)
{
    if (has_locks)
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    else
        OK(MPI_Win_fence(0, win));
}

static void let_go(void)
{
    if (has_locks)
        OK(MPI_Win_unlock(rank, win));
    else
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* All ranks set the shared part to elements of the phase's type. */
static void reset_shared(const Type *t)
{
    for (int r = 0; r < size; r++)
        for (int i = 0; i < SHARED / t->extent; i++)
            t->number(model[r] + size * BLOCK + i * t->extent, i % 4);
    take_hold();
    memcpy(base + size * BLOCK, model[rank] + size * BLOCK, SHARED);
    let_go();
}

static void compare(int phase, const Type *t)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    take_hold();
    for (int i = 0; i < size * BLOCK; i++)
        CHECK(base[i] == model[rank][i], "%s, phase %d, sync %d: byte %d of block %d is %d, not %d", kinds[kind], phase, sync_kind, i % BLOCK, i / BLOCK, base[i], model[rank][i]);
    for (int i = 0; i < SHARED / t->extent; i++)
        CHECK(same_element(t, base + size * BLOCK + i * t->extent, model[rank] + size * BLOCK + i * t->extent),
            "%s, phase %d, sync %d: shared element %d of %s differs", kinds[kind], phase, sync_kind, i, t->name);
    let_go();
}

/* Executes the accesses of one origin, in an open epoch or in separate epochs. */
static void accesses_of(int o, const Type *t, MPI_Op op)
{
    for (int half = 0; half < 2; half++) {
        int target = some_target(o), how = draw(2) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, more = draw(3);
        if (target < 0)
            return;
        if (sync_kind == LOCK_EACH && o == rank)
            OK(MPI_Win_lock(how, target, 0, win));
        half_block(o, target, half);
        for (; more > 0; more--)
            shared_part(o, target, t, op);
        if (sync_kind == LOCK_EACH && o == rank)
            OK(MPI_Win_unlock(target, win));
    }
    if (o == rank)
        OK(MPI_Put(base, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
}

static void phase(int number)
{
    const Type *t = &types[draw(TYPES)];
    MPI_Op op = operator_of(t, draw(60), 1);
    /* Characters support only replacement; after several replacements the result is unspecified. */
    while (t->kind == LETTER)
        t = &types[draw(TYPES)], op = operator_of(t, draw(60), 1);
    sync_kind = draw(has_locks ? SYNCS : LOCK_ALL);
    nocheck = draw(2);
    int asserts = draw(2);
    for (int r = 0; r < size; r++)
        may_access[r] = sync_kind == PSCW && draw(3) ? draw(1u << size) : (1u << size) - 1;
    reset_shared(t);
    begin_epoch(asserts);
    for (int o = 0; o < size; o++)
        accesses_of(o, t, op);
    end_epoch(asserts);
    settle();
    compare(number, t);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    name_types();
    int phases = argc > 1 ? atoi(argv[1]) : 30;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    CHECK(size <= 16, "%d ranks", size);
    own = seed + 77 * rank;
    for (kind = 0; kind < KINDS; kind++) {
        common = seed * 977 + kind;
        int made = make_window();
        for (int i = 0; made && i < phases; i++)
            phase(i);
        unmake_window(made);
    }
    return finish("accesses");
}
