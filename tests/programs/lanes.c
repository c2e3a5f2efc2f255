/* Threads exchange messages on communicators of their own, with every kind of point-to-point call, while other threads
 * execute collectives, duplicate and free communicators; then one thread completes requests of all communicators together.
 * With the parameter threads_lanes the communicators belong to different lanes; the results must be the same.
 * With the argument "freed" the program fails: a receive whose request was freed is too short. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 40, LONG = 60000, TAG = 7 };

static MPI_Comm comms[THREADS];

static void count_up(int *data, int n, int seed)
{
    for (int i = 0; i < n; i++)
        data[i] = seed + i;
}

static void same(const int *data, int n, int seed, const char *what)
{
    for (int i = 0; i < n; i++)
        CHECK(data[i] == seed + i, "%s: number %d is %d and not %d", what, i, data[i], seed + i);
}

static void count_is(const MPI_Status *status, int expected, const char *what)
{
    int count;
    OK(MPI_Get_count(status, MPI_INT, &count));
    CHECK(count == expected, "%s: %d instead of %d numbers", what, count, expected);
}

/* Short and long messages around a ring, blocking and nonblocking. */
static void ring(MPI_Comm comm, int me, int *in, int *out)
{
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int round = 0; round < ROUNDS; round++) {
        int n = round % 10 == 9 ? LONG : 1 + round, from = 1000 * left + 17 * me + round;
        MPI_Status status;
        MPI_Request requests[2];
        count_up(out, n, 1000 * rank + 17 * me + round);
        switch (round % 4) {
        case 0:
            OK(MPI_Sendrecv(out, n, MPI_INT, right, round, in, LONG, MPI_INT, left, round, comm, &status));
            break;
        case 1:
            OK(MPI_Irecv(in, LONG, MPI_INT, left, round, comm, &requests[0]));
            OK(MPI_Isend(out, n, MPI_INT, right, round, comm, &requests[1]));
            MPI_Status both[2];
            OK(MPI_Waitall(2, requests, both));
            CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL, "round %d: a handle is left", round);
            status = both[0];
            break;
        case 2:
            OK(MPI_Issend(out, n, MPI_INT, right, round, comm, &requests[0]));
            OK(MPI_Recv(in, LONG, MPI_INT, MPI_ANY_SOURCE, round, comm, &status));
            OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
            break;
        default:
            OK(MPI_Isend(out, n, MPI_INT, right, round, comm, &requests[0]));
            OK(MPI_Irecv(in, LONG, MPI_INT, left, MPI_ANY_TAG, comm, &requests[1]));
            for (int done = 0; !done;)
                OK(MPI_Test(&requests[1], &done, &status));
            OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        }
        count_is(&status, n, "ring");
        CHECK(status.MPI_SOURCE == left && status.MPI_TAG == round, "round %d: from %d with tag %d", round, status.MPI_SOURCE, status.MPI_TAG);
        same(in, n, from, "ring");
    }
    int *both = in;
    count_up(both, 5, 10 * rank);
    OK(MPI_Sendrecv_replace(both, 5, MPI_INT, right, 3, left, 3, comm, MPI_STATUS_IGNORE));
    same(both, 5, 10 * left, "replace");
}

/* All ranks send to rank 0, which receives from any source: messages of one rank arrive in order. */
static void wildcards(MPI_Comm comm)
{
    MPI_Request sends[ROUNDS];
    int values[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        values[i] = i;
        OK(MPI_Isend(&values[i], 1, MPI_INT, 0, i % 3, comm, &sends[i]));
    }
    if (rank == 0) {
        int *next = calloc((size_t)size, sizeof *next);
        for (int i = 0; i < ROUNDS * size; i++) {
            int value;
            MPI_Status status;
            OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
            CHECK(value == next[status.MPI_SOURCE] && status.MPI_TAG == value % 3, "message %d of rank %d instead of %d, tag %d", value,
                  status.MPI_SOURCE, next[status.MPI_SOURCE], status.MPI_TAG);
            next[status.MPI_SOURCE]++;
        }
        free(next);
        /* No rank sends anything else before all messages have been received. */
        for (int other = 1; other < size; other++)
            OK(MPI_Send(NULL, 0, MPI_INT, other, 500, comm));
    } else {
        OK(MPI_Recv(NULL, 0, MPI_INT, 0, 500, comm, MPI_STATUS_IGNORE));
    }
    OK(MPI_Waitall(ROUNDS, sends, MPI_STATUSES_IGNORE));
}

