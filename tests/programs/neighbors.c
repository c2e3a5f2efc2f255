/* Tests of neighbourhood collectives on grids, graphs and distributed graphs:
 * blocking, nonblocking, persistent, and with large counts. */
#include "check.h"

/* The variants of a call; every test runs with each of them. */
enum form { BLOCKING, NONBLOCKING, PERSISTENT, LARGE, FORMS };

/* Completes an operation; a persistent operation is started twice. */
static void conclude(enum form form, MPI_Request *request)
{
    if (form == NONBLOCKING)
        OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    if (form == PERSISTENT) {
        for (int use = 0; use < 2; use++) {
            OK(MPI_Start(request));
            OK(MPI_Wait(request, MPI_STATUS_IGNORE));
        }
        OK(MPI_Request_free(request));
    }
}

static void allgather(enum form form, const void *s, int n, MPI_Datatype t, void *r, MPI_Comm c)
{
    MPI_Request request;
    switch (form) {
    case BLOCKING: OK(MPI_Neighbor_allgather(s, n, t, r, n, t, c)); break;
    case NONBLOCKING: OK(MPI_Ineighbor_allgather(s, n, t, r, n, t, c, &request)); break;
    case PERSISTENT: OK(MPI_Neighbor_allgather_init(s, n, t, r, n, t, c, MPI_INFO_NULL, &request)); break;
    default: OK(MPI_Neighbor_allgather_c(s, n, t, r, n, t, c));
    }
    conclude(form, &request);
}

static void alltoall(enum form form, const void *s, int n, MPI_Datatype t, void *r, MPI_Comm c)
{
    MPI_Request request;
    switch (form) {
    case BLOCKING: OK(MPI_Neighbor_alltoall(s, n, t, r, n, t, c)); break;
    case NONBLOCKING: OK(MPI_Ineighbor_alltoall(s, n, t, r, n, t, c, &request)); break;
    case PERSISTENT: OK(MPI_Neighbor_alltoall_init(s, n, t, r, n, t, c, MPI_INFO_NULL, &request)); break;
    default: OK(MPI_Neighbor_alltoall_c(s, n, t, r, n, t, c));
    }
    conclude(form, &request);
}

/* Checks the blocks that a rank of a grid has received.
 * Each block is the neighbour's block for the opposite direction of the same dimension. */
static void halo(MPI_Comm cart, int ndims)
{
    enum { EACH = 300 };
    int me, blocks = 2 * ndims;
    int *out = malloc(blocks * EACH * sizeof *out), *in = malloc(blocks * EACH * sizeof *in);
    OK(MPI_Comm_rank(cart, &me));
    for (enum form form = BLOCKING; form < FORMS; form++) {
        for (int b = 0; b < blocks; b++)
            for (int i = 0; i < EACH; i++) {
                out[b * EACH + i] = (me * blocks + b) * EACH + i;
                in[b * EACH + i] = -1;
            }
        alltoall(form, out, EACH, MPI_INT, in, cart);
        for (int b = 0; b < blocks; b++) {
            int down, up;
            OK(MPI_Cart_shift(cart, b / 2, 1, &down, &up));
            int from = b % 2 ? up : down;
            for (int i = 0; i < EACH; i++) {
                int expected = from == MPI_PROC_NULL ? -1 : (from * blocks + (b ^ 1)) * EACH + i;
                CHECK(in[b * EACH + i] == expected, "form %d, block %d, element %d is %d, not %d", form, b, i, in[b * EACH + i], expected);
            }
            in[b * EACH] = -1;
        }
        allgather(form, out, EACH, MPI_INT, in, cart);
        for (int b = 0; b < blocks; b++) {
            int down, up;
            OK(MPI_Cart_shift(cart, b / 2, 1, &down, &up));
            int from = b % 2 ? up : down;
            int expected = from == MPI_PROC_NULL ? -1 : from * blocks * EACH;
            CHECK(in[b * EACH] == expected, "form %d, block %d begins with %d, not %d", form, b, in[b * EACH], expected);
        }
    }
    free(out);
    free(in);
}

/* Tests grids of all processes, rings and lines. In a ring of one or two processes,
 * a process has the same process as both neighbours. */
