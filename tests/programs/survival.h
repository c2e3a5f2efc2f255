/* Shared code of programs that survive process failures (mpi-ext.h; ULFM): random numbers,
 * deaths, and calls that may fail because of a death. */
#ifndef SURVIVAL_H
#define SURVIVAL_H

#include "check.h"
#include <mpi-ext.h>
#include <signal.h>
#include <stdint.h>

static uint64_t chance = 88172645463325252ULL;

__attribute__((unused)) static uint64_t below(uint64_t n)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance % n;
}

static int class_of(int error)
{
    int class;
    OK(MPI_Error_class(error, &class));
    return class;
}

__attribute__((unused)) static int of_faults(int error)
{
    int class = class_of(error);
    return class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED;
}

/* Makes an MPI call that must succeed or fail because of a death. */
#define TRY(call)                                                                              \
    ({                                                                                         \
        int error_ = (call);                                                                   \
        CHECK(error_ == MPI_SUCCESS || of_faults(error_), #call " gives class %d", class_of(error_)); \
        error_;                                                                                \
    })

__attribute__((unused)) static void die(void)
{
    raise(SIGKILL);
}

static MPI_Comm returning(MPI_Comm comm)
{
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    return comm;
}

__attribute__((unused)) static int failures_of(MPI_Comm comm)
{
    MPI_Group failed;
    int n;
    OK(MPIX_Comm_get_failed(comm, &failed));
    OK(MPI_Group_size(failed, &n));
    OK(MPI_Group_free(&failed));
    return n;
}

/* Initialises MPI, sets MPI_ERRORS_RETURN, and seeds the random numbers; arguments of a program: WHAT SEED. */
static void survive(int *argc, char ***argv)
{
    begin(argc, argv);
    returning(MPI_COMM_WORLD);
    CHECK(*argc > 2, "%s WHAT SEED", **argv);
    chance += strtoull((*argv)[2], NULL, 10) * 0x9E3779B97F4A7C15ULL;
}

#endif
