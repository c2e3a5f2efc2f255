/* mpi-ext.h: functions beyond MPI 5.0.
 *
 * Fault tolerance (ULFM) under the names and with the values of Open MPI's header of this name. The job goes on
 * when a rank dies if it is started by `mpirun --with-ft ulfm`.
 * Generated from mpi-abi/api by `cargo xtask gen`; edit the tables there.
 */
#ifndef MPI_EXT_H
#define MPI_EXT_H

#include <mpi.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* What programs ask for before they use it. */
#define OMPI_HAVE_MPI_EXT_FTMPI 1
#define OMPI_HAVE_MPIX_COMM_GET_FAILED 1
#define OMPI_HAVE_MPIX_COMM_ACK_FAILED 1
#define OMPI_HAVE_MPIX_COMM_ISHRINK 1

/* Error classes */
#define MPIX_ERR_PROC_FAILED 75
#define MPIX_ERR_PROC_FAILED_PENDING 76
#define MPIX_ERR_REVOKED 77
#define MPI_ERR_PROC_FAILED MPIX_ERR_PROC_FAILED
#define MPI_ERR_PROC_FAILED_PENDING MPIX_ERR_PROC_FAILED_PENDING
#define MPI_ERR_REVOKED MPIX_ERR_REVOKED

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

#if defined(__cplusplus)
}
#endif

#endif /* MPI_EXT_H */
