/* A plugin in C with every operation, blocking and nonblocking, by linear algorithms. */
#include <portcullis/plugin.h>

#include <stdio.h>
#include <stdlib.h>

PORTCULLIS_PLUGIN("coll", "every", "1.0");

/* The module's data for one communicator. */
struct every {
    const portcullis_host *host;
    portcullis_comm *comm;
    uint32_t rank, size;
    uint64_t plans; /* kept and not yet forgotten */
};

/* A call in progress: its messages, and the operands of a reduction. */
struct running {
    struct every *every;
    const portcullis_args *args;
    portcullis_call *call;
    uint64_t *messages;
    size_t count, done;
    portcullis_buffer *operands; /* by rank; address NULL: none */
};

/* Returns the block of a rank or neighbour: one of `count` buffers, or block `at` of the only buffer. */
static portcullis_buffer block(struct running *r, const portcullis_buffer *buffers, uint32_t count, uint32_t at) {
    portcullis_buffer one = buffers[count > 1 ? at : 0];
    portcullis_type_info info;

    if (count > 1 || !one.type)
        return one;
    info.size = sizeof info;
    r->every->host->type_info(one.type, &info);
    one.address = (char *)one.address + (ptrdiff_t)(at * one.count * info.extent);
    return one;
}

static int send(struct running *r, uint32_t to, const portcullis_buffer *buffer, portcullis_why *why) {
    return r->every->host->call_send(r->call, to, buffer, &r->messages[r->count++], why);
}

static int receive(struct running *r, uint32_t from, const portcullis_buffer *buffer, portcullis_why *why) {
    return r->every->host->call_recv(r->call, from, buffer, &r->messages[r->count++], why);
}

/* Sends block i of `from` to rank i, and receives block i of `to` from rank i; copies this rank's own block. `from` or `to` may be NULL. */
static int exchange(struct running *r, const portcullis_buffer *from, uint32_t sends, const portcullis_buffer *to, uint32_t receives, int whole,
                    portcullis_why *why) {
    for (uint32_t other = 0; other < r->every->size; other++) {
        portcullis_buffer out = {NULL, 0, NULL}, in = {NULL, 0, NULL};
        if (from)
            out = whole ? *from : block(r, from, sends, other);
        if (to)
            in = block(r, to, receives, other);
        if (other == r->every->rank) {
            if (from && to && out.address != in.address)
                r->every->host->copy(&out, &in);
            continue;
        }
        if (to && receive(r, other, &in, why) != PORTCULLIS_DONE)
            return PORTCULLIS_FAILED;
        if (from && send(r, other, &out, why) != PORTCULLIS_DONE)
            return PORTCULLIS_FAILED;
    }
    return PORTCULLIS_DONE;
}

/* Copies the elements of a buffer to temporary memory of the call. */
static int copied(struct running *r, const portcullis_buffer *of, portcullis_buffer *copy, portcullis_why *why) {
    if (r->every->host->temporary(r->call, of->type, of->count, copy, why) != PORTCULLIS_DONE)
        return PORTCULLIS_FAILED;
    r->every->host->copy(of, copy);
    return PORTCULLIS_DONE;
}

