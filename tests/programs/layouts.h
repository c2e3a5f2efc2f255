/* Datatypes of many shapes with a given number of elements, and each element's position. */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#include "elements.h"

enum { MOST_ELEMENTS = 64, LAYOUTS = 8 };

/* `place[i]` is the index in memory of packed element `i`. All indexes are less than `room`,
 * which is at most four times `n`. */
typedef struct { MPI_Datatype type; int count, n, place[MOST_ELEMENTS], room; } Layout;

/* Returns a layout of the given shape; `gap` is 2 or 3. */
static Layout make_layout(const Type *t, int n, int shape, int gap)
{
    Layout l = {.count = 1, .n = n, .room = n};
    int lens[MOST_ELEMENTS] = {0}, starts[MOST_ELEMENTS] = {0}, blocks = 0;
    MPI_Aint bytes[MOST_ELEMENTS] = {0};
    for (int i = 0; i < n; i++)
        l.place[i] = i;
    switch (shape) {
    case 0:
        l.type = t->type, l.count = n;
        return l;
    case 1:
        OK(MPI_Type_contiguous(n, t->type, &l.type));
        break;
    case 2:
        OK(MPI_Type_vector(n, 1, gap, t->type, &l.type));
        for (int i = 0; i < n; i++) l.place[i] = i * gap;
        break;
    case 3: /* reversed, so that packed order is not memory order */
        for (int i = 0; i < n; i++) lens[i] = 1, starts[i] = l.place[i] = n - 1 - i;
        OK(MPI_Type_indexed(n, lens, starts, t->type, &l.type));
        break;
    case 4: /* several items of a resized type */
        OK(MPI_Type_create_resized(t->type, 0, (MPI_Aint)gap * t->extent, &l.type));
        l.count = n;
        for (int i = 0; i < n; i++) l.place[i] = i * gap;
        break;
    case 5: /* blocks with a first displacement above zero */
        for (int i = 0, at = 3; i < n; blocks++, at++) {
            int len = 1 + (i + gap) % 3;
            len = len < n - i ? len : n - i;
            lens[blocks] = len, bytes[blocks] = (MPI_Aint)at * t->extent;
            for (int k = 0; k < len; k++) l.place[i++] = at++;
        }
        OK(MPI_Type_create_hindexed(blocks, lens, bytes, t->type, &l.type));
        break;
    case 6: { /* the middle of a two-dimensional array */
        int rows = n % 4 == 0 ? 4 : n % 3 == 0 ? 3 : n % 2 == 0 ? 2 : 1, columns = n / rows;
        OK(MPI_Type_create_subarray(2, (int[]){rows, columns + 2}, (int[]){rows, columns}, (int[]){0, 1}, MPI_ORDER_C, t->type, &l.type));
        for (int i = 0; i < n; i++) l.place[i] = i / columns * (columns + 2) + 1 + i % columns;
        break;
    }
    default: { /* a structure around a vector, with other bounds */
        MPI_Datatype inner, whole;
        OK(MPI_Type_vector(n, 1, gap, t->type, &inner));
        bytes[0] = t->extent;
        OK(MPI_Type_create_struct(1, (int[]){1}, bytes, &inner, &whole));
        OK(MPI_Type_create_resized(whole, -8, 16, &l.type));
        OK(MPI_Type_free(&inner));
        OK(MPI_Type_free(&whole));
        for (int i = 0; i < n; i++) l.place[i] = 1 + i * gap;
    }
    }
    for (int i = 0; i < n; i++)
        l.room = l.place[i] + 1 > l.room ? l.place[i] + 1 : l.room;
    OK(MPI_Type_commit(&l.type));
    return l;
}

static void drop_layout(Layout *l, const Type *t)
{
    if (l->type != t->type)
        OK(MPI_Type_free(&l->type));
}
#endif
