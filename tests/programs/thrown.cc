// Exceptions that the program's callbacks throw when the library calls them.
// The program catches the exception where the MPI call returns, and continues with MPI.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

static int me, all, failed;

struct Mine : std::runtime_error {
    explicit Mine(const char *what) : std::runtime_error(what) {}
};

static void on_error(MPI_Comm *, int *, ...) { throw Mine("error handler"); }
static void combine(void *, void *, int *, MPI_Datatype *) { throw Mine("operator"); }
static int copy(MPI_Comm, int, void *, void *, void *, int *) { throw Mine("copy function"); }
static int remove(MPI_Comm, int, void *, void *) { throw Mine("delete function"); }
static int query(void *, MPI_Status *) { throw Mine("query function"); }
static int release(void *) { return MPI_SUCCESS; }
static int cancel(void *, int) { return MPI_SUCCESS; }

// The call must throw this exception three times in succession; the library must stay usable.
template <class Call> static void throws(const char *what, Call call)
{
    for (int i = 0; i < 3; i++) {
        try {
            call();
            printf("rank %d: the %s has thrown nothing\n", me, what);
            failed = 1;
        } catch (const Mine &mine) {
            if (strcmp(mine.what(), what)) {
                printf("rank %d: the %s has thrown %s\n", me, what, mine.what());
                failed = 1;
            }
        }
        int one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != all) {
            printf("rank %d: the sum after the %s is %d\n", me, what, sum);
            failed = 1;
        }
    }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    int x = 1, y = 0;

    MPI_Op op;
    MPI_Op_create(combine, 1, &op);
    throws("operator", [&] { MPI_Reduce_local(&x, &y, 1, MPI_INT, op); });
    if (all > 1) {
        throws("operator", [&] { MPI_Allreduce(&x, &y, 1, MPI_INT, op, MPI_COMM_WORLD); MPI_Reduce_local(&x, &y, 1, MPI_INT, op); });
        static int many[100000], sums[100000];
        throws("operator", [&] {
            // The call during which the library makes progress throws; its own operation has then completed.
            MPI_Request request = MPI_REQUEST_NULL;
            bool thrown = false;
            try {
                MPI_Iallreduce(many, sums, 100000, MPI_INT, op, MPI_COMM_WORLD, &request);
            } catch (const Mine &) {
                thrown = true;
            }
            try {
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            } catch (const Mine &) {
                thrown = true;
            }
            if (request != MPI_REQUEST_NULL) {
                printf("rank %d: a wait that has thrown has left its request\n", me);
                failed = 1;
            }
            if (!thrown)
                MPI_Reduce_local(&x, &y, 1, MPI_INT, op);
            throw Mine("operator");
        });
    }

    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    throws("error handler", [&] { MPI_Send(&x, 1, MPI_INT, all + 5, 0, MPI_COMM_WORLD); });
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);

    int keyval;
    MPI_Comm_create_keyval(copy, remove, &keyval, nullptr);
    throws("delete function", [&] {
        MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
        MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
    });
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, nullptr);
    throws("copy function", [&] {
        MPI_Comm other;
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
    });
    try {
        MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    } catch (const Mine &) {
    }

    throws("query function", [&] {
        MPI_Request request;
        MPI_Grequest_start(query, release, cancel, nullptr, &request);
        MPI_Grequest_complete(request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    });

    if (argc > 1 && !strcmp(argv[1], "uncaught"))
        MPI_Reduce_local(&x, &y, 1, MPI_INT, op);
    int worst = 0;
    MPI_Allreduce(&failed, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (me == 0 && !worst)
        printf("all claims of thrown hold on %d ranks\n", all);
    MPI_Finalize();
}
