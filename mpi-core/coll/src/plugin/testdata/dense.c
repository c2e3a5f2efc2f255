/* A plugin in C with fast calls of all collectives: each member sends all its data to the others. Other calls go to the next component. */
#include <portcullis/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PORTCULLIS_PLUGIN("coll", "dense", "1.0");

#ifndef ANSWER
#define ANSWER PORTCULLIS_DONE
#endif

struct dense {
    const portcullis_host *host;
    portcullis_comm *comm;
    uint32_t rank, size;
};

static int refuse(struct dense *d, const char *reason) {
    d->host->fail(d->comm, reason);
    return PORTCULLIS_FAILED;
}

/* Returns the data of all members, in the order of ranks; the caller frees them. */
static char *gathered(struct dense *d, const void *own, size_t bytes) {
    char *all = malloc(d->size * bytes + 1);
    portcullis_why why;

    for (uint32_t other = 0; all && other < d->size; other++)
        if (other != d->rank && d->host->send(d->comm, other, own, bytes, &why) != PORTCULLIS_DONE)
            abort();
    for (uint32_t other = 0; all && other < d->size; other++)
        if (other == d->rank)
            memcpy(all + other * bytes, own, bytes);
        else if (d->host->recv(d->comm, other, all + other * bytes, bytes, &why) != PORTCULLIS_DONE)
            abort();
    return all;
}

/* Combines block `block` of the members 0 to end - 1 into recv. */
static int fold(struct dense *d, const void *send, size_t blocks, size_t block, void *recv, size_t bytes, uint32_t end, const portcullis_dense_op *op) {
    char *all = gathered(d, send, blocks * bytes);

    if (!all || !op)
        return refuse(d, "no memory or no operator");
    for (uint32_t rank = 0; recv && rank < end; rank++)
        if (rank == 0)
            memcpy(recv, all + block * bytes, bytes);
        else
            d->host->combine(op, all + (rank * blocks + block) * bytes, recv, bytes);
    free(all);
    return ANSWER;
}

/* Copies block `block` of each member's data into recv. */
static int collect(struct dense *d, const void *send, size_t blocks, size_t block, void *recv, size_t bytes, const portcullis_dense_op *op) {
    char *all = gathered(d, send, blocks * bytes);

    if (!all || op)
        return refuse(d, "no memory or an operator");
    for (uint32_t rank = 0; recv && rank < d->size; rank++)
        memcpy((char *)recv + rank * bytes, all + (rank * blocks + block) * bytes, bytes);
    free(all);
    return PORTCULLIS_DONE;
}

#define DENSE(name) static int name(void *self, const void *send, void *recv, size_t bytes, uint32_t root, const portcullis_dense_op *op)

DENSE(barrier) {
    struct dense *d = self;
    portcullis_why why;
    if (send || recv || bytes || op || root != PORTCULLIS_NO_RANK)
        return refuse(d, "a barrier with arguments");
    return d->host->fence(d->comm, &why);
}

DENSE(bcast) {
    struct dense *d = self;
    char *all = gathered(d, recv, bytes);
    if (!all || send || op || root >= d->size)
        return refuse(d, "the arguments of bcast");
    memcpy(recv, all + root * bytes, bytes);
    free(all);
    return PORTCULLIS_DONE;
}

DENSE(gather) {
    struct dense *d = self;
    if ((d->rank == root) != (recv != NULL))
        return refuse(d, "only the root receives");
    return collect(d, send, 1, 0, recv, bytes, op);
}

DENSE(scatter) {
    struct dense *d = self;
    char *mine = calloc(d->size, bytes + 1), *all;
    if (!mine || (d->rank == root) != (send != NULL) || op)
        return refuse(d, "the arguments of scatter");
    all = gathered(d, send ? send : mine, d->size * bytes);
    if (!all)
        return refuse(d, "no memory");
    memcpy(recv, all + (root * d->size + d->rank) * bytes, bytes);
    free(all);
    free(mine);
    return PORTCULLIS_DONE;
}

DENSE(allgather) {
    struct dense *d = self;
    return root != PORTCULLIS_NO_RANK ? refuse(d, "a root") : collect(d, send, 1, 0, recv, bytes, op);
}

DENSE(alltoall) {
    struct dense *d = self;
    return root != PORTCULLIS_NO_RANK ? refuse(d, "a root") : collect(d, send, d->size, d->rank, recv, bytes, op);
}

DENSE(reduce) {
    struct dense *d = self;
    if ((d->rank == root) != (recv != NULL))
        return refuse(d, "only the root receives");
    return fold(d, send, 1, 0, recv, bytes, d->size, op);
}

DENSE(allreduce) {
    struct dense *d = self;
    return root != PORTCULLIS_NO_RANK ? refuse(d, "a root") : fold(d, send, 1, 0, recv, bytes, d->size, op);
}

DENSE(reduce_scatter_block) {
    struct dense *d = self;
    return root != PORTCULLIS_NO_RANK ? refuse(d, "a root") : fold(d, send, d->size, d->rank, recv, bytes, d->size, op);
}

DENSE(scan) {
    struct dense *d = self;
    return root != PORTCULLIS_NO_RANK ? refuse(d, "a root") : fold(d, send, 1, 0, recv, bytes, d->rank + 1, op);
}

DENSE(exscan) {
    struct dense *d = self;
    return root != PORTCULLIS_NO_RANK ? refuse(d, "a root") : fold(d, send, 1, 0, recv, bytes, d->rank, op);
}

static int down(void *self, const portcullis_args *args, portcullis_call *call, portcullis_why *why) {
    (void)self, (void)args, (void)call, (void)why;
    return PORTCULLIS_NEXT;
}

#define SERVES(number, function) {.operation = number, .run = down, .dense = function}

static const portcullis_operation operations[] = {
    SERVES(PORTCULLIS_BARRIER, barrier),
    SERVES(PORTCULLIS_BCAST, bcast),
    SERVES(PORTCULLIS_GATHER, gather),
    SERVES(PORTCULLIS_SCATTER, scatter),
    SERVES(PORTCULLIS_ALLGATHER, allgather),
    SERVES(PORTCULLIS_ALLTOALL, alltoall),
    SERVES(PORTCULLIS_REDUCE, reduce),
    SERVES(PORTCULLIS_ALLREDUCE, allreduce),
    SERVES(PORTCULLIS_REDUCE_SCATTER_BLOCK, reduce_scatter_block),
    SERVES(PORTCULLIS_SCAN, scan),
    SERVES(PORTCULLIS_EXSCAN, exscan),
};

static const portcullis_module module = {
    .size = sizeof module,
    .free = free,
    .operations = operations,
    .operation_count = sizeof operations / sizeof *operations,
    .operation_size = sizeof *operations,
};

static const portcullis_module *query(const portcullis_host *host, portcullis_comm *comm, void **self, portcullis_why *why) {
    struct dense *d = calloc(1, sizeof *d);

    if (!d) {
        snprintf(why->text, sizeof why->text, "there is no memory");
        return NULL;
    }
    d->host = host;
    d->comm = comm;
    d->rank = host->comm_rank(comm);
    d->size = host->comm_size(comm);
    *self = d;
    return &module;
}

static const portcullis_component_table component = {
    .size = sizeof component,
    .abi_version = PORTCULLIS_ABI_VERSION,
    .priority = 95,
    .framework = "coll",
    .name = "dense",
    .version = "1.0",
    .query = query,
};

const portcullis_component_table *portcullis_component(void) {
    return &component;
}
