/* Tests of probes: a receiver learns a message's size before the receive;
 * only the handle of a matched probe can receive the message. */
#include "check.h"

static const int lengths[] = {0, 1, 5, 100, 5000, 70000, 300000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void check_data(const int *data, int n, int salt)
{
    for (int i = 0; i < n; i++)
        CHECK(data[i] == i + salt, "number %d of %d is %d", i, n, data[i]);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int left = (rank + size - 1) % size, right = (rank + 1) % size, flag, count;
    MPI_Status status, later;
    MPI_Message message;

    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
    CHECK(!flag, "a message from %d although no rank sent", status.MPI_SOURCE);
    OK(MPI_Barrier(MPI_COMM_WORLD));

    for (int way = 0; way < 4; way++) {
        for (int l = 0; l < LENGTHS; l++) {
            int n = lengths[l], tag = way * 10 + l;
            int *data = malloc((n + 1) * sizeof *data);
            MPI_Request request;
            for (int i = 0; i < n; i++)
                data[i] = i + rank;
            OK(MPI_Isend(data, n, MPI_INT, right, tag, MPI_COMM_WORLD, &request));
            int source = way % 2 ? MPI_ANY_SOURCE : left;
            flag = 0;
            switch (way) {
            case 0: OK(MPI_Probe(source, tag, MPI_COMM_WORLD, &status)); break;
            case 1: while (!flag) OK(MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, &status)); break;
            case 2: OK(MPI_Mprobe(source, tag, MPI_COMM_WORLD, &message, &status)); break;
            case 3: while (!flag) OK(MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, &message, &status)); break;
            }
            CHECK(status.MPI_SOURCE == left && status.MPI_TAG == tag, "from %d, tag %d", status.MPI_SOURCE, status.MPI_TAG);
            OK(MPI_Get_count(&status, MPI_INT, &count));
            CHECK(count == n, "probed %d instead of %d", count, n);
            int *got = malloc((n + 1) * sizeof *got);
            if (way < 2) {
                OK(MPI_Recv(got, count, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &later));
            } else {
                /* The message has been matched, so other probes must not see it. */
                OK(MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
                CHECK(!flag, "a matched message can still be probed");
                if (way == 2) {
                    OK(MPI_Mrecv(got, count, MPI_INT, &message, &later));
                } else {
                    MPI_Request receive;
                    OK(MPI_Imrecv(got, count, MPI_INT, &message, &receive));
                    OK(MPI_Wait(&receive, &later));
                }
                CHECK(message == MPI_MESSAGE_NULL, "a received message is still there");
            }
            OK(MPI_Get_count(&later, MPI_INT, &count));
            CHECK(count == n && later.MPI_SOURCE == left && later.MPI_TAG == tag, "received %d from %d", count, later.MPI_SOURCE);
            check_data(got, n, left);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            free(got);
            free(data);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }

    /* A matched message is removed from the queue: the next receive gets the following message. */
    int a = 1, b = 2, got;
    MPI_Request r[2];
    OK(MPI_Isend(&a, 1, MPI_INT, right, 99, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Isend(&b, 1, MPI_INT, right, 99, MPI_COMM_WORLD, &r[1]));
    OK(MPI_Mprobe(left, 99, MPI_COMM_WORLD, &message, &status));
    OK(MPI_Recv(&got, 1, MPI_INT, left, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == 2, "received %d", got);
    OK(MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    CHECK(got == 1, "matched %d", got);
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));

    OK(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL, "a message without a sender");
    OK(MPI_Mrecv(&got, 1, MPI_INT, &message, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 0, "no rank sent %d", count);
    return finish("probe");
}
