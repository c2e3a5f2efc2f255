/*
 * For `--mca pml_ob1_check_types true`, two ranks: messages whose type signature differs from their receive's,
 * and valid messages whose signatures match although their datatypes differ.
 * With the argument "unchecked" the check is off, and all receives must succeed.
 */
#include "check.h"

#include <stddef.h>

static int is_checked = 1;

/* The receive must fail with a message; if nothing is checked, it must succeed. */
static void say(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int len, class;
    if (!is_checked) {
        OK(code);
        return;
    }
    CHECK(code != MPI_SUCCESS, "%s is not noticed", what);
    OK(MPI_Error_class(code, &class));
    CHECK(class == MPI_ERR_TYPE, "%s has the class %d", what, class);
    OK(MPI_Error_string(code, text, &len));
    printf("%s:\n  %s\n", what, text);
}

struct particle {
    double at[3];
    int kind;
};

static MPI_Datatype particle_type(void)
{
    MPI_Datatype made;
    OK(MPI_Type_create_struct(2, (int[]){3, 1}, (MPI_Aint[]){0, offsetof(struct particle, kind)},
                              (MPI_Datatype[]){MPI_DOUBLE, MPI_INT}, &made));
    OK(MPI_Type_commit(&made));
    return made;
}

enum { LONG = 50000 };
static int integers[2 * LONG];
static float reals[2 * LONG];

static void differences(MPI_Datatype particle)
{
    struct particle particles[4] = {0};
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    if (rank == 0) {
        OK(MPI_Send(integers, 4, MPI_INT, 1, 5, MPI_COMM_WORLD));
        OK(MPI_Send(integers, LONG, MPI_INT, 1, 6, MPI_COMM_WORLD));
        OK(MPI_Ssend(integers, 2, MPI_INT, 1, 7, MPI_COMM_WORLD));
        OK(MPI_Send(particles, 2, particle, 1, 8, MPI_COMM_WORLD));
        OK(MPI_Send(integers, 8, MPI_BYTE, 1, 9, MPI_COMM_WORLD));
        OK(MPI_Isend(integers, 3, MPI_INT, 1, 10, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        return;
    }
    say("another type", MPI_Recv(reals, 10, MPI_FLOAT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    say("another type of a long message", MPI_Recv(reals, LONG, MPI_FLOAT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Irecv(reals, 2, MPI_FLOAT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &request));
    say("another type of a synchronous message", MPI_Wait(&request, MPI_STATUS_IGNORE));
    say("a structure as bytes", MPI_Recv(particles, 56, MPI_BYTE, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Mprobe(0, 9, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    say("bytes as integers", MPI_Mrecv(integers, 2, MPI_INT, &message, MPI_STATUS_IGNORE));
    say("integers as a structure", MPI_Recv(particles, 1, particle, 0, 10, MPI_COMM_WORLD, &status));
}

static void matches(MPI_Datatype particle)
{
    struct particle particles[2] = {{{1, 2, 3}, 4}};
    MPI_Datatype columns, pair;
    MPI_Request request;
    char packed[64];
    int place = 0, other = 1 - rank, flag;
    OK(MPI_Type_vector(3, 2, 4, MPI_INT, &columns));
    OK(MPI_Type_commit(&columns));
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    for (int round = 0; round < 20; round++) {
        if (rank == 0) {
            OK(MPI_Send(integers, 1, columns, 1, 1, MPI_COMM_WORLD));
            OK(MPI_Send(particles, 1, particle, 1, 2, MPI_COMM_WORLD));
            place = 0;
            OK(MPI_Pack(integers, 3, MPI_INT, packed, sizeof packed, &place, MPI_COMM_WORLD));
            OK(MPI_Send(packed, place, MPI_PACKED, 1, 3, MPI_COMM_WORLD));
            OK(MPI_Send(NULL, 0, MPI_CHAR, 1, 4, MPI_COMM_WORLD));
            void *buffer = malloc(1000 + MPI_BSEND_OVERHEAD);
            OK(MPI_Buffer_attach(buffer, 1000 + MPI_BSEND_OVERHEAD));
            OK(MPI_Bsend(integers, 2, MPI_INT, 1, 5, MPI_COMM_WORLD));
            OK(MPI_Buffer_detach(&buffer, &flag));
            free(buffer);
            /* A message is cancelled or received before other messages with the same tag. */
            OK(MPI_Issend(integers, LONG, MPI_INT, 1, 6, MPI_COMM_WORLD, &request));
            OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            OK(MPI_Send(reals, 1, MPI_FLOAT, 1, 6, MPI_COMM_WORLD));
            OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 10, MPI_COMM_WORLD));
            MPI_Request both[2];
            OK(MPI_Isend(reals, LONG, MPI_FLOAT, 1, 7, MPI_COMM_WORLD, &both[0]));
            OK(MPI_Isend(integers, LONG, MPI_INT, 1, 7, MPI_COMM_WORLD, &both[1]));
            OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        } else {
            OK(MPI_Recv(integers, 3, pair, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            /* The receive is for more elements than the message has. */
            OK(MPI_Recv(particles, 2, particle, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(particles[0].at[2] == 3 && particles[0].kind == 4, "%d", particles[0].kind);
            OK(MPI_Recv(integers, 3, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Recv(reals, 3, MPI_FLOAT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Recv(integers, 2, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            /* By now the message with tag 6 has been cancelled, so the next receive cannot match it. */
            OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Recv(reals, 1, MPI_FLOAT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            MPI_Message first, second;
            OK(MPI_Mprobe(0, 7, MPI_COMM_WORLD, &first, MPI_STATUS_IGNORE));
            OK(MPI_Mprobe(0, 7, MPI_COMM_WORLD, &second, MPI_STATUS_IGNORE));
            OK(MPI_Mrecv(integers, LONG, MPI_INT, &second, MPI_STATUS_IGNORE));
            OK(MPI_Mrecv(reals, LONG, MPI_FLOAT, &first, MPI_STATUS_IGNORE));
        }
        OK(MPI_Sendrecv_replace(integers, 2, MPI_INT, other, 8, other, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Sendrecv(integers, 2, MPI_INT, rank, 9, integers + 10, 1, pair, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    OK(MPI_Type_free(&columns));
    OK(MPI_Type_free(&pair));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    is_checked = argc < 2;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Datatype particle = particle_type();
    differences(particle);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    matches(particle);
    OK(MPI_Type_free(&particle));
    return finish("mistyped");
}