static void grids(void)
{
    for (int periodic = 0; periodic < 2; periodic++) {
        int dims[2] = {0, 0}, periods[2] = {periodic, !periodic};
        MPI_Comm cart;
        OK(MPI_Dims_create(size, 2, dims));
        OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart));
        halo(cart, 2);
        OK(MPI_Comm_free(&cart));
    }
    int one[1] = {1}, ring[1] = {1};
    MPI_Comm alone;
    OK(MPI_Cart_create(MPI_COMM_SELF, 1, one, ring, 0, &alone));
    halo(alone, 1);
    OK(MPI_Comm_free(&alone));
}

/* A graph in which every rank is a neighbour of process 0, and process 0 occurs twice among its own neighbours. */
static void star(void)
{
    int *index = malloc(size * sizeof *index), *edges = malloc((2 * size + 2) * sizeof *edges);
    for (int n = 0; n < size; n++)
        index[n] = size + 1 + n;
    edges[0] = edges[1] = 0;
    for (int n = 1; n < size; n++)
        edges[n + 1] = n, edges[size + n] = 0;
    MPI_Comm graph;
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph));
    int degree = rank == 0 ? size + 1 : 1;
    int *in = malloc(degree * sizeof *in), *out = malloc(degree * sizeof *out);
    for (enum form form = BLOCKING; form < FORMS; form++) {
        for (int i = 0; i < degree; i++)
            in[i] = -1, out[i] = 1000 * rank + i;
        allgather(form, &rank, 1, MPI_INT, in, graph);
        for (int i = 0; i < degree; i++) {
            int from = rank == 0 && i > 1 ? i - 1 : 0;
            CHECK(in[i] == from, "form %d, block %d is from %d, not %d", form, i, in[i], from);
        }
        alltoall(form, out, 1, MPI_INT, in, graph);
        for (int i = 0; i < degree; i++) {
            int expected = rank > 0 ? rank + 1 : i > 1 ? 1000 * (i - 1) : i;
            CHECK(in[i] == expected, "form %d, block %d is %d, not %d", form, i, in[i], expected);
        }
    }
    free(in);
    free(out);
    free(index);
    free(edges);
    OK(MPI_Comm_free(&graph));
}

/* A distributed graph in which every rank sends to all higher ranks; the number of elements
 * is the difference of the ranks. Counts and datatypes differ between sender and receiver. */
