/* Long messages in each form: windows of 60 in both directions, unexpected, probed, truncated and cancelled ones,
 * freed requests, data that are not contiguous, and ranks that sleep. Every byte is checked. Ranks 0 and 1 exchange the messages. */
#include "check.h"

enum { LONGEST = (3 << 20) + 5, MANY = 60, EACH = 300000 };

static char *out, *in;
static int other;

static void send(int bytes, int tag)
{
    fill(out, bytes, tag);
    OK(MPI_Send(out, bytes, MPI_CHAR, other, tag, MPI_COMM_WORLD));
}

static void arrived(const char *data, int bytes, int tag)
{
    long wrong = differs(data, bytes, tag);
    CHECK(wrong < 0, "byte %ld of %d, tag %d", wrong, bytes, tag);
}

static void receive(int bytes, int tag)
{
    MPI_Status status;
    int count;
    memset(in, 0, LONGEST);
    OK(MPI_Recv(in, LONGEST, MPI_CHAR, other, tag, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &count));
    CHECK(count == bytes, "%d of %d bytes", count, bytes);
    arrived(in, bytes, tag);
    CHECK(bytes == LONGEST || in[bytes] == 0, "the byte behind %d", bytes);
}

/* A message of each length, in one direction after the other. */
static void lengths(void)
{
    const int all[] = {65536, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 1 << 20, LONGEST};
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        for (int from = 0; from < 2; from++)
            if (rank == from)
                send(all[i], i);
            else
                receive(all[i], i);
}

/* Both ranks post receives and then send, or send and then post receives. */
static void windows(int posts_first)
{
    static MPI_Request all[2 * MANY];
    char *sent = malloc(MANY * EACH), *came = calloc(MANY, EACH);
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < MANY; i++)
            if ((half == 0) == posts_first) {
                OK(MPI_Irecv(came + i * EACH, EACH, MPI_CHAR, other, i, MPI_COMM_WORLD, all + MANY + i));
            } else {
                fill(sent + i * EACH, EACH, rank * MANY + i);
                OK(MPI_Isend(sent + i * EACH, EACH, MPI_CHAR, other, i, MPI_COMM_WORLD, all + i));
            }
    OK(MPI_Waitall(2 * MANY, all, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++)
        arrived(came + i * EACH, EACH, other * MANY + i);
    free(sent);
    free(came);
}

/* Rank 1 receives what rank 0 has sent before. */
static void unexpected(void)
{
    MPI_Request request[3];
    MPI_Message message;
    MPI_Status status;
    int flag, count;
    if (rank == 0) {
        fill(out, EACH, 20);
        for (int i = 0; i < 3; i++)
            OK(MPI_Isend(out, EACH, MPI_CHAR, 1, 20, MPI_COMM_WORLD, request + i));
        OK(MPI_Send(&flag, 0, MPI_CHAR, 1, 21, MPI_COMM_WORLD));
        OK(MPI_Waitall(3, request, MPI_STATUSES_IGNORE));
        return;
    }
    OK(MPI_Recv(&flag, 0, MPI_CHAR, 0, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Probe(MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &count));
    CHECK(count == EACH, "%d bytes", count);
    OK(MPI_Mprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
    receive(EACH, 20);
    memset(in, 0, EACH);
    OK(MPI_Mrecv(in, EACH, MPI_CHAR, &message, MPI_STATUS_IGNORE));
    arrived(in, EACH, 20);
    /* The last one is longer than the buffer. */
    memset(in, 0, LONGEST);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int error = MPI_Recv(in, EACH - 10000, MPI_CHAR, 0, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE), class;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Error_class(error, &class));
    CHECK(class == MPI_ERR_TRUNCATE, "class %d", class);
    CHECK(in[EACH - 10000] == 0, "the byte behind the buffer");
}

/* Operations without a match are cancelled, and the next ones use the same memory. */
static void cancelled(void)
{
    MPI_Request request;
    MPI_Status status;
    int flag;
    if (rank == 0) {
        OK(MPI_Isend(out, EACH, MPI_CHAR, 1, 30, MPI_COMM_WORLD, &request));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag, "a send without a receive");
    } else {
        OK(MPI_Irecv(in, EACH, MPI_CHAR, 0, 31, MPI_COMM_WORLD, &request));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag, "a receive without a message");
    }
    if (rank == 0)
        send(EACH, 32);
    else
        receive(EACH, 32);
}

/* The requests are freed while they are active; a later message shows that the data have arrived. */
static void freed(void)
{
    MPI_Request request;
    char end = 0;
    if (rank == 0) {
        fill(out, LONGEST, 40);
        OK(MPI_Isend(out, LONGEST, MPI_CHAR, 1, 40, MPI_COMM_WORLD, &request));
        OK(MPI_Request_free(&request));
        OK(MPI_Recv(&end, 1, MPI_CHAR, 1, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
        receive(LONGEST, 40);
        OK(MPI_Send(&end, 1, MPI_CHAR, 0, 41, MPI_COMM_WORLD));
    }
}

/* Blocks with gaps, at the sender, at the receiver, and at both. */
static void gaps(void)
{
    MPI_Datatype halves;
    OK(MPI_Type_vector(2, EACH, 2 * EACH, MPI_CHAR, &halves));
    OK(MPI_Type_commit(&halves));
    for (int which = 1; which < 4; which++)
        if (rank == 0) {
            int apart = which & 1 ? 2 * EACH : EACH;
            memset(out, 0, LONGEST);
            for (int i = 0; i < 2; i++)
                fill(out + i * apart, EACH, 50 + i);
            OK(MPI_Send(out, which & 1 ? 1 : 2 * EACH, which & 1 ? halves : MPI_CHAR, 1, which, MPI_COMM_WORLD));
        } else {
            int apart = which & 2 ? 2 * EACH : EACH;
            memset(in, 0, LONGEST);
            OK(MPI_Recv(in, which & 2 ? 1 : 2 * EACH, which & 2 ? halves : MPI_CHAR, 0, which, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int i = 0; i < 2; i++)
                arrived(in + i * apart, EACH, 50 + i);
            CHECK(apart == EACH || in[EACH] == 0, "the gap, %d", which);
        }
    OK(MPI_Type_free(&halves));
}

/* One rank sleeps in MPI until the other one calls MPI. */
static void late(void)
{
    for (int from = 0; from < 4; from++) {
        if (rank == from % 2)
            nap(30000);
        if (rank == from / 2)
            send(LONGEST, 60 + from);
        else
            receive(LONGEST, 60 + from);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    out = malloc(LONGEST);
    in = malloc(LONGEST);
    other = 1 - rank;
    if (rank < 2 && size > 1) {
        lengths();
        windows(1);
        windows(0);
        unexpected();
        cancelled();
        freed();
        gaps();
        late();
    }
    free(out);
    free(in);
    return finish("long_messages");
}