static void probes(MPI_Comm comm, int *in, int *out)
{
    int left = (rank + size - 1) % size, right = (rank + 1) % size, flag = 0;
    for (int round = 0; round < 8; round++) {
        int n = round % 2 ? LONG : round + 1;
        MPI_Status status;
        MPI_Request send, receive;
        MPI_Message message;
        count_up(out, n, 100 * rank + round);
        OK(MPI_Isend(out, n, MPI_INT, right, TAG, comm, &send));
        switch (round / 2) {
        case 0:
            OK(MPI_Probe(left, TAG, comm, &status));
            count_is(&status, n, "probe");
            OK(MPI_Recv(in, n, MPI_INT, left, TAG, comm, MPI_STATUS_IGNORE));
            break;
        case 1:
            for (flag = 0; !flag;)
                OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status));
            count_is(&status, n, "iprobe");
            OK(MPI_Recv(in, n, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, comm, MPI_STATUS_IGNORE));
            break;
        case 2:
            OK(MPI_Mprobe(MPI_ANY_SOURCE, TAG, comm, &message, &status));
            count_is(&status, n, "mprobe");
            OK(MPI_Mrecv(in, n, MPI_INT, &message, &status));
            count_is(&status, n, "mrecv");
            CHECK(message == MPI_MESSAGE_NULL, "round %d: the message is left", round);
            break;
        default:
            for (flag = 0; !flag;)
                OK(MPI_Improbe(left, MPI_ANY_TAG, comm, &flag, &message, &status));
            OK(MPI_Imrecv(in, n, MPI_INT, &message, &receive));
            OK(MPI_Wait(&receive, &status));
            count_is(&status, n, "imrecv");
        }
        same(in, n, 100 * left + round, "probes");
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    OK(MPI_Iprobe(left, TAG + 1, comm, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag, "a message of rank %d that was not sent", left);
}

static void cancels(MPI_Comm comm)
{
    int value = 0, flag;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 99, comm, &request));
    OK(MPI_Request_get_status(request, &flag, &status));
    CHECK(!flag, "a receive has completed without a message: %d", value);
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag, "the receive was not cancelled: %d", value);
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 99, comm, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL, "the source is %d", status.MPI_SOURCE);
    OK(MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 99, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void persistent(MPI_Comm comm, int *in, int *out)
{
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Request requests[4];
    OK(MPI_Recv_init(in, LONG, MPI_INT, left, 1, comm, &requests[0]));
    OK(MPI_Send_init(out, LONG, MPI_INT, right, 1, comm, &requests[1]));
    OK(MPI_Recv_init(in + LONG, 10, MPI_INT, MPI_ANY_SOURCE, 2, comm, &requests[2]));
    OK(MPI_Ssend_init(out + LONG, 10, MPI_INT, right, 2, comm, &requests[3]));
    for (int round = 0; round < 5; round++) {
        MPI_Status statuses[4];
        count_up(out, LONG + 10, 50 * rank + round);
        OK(MPI_Waitall(4, requests, statuses));
        OK(MPI_Startall(4, requests));
        OK(MPI_Waitall(4, requests, statuses));
        count_is(&statuses[0], LONG, "persistent");
        count_is(&statuses[2], 10, "persistent");
        same(in, LONG + 10, 50 * left + round, "persistent");
    }
    for (int i = 0; i < 4; i++)
        OK(MPI_Request_free(&requests[i]));
}

/* Every second number, as a derived datatype, which is freed while it is in use. */
static void derived(MPI_Comm comm, int *in, int *out)
{
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Datatype second;
    MPI_Request requests[4];
    MPI_Status status;
    OK(MPI_Type_vector(1000, 1, 2, MPI_INT, &second));
    OK(MPI_Type_commit(&second));
    count_up(out, 2000, 3 * rank);
    memset(in, 0, 6000 * sizeof *in);
    OK(MPI_Irecv(in, 1, second, left, 5, comm, &requests[0]));
    OK(MPI_Isend(out, 1, second, right, 5, comm, &requests[1]));
    OK(MPI_Recv_init(in + 2000, 1, second, left, 6, comm, &requests[2]));
    OK(MPI_Ssend_init(out, 1, second, right, 6, comm, &requests[3]));
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&requests[0], &status));
    count_is(&status, 1000, "derived");
    MPI_Request sending;
    OK(MPI_Isend(out, 1, second, right, 8, comm, &sending));
    OK(MPI_Recv(in + 4000, 1, second, left, 8, comm, &status));
    OK(MPI_Wait(&sending, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&second));
    for (int round = 0; round < 3; round++) {
        memset(in + 2000, 0, 2000 * sizeof *in);
        OK(MPI_Start(&requests[2]));
        OK(MPI_Start(&requests[3]));
        OK(MPI_Waitall(2, requests + 2, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 6000 - 1; i++)
            CHECK(i % 2000 == 1999 || in[i] == (i % 2 ? 0 : 3 * left + i % 2000), "derived: number %d is %d", i, in[i]);
    }
    OK(MPI_Request_free(&requests[2]));
    OK(MPI_Request_free(&requests[3]));
}

