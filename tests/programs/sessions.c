/* Tests of sessions: communicators without MPI_Init, and before, during and after the world model, in several rounds. */
#include "check.h"

static int errors;

static void count(MPI_Session *session, int *code, ...)
{
    (void)session; (void)code;
    errors++;
}

/* Checks by a sum that the communicator of a process set works. */
static void works(MPI_Comm comm, int members)
{
    int n, r, one = 1, sum = 0;
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Comm_rank(comm, &r));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(n == members && sum == members, "%d of %d were counted", sum, n);
    int token = r, got = -1;
    OK(MPI_Sendrecv(&token, 1, MPI_INT, (r + 1) % n, 5, &got, 1, MPI_INT, (r + n - 1) % n, 5, comm, MPI_STATUS_IGNORE));
    CHECK(got == (r + n - 1) % n, "rank %d came", got);
}

static int unmade;

static void count_unmade(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    unmade += *comm == MPI_COMM_NULL;
}

/* If the creation of a session or communicator fails, the error handler that is passed to the call is called. */
static void the_handler_of_what_is_not_made_hears_of_it(void)
{
    MPI_Info info, gone;
    MPI_Session session;
    MPI_Comm comm;
    MPI_Errhandler handler;
    int class, before = errors;
    /* Other libraries may not detect a handle that has become invalid. */
    if (is_portcullis()) {
        OK(MPI_Info_create(&info));
        gone = info;
        OK(MPI_Info_free(&info));
        OK(MPI_Error_class(MPI_Session_init(gone, MPI_ERRORS_RETURN, &session), &class));
        CHECK(class == MPI_ERR_INFO, "class %d", class);
        OK(MPI_Session_create_errhandler(count, &handler));
        OK(MPI_Error_class(MPI_Session_init(gone, handler, &session), &class));
        CHECK(class == MPI_ERR_INFO && errors == before + 1, "class %d, heard %d", class, errors - before);
        OK(MPI_Errhandler_free(&handler));
    }

    OK(MPI_Error_class(MPI_Comm_create_from_group(MPI_GROUP_NULL, "none", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), &class));
    CHECK(class == MPI_ERR_GROUP, "class %d", class);
    before = unmade;
    OK(MPI_Comm_create_errhandler(count_unmade, &handler));
    OK(MPI_Error_class(MPI_Comm_create_from_group(MPI_GROUP_NULL, "none", MPI_INFO_NULL, handler, &comm), &class));
    CHECK(class == MPI_ERR_GROUP && unmade == before + 1, "class %d, heard %d", class, unmade - before);
    OK(MPI_Error_class(MPI_Intercomm_create_from_groups(MPI_GROUP_NULL, 0, MPI_GROUP_NULL, 0, "none", MPI_INFO_NULL,
                                                        handler, &comm), &class));
    CHECK(class == MPI_ERR_GROUP && unmade == before + 2, "class %d, heard %d", class, unmade - before);
    OK(MPI_Errhandler_free(&handler));
}

