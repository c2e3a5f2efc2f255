/* Tests of objects' lifetimes: a duplicate inherits its parent's state at the time of the call,
 * and operations continue after their handle has been freed. */
#include "check.h"

enum { LONG = 1 << 20, TAG = 5 };

static const char *const assertions[] = {
    "mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length", "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
};

/* Returns the value of a communicator's hint, or NULL. */
static const char *hint(MPI_Comm comm, const char *key)
{
    static char value[MPI_MAX_INFO_VAL];
    MPI_Info info;
    int room = sizeof value, there;
    OK(MPI_Comm_get_info(comm, &info));
    OK(MPI_Info_get_string(info, key, &room, value, &there));
    OK(MPI_Info_free(&info));
    return there ? value : NULL;
}

static void expect_hint(MPI_Comm comm, const char *key, const char *value)
{
    const char *found = hint(comm, key);
    CHECK(value ? found && strcmp(found, value) == 0 : !found, "%s is %s and not %s", key, found ? found : "not there", value ? value : "absent");
}

/* Hints are not inherited: a duplicate has only the hints of its call.
 * All other hints have their defaults (sections 7.4.2 and 7.4.4 of MPI 5.0). */
static void hints_are_given_and_not_inherited(void)
{
    MPI_Info info;
    MPI_Comm first, second, third;
    MPI_Request request;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, assertions[0], "true"));
    OK(MPI_Info_set(info, "colour_of_the_moon", "green"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &first));
    expect_hint(first, assertions[0], "true");
    for (int i = 1; i < 5; i++)
        expect_hint(first, assertions[i], "false");
    expect_hint(first, "colour_of_the_moon", NULL);
    OK(MPI_Comm_dup(first, &second));
    expect_hint(second, assertions[0], "false");
    OK(MPI_Comm_idup(first, &third, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect_hint(third, assertions[0], "false");
    OK(MPI_Comm_free(&third));
    OK(MPI_Comm_idup_with_info(second, info, &third, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect_hint(third, assertions[0], "true");
    expect_hint(third, "colour_of_the_moon", NULL);
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&first));
    OK(MPI_Comm_free(&second));
    OK(MPI_Comm_free(&third));
}

static int copies, deletions, refusing;

static int copy(MPI_Comm comm, int keyval, void *extra, void *value, void *copied, int *flag)
{
    (void)comm, (void)keyval, (void)extra;
    copies++;
    *(void **)copied = value;
    *flag = 1;
    return refusing ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

/* A nonblocking duplicate has its parent's state at the time of the call;
 * if a copy function returns an error, so does the call. */
static void a_duplicate_is_of_the_time_of_the_call(void)
{
    int keyval, there, one, two, code;
    void *value;
    MPI_Comm parent, child;
    MPI_Request request;
    MPI_Errhandler handler;
    OK(MPI_Comm_create_keyval(copy, drop, &keyval, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_attr(parent, keyval, &one));
    copies = deletions = 0;
    OK(MPI_Comm_idup(parent, &child, &request));
    CHECK(copies == 1, "%d calls of the copy function when MPI_Comm_idup returned", copies);
    OK(MPI_Comm_set_attr(parent, keyval, &two));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_get_attr(child, keyval, &value, &there));
    CHECK(there && value == &one, "the duplicate has the attribute as it was set later");
    OK(MPI_Comm_get_errhandler(child, &handler));
    CHECK(handler == MPI_ERRORS_RETURN, "the duplicate has the error handler that was set later");
    OK(MPI_Comm_free(&child));
    CHECK(deletions == 2, "%d deletions, one of the old value and one with the duplicate", deletions);
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
    refusing = 1;
    code = MPI_Comm_idup(parent, &child, &request);
    CHECK(code == MPI_ERR_OTHER, "MPI_Comm_idup returned %d, though the copy function refused", code);
    CHECK(child == MPI_COMM_NULL && request == MPI_REQUEST_NULL, "handles of what was refused");
    code = MPI_Comm_dup(parent, &child);
    CHECK(code == MPI_ERR_OTHER, "MPI_Comm_dup returned %d, though the copy function refused", code);
    refusing = 0;
    OK(MPI_Comm_delete_attr(parent, keyval));
    OK(MPI_Comm_dup(parent, &child));
    OK(MPI_Comm_free(&child));
    OK(MPI_Comm_free(&parent));
    OK(MPI_Comm_free_keyval(&keyval));
}

/* A persistent buffered send uses the buffer of its communicator (section 3.6);
 * a send to MPI_PROC_NULL needs no buffer. */
static void buffers_belong_to_communicators(void)
{
    static char room[4096 + MPI_BSEND_OVERHEAD];
    int to = (rank + 1) % size, from = (rank + size - 1) % size, sent = rank, got = -1, length;
    void *back;
    MPI_Comm comm;
    MPI_Request request;
    OK(MPI_Bsend(&sent, 1, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_attach_buffer(comm, room, sizeof room));
    OK(MPI_Bsend_init(&sent, 1, MPI_INT, to, TAG, comm, &request));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Recv(&got, 1, MPI_INT, from, TAG, comm, MPI_STATUS_IGNORE));
        CHECK(got == from, "%d came from %d", got, from);
    }
    OK(MPI_Request_free(&request));
    OK(MPI_Comm_detach_buffer(comm, &back, &length));
    CHECK(back == room, "another buffer comes back");
    OK(MPI_Comm_free(&comm));
}

/* Sends whose requests were freed complete; MPI_Comm_disconnect waits for them (11.10.4). */
static void disconnecting_waits_for_what_was_freed(void)
{
    if (size < 2)
        return;
    static char data[LONG], came[LONG];
    MPI_Comm comm;
    MPI_Request request;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    if (rank == 0) {
        fill(data, LONG, 1);
        OK(MPI_Issend(data, LONG, MPI_CHAR, 1, TAG, comm, &request));
        OK(MPI_Request_free(&request));
        CHECK(request == MPI_REQUEST_NULL, "the freed handle stays");
    } else if (rank == 1) {
        nap(50000);
        OK(MPI_Recv(came, LONG, MPI_CHAR, 0, TAG, comm, MPI_STATUS_IGNORE));
        CHECK(differs(came, LONG, 1) < 0, "byte %ld differs", differs(came, LONG, 1));
    }
    OK(MPI_Comm_disconnect(&comm));
    CHECK(comm == MPI_COMM_NULL, "the handle stays");
    /* The send has completed, so the program may reuse the buffer. */
    memset(data, 0, sizeof data);
}

static int heard;
static MPI_Comm heard_on;

static void hear(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    heard++;
    heard_on = *comm;
}

/* A failed operation on a freed communicator calls the communicator's error handler;
 * the communicator exists until its operations have completed (section 7.4.3). */
static void a_freed_communicator_hears_of_its_failures(void)
{
    int data[2] = {1, 2}, code;
    MPI_Comm comm, kept;
    MPI_Request request;
    MPI_Errhandler handler;
    OK(MPI_Comm_create_errhandler(hear, &handler));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Irecv(data, 1, MPI_INT, 0, TAG, comm, &request));
    OK(MPI_Send(data, 2, MPI_INT, 0, TAG, comm));
    kept = comm;
    OK(MPI_Comm_free(&comm));
    heard = 0;
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(code == MPI_ERR_TRUNCATE, "the receive ended with %d", code);
    CHECK(heard == 1 && heard_on == kept, "its handler was called %d times", heard);
    OK(MPI_Errhandler_free(&handler));
}

