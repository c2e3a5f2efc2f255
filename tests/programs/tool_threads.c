/* A tool's thread reads variables while the program's only thread waits in MPI. */
#include "check.h"
#include <pthread.h>

#define WORKS(call) CHECK((call) == MPI_SUCCESS, "%s", #call)

static _Atomic int over;

static void *reads(void *data)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle posted, calls;
    MPI_Comm world = MPI_COMM_WORLD;
    unsigned long long value, most = 0, latest = 0;
    int index, count;
    (void)data;
    WORKS(MPI_T_pvar_session_create(&session));
    WORKS(MPI_T_pvar_get_index("pml_ob1_posted_receives", MPI_T_PVAR_CLASS_LEVEL, &index));
    WORKS(MPI_T_pvar_handle_alloc(session, index, &world, &posted, &count));
    WORKS(MPI_T_pvar_get_index("mpi_base_calls", MPI_T_PVAR_CLASS_COUNTER, &index));
    WORKS(MPI_T_pvar_handle_alloc(session, index, NULL, &calls, &count));
    do {
        WORKS(MPI_T_pvar_read(session, posted, &value));
        most = value > most ? value : most;
        WORKS(MPI_T_pvar_read(session, calls, &value));
        CHECK(value >= latest, "%llu after %llu", value, latest);
        latest = value;
    } while (!over || most == 0);
    CHECK(most == 1, "%llu", most);
    WORKS(MPI_T_pvar_session_free(&session));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    MPI_Request request;
    int provided, word = 1;

    WORKS(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE, "%d", provided);
    begin(&argc, &argv);
    OK(MPI_Query_thread(&provided));
    CHECK(provided == MPI_THREAD_SINGLE, "the level of the program is %d", provided);
    OK(MPI_Irecv(&word, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, &request));
    CHECK(pthread_create(&thread, NULL, reads, NULL) == 0, "no thread");
    for (int i = 0; i < 200; i++)
        OK(MPI_Barrier(MPI_COMM_WORLD));
    over = 1;
    CHECK(pthread_join(thread, NULL) == 0, "no end");
    OK(MPI_Send(&word, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    WORKS(MPI_T_finalize());
    return finish("tool_threads");
}
