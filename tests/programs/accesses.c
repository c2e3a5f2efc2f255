/* Random programs of one-sided accesses against a sequential oracle.
 *
 * Every rank makes up the same program for all ranks from one seed and carries out its own part.
 * Part of each window belongs to pairs: block `o` is accessed by origin `o` alone, so what it has to hold is known exactly.
 * The rest belongs to all: accumulates that commute, on one type with one operator in each phase.
 * Arguments: how many phases, and the seed. */
#include "check.h"
#include <stdint.h>

enum { BLOCK = 1024, SHARED = 1024, MOST = 64 };

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

typedef struct { MPI_Datatype type; const char *name; int bytes, extent; int kind; } Type;
enum { INTEGER, REAL, PAIR, COMPLEX };

typedef struct { short value; int index; } ShortInt;
typedef struct { double value; int index; } DoubleInt;
typedef struct { long value; int index; } LongInt;
typedef struct { long double value; int index; } LongDoubleInt;

static Type types[] = {
    {.name = "INT8", .bytes = 1, .extent = 1, .kind = INTEGER},
    {.name = "UINT16", .bytes = 2, .extent = 2, .kind = INTEGER},
    {.name = "INT", .bytes = 4, .extent = 4, .kind = INTEGER},
    {.name = "LONG", .bytes = 8, .extent = 8, .kind = INTEGER},
    {.name = "FLOAT", .bytes = 4, .extent = 4, .kind = REAL},
    {.name = "DOUBLE", .bytes = 8, .extent = 8, .kind = REAL},
    {.name = "LONG_DOUBLE", .bytes = 16, .extent = 16, .kind = REAL},
    {.name = "C_DOUBLE_COMPLEX", .bytes = 16, .extent = 16, .kind = COMPLEX},
    {.name = "2INT", .bytes = 8, .extent = 8, .kind = PAIR},
    {.name = "SHORT_INT", .bytes = 6, .extent = sizeof(ShortInt), .kind = PAIR},
    {.name = "DOUBLE_INT", .bytes = 12, .extent = sizeof(DoubleInt), .kind = PAIR},
    {.name = "LONG_INT", .bytes = 12, .extent = sizeof(LongInt), .kind = PAIR},
    {.name = "LONG_DOUBLE_INT", .bytes = 20, .extent = sizeof(LongDoubleInt), .kind = PAIR},
};
enum { TYPES = sizeof types / sizeof *types };

static void name_types(void)
{
    MPI_Datatype all[] = {MPI_INT8_T, MPI_UINT16_T, MPI_INT, MPI_LONG, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE,
        MPI_C_DOUBLE_COMPLEX, MPI_2INT, MPI_SHORT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_LONG_DOUBLE_INT};
    for (int i = 0; i < TYPES; i++)
        types[i].type = all[i];
}

/* Writes a small number as an element; small enough that sums and products of reals are exact. */
static void number(const Type *t, void *to, int value)
{
    memset(to, 0, t->extent);
    MPI_Datatype d = t->type;
    if (d == MPI_INT8_T) *(int8_t *)to = (int8_t)value;
    else if (d == MPI_UINT16_T) *(uint16_t *)to = (uint16_t)value;
    else if (d == MPI_INT) *(int *)to = value;
    else if (d == MPI_LONG) *(long *)to = value;
    else if (d == MPI_FLOAT) *(float *)to = (float)value;
    else if (d == MPI_DOUBLE) *(double *)to = value;
    else if (d == MPI_LONG_DOUBLE) *(long double *)to = value;
    else if (d == MPI_C_DOUBLE_COMPLEX) ((double *)to)[0] = value, ((double *)to)[1] = value / 2;
    else if (d == MPI_2INT) ((int *)to)[0] = value / 3, ((int *)to)[1] = value;
    else if (d == MPI_SHORT_INT) ((ShortInt *)to)->value = (short)(value / 3), ((ShortInt *)to)->index = value;
    else if (d == MPI_DOUBLE_INT) ((DoubleInt *)to)->value = value / 3, ((DoubleInt *)to)->index = value;
    else if (d == MPI_LONG_INT) ((LongInt *)to)->value = value / 3, ((LongInt *)to)->index = value;
    else ((LongDoubleInt *)to)->value = value / 3, ((LongDoubleInt *)to)->index = value;
}

