/* Rank 0 waits for messages whose senders are no longer connected:
 * ranks 1 and 2 send a message, then their connections to rank 0 are cut.
 * Rank 0 prints the error of each waiting call on standard output. */
#include "check.h"

enum { ENOUGH = 60000 };

static void told(const char *how, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    CHECK(code != MPI_SUCCESS, "%s found a message", how);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_PROC_ABORTED, "%s: class %d", how, class);
    OK(MPI_Error_string(code, text, &length));
    printf("%s: %s\n", how, text);
}

int main(int argc, char **argv)
{
    static char data[ENOUGH];
    begin(&argc, &argv);
    CHECK(size == 3, "this is for three ranks");
    if (rank != 0) {
        OK(MPI_Send(data, ENOUGH, MPI_BYTE, 0, rank, MPI_COMM_WORLD));
        /* Ranks 1 and 2 stay here until the launcher ends them after rank 0's end. */
        for (;;)
            nap(1000000);
    }
    int word, flag = 0;
    MPI_Request any;
    MPI_Message message;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &any));
    OK(MPI_Recv(data, ENOUGH, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    told("MPI_Probe of rank 1", MPI_Probe(1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    int code = MPI_SUCCESS;
    while (code == MPI_SUCCESS && !flag)
        code = MPI_Iprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    told("MPI_Iprobe of rank 1", code);
    /* Rank 0 does not know yet that rank 2's connection is cut. */
    OK(MPI_Recv(data, ENOUGH, MPI_BYTE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    told("MPI_Wait for any source", MPI_Wait(&any, MPI_STATUS_IGNORE));
    told("MPI_Probe of any source", MPI_Probe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    told("MPI_Mprobe of any source", MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    told("MPI_Recv from any source", MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    printf("all claims of lost hold\n");
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 5);
}