static int start_reduction(struct running *r, portcullis_why *why) {
    const portcullis_args *args = r->args;
    uint32_t me = r->every->rank, size = r->every->size;
    portcullis_buffer whole = args->send ? *args->send : *args->recv, input;
    int parts = args->operation == PORTCULLIS_REDUCE_SCATTER || args->operation == PORTCULLIS_REDUCE_SCATTER_BLOCK;
    int64_t all = whole.count, mine = all, first = 0;
    portcullis_type_info info;

    info.size = sizeof info;
    r->every->host->type_info(whole.type, &info);
    if (args->operation == PORTCULLIS_REDUCE_SCATTER) {
        all = 0;
        for (uint32_t rank = 0; rank < size; rank++)
            all += args->counts[rank];
    } else if (parts)
        all = args->recv->count * size;
    whole.count = all;
    if (copied(r, &whole, &input, why) != PORTCULLIS_DONE)
        return PORTCULLIS_FAILED;
    whole = input;
    r->operands = calloc(size, sizeof *r->operands);
    if (!r->operands) {
        snprintf(why->text, sizeof why->text, "there is no memory for %u operands", size);
        return PORTCULLIS_FAILED;
    }
    for (uint32_t rank = 0; rank < size; rank++) {
        portcullis_buffer part = whole;
        int sends = 1, receives = 1;
        int64_t length = all;
        if (args->operation == PORTCULLIS_REDUCE) {
            sends = rank == args->root;
            receives = me == args->root;
        } else if (args->operation == PORTCULLIS_SCAN) {
            sends = rank >= me;
            receives = rank <= me;
        } else if (args->operation == PORTCULLIS_EXSCAN) {
            sends = rank > me;
            receives = rank < me;
        }
        if (parts) {
            length = args->operation == PORTCULLIS_REDUCE_SCATTER ? args->counts[rank] : args->recv->count;
            part.address = (char *)whole.address + (ptrdiff_t)(first * info.extent);
            part.count = length;
            first += length;
            mine = args->operation == PORTCULLIS_REDUCE_SCATTER ? args->counts[me] : args->recv->count;
        }
        if (receives && r->every->host->temporary(r->call, whole.type, mine, &r->operands[rank], why) != PORTCULLIS_DONE)
            return PORTCULLIS_FAILED;
        if (rank == me) {
            if (receives)
                r->every->host->copy(&part, &r->operands[rank]);
            continue;
        }
        if (receives && receive(r, rank, &r->operands[rank], why) != PORTCULLIS_DONE)
            return PORTCULLIS_FAILED;
        if (sends && send(r, rank, &part, why) != PORTCULLIS_DONE)
            return PORTCULLIS_FAILED;
    }
    return PORTCULLIS_DONE;
}

/* Combines the operands in the order of ranks. */
static int finish_reduction(struct running *r, portcullis_why *why) {
    portcullis_buffer *result = NULL, to;

    for (uint32_t rank = r->every->size; rank-- > 0;) {
        if (!r->operands[rank].type)
            continue;
        if (result && r->every->host->reduce(r->args->op, &r->operands[rank], result, why) != PORTCULLIS_DONE)
            return PORTCULLIS_FAILED;
        /* The left operand is combined into the right one, which then contains the result so far. */
        if (!result)
            result = &r->operands[rank];
    }
    if (result && r->args->recv) {
        to = *r->args->recv;
        to.count = result->count;
        r->every->host->copy(result, &to);
    }
    return PORTCULLIS_DONE;
}

static int start_neighbours(struct running *r, portcullis_why *why) {
    const portcullis_args *args = r->args;
    int same = args->operation == PORTCULLIS_NEIGHBOR_ALLGATHER || args->operation == PORTCULLIS_NEIGHBOR_ALLGATHERV;

    for (uint32_t turn = 0; turn < args->arrival_count; turn++) {
        uint32_t at = args->arrivals[turn];
        portcullis_buffer in = block(r, args->recv, args->recv_count, at);
        if (receive(r, args->sources[at], &in, why) != PORTCULLIS_DONE)
            return PORTCULLIS_FAILED;
    }
    for (uint32_t at = 0; at < args->destination_count; at++) {
        portcullis_buffer out;
        if (args->destinations[at] == PORTCULLIS_NO_RANK)
            continue;
        out = same ? *args->send : block(r, args->send, args->send_count, at);
        if (send(r, args->destinations[at], &out, why) != PORTCULLIS_DONE)
            return PORTCULLIS_FAILED;
    }
    return PORTCULLIS_DONE;
}