static void errors(MPI_Comm comm)
{
    int values[2] = {1, 2}, code, class;
    MPI_Request request;
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    code = MPI_Send(values, 1, MPI_INT, size, 0, comm);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_RANK, "a send to rank %d has the error class %d", size, class);
    code = MPI_Isend(values, 1, MPI_INT, 0, -5, comm, &request);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_TAG, "a tag below 0 has the error class %d", class);
    OK(MPI_Isend(values, 2, MPI_INT, rank, 4, comm, &request));
    code = MPI_Recv(values, 1, MPI_INT, rank, 4, comm, MPI_STATUS_IGNORE);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_TRUNCATE, "a truncated message has the error class %d", class);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL));
}

static void *talk(void *argument)
{
    int me = *(int *)argument;
    int *in = calloc(2 * LONG, sizeof *in), *out = calloc(2 * LONG, sizeof *out);
    for (int time = 0; time < 2; time++) {
        ring(comms[me], me, in, out);
        wildcards(comms[me]);
        probes(comms[me], in, out);
        cancels(comms[me]);
        persistent(comms[me], in, out);
        derived(comms[me], in, out);
        errors(comms[me]);
    }
    free(in);
    free(out);
    return NULL;
}

/* Communicators come and go while other threads communicate. */
static void *come_and_go(void *argument)
{
    MPI_Comm parent = *(MPI_Comm *)argument;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm own;
        MPI_Request request;
        int in = -1;
        OK(MPI_Comm_dup(parent, &own));
        OK(MPI_Isend(&round, 1, MPI_INT, right, 0, own, &request));
        OK(MPI_Recv(&in, 1, MPI_INT, left, 0, own, MPI_STATUS_IGNORE));
        CHECK(in == round, "%d in round %d", in, round);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Comm_free(&own));
    }
    return NULL;
}

/* Collectives of a communicator, beside messages on it. */
static void *meet(void *argument)
{
    MPI_Comm comm = *(MPI_Comm *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        int one = 1, sum = 0;
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK(sum == size, "%d of %d met", sum, size);
        OK(MPI_Barrier(comm));
    }
    return NULL;
}

/* Requests of all communicators, MPI_COMM_WORLD and a collective operation, completed together. */
static void together(int form)
{
    enum { ALL = 2 * THREADS + 4 };
    MPI_Request requests[ALL];
    MPI_Status statuses[ALL];
    int in[THREADS + 1], out[THREADS + 1], indices[ALL], left = (rank + size - 1) % size, right = (rank + 1) % size, n = 0;
    for (int i = 0; i <= THREADS; i++) {
        MPI_Comm comm = i < THREADS ? comms[i] : MPI_COMM_WORLD;
        out[i] = 100 * rank + i;
        in[i] = -1;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, left, 11, comm, &requests[n++]));
    }
    for (int i = 0; i <= THREADS; i++) {
        MPI_Comm comm = i < THREADS ? comms[i] : MPI_COMM_WORLD;
        OK(MPI_Issend(&out[i], 1, MPI_INT, right, 11, comm, &requests[n++]));
    }
    OK(MPI_Ibarrier(comms[1], &requests[n++]));
    requests[n++] = MPI_REQUEST_NULL;
    int left_over = n - 1, flag = 0, found;
    switch (form) {
    case 0:
        OK(MPI_Waitall(n, requests, statuses));
        for (int i = 0; i <= THREADS; i++)
            CHECK(statuses[i].MPI_SOURCE == left && statuses[i].MPI_TAG == 11, "request %d: source %d", i, statuses[i].MPI_SOURCE);
        break;
    case 1:
        for (; left_over > 0; left_over--) {
            OK(MPI_Waitany(n, requests, &found, statuses));
            CHECK(found >= 0 && found < n && requests[found] == MPI_REQUEST_NULL, "index %d", found);
        }
        OK(MPI_Waitany(n, requests, &found, statuses));
        CHECK(found == MPI_UNDEFINED, "index %d without a request", found);
        break;
    case 2:
        while (left_over > 0) {
            OK(MPI_Waitsome(n, requests, &found, indices, statuses));
            CHECK(found > 0 && found <= left_over, "%d of %d", found, left_over);
            left_over -= found;
        }
        break;
    case 3:
        while (!flag)
            OK(MPI_Testall(n, requests, &flag, statuses));
        break;
    case 4:
        while (left_over > 0) {
            OK(MPI_Testany(n, requests, &found, &flag, statuses));
            left_over -= flag;
        }
        break;
    default:
        while (left_over > 0) {
            OK(MPI_Testsome(n, requests, &found, indices, statuses));
            left_over -= found;
        }
    }
    for (int i = 0; i < n; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL, "form %d: request %d is left", form, i);
    for (int i = 0; i <= THREADS; i++)
        CHECK(in[i] == 100 * left + i, "form %d: number %d is %d", form, i, in[i]);
}