/* A matched receive has no communicator argument: errors are raised on its message's communicator
 * (9.3); a message from MPI_PROC_NULL has no communicator. */
static void a_matched_receive_fails_on_the_communicator_of_its_message(void)
{
    int data[2] = {1, 2}, code;
    MPI_Comm comm;
    MPI_Message message = MPI_MESSAGE_NO_PROC;
    MPI_Request request;
    MPI_Errhandler handler;
    OK(MPI_Comm_create_errhandler(hear, &handler));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Send(data, 2, MPI_INT, 0, TAG, comm));
    OK(MPI_Mprobe(0, TAG, comm, &message, MPI_STATUS_IGNORE));
    heard = 0;
    code = MPI_Mrecv(data, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    CHECK(code == MPI_ERR_TRUNCATE && heard == 1 && heard_on == comm, "MPI_Mrecv returned %d, the handler was called %d times", code, heard);
    message = MPI_MESSAGE_NO_PROC;
    OK(MPI_Imrecv(data, 1, MPI_INT, &message, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_free(&comm));
}

/* If some of several requests fail, the call returns MPI_ERR_IN_STATUS,
 * and all statuses are set (section 3.2.5). */
static void failures_are_in_the_statuses_that_are_looked_at(void)
{
    int data[4] = {1, 2, 3, 4}, flag, code, n, indices[3];
    MPI_Request requests[3];
    MPI_Status statuses[3];
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (int i = 0; i < 3; i++)
        OK(MPI_Irecv(data + i, 1, MPI_INT, 0, i, comm, requests + i));
    for (int i = 0; i < 3; i++)
        OK(MPI_Send(data, i == 1 ? 2 : 1, MPI_INT, 0, i, comm));
    for (int some = 0; some < 2; some++) {
        for (int i = 0; i < 3; i++)
            statuses[i].MPI_ERROR = statuses[i].MPI_TAG = -77;
        n = flag = -1;
        code = some ? MPI_Request_get_status_some(3, requests, &n, indices, statuses)
                    : MPI_Request_get_status_all(3, requests, &flag, statuses);
        CHECK(code == MPI_ERR_IN_STATUS, "call %d returned %d", some, code);
        CHECK(some ? n == 3 && indices[2] == 2 : flag == 1, "call %d: %d, %d", some, n, flag);
        for (int i = 0; i < 3; i++)
            CHECK(statuses[i].MPI_TAG == i && statuses[i].MPI_ERROR == (i == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS),
                  "status %d of call %d has tag %d and error %d", i, some, statuses[i].MPI_TAG, statuses[i].MPI_ERROR);
    }
    code = MPI_Waitall(3, requests, statuses);
    CHECK(code == MPI_ERR_IN_STATUS, "MPI_Waitall returned %d", code);
    OK(MPI_Comm_free(&comm));
}

/* A rank with MPI_UNDEFINED need not know the other ranks' arguments of the split (7.4.2). */
static void nobody_need_know_how_the_others_split(void)
{
    const int types[] = {MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_UNGUIDED, MPI_COMM_TYPE_HW_GUIDED};
    for (int i = 0; i < 3; i++) {
        MPI_Comm part;
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : types[i], 0, MPI_INFO_NULL, &part));
        CHECK(rank || part == MPI_COMM_NULL, "a communicator without a part in the split");
        CHECK(!rank || i || part != MPI_COMM_NULL, "none of those that share memory");
        if (part != MPI_COMM_NULL)
            OK(MPI_Comm_free(&part));
    }
}