/* With MPI_IN_PLACE the data to send are in the receive buffer and are sent before it is overwritten. */
static int exchange_all(struct running *r, portcullis_why *why) {
    const portcullis_args *args = r->args;
    uint32_t size = r->every->size;
    portcullis_buffer *copies;
    int outcome = PORTCULLIS_DONE;

    if (args->send)
        return exchange(r, args->send, args->send_count, args->recv, args->recv_count, 0, why);
    copies = calloc(size, sizeof *copies);
    if (!copies)
        return PORTCULLIS_FAILED;
    for (uint32_t rank = 0; rank < size && outcome == PORTCULLIS_DONE; rank++) {
        portcullis_buffer own = block(r, args->recv, args->recv_count, rank);
        outcome = copied(r, &own, &copies[rank], why);
    }
    if (outcome == PORTCULLIS_DONE)
        outcome = exchange(r, copies, size, args->recv, args->recv_count, 0, why);
    free(copies);
    return outcome;
}

static int start_messages(struct running *r, portcullis_why *why) {
    const portcullis_args *args = r->args;
    uint32_t me = r->every->rank, root = args->root;
    portcullis_buffer nothing = {NULL, 0, NULL}, own;

    switch (args->operation) {
    case PORTCULLIS_BARRIER:
        return exchange(r, &nothing, 1, &nothing, 1, 1, why);
    case PORTCULLIS_BCAST:
        return me == root ? exchange(r, args->recv, 1, NULL, 0, 1, why) : receive(r, root, args->recv, why);
    case PORTCULLIS_GATHER:
    case PORTCULLIS_GATHERV:
        if (me != root)
            return send(r, root, args->send, why);
        if (args->send) {
            own = block(r, args->recv, args->recv_count, me);
            r->every->host->copy(args->send, &own);
        }
        return exchange(r, NULL, 0, args->recv, args->recv_count, 0, why);
    case PORTCULLIS_SCATTER:
    case PORTCULLIS_SCATTERV:
        if (me != root)
            return receive(r, root, args->recv, why);
        if (args->recv) {
            own = block(r, args->send, args->send_count, me);
            r->every->host->copy(&own, args->recv);
        }
        return exchange(r, args->send, args->send_count, NULL, 0, 0, why);
    case PORTCULLIS_ALLGATHER:
    case PORTCULLIS_ALLGATHERV:
        if (args->send)
            return exchange(r, args->send, 1, args->recv, args->recv_count, 1, why);
        own = block(r, args->recv, args->recv_count, me);
        return exchange(r, &own, 1, args->recv, args->recv_count, 1, why);
    case PORTCULLIS_ALLTOALL:
    case PORTCULLIS_ALLTOALLV:
    case PORTCULLIS_ALLTOALLW:
        return exchange_all(r, why);
    case PORTCULLIS_NEIGHBOR_ALLGATHER:
    case PORTCULLIS_NEIGHBOR_ALLGATHERV:
    case PORTCULLIS_NEIGHBOR_ALLTOALL:
    case PORTCULLIS_NEIGHBOR_ALLTOALLV:
    case PORTCULLIS_NEIGHBOR_ALLTOALLW:
        return start_neighbours(r, why);
    default:
        return start_reduction(r, why);
    }
}

static void forget_running(struct running *r) {
    free(r->messages);
    free(r->operands);
    free(r);
}

static struct running *begin(void *self, const portcullis_args *args, portcullis_call *call, portcullis_why *why) {
    struct running *r = calloc(1, sizeof *r);
    size_t most = 2 * (size_t)((struct every *)self)->size + args->arrival_count + args->destination_count;

    if (r)
        r->messages = calloc(most + 1, sizeof *r->messages);
    if (!r || !r->messages) {
        free(r);
        snprintf(why->text, sizeof why->text, "there is no memory");
        return NULL;
    }
    r->every = self;
    r->args = args;
    r->call = call;
    if (args->plan && !*args->plan) {
        *args->plan = malloc(1);
        r->every->plans++;
    }
    if (start_messages(r, why) == PORTCULLIS_DONE)
        return r;
    forget_running(r);
    return NULL;
}

#ifdef ONLY_STARTED
#define RUN NULL
#else
#define RUN run
static int run(void *self, const portcullis_args *args, portcullis_call *call, portcullis_why *why) {
    struct running *r = begin(self, args, call, why);
    int outcome;

    if (!r)
        return PORTCULLIS_FAILED;
    outcome = r->every->host->call_wait(call, r->messages, r->count, why);
    if (outcome == PORTCULLIS_DONE && args->op)
        outcome = finish_reduction(r, why);
    forget_running(r);
    return outcome;
}
#endif

