/* Accesses to several attached regions of a dynamic window by one datatype.
 * Each rank has rows, which are not contiguous, and attaches the middle of each row.
 * A datatype has some words of all rows; the memory between them is not attached.
 * All access functions use such datatypes. Accesses that include a byte that is not attached fail.
 * The argument is the memory of the rows: malloc, alloc_mem (MPI_Alloc_mem) or mixed (both in turn). */
#include "check.h"
#include <stddef.h>

enum { ROWS = 9, WORDS = 80, FIRST = 8, LAST = 72, TIMES = 10, GUARD = 77, MOST_RANKS = 8 };

/* The words of a row: two for each rank, one for sums, two for a pair, one for each rank's bytes. */
enum { OWN = FIRST, SUMS = OWN + 2 * MOST_RANKS, PAIRS = 40, BYTES = 50 };

struct pair { double value; int index; };

static MPI_Win win;
static long *row[ROWS];
static MPI_Aint *at;

static int is_from_mpi(const char *memory, int i) { return !strcmp(memory, "alloc_mem") || (!strcmp(memory, "mixed") && i % 2); }

/* The rows are accessed in an order that is not that of their addresses. */
static int order(int i) { return (5 * i + 2) % ROWS; }

static MPI_Aint address(int target, int i, int word)
{
    return MPI_Aint_add(at[target * ROWS + i], word * (MPI_Aint)sizeof(long));
}

/* `len` elements from one word on, in all rows; displacements are relative to `base`. */
static MPI_Datatype column(int target, int word, int len, MPI_Datatype element, MPI_Aint base)
{
    MPI_Aint places[ROWS];
    MPI_Datatype made;
    for (int i = 0; i < ROWS; i++)
        places[i] = MPI_Aint_diff(address(target, order(i), word), base);
    OK(MPI_Type_create_hindexed_block(ROWS, len, places, element, &made));
    OK(MPI_Type_commit(&made));
    return made;
}