/* Rank 0 waits on one communicator while its peer needs its progress on the others. */
static void attentive(int *data)
{
    for (int i = 0; i < THREADS && size > 1; i++) {
        MPI_Comm here = comms[i], there = comms[(i + 1) % THREADS];
        if (rank == 0) {
            MPI_Request requests[2];
            OK(MPI_Irecv(data, LONG, MPI_INT, 1, 1, there, &requests[0]));
            OK(MPI_Irecv(data + LONG, LONG, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[1]));
            OK(MPI_Recv(NULL, 0, MPI_INT, 1, 2, here, MPI_STATUS_IGNORE));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        } else if (rank == 1) {
            OK(MPI_Ssend(data, LONG, MPI_INT, 0, 1, there));
            OK(MPI_Ssend(data, LONG, MPI_INT, 0, 1, MPI_COMM_WORLD));
            OK(MPI_Send(NULL, 0, MPI_INT, 0, 2, here));
        }
    }
}

/* Rank 0 polls one communicator only, and between the polls executes calls that do not poll. */
static void unpolled(int *data)
{
    for (int i = 0; i < THREADS && size > 1; i++) {
        MPI_Comm here = comms[i], there = comms[(i + 1) % THREADS];
        if (rank == 0) {
            MPI_Request requests[2], world;
            int value = 0, flag = 0, found, n;
            OK(MPI_Irecv(&value, 1, MPI_INT, 1, 31, MPI_COMM_WORLD, &world));
            while (!flag) {
                OK(MPI_Iprobe(1, 32, here, &flag, MPI_STATUS_IGNORE));
                OK(MPI_Comm_size(here, &n));
            }
            OK(MPI_Recv(NULL, 0, MPI_INT, 1, 32, here, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&world, MPI_STATUS_IGNORE));
            CHECK(value == 31, "the number is %d", value);
            /* An inactive request of the other communicator. */
            MPI_Request other;
            OK(MPI_Irecv(data, LONG, MPI_INT, 1, 33, there, &other));
            OK(MPI_Recv_init(&value, 1, MPI_INT, 1, 35, there, &requests[0]));
            OK(MPI_Irecv(NULL, 0, MPI_INT, 1, 34, here, &requests[1]));
            OK(MPI_Waitany(2, requests, &found, MPI_STATUS_IGNORE));
            CHECK(found == 1, "index %d", found);
            OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
            OK(MPI_Request_free(&requests[0]));
        } else if (rank == 1) {
            int value = 31;
            OK(MPI_Ssend(&value, 1, MPI_INT, 0, 31, MPI_COMM_WORLD));
            OK(MPI_Send(NULL, 0, MPI_INT, 0, 32, here));
            OK(MPI_Ssend(data, LONG, MPI_INT, 0, 33, there));
            OK(MPI_Send(NULL, 0, MPI_INT, 0, 34, here));
        }
    }
}

static MPI_Comm troubled;
static int is_in_handler;

/* The handler waits for a message of another thread of the process, which calls MPI before it sends. */
static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    int value = 0;
    __atomic_store_n(&is_in_handler, 1, __ATOMIC_SEQ_CST);
    OK(MPI_Recv(&value, 1, MPI_INT, rank, 61, troubled, MPI_STATUS_IGNORE));
    CHECK(value == 61, "the handler received %d", value);
}