/* The bytes of an element that are data, for comparing: what lies between them is padding. */
static int same_element(const Type *t, const char *a, const char *b)
{
    char pa[32], pb[32];
    int at = 0, bt = 0;
    OK(MPI_Pack(a, 1, t->type, pa, sizeof pa, &at, MPI_COMM_SELF));
    OK(MPI_Pack(b, 1, t->type, pb, sizeof pb, &bt, MPI_COMM_SELF));
    if (at == bt && memcmp(pa, pb, at) == 0)
        return 1;
    /* Of sixteen bytes ten are the number. */
    if (t->type == MPI_LONG_DOUBLE)
        return *(long double *)a == *(long double *)b;
    if (t->type == MPI_LONG_DOUBLE_INT)
        return ((LongDoubleInt *)a)->value == ((LongDoubleInt *)b)->value && ((LongDoubleInt *)a)->index == ((LongDoubleInt *)b)->index;
    return 0;
}

/* Which operators commute on a type and keep small numbers exact. */
static MPI_Op commuting(const Type *t)
{
    MPI_Op integer[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    MPI_Op real[] = {MPI_SUM, MPI_MIN, MPI_MAX};
    MPI_Op pair[] = {MPI_MINLOC, MPI_MAXLOC};
    switch (t->kind) {
    case INTEGER: return integer[draw(10)];
    case REAL: return real[draw(3)];
    case PAIR: return pair[draw(2)];
    default: return MPI_SUM;
    }
}

/* An order in which `n` elements lie in memory: `place[i]` is where element i lies; the datatype says the same. */
typedef struct { MPI_Datatype type; int count, n, place[MOST], room; } Layout;

static Layout layout(const Type *t, int n)
{
    Layout l = {.count = 1, .n = n};
    int shape = draw(5), gap = 2 + draw(2);
    int lens[MOST], starts[MOST];
    l.room = n;
    switch (shape) {
    case 0:
        l.type = t->type, l.count = n;
        for (int i = 0; i < n; i++) l.place[i] = i;
        return l;
    case 1:
        OK(MPI_Type_contiguous(n, t->type, &l.type));
        for (int i = 0; i < n; i++) l.place[i] = i;
        break;
    case 2:
        OK(MPI_Type_vector(n, 1, gap, t->type, &l.type));
        for (int i = 0; i < n; i++) l.place[i] = i * gap;
        l.room = (n - 1) * gap + 1;
        break;
    case 3: /* backwards, so that packed order is not memory order */
        for (int i = 0; i < n; i++) lens[i] = 1, starts[i] = l.place[i] = n - 1 - i;
        OK(MPI_Type_indexed(n, lens, starts, t->type, &l.type));
        break;
    default: { /* several of a resized one */
        OK(MPI_Type_create_resized(t->type, 0, (MPI_Aint)gap * t->extent, &l.type));
        l.count = n;
        for (int i = 0; i < n; i++) l.place[i] = i * gap;
        l.room = (n - 1) * gap + 1;
    }
    }
    OK(MPI_Type_commit(&l.type));
    return l;
}

static void drop(Layout *l, const Type *t)
{
    if (l->type != t->type)
        OK(MPI_Type_free(&l->type));
}

static MPI_Win win;
static char *base, **model;
static MPI_Aint *at;
static int bytes, sync_kind, passive;

static MPI_Aint displacement(int target, int offset) { return at[target] + offset; }

/* One access of origin `o` to its block at `target`; carried out if `o` is this rank, and applied to the model by all ranks. */
static void own_block(int o, int target, char **checks, int *pending)
{
    const Type *t = &types[draw(TYPES)];
    int most = BLOCK / (4 * t->extent), n = 1 + draw(most < MOST ? most : MOST);
    int what = draw(7);
    Layout origin = layout(t, n), there = layout(t, n), result = layout(t, n);
    int start = o * BLOCK;
    start += t->extent * draw((BLOCK - there.room * t->extent) / t->extent + 1);
    char *old = calloc(4 * MOST, t->extent), *new = calloc(4 * MOST, t->extent), *got = calloc(4 * MOST, t->extent);
    for (int i = 0; i < n; i++)
        number(t, new + origin.place[i] * t->extent, (int)draw(7));
    MPI_Op op = draw(4) ? commuting(t) : MPI_REPLACE;
    int reads = what == 3 && draw(3) == 0;
    if (reads) op = MPI_NO_OP;
    /* The block holds anything; it becomes elements of this type first, so that adding to it makes sense. */
    int me = o == rank;
    char *block = model[target];
    MPI_Request request = MPI_REQUEST_NULL;
    int by_request = passive && draw(2);
    if (what >= 2) {
        char *zeros = calloc(4 * MOST, t->extent);
        for (int i = 0; i < n; i++)
            number(t, zeros + origin.place[i] * t->extent, 1);
        if (me)
            OK(MPI_Accumulate(zeros, origin.count, origin.type, target, displacement(target, start), there.count, there.type, MPI_REPLACE, win));
        for (int i = 0; i < n; i++) {
            char one[32];
            int pos = 0, end = 0;
            OK(MPI_Pack(zeros + origin.place[i] * t->extent, 1, t->type, one, sizeof one, &end, MPI_COMM_SELF));
            OK(MPI_Unpack(one, end, &pos, block + start + there.place[i] * t->extent, 1, t->type, MPI_COMM_SELF));
        }
        /* In use until the epoch ends. */
        if (me)
            checks[(*pending)++] = NULL, checks[(*pending)++] = zeros;
        else
            free(zeros);
    }
    for (int i = 0; i < n; i++)
        memcpy(old + result.place[i] * t->extent, block + start + there.place[i] * t->extent, t->extent);
    switch (what) {
    case 0: /* put */
    case 1: /* get */
        if (me && what == 0 && by_request)
            OK(MPI_Rput(new, origin.count, origin.type, target, displacement(target, start), there.count, there.type, win, &request));
        else if (me && what == 0)
            OK(MPI_Put(new, origin.count, origin.type, target, displacement(target, start), there.count, there.type, win));
        else if (me && by_request)
            OK(MPI_Rget(got, result.count, result.type, target, displacement(target, start), there.count, there.type, win, &request));
        else if (me)
            OK(MPI_Get(got, result.count, result.type, target, displacement(target, start), there.count, there.type, win));
        op = what == 0 ? MPI_REPLACE : MPI_NO_OP;
        break;
    case 2:
        if (op == MPI_NO_OP) op = MPI_SUM;
        if (me && by_request)
            OK(MPI_Raccumulate(new, origin.count, origin.type, target, displacement(target, start), there.count, there.type, op, win, &request));
        else if (me)
            OK(MPI_Accumulate(new, origin.count, origin.type, target, displacement(target, start), there.count, there.type, op, win));
        break;
    case 3:
        if (me && by_request)
            OK(MPI_Rget_accumulate(reads ? NULL : new, reads ? 0 : origin.count, reads ? MPI_BYTE : origin.type, got, result.count, result.type, target, displacement(target, start), there.count, there.type, op, win, &request));
        else if (me)
            OK(MPI_Get_accumulate(reads ? NULL : new, reads ? 0 : origin.count, reads ? MPI_BYTE : origin.type, got, result.count, result.type, target, displacement(target, start), there.count, there.type, op, win));
        break;
    default: /* one element: fetch and op, compare and swap that does, compare and swap that does not */
        n = 1;
        if (what == 4 || t->kind != INTEGER) {
            if (me)
                OK(MPI_Fetch_and_op(new + origin.place[0] * t->extent, got + result.place[0] * t->extent, t->type, target, displacement(target, start + there.place[0] * t->extent), op, win));
        } else {
            char compare[32];
            number(t, compare, what == 5 ? 1 : 2);
            if (me)
                OK(MPI_Compare_and_swap(new + origin.place[0] * t->extent, compare, got + result.place[0] * t->extent, t->type, target, displacement(target, start + there.place[0] * t->extent), win));
            op = what == 5 ? MPI_REPLACE : MPI_NO_OP;
        }
    }
    if (me && request != MPI_REQUEST_NULL)
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < n; i++) {
        char *cell = block + start + there.place[i] * t->extent;
        char element[32], one[32];
        int pos = 0, end = 0;
        memcpy(element, cell, t->extent);
        if (op == MPI_REPLACE)
            memcpy(element, new + origin.place[i] * t->extent, t->extent);
        else if (op != MPI_NO_OP)
            OK(MPI_Reduce_local(new + origin.place[i] * t->extent, element, 1, t->type, op));
        /* Only what is data. */
        OK(MPI_Pack(element, 1, t->type, one, sizeof one, &end, MPI_COMM_SELF));
        OK(MPI_Unpack(one, end, &pos, cell, 1, t->type, MPI_COMM_SELF));
    }
    if (me && (what == 1 || what >= 3)) {
        /* Compared when the epoch is over. */
        char *check = malloc(sizeof(int) * 4 + sizeof(Layout) + 2 * 4 * MOST * t->extent);
        int head[4] = {(int)(t - types), n, what, target};
        memcpy(check, head, sizeof head);
        memcpy(check + sizeof head, &result, sizeof result);
        memcpy(check + sizeof head + sizeof result, old, 4 * MOST * t->extent);
        memcpy(check + sizeof head + sizeof result + 4 * MOST * t->extent, &got, sizeof got);
        checks[(*pending)++] = check;
    } else
        free(got);
    if (me)
        checks[(*pending)++] = NULL, checks[(*pending)++] = new;
    else
        free(new);
    free(old);
    drop(&origin, t);
    drop(&there, t);
    drop(&result, t);
}

