/* Tests of Cartesian, graph and distributed graph topologies: coordinates and neighbours,
 * and the topology of a duplicate, which is that of its parent. */
#include "check.h"

/* A grid of all processes, periodic in the first dimension only. */
static void grid(void)
{
    int dims[2] = {0, 0}, periods[2] = {1, 0}, kind, ndims;
    MPI_Comm cart, copy, row;
    OK(MPI_Dims_create(size, 2, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &cart));
    OK(MPI_Topo_test(cart, &kind));
    OK(MPI_Cartdim_get(cart, &ndims));
    CHECK(kind == MPI_CART && ndims == 2, "kind %d, %d dimensions", kind, ndims);

    int d[2], p[2], here[2], me, back;
    OK(MPI_Comm_rank(cart, &me));
    OK(MPI_Cart_get(cart, 2, d, p, here));
    CHECK(d[0] == dims[0] && d[1] == dims[1] && p[0] && !p[1], "%d x %d, %d %d", d[0], d[1], p[0], p[1]);
    OK(MPI_Cart_rank(cart, here, &back));
    CHECK(back == me, "rank %d at (%d, %d) is said to be %d", me, here[0], here[1], back);

    /* A shift along the periodic dimension: this rank receives the message of its upper neighbour. */
    int up, down, got = -1;
    OK(MPI_Cart_shift(cart, 0, 1, &up, &down));
    OK(MPI_Sendrecv(&me, 1, MPI_INT, down, 1, &got, 1, MPI_INT, up, 1, cart, MPI_STATUS_IGNORE));
    CHECK(got == up, "from %d came %d", up, got);

    /* Beyond the ends of the open dimension, the neighbour is MPI_PROC_NULL. */
    int left, right;
    OK(MPI_Cart_shift(cart, 1, 1, &left, &right));
    CHECK((left == MPI_PROC_NULL) == (here[1] == 0), "left of column %d is %d", here[1], left);
    CHECK((right == MPI_PROC_NULL) == (here[1] == dims[1] - 1), "right of column %d is %d", here[1], right);

    /* A row is a one-dimensional grid; the sum of its columns is known. */
    int keep[2] = {0, 1}, sum, members, rank_in_row;
    OK(MPI_Cart_sub(cart, keep, &row));
    OK(MPI_Comm_size(row, &members));
    OK(MPI_Comm_rank(row, &rank_in_row));
    OK(MPI_Allreduce(&here[1], &sum, 1, MPI_INT, MPI_SUM, row));
    CHECK(members == dims[1] && rank_in_row == here[1], "%d members, rank %d", members, rank_in_row);
    CHECK(sum == members * (members - 1) / 2, "the columns of a row sum up to %d", sum);

    OK(MPI_Comm_dup(cart, &copy));
    OK(MPI_Topo_test(copy, &kind));
    CHECK(kind == MPI_CART, "a duplicate has kind %d", kind);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&row));
    OK(MPI_Comm_free(&cart));
}

/* A grid that is smaller than the world excludes the last process. */
static void too_small(void)
{
    int dims[1] = {size > 1 ? size - 1 : 1}, periods[1] = {0}, newrank;
    MPI_Comm cart;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart));
    OK(MPI_Cart_map(MPI_COMM_WORLD, 1, dims, periods, &newrank));
    int out = rank >= dims[0];
    CHECK((cart == MPI_COMM_NULL) == out, "rank %d of a grid of %d", rank, dims[0]);
    CHECK(newrank == (out ? MPI_UNDEFINED : rank), "mapped to %d", newrank);
    if (cart != MPI_COMM_NULL)
        OK(MPI_Comm_free(&cart));
}

/* A star: every rank is a neighbour of process 0. */
static void star(void)
{
    int *index = malloc(size * sizeof *index), *edges = malloc(2 * size * sizeof *edges);
    for (int n = 0; n < size; n++)
        index[n] = size - 1 + n;
    for (int n = 0; n < size - 1; n++) {
        edges[n] = n + 1;
        edges[size - 1 + n] = 0;
    }
    MPI_Comm graph;
    int nodes, nedges, count, neighbours[64], kind;
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph));
    OK(MPI_Topo_test(graph, &kind));
    OK(MPI_Graphdims_get(graph, &nodes, &nedges));
    CHECK(kind == MPI_GRAPH && nodes == size && nedges == 2 * (size - 1), "kind %d, %d nodes, %d edges", kind, nodes, nedges);
    OK(MPI_Graph_neighbors_count(graph, rank, &count));
    OK(MPI_Graph_neighbors(graph, rank, 64, neighbours));
    CHECK(count == (rank == 0 ? size - 1 : 1), "%d neighbours", count);
    CHECK(count == 0 || neighbours[0] == (rank == 0 ? 1 : 0), "the first neighbour is %d", neighbours[0]);
    OK(MPI_Comm_free(&graph));
    free(index);
    free(edges);
}

/* A ring that other processes specify: each process gives the weighted edge of its successor. */
static void told(void)
{
    int source = (rank + 1) % size, degree = 1, destination = (rank + 2) % size, weight = 10 + source;
    MPI_Comm ring;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, &destination, &weight, MPI_INFO_NULL, 0, &ring));
    int in, out, weighted, from = -1, to = -1, w_in = -1, w_out = -1;
    OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && weighted, "%d in, %d out, weighted %d", in, out, weighted);
    OK(MPI_Dist_graph_neighbors(ring, 1, &from, &w_in, 1, &to, &w_out));
    CHECK(from == (rank + size - 1) % size && to == (rank + 1) % size, "from %d to %d", from, to);
    CHECK(w_in == 10 + from && w_out == 10 + rank, "weights %d and %d", w_in, w_out);
    OK(MPI_Comm_free(&ring));

    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring));
    OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && !weighted, "%d in, %d out, weighted %d", in, out, weighted);
    OK(MPI_Comm_free(&ring));
}

/* Invalid calls return the right error class. */
static void wrong(void)
{
    int dims[1] = {size + 1}, periods[1] = {0}, class, code, n;
    MPI_Comm cart;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    code = MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_DIMS || (class != MPI_SUCCESS && !is_portcullis()), "class %d", class);
    code = MPI_Cartdim_get(MPI_COMM_WORLD, &n);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_TOPOLOGY, "class %d", class);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    grid();
    too_small();
    star();
    told();
    wrong();
    return finish("topologies");
}