/* Text need not be UTF-8: the library returns the bytes that were set (7.8, 10.1). */
static void text_is_bytes(void)
{
    MPI_Info info;
    int keys, length, there;
    char value[MPI_MAX_INFO_VAL + 1], name[MPI_MAX_OBJECT_NAME], longest[MPI_MAX_INFO_VAL];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "gr\xfcn", "caf\xe9"));
    OK(MPI_Info_set(info, "gr\xfdn", "caf\xe8"));
    memset(longest, 0xe9, sizeof longest);
    longest[sizeof longest - 1] = 0;
    OK(MPI_Info_set(info, "longest", longest));
    OK(MPI_Info_get_nkeys(info, &keys));
    CHECK(keys == 3, "%d keys", keys);
    OK(MPI_Info_get(info, "gr\xfcn", MPI_MAX_INFO_VAL, value, &there));
    CHECK(there && strcmp(value, "caf\xe9") == 0, "\"%s\" came back", value);
    OK(MPI_Info_get_valuelen(info, "longest", &length, &there));
    CHECK(there && length == MPI_MAX_INFO_VAL - 1, "%d bytes", length);
    OK(MPI_Info_free(&info));
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_name(comm, "gr\xfcn"));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK(length == 4 && strcmp(name, "gr\xfcn") == 0, "\"%s\" came back", name);
    OK(MPI_Comm_free(&comm));
}