static void *answer(void *argument)
{
    int n, value = 61;
    (void)argument;
    while (!__atomic_load_n(&is_in_handler, __ATOMIC_SEQ_CST))
        ;
    OK(MPI_Comm_size(troubled, &n));
    OK(MPI_Send(&value, 1, MPI_INT, rank, 61, troubled));
    return NULL;
}

static void callbacks(void)
{
    MPI_Errhandler waits;
    OK(MPI_Comm_create_errhandler(handler, &waits));
    for (int t = 0; t < THREADS; t++) {
        pthread_t thread;
        int value = 0;
        troubled = comms[t];
        is_in_handler = 0;
        OK(MPI_Comm_set_errhandler(troubled, waits));
        CHECK(!pthread_create(&thread, NULL, answer, NULL), "no thread for communicator %d", t);
        CHECK(MPI_Send(&value, 1, MPI_INT, size, 0, troubled) != MPI_SUCCESS, "a send to rank %d", size);
        pthread_join(thread, NULL);
        OK(MPI_Comm_set_errhandler(troubled, MPI_ERRORS_ARE_FATAL));
    }
    OK(MPI_Errhandler_free(&waits));
}

/* A receive of a derived datatype that is complete is in the buffer, and its request may be freed. */
static void peeked(MPI_Comm comm, int *in, int *out)
{
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Datatype second;
    OK(MPI_Type_vector(1000, 1, 2, MPI_INT, &second));
    OK(MPI_Type_commit(&second));
    count_up(out, 2000, 5 * rank);
    for (int round = 0; round < 3; round++) {
        MPI_Request receive, send;
        int flag = 0;
        memset(in, 0, 2000 * sizeof *in);
        if (round == 0) {
            OK(MPI_Irecv(in, 1, second, left, 41, comm, &receive));
        } else {
            OK(MPI_Recv_init(in, 1, second, left, 41, comm, &receive));
            OK(MPI_Start(&receive));
        }
        OK(MPI_Isend(out, 1, second, right, 41, comm, &send));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        while (!flag)
            OK(MPI_Request_get_status(receive, &flag, MPI_STATUS_IGNORE));
        for (int pass = 0; pass < 2; pass++) {
            for (int i = 0; i < 1999; i++)
                CHECK(in[i] == (i % 2 ? 0 : 5 * left + i), "round %d, pass %d: number %d is %d", round, pass, i, in[i]);
            if (pass == 0 && round == 2)
                OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
            if (pass == 0)
                OK(MPI_Request_free(&receive));
        }
    }
    OK(MPI_Type_free(&second));
}

/* The error handler of a freed communicator serves its operations; a single status has no error code. */
static void truncated(void)
{
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int round = 0; round < 2 * THREADS; round++) {
        MPI_Comm own;
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, send;
        MPI_Status status;
        int in = 0, out[2] = {1, 2}, found = -1, code, class;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &own));
        OK(MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN));
        OK(MPI_Irecv(&in, 1, MPI_INT, left, 51, own, &requests[1]));
        OK(MPI_Isend(out, 2, MPI_INT, right, 51, own, &send));
        OK(MPI_Comm_free(&own));
        status.MPI_ERROR = 12345;
        code = round % 2 ? MPI_Wait(&requests[1], &status) : MPI_Waitany(2, requests, &found, &status);
        OK(MPI_Error_class(code, &class));
        CHECK(class == MPI_ERR_TRUNCATE, "round %d: the error class is %d", round, class);
        CHECK(status.MPI_ERROR == 12345, "round %d: MPI_ERROR became %d", round, status.MPI_ERROR);
        CHECK(status.MPI_SOURCE == left && requests[1] == MPI_REQUEST_NULL, "round %d: source %d", round, status.MPI_SOURCE);
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
}

/* A detached buffer has no message any more, so a process that leaves MPI then keeps no peer waiting.
 * MPI_Comm_disconnect completes a send whose request was freed. */