/* Tests all operations of one session; `world` is the size of the job, or 0 if it is not known yet. */
static int one_turn(int world, int turn)
{
    MPI_Session session;
    MPI_Info info;
    MPI_Errhandler handler;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", turn % 2 ? "MPI_THREAD_MULTIPLE" : "MPI_THREAD_SINGLE"));
    OK(MPI_Session_create_errhandler(count, &handler));
    OK(MPI_Session_init(info, handler, &session));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Info_free(&info));

    int flag;
    char value[64];
    OK(MPI_Session_get_info(session, &info));
    int len = sizeof value;
    OK(MPI_Info_get_string(info, "thread_level", &len, value, &flag));
    CHECK(flag && !strcmp(value, turn % 2 ? "MPI_THREAD_MULTIPLE" : "MPI_THREAD_SINGLE"), "level %s", value);
    OK(MPI_Info_free(&info));

    /* Every job has the process sets mpi://WORLD and mpi://SELF. */
    int sets, world_seen = 0, self_seen = 0;
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets));
    for (int i = 0; i < sets; i++) {
        char name[MPI_MAX_PSET_NAME_LEN];
        int n = 0;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &n, NULL));
        int room = n;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &room, name));
        CHECK((int)strlen(name) + 1 == n, "%s has %d characters", name, n);
        world_seen += !strcmp(name, "mpi://WORLD");
        self_seen += !strcmp(name, "mpi://SELF");
    }
    CHECK(world_seen == 1 && self_seen == 1, "%d sets", sets);
    OK(MPI_Session_get_pset_info(session, "mpi://WORLD", &info));
    len = sizeof value;
    OK(MPI_Info_get_string(info, "mpi_size", &len, value, &flag));
    int job = atoi(value);
    CHECK(flag && job > 0 && (!world || job == world), "the set has %s members", value);
    OK(MPI_Info_free(&info));

    /* Errors call the error handler of the session. */
    MPI_Group group, self;
    int before = errors, code = MPI_Group_from_session_pset(session, "mpi://nowhere", &group), class;
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_ARG && errors == before + 1, "class %d, heard %d", class, errors - before);

    the_handler_of_what_is_not_made_hears_of_it();

    MPI_Comm comm, alone;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "the first", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    works(comm, job);
    OK(MPI_Comm_rank(comm, &rank));
    size = job;
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &self));
    OK(MPI_Comm_create_from_group(self, "alone", MPI_INFO_NULL, MPI_ERRORS_RETURN, &alone));
    works(alone, 1);

    /* Buffered sends use the buffer that is attached to the session. */
    static char buffer[4096];
    OK(MPI_Session_attach_buffer(session, buffer, sizeof buffer));
    int token = rank, got;
    OK(MPI_Bsend(&token, 1, MPI_INT, (rank + 1) % size, 9, comm));
    OK(MPI_Recv(&got, 1, MPI_INT, (rank + size - 1) % size, 9, comm, MPI_STATUS_IGNORE));
    CHECK(got == (rank + size - 1) % size, "%d came", got);
    MPI_Request request;
    OK(MPI_Session_iflush_buffer(session, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Session_flush_buffer(session));
    void *back;
    int bytes;
    OK(MPI_Session_detach_buffer(session, &back, &bytes));
    CHECK(back == buffer && bytes == sizeof buffer, "%d bytes came back", bytes);

    /* Two groups that have not communicated before exchange messages. */
    if (job > 1) {
        MPI_Group mine, other;
        int evens[3] = {0, job - 1, 2}, odds[3] = {1, job - 1, 2}, odd = rank % 2;
        OK(MPI_Group_range_incl(group, 1, (int(*)[3])(odd ? odds : evens), &mine));
        OK(MPI_Group_range_incl(group, 1, (int(*)[3])(odd ? evens : odds), &other));
        MPI_Comm inter;
        OK(MPI_Intercomm_create_from_groups(mine, 0, other, 0, "across", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        int one = 1, sum, there;
        OK(MPI_Comm_remote_size(inter, &there));
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
        CHECK(sum == there, "%d of %d were counted", sum, there);
        OK(MPI_Comm_free(&inter));
        OK(MPI_Group_free(&mine));
        OK(MPI_Group_free(&other));
    }
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&self));
    OK(MPI_Comm_free(&alone));
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_disconnect(&comm));
    OK(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL, "the handle of a finalized session is not null");
    return job;
}

int main(int argc, char **argv)
{
    int job = 0, flag;
    for (int turn = 0; turn < 3; turn++)
        job = one_turn(job, turn);
    OK(MPI_Initialized(&flag));
    CHECK(!flag, "sessions have initialized the world");

    /* A session exists while MPI is initialized by MPI_Init, and another after MPI_Finalize. */
    begin(&argc, &argv);
    CHECK(size == job, "the world has %d members, the set %d", size, job);
    one_turn(job, 3);
    MPI_Session session;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    announce("sessions");
    OK(MPI_Finalize());
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "after the world", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    works(comm, job);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
    one_turn(job, 4);
    return 0;
}
