/* A typical C++ program: containers as buffers, a struct as a datatype, a lambda as an operator.
 * Errors are converted to exceptions. */
#include "check.h"
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Best {
    double value;
    int rank;
};

/* A datatype that is freed at the end of its scope. */
class Type {
    MPI_Datatype type = MPI_DATATYPE_NULL;

public:
    explicit Type(const Best &)
    {
        const int lengths[] = {1, 1};
        const MPI_Aint places[] = {offsetof(Best, value), offsetof(Best, rank)};
        const MPI_Datatype parts[] = {MPI_DOUBLE, MPI_INT};
        MPI_Datatype tight;
        OK(MPI_Type_create_struct(2, lengths, places, parts, &tight));
        OK(MPI_Type_create_resized(tight, 0, sizeof(Best), &type));
        OK(MPI_Type_commit(&type));
        OK(MPI_Type_free(&tight));
    }
    Type(const Type &) = delete;
    Type &operator=(const Type &) = delete;
    ~Type() { MPI_Type_free(&type); }
    operator MPI_Datatype() const { return type; }
};

void best_of_all()
{
    const Type type{Best{}};
    MPI_Op op;
    OK(MPI_Op_create([](void *in, void *inout, int *count, MPI_Datatype *) {
        const auto *mine = static_cast<const Best *>(in);
        auto *best = static_cast<Best *>(inout);
        for (int i = 0; i < *count; i++)
            if (mine[i].value > best[i].value)
                best[i] = mine[i];
    }, 1, &op));
    std::vector<Best> best{{rank * 1.5, rank}, {-rank * 1.5, rank}};
    OK(MPI_Allreduce(MPI_IN_PLACE, best.data(), static_cast<int>(best.size()), type, op, MPI_COMM_WORLD));
    CHECK(best[0].rank == size - 1 && best[1].rank == 0, "the best are %d and %d", best[0].rank, best[1].rank);
    OK(MPI_Op_free(&op));
}

void strings_of_any_length()
{
    const std::string mine(static_cast<std::size_t>(rank) + 1, static_cast<char>('a' + rank % 26));
    const int length = static_cast<int>(mine.size());
    std::vector<int> lengths(size), places(size);
    OK(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD));
    std::partial_sum(lengths.begin(), lengths.end() - 1, places.begin() + 1);
    std::string all(static_cast<std::size_t>(places.back() + lengths.back()), '?');
    OK(MPI_Allgatherv(mine.data(), length, MPI_CHAR, &all[0], lengths.data(), places.data(), MPI_CHAR, MPI_COMM_WORLD));
    CHECK(all[0] == 'a' && all.compare(places[rank], mine.size(), mine) == 0, "%s", all.c_str());
}

/* Converts returned error codes to exceptions. */
void errors_are_returned_and_thrown()
{
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    try {
        const int code = MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
        if (code != MPI_SUCCESS) {
            char text[MPI_MAX_ERROR_STRING];
            int length;
            OK(MPI_Error_string(code, text, &length));
            throw std::runtime_error(std::string(text, length));
        }
        CHECK(false, "rank %d of %d exists", size, size);
    } catch (const std::runtime_error &error) {
        CHECK(std::string(error.what()).find("rank") != std::string::npos, "%s", error.what());
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

} // namespace

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    best_of_all();
    strings_of_any_length();
    errors_are_returned_and_thrown();
    return finish("objects");
}