static int start(void *self, const portcullis_args *args, portcullis_call *call, uint64_t *ticket, portcullis_why *why) {
    struct running *r = begin(self, args, call, why);

    *ticket = (uint64_t)(uintptr_t)r;
    return r ? PORTCULLIS_PENDING : PORTCULLIS_FAILED;
}

static int test(void *self, uint64_t ticket, portcullis_why *why) {
    struct running *r = (struct running *)(uintptr_t)ticket;
    int outcome = PORTCULLIS_DONE;

    (void)self;
    while (r->done < r->count) {
        outcome = r->every->host->call_test(r->call, r->messages[r->done], why);
        if (outcome == PORTCULLIS_PENDING)
            return outcome;
        if (outcome == PORTCULLIS_FAILED)
            break;
        r->done++;
    }
    if (outcome == PORTCULLIS_DONE && r->args->op)
        outcome = finish_reduction(r, why);
    forget_running(r);
    return outcome;
}

static void forget(void *self, void *plan) {
    ((struct every *)self)->plans--;
    free(plan);
}

static void release(void *self) {
    struct every *every = self;
    if (every->plans)
        every->host->log(every->comm, PORTCULLIS_WARNING, "plans were not forgotten");
    free(every);
}

#define SERVES(operation) {operation, FLAGS, LIMIT, RUN, start, test, forget, NULL}
#ifndef FLAGS
#define FLAGS 0
#endif
#ifndef LIMIT
#define LIMIT 0
#endif

static const portcullis_operation operations[] = {
    SERVES(PORTCULLIS_BARRIER), SERVES(PORTCULLIS_BCAST), SERVES(PORTCULLIS_GATHER), SERVES(PORTCULLIS_GATHERV),
    SERVES(PORTCULLIS_SCATTER), SERVES(PORTCULLIS_SCATTERV), SERVES(PORTCULLIS_ALLGATHER), SERVES(PORTCULLIS_ALLGATHERV),
    SERVES(PORTCULLIS_ALLTOALL), SERVES(PORTCULLIS_ALLTOALLV), SERVES(PORTCULLIS_ALLTOALLW), SERVES(PORTCULLIS_REDUCE),
    SERVES(PORTCULLIS_ALLREDUCE), SERVES(PORTCULLIS_REDUCE_SCATTER), SERVES(PORTCULLIS_REDUCE_SCATTER_BLOCK),
    SERVES(PORTCULLIS_SCAN), SERVES(PORTCULLIS_EXSCAN), SERVES(PORTCULLIS_NEIGHBOR_ALLGATHER), SERVES(PORTCULLIS_NEIGHBOR_ALLGATHERV),
    SERVES(PORTCULLIS_NEIGHBOR_ALLTOALL), SERVES(PORTCULLIS_NEIGHBOR_ALLTOALLV), SERVES(PORTCULLIS_NEIGHBOR_ALLTOALLW),
};

static const portcullis_module module = {
    .size = sizeof module,
    .free = release,
    .operations = operations,
    .operation_count = sizeof operations / sizeof *operations,
    .operation_size = sizeof *operations,
};

static const portcullis_module *query(const portcullis_host *host, portcullis_comm *comm, void **self, portcullis_why *why) {
    struct every *every = calloc(1, sizeof *every);

    if (!every) {
        snprintf(why->text, sizeof why->text, "there is no memory");
        return NULL;
    }
    every->host = host;
    every->comm = comm;
    every->rank = host->comm_rank(comm);
    every->size = host->comm_size(comm);
    *self = every;
    return &module;
}

static const portcullis_component_table component = {
    .size = sizeof component,
    .abi_version = PORTCULLIS_ABI_VERSION,
    .priority = 95,
    .framework = "coll",
    .name = "every",
    .version = "1.0",
    .query = query,
};

const portcullis_component_table *portcullis_component(void) {
    return &component;
}
