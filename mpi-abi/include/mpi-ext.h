/* mpi-ext.h: functions and datatypes beyond MPI 5.0.
 *
 * Fault tolerance (ULFM) has the names and values of Open MPI's header of this name. In a job that is started by
 * `mpirun --with-ft ulfm`, the other ranks continue when a rank dies.
 * The eureka line (MPIX_Eureka_...), the early termination of a parallel search, is an extension of this library only.
 * The queries for device memory (MPIX_Query_..._support) return 1 if buffers of that kind may be passed now, which is
 * after MPI_Init and after the program has loaded the library of the devices (such as libcuda or libamdhip64).
 * With the functions of checkpoints (MPIX_Checkpoint_...) a program saves its state when no message is in flight, and
 * a later run continues from this state: `mpirun --checkpoint-dir`, `mpirun --restart`.
 * Generated from mpi-abi/api by `cargo xtask gen`; edit the tables there.
 */
#ifndef MPI_EXT_H
#define MPI_EXT_H

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC system_header
#endif

#include <mpi.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* Feature-test macros of the extensions. */
#define OMPI_HAVE_MPI_EXT_FTMPI 1
#define OMPI_HAVE_MPI_EXT_SHORTFLOAT 1
#define OMPI_HAVE_MPIX_COMM_GET_FAILED 1
#define OMPI_HAVE_MPIX_COMM_ACK_FAILED 1
#define OMPI_HAVE_MPIX_COMM_ISHRINK 1
#define OMPI_HAVE_MPI_EXT_CUDA 1
#define OMPI_HAVE_MPI_EXT_ROCM 1
#define PORTCULLIS_HAVE_MPIX_EUREKA 1
#define PORTCULLIS_HAVE_MPIX_CHECKPOINT 1

/* This library has the code for buffers in the memory of CUDA and ROCm devices; the queries return whether it is in use. */
#define MPIX_CUDA_AWARE_SUPPORT 1
#define MPIX_ROCM_AWARE_SUPPORT 1

/* Datatypes of 16-bit floating-point numbers (C's _Float16), and of pairs of them as complex numbers.
 * This library defines their values; other libraries of the standard ABI may not know them. */
#define MPIX_C_FLOAT16 ((MPI_Datatype)0x0000024a)
#define MPIX_SHORT_FLOAT MPIX_C_FLOAT16
#define MPIX_C_SHORT_FLOAT_COMPLEX MPI_COMPLEX4
#define MPIX_CXX_SHORT_FLOAT_COMPLEX MPI_COMPLEX4

/* Error classes */
#define MPIX_ERR_PROC_FAILED 75
#define MPIX_ERR_PROC_FAILED_PENDING 76
#define MPIX_ERR_REVOKED 77
#define MPI_ERR_PROC_FAILED MPIX_ERR_PROC_FAILED
#define MPI_ERR_PROC_FAILED_PENDING MPIX_ERR_PROC_FAILED_PENDING
#define MPI_ERR_REVOKED MPIX_ERR_REVOKED

/* The attribute of communicators whose value is 1 if the job continues when a rank dies, and 0 otherwise */
#define MPIX_FT 575
#define MPI_FT MPIX_FT

/* The functions of MPIX_Checkpoint_handlers: write or read this rank's files in a folder; 0 is success */
typedef int (MPIX_Checkpoint_function)(const char *folder, void *extra_state);

/* What MPIX_Checkpoint_point has done */
#define MPIX_CHECKPOINT_NONE     0
#define MPIX_CHECKPOINT_TAKEN    1
#define MPIX_CHECKPOINT_RESTORED 2
#define MPIX_CHECKPOINT_STOP     3
#define MPIX_CHECKPOINT_FAILED   4

/* The size of the buffer for MPIX_Checkpoint_restarted */
#define MPIX_MAX_CHECKPOINT_FOLDER 4096

