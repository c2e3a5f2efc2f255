//! Conversion of engine errors to failures. Only this module assigns the MPI error classes.

use super::{Failure, MPIX_ERR_PROC_FAILED, MPIX_ERR_PROC_FAILED_PENDING, MPIX_ERR_REVOKED};
use crate::abi::*;
use crate::device::DeviceError;
use crate::phase;
use mpi_core::Error;
use mpi_core::coll::{CollError, Unserved};
use mpi_core::comm::{CommError, EurekaError, LeaderError};
use mpi_core::datatype::{NoMemory, TypeError};
use mpi_core::fault::{FaultError, FaultKind};
use mpi_core::group::GroupError;
use mpi_core::io::{IoClass, IoError};
use mpi_core::op::OpError;
use mpi_core::osc::{OscClass, OscError};
use mpi_core::pml::PmlError;
use mpi_core::pml::buffered::BufferError;
use mpi_core::record::RecordError;
use mpi_core::request::PartitionError;
use mpi_core::topo::TopoError;
use std::ffi::c_int;

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

impl From<DeviceError> for Failure {
    #[cold]
    fn from(e: DeviceError) -> Failure {
        let class = match e {
            DeviceError::NoMemory { .. } => MPI_ERR_NO_MEM,
            DeviceError::Copy { .. } | DeviceError::Mixed { .. } => MPI_ERR_BUFFER,
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

impl From<IoError> for Failure {
    #[cold]
    fn from(e: IoError) -> Failure {
        let class = match e.class {
            IoClass::Access => MPI_ERR_ACCESS,
            IoClass::Amode => MPI_ERR_AMODE,
            IoClass::BadFile => MPI_ERR_BAD_FILE,
            IoClass::Conversion => MPI_ERR_CONVERSION,
            IoClass::DupDatarep => MPI_ERR_DUP_DATAREP,
            IoClass::FileExists => MPI_ERR_FILE_EXISTS,
            IoClass::FileInUse => MPI_ERR_FILE_IN_USE,
            IoClass::Io => MPI_ERR_IO,
            IoClass::NoSpace => MPI_ERR_NO_SPACE,
            IoClass::NoSuchFile => MPI_ERR_NO_SUCH_FILE,
            IoClass::NotSame => MPI_ERR_NOT_SAME,
            IoClass::Quota => MPI_ERR_QUOTA,
            IoClass::ReadOnly => MPI_ERR_READ_ONLY,
            IoClass::UnsupportedDatarep => MPI_ERR_UNSUPPORTED_DATAREP,
            IoClass::UnsupportedOperation => MPI_ERR_UNSUPPORTED_OPERATION,
            IoClass::Arg => MPI_ERR_ARG,
            IoClass::Type => MPI_ERR_TYPE,
            IoClass::Count => MPI_ERR_COUNT,
        };
        Failure::new(class, e.sentence)
    }
}

impl From<OscError> for Failure {
    #[cold]
    fn from(e: OscError) -> Failure {
        let class = match e.class {
            OscClass::Sync => MPI_ERR_RMA_SYNC,
            OscClass::Range => MPI_ERR_RMA_RANGE,
            OscClass::Attach => MPI_ERR_RMA_ATTACH,
            OscClass::Flavor => MPI_ERR_RMA_FLAVOR,
            OscClass::Shared => MPI_ERR_RMA_SHARED,
            OscClass::Conflict => MPI_ERR_RMA_CONFLICT,
            OscClass::LockType => MPI_ERR_LOCKTYPE,
            OscClass::Assert => MPI_ERR_ASSERT,
            OscClass::Size => MPI_ERR_TRUNCATE,
            OscClass::Disp => MPI_ERR_DISP,
            OscClass::Rank => MPI_ERR_RANK,
            OscClass::Op => MPI_ERR_OP,
            OscClass::Type => MPI_ERR_TYPE,
            OscClass::Group => MPI_ERR_GROUP,
            OscClass::NoMemory => MPI_ERR_NO_MEM,
            OscClass::Gone => gone_class(),
            OscClass::Base => MPI_ERR_BASE,
        };
        Failure::new(class, e.sentence)
    }
}

impl From<GroupError> for Failure {
    #[cold]
    fn from(e: GroupError) -> Failure {
        let class = match e {
            GroupError::Rank { .. } | GroupError::Twice { .. } => MPI_ERR_RANK,
            GroupError::Range { .. } => MPI_ERR_ARG,
        };
        Failure::new(class, e.to_string())
    }
}

impl From<TopoError> for Failure {
    #[cold]
    fn from(e: TopoError) -> Failure {
        let class = match e {
            TopoError::Dimension { .. } | TopoError::TooFew { .. } => MPI_ERR_DIMS,
            TopoError::Rank { .. } => MPI_ERR_RANK,
            TopoError::Coordinate { .. }
            | TopoError::Direction { .. }
            | TopoError::Index { .. }
            | TopoError::Edge { .. } => MPI_ERR_ARG,
        };
        Failure::new(class, e.to_string())
    }
}

impl From<BufferError> for Failure {
    #[cold]
    fn from(e: BufferError) -> Failure {
        let class = match e {
            BufferError::NoMemory { .. } => MPI_ERR_NO_MEM,
            _ => MPI_ERR_BUFFER,
        };
        Failure::new(class, e.to_string())
    }
}

impl From<RecordError> for Failure {
    #[cold]
    fn from(e: RecordError) -> Failure {
        Error::from(e).into()
    }
}

impl From<Error> for Failure {
    #[cold]
    fn from(e: Error) -> Failure {
        if let Some(e) = e.find::<OpError>() {
            return e.clone().into();
        }
        if let Some(e) = e.find::<NoMemory>() {
            return (*e).into();
        }
        if let Some(e) = e.find::<BufferError>() {
            return e.clone().into();
        }
        if let Some(e) = e.find::<IoError>() {
            return e.clone().into();
        }
        if let Some(e) = e.find::<OscError>() {
            return e.clone().into();
        }
        // A replay that deviates from its recording is useless, even if the program handles errors.
        if let Some(e) = e.find::<RecordError>() {
            crate::abort::abort(1, &e.to_string());
        }
        let class = None
            .or_else(|| e.find().and_then(pml_class))
            .or_else(|| e.find().map(fault_class))
            .or_else(|| e.find().map(partition_class))
            .or_else(|| e.find().and_then(comm_class))
            .or_else(|| e.find().and_then(coll_class))
            .or_else(|| e.find().and_then(eureka_class))
            .or_else(|| {
                e.find()
                    .map(|Unserved { .. }| MPI_ERR_UNSUPPORTED_OPERATION)
            });
        Failure::new(class.unwrap_or(MPI_ERR_OTHER), e.to_string())
    }
}

/// Returns the class for an operation whose peer is dead.
/// Programs check for the fault-tolerance class if the job continues after a death.
fn gone_class() -> c_int {
    match phase::is_fault_tolerant() {
        true => MPIX_ERR_PROC_FAILED,
        false => MPI_ERR_PROC_ABORTED,
    }
}

fn fault_class(e: &FaultError) -> c_int {
    match e.kind() {
        FaultKind::Failed => MPIX_ERR_PROC_FAILED,
        FaultKind::Pending => MPIX_ERR_PROC_FAILED_PENDING,
        FaultKind::Revoked => MPIX_ERR_REVOKED,
    }
}

fn pml_class(e: &PmlError) -> Option<c_int> {
    match e {
        PmlError::Truncated { .. } => Some(MPI_ERR_TRUNCATE),
        PmlError::Types { .. } => Some(MPI_ERR_TYPE),
        PmlError::PeerGone { .. } | PmlError::NoSender { .. } => Some(gone_class()),
        PmlError::Unreachable { .. } => None,
    }
}

fn eureka_class(e: &EurekaError) -> Option<c_int> {
    match e {
        EurekaError::Open { .. } | EurekaError::NotOpen { .. } => None,
        EurekaError::NoLine { .. } | EurekaError::Recorded => Some(MPI_ERR_UNSUPPORTED_OPERATION),
    }
}

fn partition_class(e: &PartitionError) -> c_int {
    match e {
        PartitionError::Longer { .. } => MPI_ERR_TRUNCATE,
        PartitionError::Inactive { .. } => MPI_ERR_REQUEST,
        PartitionError::Number { .. } | PartitionError::Twice { .. } => MPI_ERR_ARG,
    }
}

fn comm_class(e: &CommError) -> Option<c_int> {
    match e {
        CommError::Rank { .. } => Some(MPI_ERR_RANK),
        CommError::Outsider { .. } => Some(MPI_ERR_GROUP),
        CommError::LeaderError { error, .. } => match error.code {
            LeaderError::LOST => None,
            LeaderError::FAILED => Some(gone_class()),
            LeaderError::REVOKED => Some(MPIX_ERR_REVOKED),
            // The error class that the leader has sent to its group.
            class => Some(class),
        },
        CommError::Overlap { .. }
        | CommError::Kind { .. }
        | CommError::Strange { .. }
        | CommError::Unpaired { .. } => Some(MPI_ERR_COMM),
        _ => None,
    }
}

fn coll_class(e: &CollError) -> Option<c_int> {
    match e {
        CollError::Length { .. } | CollError::Short { .. } => Some(MPI_ERR_TRUNCATE),
        _ => None,
    }
}

impl From<NoMemory> for Failure {
    #[cold]
    fn from(e: NoMemory) -> Failure {
        Failure::new(MPI_ERR_NO_MEM, e.to_string())
    }
}
