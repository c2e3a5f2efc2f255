//! The engine's errors as failures: here, and only here, they get their MPI error classes.

use super::Failure;
use crate::abi::*;
use mpi_core::datatype::TypeError;
use mpi_core::op::OpError;

impl From<TypeError> for Failure {
    #[cold]
    fn from(e: TypeError) -> Failure {
        let class = match e {
            TypeError::Negative { what: "count", .. } => MPI_ERR_COUNT,
            TypeError::TooManyRuns => MPI_ERR_TYPE,
            _ => MPI_ERR_ARG,
        };
        Failure::new(class, e.to_string())
    }
}

impl From<OpError> for Failure {
    #[cold]
    fn from(e: OpError) -> Failure {
        let class = match e {
            OpError::NotDefined { .. } => MPI_ERR_OP,
            OpError::NotHere { .. } => MPI_ERR_UNSUPPORTED_OPERATION,
            OpError::TypesDiffer { .. } => MPI_ERR_TYPE,
        };
        Failure::new(class, e.to_string())
    }
}
