/* Test of info hints: unsupported hints are not returned, supported hints are;
 * also memory kinds, thread levels of sessions, and send buffers of sessions. */
#include "check.h"

/* Returns the value of a hint, or an empty string. */
static const char *value(MPI_Info info, const char *key)
{
    static char text[100];
    int length = sizeof text, there;
    OK(MPI_Info_get_string(info, key, &length, text, &there));
    return there ? text : "";
}

#define IS(info, key, wanted) CHECK(!strcmp(value(info, key), wanted), "%s is \"%s\"", key, value(info, key))

static const char *const KINDS = "mpi_memory_alloc_kinds", *const ORDER = "mpi_assert_allow_overtaking";

static MPI_Info given(void)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, KINDS, "mpi,system,cuda:host"));
    OK(MPI_Info_set(info, ORDER, "true"));
    OK(MPI_Info_set(info, "colour", "green"));
    return info;
}

/* Checks the hints of a communicator that was created with [given]. */
static void knows(MPI_Comm comm, const char *order)
{
    MPI_Info info;
    OK(MPI_Comm_get_info(comm, &info));
    IS(info, KINDS, "mpi,system");
    IS(info, ORDER, order);
    IS(info, "colour", "");
    OK(MPI_Info_free(&info));
}

static void communicators(void)
{
    MPI_Info info = given();
    MPI_Comm comm;
    knows(MPI_COMM_WORLD, "false");
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    knows(comm, "true");
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, info, &comm));
    knows(comm, "true");
    OK(MPI_Comm_free(&comm));
    int next = (rank + 1) % size, before = (rank + size - 1) % size, one = 1;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, info, 0, &comm));
    knows(comm, "true");
    OK(MPI_Comm_free(&comm));
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &next, MPI_UNWEIGHTED, info, 0, &comm));
    knows(comm, "true");
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_free(&info));
}

static void sessions(const char *level)
{
    MPI_Info info = given(), used;
    MPI_Session session;
    int keys;
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_get_info(session, &used));
    OK(MPI_Info_get_nkeys(used, &keys));
    CHECK(keys == 2, "a session has %d hints", keys);
    IS(used, KINDS, "mpi,system");
    IS(used, "thread_level", level);
    OK(MPI_Info_free(&used));

    /* If a session has no buffer, a buffered send on a communicator of the session uses
     * the process's buffer (section 3.6). */
    static char buffer[1000 + MPI_BSEND_OVERHEAD], *back;
    MPI_Group group;
    MPI_Comm comm;
    int token = 7, bytes;
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    OK(MPI_Comm_create_from_group(group, "self", info, MPI_ERRORS_RETURN, &comm));
    knows(comm, "true");
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    OK(MPI_Bsend(&token, 1, MPI_INT, 0, 1, comm));
    token = 0;
    OK(MPI_Recv(&token, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE));
    CHECK(token == 7, "%d came", token);
    OK(MPI_Buffer_detach(&back, &bytes));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    introduce();
    CHECK(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
    communicators();
    sessions("MPI_THREAD_MULTIPLE");
    return finish("hints");
}
