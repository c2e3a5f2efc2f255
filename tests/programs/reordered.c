/* Ranks are bound to two cores, and a topology call may reorder them: neighbours then share a core,
 * and the topology's edges follow the ranks.
 * Each rank binds itself before MPI_Init, as a launcher would.
 * If only one core is usable, all orders are equally good. */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>

static int core;

/* Binds even ranks to the first usable processor and odd ranks to the second. */
static void bind_in_turn(void)
{
    const char *number = getenv("PMI_RANK");
    int turn = number ? atoi(number) % 2 : 0, found = 0;
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && found <= turn; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            core = cpu;
            found++;
        }
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Returns the number of ranks whose successor in a ring is on another core. */
static int crossings(MPI_Comm comm)
{
    int me, members, next, crosses, all;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &members));
    OK(MPI_Sendrecv(&core, 1, MPI_INT, (me + members - 1) % members, 1, &next, 1, MPI_INT, (me + 1) % members, 1, comm, MPI_STATUS_IGNORE));
    crosses = next != core;
    OK(MPI_Allreduce(&crosses, &all, 1, MPI_INT, MPI_SUM, comm));
    return all;
}

/* Checks that a ring crosses between the cores at most twice. */
static void is_gathered(MPI_Comm ring, const char *what)
{
    int left = crossings(ring);
    CHECK(left <= 2, "a %s of %d still crosses cores %d times", what, size, left);
}

/* Checks that MPI_Cart_map returns the order that the call uses.
 * The order of MPI_COMM_WORLD must be kept if it is already as good as any other. */
static void is_as_mapped(MPI_Comm ring, int mapped, const char *what)
{
    int me, kept;
    OK(MPI_Comm_rank(ring, &me));
    CHECK(mapped == me, "a %s puts rank %d at %d and says %d", what, rank, me, mapped);
    OK(MPI_Comm_compare(ring, MPI_COMM_WORLD, &kept));
    CHECK(kept == (crossings(MPI_COMM_WORLD) > 2 ? MPI_SIMILAR : MPI_CONGRUENT), "a %s compares as %d", what, kept);
}

static void grid(void)
{
    int periods[1] = {1}, mapped;
    MPI_Comm ring;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, periods, 1, &ring));
    OK(MPI_Cart_map(MPI_COMM_WORLD, 1, &size, periods, &mapped));
    is_gathered(ring, "grid");
    is_as_mapped(ring, mapped, "grid");
    OK(MPI_Comm_free(&ring));
    /* Without reordering, the ranks keep their order. */
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, periods, 0, &ring));
    OK(MPI_Comm_compare(ring, MPI_COMM_WORLD, &mapped));
    CHECK(mapped == MPI_CONGRUENT, "without reordering it compares as %d", mapped);
    OK(MPI_Comm_free(&ring));
}

static void graph(void)
{
    int index[size], edges[2 * size], mapped;
    for (int i = 0; i < size; i++) {
        index[i] = 2 * i + 2;
        edges[2 * i] = (i + size - 1) % size;
        edges[2 * i + 1] = (i + 1) % size;
    }
    MPI_Comm ring;
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 1, &ring));
    OK(MPI_Graph_map(MPI_COMM_WORLD, size, index, edges, &mapped));
    is_gathered(ring, "graph");
    is_as_mapped(ring, mapped, "graph");
    OK(MPI_Comm_free(&ring));
}

/* Checks that the new rank r has the edges that rank r specified, in the same order. */
static void has_edges_of_its_rank(MPI_Comm ring)
{
    int me, in, out, weighted, sources[2], destinations[2], into[2], from[2];
    OK(MPI_Comm_rank(ring, &me));
    OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    CHECK(in == 2 && out == 2 && weighted, "%d in, %d out, weighted %d", in, out, weighted);
    OK(MPI_Dist_graph_neighbors(ring, 2, sources, into, 2, destinations, from));
    int before = (me + size - 1) % size, after = (me + 1) % size;
    CHECK(sources[0] == before && sources[1] == me && destinations[0] == me && destinations[1] == after,
          "%d, %d, %d and %d are next to %d", sources[0], sources[1], destinations[0], destinations[1], me);
    CHECK(into[0] == 100 + me && into[1] == 7 && from[0] == 7 && from[1] == 100 + after,
          "weights %d, %d, %d and %d of %d", into[0], into[1], from[0], from[1], me);
}

static void own_edges(void)
{
    int before = (rank + size - 1) % size, after = (rank + 1) % size;
    int sources[2] = {before, rank}, destinations[2] = {rank, after};
    int into[2] = {100 + rank, 7}, from[2] = {7, 100 + after};
    MPI_Comm ring;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, into, 2, destinations, from, MPI_INFO_NULL, 1, &ring));
    is_gathered(ring, "graph of own edges");
    has_edges_of_its_rank(ring);
    OK(MPI_Comm_free(&ring));
}

/* The last rank specifies all edges; every second edge is heavy. */
static void edges_of_others(void)
{
    int all = rank == size - 1, sources[size], degrees[size], destinations[size], weights[size];
    for (int i = 0; i < size; i++) {
        sources[i] = i;
        degrees[i] = 1;
        destinations[i] = (i + 1) % size;
        weights[i] = i % 2 ? 1 : 9;
    }
    int me, in, out, weighted, source, destination, into, from, next;
    MPI_Comm ring;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, all ? size : 0, sources, degrees, destinations, weights, MPI_INFO_NULL, 1, &ring));
    OK(MPI_Comm_rank(ring, &me));
    OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && weighted, "%d in, %d out, weighted %d", in, out, weighted);
    OK(MPI_Dist_graph_neighbors(ring, 1, &source, &into, 1, &destination, &from));
    CHECK(source == (me + size - 1) % size && destination == (me + 1) % size, "%d and %d are next to %d", source, destination, me);
    CHECK(from == (me % 2 ? 1 : 9), "%d weighs what leads from %d", from, me);
    /* Heavy edges stay within one core if each core has an even number of ranks. */
    OK(MPI_Sendrecv(&core, 1, MPI_INT, source, 1, &next, 1, MPI_INT, destination, 1, ring, MPI_STATUS_IGNORE));
    if (size % 4 == 0)
        CHECK(from == 1 || next == core, "the heavy edge from %d crosses cores", me);
    OK(MPI_Comm_free(&ring));
}

int main(int argc, char **argv)
{
    bind_in_turn();
    begin(&argc, &argv);
    grid();
    graph();
    own_edges();
    edges_of_others();
    return finish("reordered");
}