static void settle(char **checks, int pending)
{
    for (int i = 0; i < pending; i++) {
        if (!checks[i]) {
            free(checks[++i]);
            continue;
        }
        int head[4];
        Layout result;
        char *got;
        memcpy(head, checks[i], sizeof head);
        memcpy(&result, checks[i] + sizeof head, sizeof result);
        const Type *t = &types[head[0]];
        char *old = checks[i] + sizeof head + sizeof result;
        memcpy(&got, old + 4 * MOST * t->extent, sizeof got);
        for (int k = 0; k < head[1]; k++)
            CHECK(same_element(t, old + result.place[k] * t->extent, got + result.place[k] * t->extent),
                "access %d to rank %d brought another element %d of %s", head[2], head[3], k, t->name);
        free(got);
        free(checks[i]);
    }
}

/* All ranks accumulate to the shared elements. */
static void shared_part(const Type *t, MPI_Op op, int o)
{
    int most = SHARED / (3 * t->extent), target = draw(size), n = 1 + draw(most < MOST ? most : MOST);
    Layout origin = layout(t, n), there = layout(t, n);
    int start = size * BLOCK + t->extent * draw((SHARED - there.room * t->extent) / t->extent + 1);
    char *new = calloc(4 * MOST, t->extent), *got = calloc(4 * MOST, t->extent);
    for (int i = 0; i < n; i++)
        number(t, new + origin.place[i] * t->extent, (int)draw(5));
    int fetches = draw(2);
    if (o == rank && fetches)
        OK(MPI_Get_accumulate(new, origin.count, origin.type, got, n, t->type, target, displacement(target, start), there.count, there.type, op, win));
    else if (o == rank)
        OK(MPI_Accumulate(new, origin.count, origin.type, target, displacement(target, start), there.count, there.type, op, win));
    if (o == rank && passive)
        OK(MPI_Win_flush(target, win));
    for (int i = 0; i < n; i++) {
        char *cell = model[target] + start + there.place[i] * t->extent;
        OK(MPI_Reduce_local(new + origin.place[i] * t->extent, cell, 1, t->type, op));
    }
    if (o == rank && !passive) {
        /* The origin and the result are in use until the epoch ends; they stay, as the program is short. */
    } else
        free(new), free(got);
    drop(&origin, t);
    drop(&there, t);
}