static void above(void)
{
    int in = rank, out = size - 1 - rank;
    int *sources = malloc((in + 1) * sizeof *sources), *destinations = malloc((out + 1) * sizeof *destinations);
    int *incounts = malloc((in + 1) * sizeof *incounts), *outcounts = malloc((out + 1) * sizeof *outcounts);
    int *indispls = malloc((in + 1) * sizeof *indispls), *outdispls = malloc((out + 1) * sizeof *outdispls);
    MPI_Aint *inbytes = malloc((in + 1) * sizeof *inbytes), *outbytes = malloc((out + 1) * sizeof *outbytes);
    MPI_Datatype *intypes = malloc((in + 1) * sizeof *intypes), *outtypes = malloc((out + 1) * sizeof *outtypes);
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    int total = 0;
    for (int s = 0; s < in; s++) {
        sources[s] = s;
        incounts[s] = 2 * (rank - s);
        indispls[s] = total + 1;
        total = indispls[s] + incounts[s];
        inbytes[s] = indispls[s] * (MPI_Aint)sizeof(int);
        intypes[s] = MPI_INT;
    }
    int *received = malloc((total + 1) * sizeof *received);
    for (int d = 0; d < out; d++) {
        destinations[d] = rank + 1 + d;
        outcounts[d] = 2 * (d + 1);
        outdispls[d] = 0;
        outbytes[d] = 0;
        outtypes[d] = pair;
    }
    int *sent = malloc(2 * size * sizeof *sent);
    for (int i = 0; i < 2 * size; i++)
        sent[i] = 100 * rank + i;

    MPI_Comm graph;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, MPI_UNWEIGHTED, out, destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
    for (int w = 0; w < 2; w++)
        for (enum form form = BLOCKING; form < LARGE; form++) {
            MPI_Request request;
            for (int i = 0; i <= total; i++)
                received[i] = -1;
            if (w) {
                /* One side describes the data as pairs, the other as single elements. */
                for (int d = 0; d < out; d++)
                    outcounts[d] = d + 1;
                switch (form) {
                case BLOCKING: OK(MPI_Neighbor_alltoallw(sent, outcounts, outbytes, outtypes, received, incounts, inbytes, intypes, graph)); break;
                case NONBLOCKING: OK(MPI_Ineighbor_alltoallw(sent, outcounts, outbytes, outtypes, received, incounts, inbytes, intypes, graph, &request)); break;
                default: OK(MPI_Neighbor_alltoallw_init(sent, outcounts, outbytes, outtypes, received, incounts, inbytes, intypes, graph, MPI_INFO_NULL, &request));
                }
            } else {
                switch (form) {
                case BLOCKING: OK(MPI_Neighbor_alltoallv(sent, outcounts, outdispls, MPI_INT, received, incounts, indispls, MPI_INT, graph)); break;
                case NONBLOCKING: OK(MPI_Ineighbor_alltoallv(sent, outcounts, outdispls, MPI_INT, received, incounts, indispls, MPI_INT, graph, &request)); break;
                default: OK(MPI_Neighbor_alltoallv_init(sent, outcounts, outdispls, MPI_INT, received, incounts, indispls, MPI_INT, graph, MPI_INFO_NULL, &request));
                }
            }
            conclude(form, &request);
            for (int s = 0; s < in; s++) {
                CHECK(received[indispls[s] - 1] == -1, "the gap before block %d holds %d", s, received[indispls[s] - 1]);
                for (int i = 0; i < incounts[s]; i++)
                    CHECK(received[indispls[s] + i] == 100 * s + i, "w %d, form %d: element %d from %d is %d", w, form, i, s, received[indispls[s] + i]);
            }
        }

    /* All blocks have the same size; the receiver's displacements are in reverse order. */
    for (int s = 0; s < in; s++)
        incounts[s] = 2, indispls[s] = 2 * (in - 1 - s);
    for (enum form form = BLOCKING; form < LARGE; form++) {
        MPI_Request request;
        switch (form) {
        case BLOCKING: OK(MPI_Neighbor_allgatherv(sent, 1, pair, received, incounts, indispls, MPI_INT, graph)); break;
        case NONBLOCKING: OK(MPI_Ineighbor_allgatherv(sent, 1, pair, received, incounts, indispls, MPI_INT, graph, &request)); break;
        default: OK(MPI_Neighbor_allgatherv_init(sent, 1, pair, received, incounts, indispls, MPI_INT, graph, MPI_INFO_NULL, &request));
        }
        conclude(form, &request);
        for (int s = 0; s < in; s++)
            CHECK(received[indispls[s]] == 100 * s && received[indispls[s] + 1] == 100 * s + 1, "from %d came %d, %d", s, received[indispls[s]], received[indispls[s] + 1]);
    }
    OK(MPI_Type_free(&pair));
    OK(MPI_Comm_free(&graph));
    free(sources), free(destinations), free(incounts), free(outcounts), free(indispls), free(outdispls);
    free(inbytes), free(outbytes), free(intypes), free(outtypes), free(received), free(sent);
}

/* Invalid calls are rejected and have no effect. */
static void refusals(void)
{
    int class, code, word = 1, room[2];
    MPI_Comm copy, cart;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN));
    code = MPI_Neighbor_allgather(&word, 1, MPI_INT, room, 1, MPI_INT, copy);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_TOPOLOGY, "without a topology: class %d", class);
    int dims[1] = {size}, periods[1] = {0};
    OK(MPI_Cart_create(copy, 1, dims, periods, 0, &cart));
    OK(MPI_Comm_set_errhandler(cart, MPI_ERRORS_RETURN));
    code = MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, room, 1, MPI_INT, cart);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_BUFFER || !is_portcullis(), "in place: class %d", class);
    OK(MPI_Comm_free(&cart));
    OK(MPI_Comm_free(&copy));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    grids();
    star();
    above();
    refusals();
    return finish("neighbors");
}