int MPIX_Comm_revoke(MPI_Comm comm);
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int MPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
int MPIX_Comm_failure_ack(MPI_Comm comm);
int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int MPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);
int MPIX_Comm_agree(MPI_Comm comm, int *flag);
int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int MPIX_Win_revoke(MPI_Win win);
int MPIX_Win_is_revoked(MPI_Win win, int *flag);
int MPIX_Win_get_failed(MPI_Win win, MPI_Group *failedgrp);
int MPIX_Eureka_begin(MPI_Comm comm);
int MPIX_Eureka_raise(MPI_Comm comm);
int MPIX_Eureka_test(MPI_Comm comm, int *flag, int *first);
int MPIX_Eureka_end(MPI_Comm comm, int *rank);
int MPIX_Query_cuda_support(void);
int MPIX_Query_rocm_support(void);
int MPIX_Query_ze_support(void);
int MPIX_Checkpoint_handlers(MPIX_Checkpoint_function *save_fn, MPIX_Checkpoint_function *load_fn, void *extra_state);
int MPIX_Checkpoint_protect(int id, void *base, MPI_Count count, MPI_Datatype datatype);
int MPIX_Checkpoint_point(MPI_Comm comm, int *what);
int MPIX_Checkpoint_request(MPI_Comm comm);
int MPIX_Checkpoint_restarted(int *flag, char *folder, int *resultlen);

int PMPIX_Comm_revoke(MPI_Comm comm);
int PMPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int PMPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int PMPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
int PMPIX_Comm_failure_ack(MPI_Comm comm);
int PMPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);
int PMPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int PMPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);
int PMPIX_Comm_agree(MPI_Comm comm, int *flag);
int PMPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int PMPIX_Win_revoke(MPI_Win win);
int PMPIX_Win_is_revoked(MPI_Win win, int *flag);
int PMPIX_Win_get_failed(MPI_Win win, MPI_Group *failedgrp);
int PMPIX_Eureka_begin(MPI_Comm comm);
int PMPIX_Eureka_raise(MPI_Comm comm);
int PMPIX_Eureka_test(MPI_Comm comm, int *flag, int *first);
int PMPIX_Eureka_end(MPI_Comm comm, int *rank);
int PMPIX_Query_cuda_support(void);
int PMPIX_Query_rocm_support(void);
int PMPIX_Query_ze_support(void);
int PMPIX_Checkpoint_handlers(MPIX_Checkpoint_function *save_fn, MPIX_Checkpoint_function *load_fn, void *extra_state);
int PMPIX_Checkpoint_protect(int id, void *base, MPI_Count count, MPI_Datatype datatype);
int PMPIX_Checkpoint_point(MPI_Comm comm, int *what);
int PMPIX_Checkpoint_request(MPI_Comm comm);
int PMPIX_Checkpoint_restarted(int *flag, char *folder, int *resultlen);

int MPI_Comm_revoke(MPI_Comm comm);
int MPI_Comm_is_revoked(MPI_Comm comm, int *flag);
int MPI_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int MPI_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
int MPI_Comm_failure_ack(MPI_Comm comm);
int MPI_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);
int MPI_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int MPI_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);
int MPI_Comm_agree(MPI_Comm comm, int *flag);
int MPI_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int MPI_Win_revoke(MPI_Win win);
int MPI_Win_is_revoked(MPI_Win win, int *flag);
int MPI_Win_get_failed(MPI_Win win, MPI_Group *failedgrp);

int PMPI_Comm_revoke(MPI_Comm comm);
int PMPI_Comm_is_revoked(MPI_Comm comm, int *flag);
int PMPI_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int PMPI_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
int PMPI_Comm_failure_ack(MPI_Comm comm);
int PMPI_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);
int PMPI_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int PMPI_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);
int PMPI_Comm_agree(MPI_Comm comm, int *flag);
int PMPI_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int PMPI_Win_revoke(MPI_Win win);
int PMPI_Win_is_revoked(MPI_Win win, int *flag);
int PMPI_Win_get_failed(MPI_Win win, MPI_Group *failedgrp);

#if defined(__cplusplus)
}
#endif

#endif /* MPI_EXT_H */