/* All ranks set what belongs to all to elements of the phase's type. */
static void reset_shared(const Type *t)
{
    for (int r = 0; r < size; r++)
        for (int i = 0; i < SHARED / t->extent; i++)
            number(t, model[r] + size * BLOCK + i * t->extent, i % 4);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    memcpy(base + size * BLOCK, model[rank] + size * BLOCK, SHARED);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void compare(int phase, const Type *t)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    for (int i = 0; i < size * BLOCK; i++)
        CHECK(base[i] == model[rank][i], "phase %d, sync %d: byte %d of block %d is %d, not %d", phase, sync_kind, i % BLOCK, i / BLOCK, base[i], model[rank][i]);
    for (int i = 0; i < SHARED / t->extent; i++) {
        char *cell = base + size * BLOCK + i * t->extent, *due = model[rank] + size * BLOCK + i * t->extent;
        CHECK(same_element(t, cell, due), "phase %d, sync %d: shared element %d of %s differs", phase, sync_kind, i, t->name);
    }
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    name_types();
    int phases = argc > 1 ? atoi(argv[1]) : 40;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    MPI_Group world;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    bytes = size * BLOCK + SHARED;
    model = malloc(size * sizeof *model);
    at = calloc(size, sizeof *at);
    for (int r = 0; r < size; r++)
        model[r] = malloc(bytes);
    for (int kind = 0; kind < 5; kind++) {
        void *given = NULL;
        state = seed * 977 + kind;
        memset(at, 0, size * sizeof *at);
        for (int r = 0; r < size; r++)
            memset(model[r], 0, bytes);
        switch (kind) {
        case 0: OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win)); break;
        case 1: base = given = aligned_alloc(64, bytes); OK(MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win)); break;
        case 2: /* ordinary memory that is aligned to nothing */
            given = malloc(bytes + 64);
            base = (char *)given + 3;
            OK(MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
            break;
        case 3: OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &base)); OK(MPI_Win_create(base, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win)); break;
        default: {
            MPI_Aint mine;
            base = given = aligned_alloc(64, bytes);
            OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
            OK(MPI_Win_attach(win, base, bytes));
            OK(MPI_Get_address(base, &mine));
            OK(MPI_Allgather(&mine, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
        }
        }
        memset(base, 0, bytes);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int phase = 0; phase < phases; phase++) {
            const Type *t = &types[draw(TYPES)];
            MPI_Op op = commuting(t);
            char *checks[1024];
            int pending = 0;
            sync_kind = draw(4);
            passive = sync_kind >= 2;
            /* Pairs with holes lie at any place of a window that is aligned to nothing, which C does not allow to look at. */
            reset_shared(t);
            switch (sync_kind) {
            case 0: OK(MPI_Win_fence(0, win)); break;
            case 1: OK(MPI_Win_post(world, 0, win)); OK(MPI_Win_start(world, 0, win)); break;
            case 2: OK(MPI_Win_lock_all(0, win)); break;
            default: for (int r = 0; r < size; r++) OK(MPI_Win_lock(MPI_LOCK_SHARED, r, 0, win));
            }
            for (int o = 0; o < size; o++) {
                /* One access to each block: more would need an order that MPI does not give. */
                own_block(o, draw(size), checks, &pending);
                for (int i = draw(4); i > 0; i--)
                    shared_part(t, op, o);
            }
            switch (sync_kind) {
            case 0: OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win)); break;
            case 1: OK(MPI_Win_complete(win)); OK(MPI_Win_wait(win)); break;
            case 2: OK(MPI_Win_unlock_all(win)); break;
            default: for (int r = 0; r < size; r++) OK(MPI_Win_unlock(r, win));
            }
            settle(checks, pending);
            compare(phase, t);
        }
        if (kind == 4) {
            OK(MPI_Barrier(MPI_COMM_WORLD));
            OK(MPI_Win_detach(win, base));
        }
        OK(MPI_Win_free(&win));
        if (kind == 3)
            OK(MPI_Free_mem(base));
        free(given);
    }
    OK(MPI_Group_free(&world));
    return finish("accesses");
}