static void delivered(int *in, int *out)
{
    MPI_Win window;
    int *received, bytes, *mine;
    void *space = malloc(4 * LONG + 4 * MPI_BSEND_OVERHEAD), *detached;
    MPI_Aint there;
    int unit;
    OK(MPI_Win_allocate_shared(sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window));
    OK(MPI_Win_shared_query(window, 0, &there, &unit, &received));
    *mine = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int t = 0; t < THREADS && size > 1; t++) {
        MPI_Comm own;
        MPI_Request request;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &own));
        count_up(out, LONG, t);
        if (rank == 0) {
            OK(MPI_Buffer_attach(space, 4 * LONG + 4 * MPI_BSEND_OVERHEAD));
            OK(MPI_Bsend(out, LONG, MPI_INT, 1, 71, own));
            OK(MPI_Buffer_detach(&detached, &bytes));
            while (__atomic_load_n(received, __ATOMIC_SEQ_CST) == t)
                ;
            OK(MPI_Isend(out, LONG, MPI_INT, 1, 72, own, &request));
            OK(MPI_Request_free(&request));
        } else if (rank == 1) {
            OK(MPI_Recv(in, LONG, MPI_INT, 0, 71, own, MPI_STATUS_IGNORE));
            same(in, LONG, t, "buffered");
            __atomic_store_n(received, t + 1, __ATOMIC_SEQ_CST);
            OK(MPI_Recv(in, LONG, MPI_INT, 0, 72, own, MPI_STATUS_IGNORE));
            same(in, LONG, t, "disconnected");
        }
        OK(MPI_Comm_disconnect(&own));
    }
    OK(MPI_Win_free(&window));
    free(space);
}

/* The buffers of communicators: a flush and a detach return only after the messages have been sent, since rank 0
 * then leaves MPI until rank 1 has received them. A flush of one communicator does not wait for the others. */
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
static void flushed(int *in, int *out)
{
    enum { BYTES = 4 * LONG + 4 * MPI_BSEND_OVERHEAD, FORMS = 4 };
    MPI_Win window;
    int *received, unit, *mine, count = 0;
    MPI_Aint there;
    void *space = malloc(BYTES), *detached;
    int bytes;
    OK(MPI_Win_allocate_shared(sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window));
    OK(MPI_Win_shared_query(window, 0, &there, &unit, &received));
    *mine = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int t = 0; t < THREADS && size > 1; t++) {
        for (int form = 0; form < FORMS; form++, count++) {
            MPI_Comm one = comms[t], other = comms[(t + 1) % THREADS];
            if (rank == 0) {
                MPI_Request request;
                count_up(out, LONG, count);
                OK(MPI_Comm_attach_buffer(one, space, BYTES));
                /* No receive matches this message before the calls below have returned. */
                void *space_of_other = malloc(BYTES);
                OK(MPI_Comm_attach_buffer(other, space_of_other, BYTES));
                OK(MPI_Bsend(out, LONG, MPI_INT, 1, 82, other));
                OK(MPI_Bsend(out, LONG, MPI_INT, 1, 81, one));
                switch (form) {
                case 0:
                    OK(MPI_Comm_flush_buffer(one));
                    break;
                case 1:
                    OK(MPI_Comm_iflush_buffer(one, &request));
                    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                    break;
                case 2:
                    OK(MPI_Comm_detach_buffer(one, &detached, &bytes));
                    CHECK(detached == space, "form %d: another buffer", form);
                    break;
                default:
                    OK(MPI_Comm_iflush_buffer(one, &request));
                    for (int done = 0; !done;)
                        OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
                }
                while (__atomic_load_n(received, __ATOMIC_SEQ_CST) == count)
                    ;
                if (form != 2)
                    OK(MPI_Comm_detach_buffer(one, &detached, &bytes));
                OK(MPI_Comm_detach_buffer(other, &detached, &bytes));
                CHECK(detached == space_of_other, "form %d: the buffer of another communicator", form);
                free(space_of_other);
            } else if (rank == 1) {
                OK(MPI_Recv(in, LONG, MPI_INT, 0, 81, one, MPI_STATUS_IGNORE));
                same(in, LONG, count, "flushed");
                __atomic_store_n(received, count + 1, __ATOMIC_SEQ_CST);
                OK(MPI_Recv(in, LONG, MPI_INT, 0, 82, other, MPI_STATUS_IGNORE));
                same(in, LONG, count, "detached");
            }
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&window));
    free(space);
}
#else
static void flushed(int *in, int *out)
{
    (void)in;
    (void)out;
}
#endif

static void *waits_for_the_end(void *argument)
{
    int value = 0;
    OK(MPI_Recv(&value, 1, MPI_INT, (rank + size - 1) % size, 91, *(MPI_Comm *)argument, MPI_STATUS_IGNORE));
    CHECK(value == 91, "%d at the end", value);
    return NULL;
}

