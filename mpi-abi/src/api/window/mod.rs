//! One-sided communication (chapter 12).
//!
//! | file | subject |
//! |---|---|
//! | [`create`] | window creation and window memory |
//! | [`query`] | names, groups, shared segments |
//! | [`hints`] | info hints |
//! | [`transfer`] | put and get |
//! | [`accumulate`] | accumulate, get-accumulate, fetch-and-op, compare-and-swap |
//! | [`sync`] | epochs: fence, post/start, lock, flush |

pub mod accumulate;
pub mod create;
pub mod hints;
pub mod query;
pub mod sync;
pub mod transfer;

use super::args::Out;
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::registry::request::{DONE, running_for};
use crate::state;
use mpi_core::datatype::Datatype;
use mpi_core::osc::TargetArgs;
use mpi_core::request::Req;
use std::ffi::c_int;

/// The block of a target window that a call accesses.
struct Part {
    rank: c_int,
    disp: MPI_Aint,
    count: MPI_Count,
    datatype: Datatype,
}

impl Part {
    /// Builds the target block after the checks that need no window.
    fn new(
        rank: c_int,
        disp: MPI_Aint,
        count: MPI_Count,
        datatype: MPI_Datatype,
    ) -> Result<Part, Failure> {
        let datatype = state::datatype(datatype)?;
        if count < 0 {
            return Err(Failure::new(
                MPI_ERR_COUNT,
                format!("target_count is {count}, which is negative"),
            ));
        }
        if !datatype.is_committed() {
            return Err(Failure::new(
                MPI_ERR_TYPE,
                format!("{datatype}, the datatype of the target, has not been committed"),
            ));
        }
        Ok(Part {
            rank,
            disp,
            count,
            datatype,
        })
    }

    fn there(&self) -> TargetArgs<'_> {
        TargetArgs {
            rank: self.rank,
            disp: self.disp as i64,
            count: self.count,
            datatype: &self.datatype,
        }
    }
}

/// Stores the request handle of a request-based access.
fn requested(req: Option<Req>, request: Out<MPI_Request>) -> Outcome {
    let handle = match req {
        Some(req) => running_for(req, None)?,
        None => DONE,
    };
    request.set(handle, "request")
}
