// Exceptions that callbacks throw when another MPI library calls them.
// The program catches the exceptions that the library passes on, and continues with MPI.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

static int me, all, failed;
static bool ending;

struct Mine : std::runtime_error {
    explicit Mine(const char *what) : std::runtime_error(what) {}
};

// An object in each call of a callback; its destructor shows that the stack is unwound.
struct Held {
    static int alive;
    Held() { alive++; }
    ~Held() { alive--; }
};
int Held::alive = 0;

// MPI calls in a callback use the constants with which the program is compiled.
static void check_constants()
{
    int result;
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
    if (result != MPI_IDENT) {
        printf("rank %d: comparing in a callback gives %d\n", me, result);
        failed = 1;
    }
}

static void on_error(MPI_Comm *comm, int *, ...)
{
    Held held;
    check_constants();
    if (*comm != MPI_COMM_WORLD)
        failed = 1;
    throw Mine("error handler");
}
static void combine(void *, void *, int *, MPI_Datatype *)
{
    Held held;
    check_constants();
    throw Mine("operator");
}
static int copy(MPI_Comm, int, void *, void *, void *, int *)
{
    Held held;
    check_constants();
    throw Mine("copy function");
}
static int remove(MPI_Comm, int, void *, void *)
{
    if (ending)
        return MPI_SUCCESS;
    Held held;
    check_constants();
    throw Mine("delete function");
}

template <class Call> static void throws(const char *what, Call call)
{
    for (int i = 0; i < 3; i++) {
        try {
            call();
            printf("rank %d: the %s has thrown nothing\n", me, what);
            failed = 1;
        } catch (const Mine &mine) {
            if (strcmp(mine.what(), what) || Held::alive) {
                printf("rank %d: the %s has thrown %s, and %d are alive\n", me, what, mine.what(), Held::alive);
                failed = 1;
            }
        }
        int one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        check_constants();
        if (sum != all) {
            printf("rank %d: the sum after the %s is %d\n", me, what, sum);
            failed = 1;
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    int x = 1, y = 0;

    MPI_Op op;
    MPI_Op_create(combine, 1, &op);
    throws("operator", [&] { MPI_Reduce_local(&x, &y, 1, MPI_INT, op); });

    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    throws("error handler", [&] { MPI_Send(&x, 1, MPI_INT, all + 5, 0, MPI_COMM_WORLD); });
    throws("error handler", [&] { MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER); });
    // An error class of a later version of the standard, which some libraries lack.
    throws("error handler", [&] { MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_SESSION); });
    throws("error handler", [&] {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(&x, 1, MPI_INT, all + 5, 0, MPI_COMM_WORLD, &request);
    });
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);

    int keyval;
    MPI_Comm_create_keyval(copy, remove, &keyval, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
    throws("delete function", [&] {
        MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
    });

    throws("copy function", [&] {
        MPI_Comm other;
        MPI_Comm_dup(MPI_COMM_SELF, &other);
    });

    ending = true;
    int worst = 0;
    MPI_Allreduce(&failed, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (me == 0 && !worst)
        printf("all claims of thrown_on hold on %d ranks\n", all);
    MPI_Finalize();
}