/* Communicators are created and freed while a thread waits in every lane for all of that time. */
static void freed_beside_waits(void)
{
    pthread_t waiting[THREADS];
    int end = 91;
    for (int t = 0; t < THREADS; t++)
        CHECK(!pthread_create(&waiting[t], NULL, waits_for_the_end, &comms[t]), "no thread for communicator %d", t);
    come_and_go(&(MPI_Comm){MPI_COMM_WORLD});
    MPI_Comm many[2 * THREADS];
    for (int i = 0; i < 2 * THREADS; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &many[i]));
    /* The threads have begun to sleep by now. */
    nap(20000);
    for (int i = 0; i < 2 * THREADS; i++)
        OK(MPI_Comm_free(&many[i]));
    for (int t = 0; t < THREADS; t++)
        OK(MPI_Send(&end, 1, MPI_INT, (rank + 1) % size, 91, comms[t]));
    for (int t = 0; t < THREADS; t++)
        pthread_join(waiting[t], NULL);
}

/* More active receives than a lane has handles of the short kind. */
static void many_requests(MPI_Comm comm)
{
    enum { MANY = 70000 };
    MPI_Request *requests = malloc(MANY * sizeof *requests);
    int *values = malloc(MANY * sizeof *values);
    for (int i = 0; i < MANY; i++)
        OK(MPI_Irecv(&values[i], 1, MPI_INT, rank, 95, comm, &requests[i]));
    for (int i = 0; i < MANY; i++)
        OK(MPI_Send(&i, 1, MPI_INT, rank, 95, comm));
    MPI_Status status;
    OK(MPI_Wait(&requests[MANY - 1], &status));
    CHECK(status.MPI_SOURCE == rank && status.MPI_TAG == 95, "from %d with tag %d", status.MPI_SOURCE, status.MPI_TAG);
    OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++)
        CHECK(values[i] == i && requests[i] == MPI_REQUEST_NULL, "receive %d got %d", i, values[i]);
    free(requests);
    free(values);
}

/* Returns the value of a performance variable of a communicator. */
static unsigned long long value_of(MPI_T_pvar_session session, const char *name, int class, MPI_Comm *comm)
{
    unsigned long long value = 0;
    int index, count;
    MPI_T_pvar_handle handle;
    CHECK(!MPI_T_pvar_get_index(name, class, &index), "no variable %s", name);
    CHECK(!MPI_T_pvar_handle_alloc(session, index, comm, &handle, &count), "no handle of %s", name);
    CHECK(!MPI_T_pvar_read(session, handle, &value), "%s cannot be read", name);
    CHECK(!MPI_T_pvar_handle_free(session, &handle), "a handle of %s", name);
    return value;
}

/* Performance variables include the messages of all lanes. */
static void counted(void)
{
    int level, index, count, value = 0;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle total;
    if (!is_portcullis())
        return;
    CHECK(!MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level) && !MPI_T_pvar_session_create(&session), "level %d", level);
    CHECK(!MPI_T_pvar_get_index("mpi_base_p2p_messages", MPI_T_PVAR_CLASS_COUNTER, &index), "no total: %d", index);
    CHECK(!MPI_T_pvar_handle_alloc(session, index, NULL, &total, &count), "no handle: %d", count);
    CHECK(!MPI_T_pvar_start(session, total), "the total does not start: %d", index);
    for (int t = 0; t < THREADS; t++) {
        MPI_Request requests[2];
        unsigned long long before = value_of(session, "mpi_base_requests", MPI_T_PVAR_CLASS_LEVEL, NULL), sent, now;
        CHECK(!MPI_T_pvar_read(session, total, &sent), "the total of %d", t);
        OK(MPI_Irecv(&value, 1, MPI_INT, rank, 96, comms[t], &requests[0]));
        OK(MPI_Recv_init(&value, 1, MPI_INT, rank, 97, comms[t], &requests[1]));
        now = value_of(session, "mpi_base_requests", MPI_T_PVAR_CLASS_LEVEL, NULL);
        CHECK(now == before + 2, "%llu requests after %llu", now, before);
        now = value_of(session, "pml_ob1_posted_receives", MPI_T_PVAR_CLASS_LEVEL, &comms[t]);
        CHECK(now == 1, "%llu posted receives of communicator %d", now, t);
        OK(MPI_Send(&value, 1, MPI_INT, rank, 98, comms[t]));
        OK(MPI_Send(&value, 1, MPI_INT, rank, 96, comms[t]));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        now = value_of(session, "pml_ob1_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, &comms[t]);
        CHECK(now == 1, "%llu unexpected messages of communicator %d", now, t);
        now = value_of(session, "pml_ob1_unexpected_comm_bytes", MPI_T_PVAR_CLASS_LEVEL, &comms[t]);
        CHECK(now == 4, "%llu unexpected bytes of communicator %d", now, t);
        OK(MPI_Recv(&value, 1, MPI_INT, rank, 98, comms[t], MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&requests[1]));
        CHECK(!MPI_T_pvar_read(session, total, &now), "the total after %d", t);
        CHECK(now == sent + 2, "%llu messages after %llu", now, sent);
    }
    CHECK(!MPI_T_pvar_session_free(&session) && !MPI_T_finalize(), "the session stays: %d", index);
}