static int queried, freed;

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    queried++;
    MPI_Status_set_elements(status, MPI_CHAR, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int let_go(void *extra)
{
    (void)extra;
    freed++;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

/* A freed generalized request must still be completed by the program;
 * it is then deallocated (13.2). */
static void a_freed_generalized_request_is_completed_later(void)
{
    MPI_Request request, kept;
    OK(MPI_Grequest_start(query, let_go, cancel, NULL, &request));
    kept = request;
    OK(MPI_Request_free(&request));
    CHECK(freed == 0, "its free function was called before it was complete");
    OK(MPI_Grequest_complete(kept));
    CHECK(freed == 1 && queried == 0, "its free function was called %d times, the query function %d times", freed, queried);
}

static void small_things(void)
{
    int arrived = 0, n, dims[1] = {size}, periods[1] = {0}, code;
    char name[2 * MPI_MAX_OBJECT_NAME], found[MPI_MAX_OBJECT_NAME];
    /* For a null request, MPI_Parrived reports that the partition has arrived. */
    OK(MPI_Parrived(MPI_REQUEST_NULL, 0, &arrived));
    CHECK(arrived, "a partition of no message has not arrived");
    /* Names that are too long are truncated (7.8). */
    MPI_Comm comm, other, grid;
    MPI_Datatype type;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    OK(MPI_Comm_set_name(comm, name));
    OK(MPI_Comm_get_name(comm, found, &n));
    CHECK(n == MPI_MAX_OBJECT_NAME - 1, "%d characters are kept", n);
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_set_name(type, name));
    OK(MPI_Type_get_name(type, found, &n));
    CHECK(n == MPI_MAX_OBJECT_NAME - 1, "%d characters are kept", n);
    OK(MPI_Type_free(&type));
    /* Memory has the alignment that the hint requests (section 9.2). */
    MPI_Info info;
    char *memory;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
    OK(MPI_Alloc_mem(100, info, &memory));
    CHECK((size_t)memory % 4096 == 0, "%p", (void *)memory);
    OK(MPI_Free_mem(memory));
    OK(MPI_Info_free(&info));
    /* Packing with an invalid communicator is an error. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    n = 0;
    code = MPI_Pack(&rank, 1, MPI_INT, name, sizeof name, &n, MPI_COMM_NULL);
    CHECK(code == MPI_ERR_COMM, "MPI_Pack returned %d", code);
    code = MPI_Unpack(name, sizeof name, &n, &arrived, 1, MPI_INT, MPI_COMM_NULL);
    CHECK(code == MPI_ERR_COMM, "MPI_Unpack returned %d", code);
    code = MPI_Pack_size(1, MPI_INT, MPI_COMM_NULL, &n);
    CHECK(code == MPI_ERR_COMM, "MPI_Pack_size returned %d", code);
    /* Only an intracommunicator can have a Cartesian topology. */
    if (size > 1) {
        OK(MPI_Comm_split(comm, rank % 2, 0, &other));
        MPI_Comm inter;
        OK(MPI_Intercomm_create(other, 0, comm, 1 - rank % 2, TAG, &inter));
        OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
        int index[1] = {0}, zero = 0;
        dims[0] = 1;
        code = MPI_Cart_create(inter, 1, dims, periods, 0, &grid);
        CHECK(code == MPI_ERR_COMM, "MPI_Cart_create returned %d", code);
        code = MPI_Graph_create(inter, 1, index, &zero, 0, &grid);
        CHECK(code == MPI_ERR_COMM, "MPI_Graph_create returned %d", code);
        code = MPI_Dist_graph_create(inter, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &grid);
        CHECK(code == MPI_ERR_COMM, "MPI_Dist_graph_create returned %d", code);
        code = MPI_Dist_graph_create_adjacent(inter, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &grid);
        CHECK(code == MPI_ERR_COMM, "MPI_Dist_graph_create_adjacent returned %d", code);
        code = MPI_Cart_map(inter, 1, dims, periods, &n);
        CHECK(code == MPI_ERR_COMM, "MPI_Cart_map returned %d", code);
        code = MPI_Graph_map(inter, 1, index, &zero, &n);
        CHECK(code == MPI_ERR_COMM, "MPI_Graph_map returned %d", code);
        OK(MPI_Comm_free(&inter));
        OK(MPI_Comm_free(&other));
    }
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    hints_are_given_and_not_inherited();
    a_duplicate_is_of_the_time_of_the_call();
    buffers_belong_to_communicators();
    disconnecting_waits_for_what_was_freed();
    a_freed_communicator_hears_of_its_failures();
    a_matched_receive_fails_on_the_communicator_of_its_message();
    failures_are_in_the_statuses_that_are_looked_at();
    nobody_need_know_how_the_others_split();
    text_is_bytes();
    a_freed_generalized_request_is_completed_later();
    small_things();
    return finish("lives");
}