static void make(const char *memory)
{
    MPI_Aint mine[ROWS];
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    /* Errors of requests are raised on a communicator. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int i = 0; i < ROWS; i++) {
        if (is_from_mpi(memory, i))
            OK(MPI_Alloc_mem(WORDS * sizeof(long), MPI_INFO_NULL, &row[i]));
        else
            row[i] = malloc(WORDS * sizeof(long));
        for (int word = 0; word < WORDS; word++)
            row[i][word] = word < FIRST || word >= LAST ? GUARD : 0;
        *(struct pair *)&row[i][PAIRS] = (struct pair){-1, -1};
        OK(MPI_Win_attach(win, &row[i][FIRST], (LAST - FIRST) * sizeof(long)));
        OK(MPI_Get_address(row[i], &mine[i]));
    }
    at = malloc(size * sizeof mine);
    OK(MPI_Allgather(mine, ROWS, MPI_AINT, at, ROWS, MPI_AINT, MPI_COMM_WORLD));
}

static long value(int origin, int target, int k) { return 10000 * origin + 100 * target + k; }

/* Puts to, and gets from, the rank's own words of all rows; the origin's elements have gaps, too. */
static void transfer(int target, MPI_Aint base, int by_request)
{
    enum { COUNT = 2 * ROWS };
    long out[2 * COUNT], in[2 * COUNT];
    MPI_Datatype there = column(target, OWN + 2 * rank, 2, MPI_LONG, base), here;
    MPI_Request req;
    OK(MPI_Type_vector(COUNT, 1, 2, MPI_LONG, &here));
    OK(MPI_Type_commit(&here));
    for (int k = 0; k < 2 * COUNT; k++) {
        out[k] = value(rank, target, k + by_request);
        in[k] = -1;
    }
    if (by_request) {
        OK(MPI_Rput(out, 1, here, target, base, 1, there, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        OK(MPI_Win_flush(target, win));
        OK(MPI_Rget(in, 1, here, target, base, 1, there, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Put(out, 1, here, target, base, 1, there, win));
        OK(MPI_Win_flush(target, win));
        OK(MPI_Get(in, 1, here, target, base, 1, there, win));
        OK(MPI_Win_flush(target, win));
    }
    for (int k = 0; k < COUNT; k++) {
        CHECK(in[2 * k] == out[2 * k], "word %d of rank %d: %ld", k, target, in[2 * k]);
        CHECK(in[2 * k + 1] == -1, "gap %d: %ld", k, in[2 * k + 1]);
    }
    OK(MPI_Type_free(&there));
    OK(MPI_Type_free(&here));
}

/* Every rank adds 4 * TIMES to one word of each row. */
static void add(int target)
{
    long ones[ROWS], old[ROWS], older[ROWS];
    MPI_Datatype there = column(target, SUMS, 1, MPI_LONG, 0);
    MPI_Request req;
    for (int k = 0; k < ROWS; k++)
        ones[k] = 1;
    for (long i = 0; i < TIMES; i++) {
        OK(MPI_Accumulate(ones, ROWS, MPI_LONG, target, 0, 1, there, MPI_SUM, win));
        OK(MPI_Get_accumulate(ones, ROWS, MPI_LONG, old, ROWS, MPI_LONG, target, 0, 1, there, MPI_SUM, win));
        OK(MPI_Raccumulate(ones, ROWS, MPI_LONG, target, 0, 1, there, MPI_SUM, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        OK(MPI_Rget_accumulate(ones, ROWS, MPI_LONG, older, ROWS, MPI_LONG, target, 0, 1, there, MPI_SUM, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        OK(MPI_Win_flush(target, win));
        for (int k = 0; k < ROWS; k++) {
            CHECK(old[k] > 4 * i && older[k] >= old[k] + 2, "element %d: %ld, then %ld", k, old[k], older[k]);
            CHECK(older[k] < 4L * TIMES * size, "element %d: %ld", k, older[k]);
        }
    }
    OK(MPI_Type_free(&there));
}

/* Elements with padding, and elements that are never updated by atomic instructions. */
static void combine(int target)
{
    struct pair mine[ROWS], old[ROWS];
    char bytes[5 * ROWS], back[5 * ROWS];
    MPI_Datatype pairs = column(target, PAIRS, 1, MPI_DOUBLE_INT, 0);
    MPI_Datatype parts = column(target, BYTES + rank, 5, MPI_BYTE, 0);
    for (int k = 0; k < ROWS; k++)
        mine[k] = (struct pair){rank, rank};
    for (int k = 0; k < 5 * ROWS; k++)
        bytes[k] = 1 + (k + rank) % 100;
    OK(MPI_Get_accumulate(mine, ROWS, MPI_DOUBLE_INT, old, ROWS, MPI_DOUBLE_INT, target, 0, 1, pairs, MPI_MAXLOC, win));
    OK(MPI_Accumulate(bytes, sizeof bytes, MPI_BYTE, target, 0, 1, parts, MPI_REPLACE, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_BYTE, back, sizeof back, MPI_BYTE, target, 0, 1, parts, MPI_NO_OP, win));
    OK(MPI_Win_flush(target, win));
    for (int k = 0; k < ROWS; k++)
        CHECK(old[k].index >= -1 && old[k].index < size && old[k].value == old[k].index, "pair %d: %g, %d", k, old[k].value, old[k].index);
    CHECK(!memcmp(bytes, back, sizeof bytes), "other bytes");
    OK(MPI_Type_free(&pairs));
    OK(MPI_Type_free(&parts));
}

static void rows_are_right(void)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int k = 0; k < ROWS; k++) {
        const long *words = row[order(k)];
        for (int r = 0; r < size; r++)
            for (int i = 0; i < 2; i++) {
                long found = words[OWN + 2 * r + i], expected = value(r, rank, 2 * (2 * k + i) + 1);
                CHECK(found == expected, "row %d, word %d of rank %d: %ld, not %ld", order(k), i, r, found, expected);
            }
        CHECK(words[SUMS] == 4L * TIMES * size, "row %d: %ld", order(k), words[SUMS]);
        const struct pair *pair = (const struct pair *)&words[PAIRS];
        CHECK(pair->value == size - 1 && pair->index == size - 1, "row %d: %g, %d", order(k), pair->value, pair->index);
        for (int word = 0; word < WORDS; word++)
            if (word < FIRST || word >= LAST)
                CHECK(words[word] == GUARD, "row %d, word %d: %ld", order(k), word, words[word]);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static int class_of(int code)
{
    int class;
    OK(MPI_Error_class(code, &class));
    return class;
}

/* An access has failed at once, or by the wait for its request, or by the next flush. */
static void fails(int code, MPI_Request *req, int target, MPI_Aint missing, int bytes, const char *what)
{
    char text[MPI_MAX_ERROR_STRING], number[40], length[40];
    int len;
    if (code == MPI_SUCCESS && req)
        code = MPI_Wait(req, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS)
        code = MPI_Win_flush(target, win);
    CHECK(class_of(code) == MPI_ERR_RMA_RANGE, "%s: class %d", what, class_of(code));
    if (!is_portcullis())
        return;
    OK(MPI_Error_string(code, text, &len));
    snprintf(number, sizeof number, "byte at %#lx,", (long)missing);
    snprintf(length, sizeof length, " %d bytes ", bytes);
    CHECK(strstr(text, number) && strstr(text, length), "%s: not '%s' and '%s': %s", what, number, length, text);
}

/* One of the elements is after the end of its region. */
static void not_attached(int target)
{
    long words[ROWS] = {0}, old[ROWS];
    MPI_Aint places[ROWS], missing = address(target, order(4), LAST);
    MPI_Datatype there;
    MPI_Request req;
    int all = ROWS * sizeof *words;
    for (int i = 0; i < ROWS; i++)
        places[i] = i == 4 ? missing : address(target, order(i), SUMS);
    OK(MPI_Type_create_hindexed_block(ROWS, 1, places, MPI_LONG, &there));
    OK(MPI_Type_commit(&there));
    fails(MPI_Put(words, ROWS, MPI_LONG, target, 0, 1, there, win), NULL, target, missing, all, "put");
    fails(MPI_Get(old, ROWS, MPI_LONG, target, 0, 1, there, win), NULL, target, missing, all, "get");
    fails(MPI_Accumulate(words, ROWS, MPI_LONG, target, 0, 1, there, MPI_SUM, win), NULL, target, missing, all, "accumulate");
    fails(MPI_Get_accumulate(words, ROWS, MPI_LONG, old, ROWS, MPI_LONG, target, 0, 1, there, MPI_SUM, win), NULL, target, missing, all, "get-accumulate");
    fails(MPI_Rput(words, ROWS, MPI_LONG, target, 0, 1, there, win, &req), &req, target, missing, all, "rput");
    fails(MPI_Rget(old, ROWS, MPI_LONG, target, 0, 1, there, win, &req), &req, target, missing, all, "rget");
    /* Contiguous words, of which the last is not attached. */
    fails(MPI_Put(words, 3, MPI_LONG, target, address(target, 0, LAST - 2), 3, MPI_LONG, win), NULL, target, address(target, 0, LAST), 24, "words");
    fails(MPI_Fetch_and_op(words, old, MPI_LONG, target, address(target, 1, FIRST - 1), MPI_SUM, win), NULL, target, address(target, 1, FIRST - 1), 8, "fetch-and-op");
    fails(MPI_Compare_and_swap(words, &words[1], old, MPI_LONG, target, address(target, 2, LAST), win), NULL, target, address(target, 2, LAST), 8, "compare-and-swap");
    /* An access of no bytes needs no attached memory. */
    OK(MPI_Put(words, 0, MPI_LONG, target, missing, 0, MPI_LONG, win));
    OK(MPI_Type_free(&there));
}

static void unmake(const char *memory)
{
    int next = (rank + 1) % size;
    long word = 1;
    int code = MPI_Win_attach(win, &row[0][FIRST + 1], sizeof word);
    CHECK(class_of(code) == MPI_ERR_RMA_ATTACH, "class %d", class_of(code));
    if (is_portcullis()) {
        code = MPI_Win_detach(win, &row[0][FIRST + 1]);
        CHECK(class_of(code) == MPI_ERR_BASE, "class %d", class_of(code));
    }
    OK(MPI_Win_detach(win, &row[0][FIRST]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    fails(MPI_Put(&word, 1, MPI_LONG, next, address(next, 0, SUMS), 1, MPI_LONG, win), NULL, next, address(next, 0, SUMS), 8, "detached");
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Win_free(&win));
    for (int i = 0; i < ROWS; i++)
        if (is_from_mpi(memory, i))
            OK(MPI_Free_mem(row[i]));
        else
            free(row[i]);
    free(at);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size <= MOST_RANKS, "%d ranks", size);
    const char *memory = argc > 1 ? argv[1] : "malloc";
    make(memory);
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < size; i++) {
        int target = (rank + i) % size;
        transfer(target, 0, 0);
        transfer(target, address(target, 3, FIRST), 1);
        add(target);
        combine(target);
    }
    rows_are_right();
    for (int target = 0; target < size; target++)
        not_attached(target);
    rows_are_right();
    OK(MPI_Win_unlock_all(win));
    unmake(memory);
    return finish("regions");
}