/* Ends the job: the failure of a receive whose request was freed is reported by MPI_Comm_disconnect. */
static void fail(void)
{
    int in[2], out[2] = {1, 2};
    MPI_Request request;
    OK(MPI_Comm_set_errhandler(comms[1], MPI_ERRORS_RETURN));
    OK(MPI_Irecv(in, 1, MPI_INT, rank, 77, comms[1], &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Send(out, 2, MPI_INT, rank, 77, comms[1]));
    OK(MPI_Comm_disconnect(&comms[1]));
}

static void start(pthread_t *thread, void *(*work)(void *), void *argument)
{
    CHECK(!pthread_create(thread, NULL, work, argument), "a thread did not start: %p", argument);
}

int main(int argc, char **argv)
{
    int provided, numbers[THREADS];
    pthread_t threads[THREADS + 2];
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    introduce();
    CHECK(provided == MPI_THREAD_MULTIPLE, "threads were granted level %d", provided);
    for (int t = 0; t < THREADS; t++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]));
        numbers[t] = t;
    }
    if (argc > 1 && !strcmp(argv[1], "freed")) {
        fail();
        return finish("lanes");
    }
    MPI_Comm parent;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    for (int t = 0; t < THREADS; t++)
        start(&threads[t], talk, &numbers[t]);
    start(&threads[THREADS], come_and_go, &parent);
    start(&threads[THREADS + 1], meet, &comms[0]);
    for (int t = 0; t < THREADS + 2; t++)
        pthread_join(threads[t], NULL);

    for (int form = 0; form < 6; form++)
        together(form);
    int *data = calloc(2 * LONG, sizeof *data);
    attentive(data);
    unpolled(data);
    for (int t = 0; t < THREADS; t++)
        peeked(comms[t], data, data + LONG);
    truncated();
    callbacks();
    delivered(data, data + LONG);
    flushed(data, data + LONG);
    free(data);
    freed_beside_waits();
    for (int t = 1; t < 3; t++)
        many_requests(comms[t]);
    counted();
    /* The next messages of other ranks must not be counted. */
    OK(MPI_Barrier(MPI_COMM_WORLD));

    /* A freed request and a buffered send complete without another call for them. */
    static char space[1 << 16];
    int values[2] = {rank, -1}, left = (rank + size - 1) % size, right = (rank + 1) % size;
    OK(MPI_Buffer_attach(space, sizeof space));
    for (int t = 0; t < THREADS; t++) {
        MPI_Request request;
        OK(MPI_Isend(&values[0], 1, MPI_INT, right, 21, comms[t], &request));
        OK(MPI_Request_free(&request));
        OK(MPI_Bsend(&values[0], 1, MPI_INT, right, 22, comms[t]));
        OK(MPI_Recv(&values[1], 1, MPI_INT, left, 22, comms[t], MPI_STATUS_IGNORE));
        CHECK(values[1] == left, "%d was buffered", values[1]);
        OK(MPI_Recv(&values[1], 1, MPI_INT, left, 21, comms[t], MPI_STATUS_IGNORE));
        CHECK(values[1] == left, "%d was sent", values[1]);
    }
    void *detached;
    int bytes;
    OK(MPI_Buffer_detach(&detached, &bytes));
    OK(MPI_Comm_free(&parent));
    /* One communicator is left to MPI_Finalize. */
    for (int t = 0; t < THREADS - 1; t++)
        OK(MPI_Comm_free(&comms[t]));
    return finish("lanes");
}
