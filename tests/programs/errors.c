/* Tests of errors: they are returned if requested, have a class and a text, and call the user's handler.
 * The library remains usable after each error. */
#include "check.h"

static int handled, last_code;

static MPI_Comm *called_on;

static void handler(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm == *called_on, "the handler of another communicator");
    handled++;
    last_code = *code;
}

static int alone_handled;

static void alone(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm == MPI_COMM_SELF && *code != MPI_SUCCESS, "the handler of another communicator");
    alone_handled++;
}

static void expect(int code, int class_, const char *what)
{
    int seen, length;
    char text[MPI_MAX_ERROR_STRING];
    CHECK(code != MPI_SUCCESS, "%s was accepted", what);
    OK(MPI_Error_class(code, &seen));
    CHECK(seen == class_, "%s has class %d instead of %d", what, seen, class_);
    OK(MPI_Error_string(code, text, &length));
    CHECK(length > 0 && (size_t)length == strlen(text), "%s has no sentence", what);
}

/* Checks the status of a failed receive: the source and tag of its message,
 * and the number of elements in the buffer. */
static void names(const MPI_Status *status, int source, int tag, int ints)
{
    int count;
    OK(MPI_Get_count(status, MPI_INT, &count));
    CHECK(status->MPI_SOURCE == source && status->MPI_TAG == tag && count == ints,
          "the status of a failed receive names %d numbers of rank %d, tag %d", count, status->MPI_SOURCE, status->MPI_TAG);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int data[100] = {0}, small[10], count, partner = (rank ^ 1) < size ? rank ^ 1 : rank;
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm comm;
    MPI_Errhandler seen, mine;

    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &seen));
    CHECK(seen == MPI_ERRORS_ARE_FATAL, "errors are not fatal at first");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));

    expect(MPI_Send(data, 1, MPI_INT, size, 1, MPI_COMM_WORLD), MPI_ERR_RANK, "a rank too large");
    expect(MPI_Send(data, 1, MPI_INT, -17, 1, MPI_COMM_WORLD), MPI_ERR_RANK, "a negative rank");
    expect(MPI_Send_init(data, 1, MPI_INT, size, 1, MPI_COMM_WORLD, &request), MPI_ERR_RANK, "a rank too large for a persistent send");
    expect(MPI_Recv_init(data, 1, MPI_INT, -17, 1, MPI_COMM_WORLD, &request), MPI_ERR_RANK, "a negative rank for a persistent receive");
    expect(MPI_Send(data, -1, MPI_INT, 0, 1, MPI_COMM_WORLD), MPI_ERR_COUNT, "a negative count");
    expect(MPI_Send(data, 1, MPI_INT, 0, -5, MPI_COMM_WORLD), MPI_ERR_TAG, "a negative tag");
    expect(MPI_Send(data, 1, MPI_DATATYPE_NULL, 0, 1, MPI_COMM_WORLD), MPI_ERR_TYPE, "no datatype");
    expect(MPI_Bcast(data, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT, "a root too large");
    expect(MPI_Allreduce(data, data + 1, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP, "no operator");
    expect(MPI_Allreduce(data, data + 1, 1, MPI_INT, MPI_NO_OP, MPI_COMM_WORLD), MPI_ERR_OP, "an operator that combines nothing");
    expect(MPI_Allreduce(data, data + 1, 1, MPI_INT, MPI_REPLACE, MPI_COMM_WORLD), MPI_ERR_OP, "an operator for windows");
    expect(MPI_Iscan(data, data + 1, 1, MPI_INT, MPI_REPLACE, MPI_COMM_WORLD, &request), MPI_ERR_OP, "an operator for windows");
    int self = rank, weight = -1;
    expect(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &self, &weight, 1, &self, &weight, MPI_INFO_NULL, 0, &comm), MPI_ERR_ARG, "a negative weight");
    expect(MPI_Send(data, 1, MPI_INT, 0, 1, MPI_COMM_NULL), MPI_ERR_COMM, "no communicator");

    /* The message is longer than the receive buffer. */
    OK(MPI_Isend(data, 100, MPI_INT, partner, 3, MPI_COMM_WORLD, &request));
    expect(MPI_Recv(small, 10, MPI_INT, partner, 3, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE, "a message too long");
    names(&status, partner, 3, 10);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect(MPI_Sendrecv(data, 100, MPI_INT, partner, 3, small, 10, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE, "an exchange too long");
    names(&status, partner, 3, 10);
    MPI_Message message;
    OK(MPI_Isend(data, 100, MPI_INT, partner, 3, MPI_COMM_WORLD, &request));
    OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    expect(MPI_Mrecv(small, 10, MPI_INT, &message, &status), MPI_ERR_TRUNCATE, "a probed message too long");
    names(&status, partner, 3, 10);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));

    /* If one of several requests fails, its status contains its error. */
    MPI_Request two[2];
    MPI_Status statuses[2];
    static int in[2][100];
    OK(MPI_Irecv(in[0], 100, MPI_INT, partner, 4, MPI_COMM_WORLD, &two[0]));
    OK(MPI_Irecv(in[1], 1, MPI_INT, partner, 5, MPI_COMM_WORLD, &two[1]));
    OK(MPI_Send(data, 100, MPI_INT, partner, 4, MPI_COMM_WORLD));
    OK(MPI_Send(data, 2, MPI_INT, partner, 5, MPI_COMM_WORLD));
    int code, class_;
    while ((code = MPI_Waitall(2, two, statuses)) != MPI_SUCCESS) {
        expect(code, MPI_ERR_IN_STATUS, "one failure of two");
        OK(MPI_Error_class(statuses[1].MPI_ERROR, &class_));
        CHECK(class_ == MPI_ERR_TRUNCATE, "the second status has class %d", class_);
        if (statuses[0].MPI_ERROR != MPI_ERR_PENDING)
            break;
    }
    names(&statuses[1], partner, 5, 1);
    CHECK(code != MPI_SUCCESS, "a failed receive was accepted");

    /* A large message is longer than its receive buffer. */
    static int large[200000];
    OK(MPI_Irecv(large, 1000, MPI_INT, partner, 6, MPI_COMM_WORLD, &request));
    MPI_Request send;
    static int out[200000];
    OK(MPI_Isend(out, 200000, MPI_INT, partner, 6, MPI_COMM_WORLD, &send));
    expect(MPI_Wait(&request, &status), MPI_ERR_TRUNCATE, "a large message too long");
    names(&status, partner, 6, 1000);
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));

    /* MPI_Comm_create fails on all ranks if the new group is not a subset of the communicator's. */
    MPI_Comm part;
    MPI_Group all, first, others, own;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, (int[]){0}, &first));
    OK(MPI_Group_difference(all, first, &others));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &part));
    if (size > 1) {
        MPI_Group wrong[2] = {all, rank == 0 ? others : first};
        for (int i = 0; i < 2; i++) {
            comm = MPI_COMM_WORLD;
            expect(MPI_Comm_create(part, wrong[i], &comm), MPI_ERR_GROUP, "a group with a process of another communicator");
            CHECK(comm == MPI_COMM_NULL, "a failed call left a communicator");
        }
        expect(MPI_Comm_create_group(part, all, 3, &comm), MPI_ERR_GROUP, "a group with a process of another communicator");
    }
    OK(MPI_Comm_group(part, &own));
    OK(MPI_Comm_create(part, own, &comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&part));
    MPI_Group *groups[] = {&all, &first, &others, &own};
    for (int i = 0; i < 4; i++)
        if (*groups[i] != MPI_GROUP_EMPTY)
            OK(MPI_Group_free(groups[i]));

    /* If a broadcast's length differs from a rank's buffer length, that rank gets the error;
     * no byte beyond the buffer is written. */
    for (int i = 0; i < 4; i++) {
        int more = i % 2, mine = (rank == 0) == more ? 10 : 3;
        memset(small, 7, sizeof small);
        code = i < 2 ? MPI_Bcast(rank == 0 ? data : small, mine, MPI_INT, 0, MPI_COMM_WORLD)
                     : MPI_Ibcast(rank == 0 ? data : small, mine, MPI_INT, 0, MPI_COMM_WORLD, &request);
        if (i >= 2 && code == MPI_SUCCESS)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == 0)
            CHECK(code == MPI_SUCCESS, "the root gets an error for a length that it cannot know: %d", code);
        else
            expect(code, MPI_ERR_TRUNCATE, "a broadcast of another length");
        for (int at = mine; rank != 0 && at < 10; at++)
            CHECK(small[at] == 0x07070707, "place %d of %d holds %d", at, mine, small[at]);
    }
    OK(MPI_Bcast(small, 10, MPI_INT, 0, MPI_COMM_WORLD));

    /* Installs a user-defined error handler. */
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine));
    called_on = &(MPI_Comm){MPI_COMM_WORLD};
    MPI_Send(data, 1, MPI_INT, size + 5, 1, MPI_COMM_WORLD);
    CHECK(handled == 1, "the handler was called %d times", handled);
    expect(last_code, MPI_ERR_RANK, "what the handler was told");
    OK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER));
    CHECK(handled == 2 && last_code == MPI_ERR_OTHER, "the handler was called %d times", handled);
    /* Duplicates inherit the error handler. */
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_get_errhandler(comm, &seen));
    CHECK(seen == mine, "a duplicate has another handler");
    OK(MPI_Errhandler_free(&seen));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    /* A new communicator inherits and keeps its parent's current handler (section 9.3). */
    MPI_Group world_group;
    MPI_Comm made[4];
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world_group));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made[0]));
    OK(MPI_Comm_create(MPI_COMM_WORLD, world_group, &made[1]));
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, world_group, 5, &made[2]));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made[3]));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int i = 0; i < 4; i++) {
        OK(MPI_Comm_get_errhandler(made[i], &seen));
        CHECK(seen == mine, "communicator %d has not its parent's handler", i);
        OK(MPI_Errhandler_free(&seen));
        called_on = &made[i];
        MPI_Send(data, 1, MPI_INT, size + 5, 1, made[i]);
        CHECK(handled == 3 + i, "communicator %d: the handler was called %d times", i, handled);
        OK(MPI_Comm_free(&made[i]));
    }
    OK(MPI_Group_free(&world_group));
    OK(MPI_Errhandler_free(&mine));

    /* A call without a communicator raises errors on MPI_COMM_SELF (section 9.3). */
    OK(MPI_Comm_create_errhandler(alone, &mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, mine));
    OK(MPI_Errhandler_free(&mine));
    expect(MPI_Type_commit(&(MPI_Datatype){MPI_DATATYPE_NULL}), MPI_ERR_TYPE, "a null datatype");
    expect(MPI_Reduce_local(data, data + 1, 1, MPI_INT, MPI_REPLACE), MPI_ERR_OP, "an operator for windows");
    CHECK(alone_handled == 2, "the handler of MPI_COMM_SELF was called %d times", alone_handled);

    /* Error classes and codes that the program defines. */
    int own_class, own_code;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Add_error_class(&own_class));
    OK(MPI_Add_error_code(own_class, &own_code));
    OK(MPI_Add_error_string(own_code, "the kettle is empty"));
    OK(MPI_Error_string(own_code, text, &count));
    CHECK(!strcmp(text, "the kettle is empty"), "\"%s\"", text);
    OK(MPI_Error_class(own_code, &class_));
    CHECK(class_ == own_class, "class %d", class_);

    /* After all these errors, communication still works. */
    for (int i = 0; i < 20; i++) {
        int token = rank;
        OK(MPI_Sendrecv_replace(&token, 1, MPI_INT, partner, 9, partner, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(token == partner, "%d", token);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    return finish("errors");
}
