//! The agreement of the members on closing a file, also of members that could not open it.
//!
//! Without fault tolerance, the members share their results as in every collective call.
//!
//! In a fault-tolerant job, the living members agree by MAX-reductions:
//! 1. Each member that has opened the file contributes a bid, `size - rank`.
//!    A flag in the bid reports that the member has an open split collective.
//!    If any member sets the flag, all members fail with the same class and do not close the file.
//! 2. For delete-on-close, the rank with the highest bid deletes the file and reports the result.
//!    If that rank dies before its report, the members bid again.
//!
//! A member that could not open the file participates in the background, with the bid 0.

use super::amode::Amode;
use super::shared::SharedPointer;
use crate::Error;
use crate::comm::Comm;

/// Flag in a bid: the bidder has an open split collective.
pub(super) const IN_USE: u64 = 1 << 40;

/// Flag in a report: the rank with the highest bid has tried to delete the file.
/// The lower bits are the class of that rank's error, or 0 for success.
pub(super) const TOLD: u64 = 1 << 40;

/// Returns the bid of a rank that has opened the file: `size - rank`, so at least 1.
/// A rank that has not opened the file bids 0.
pub(super) fn bid(comm: &Comm, is_in_use: bool) -> u64 {
    let place = u64::from(comm.size() - comm.rank());
    match is_in_use {
        true => IN_USE | place,
        false => place,
    }
}

/// Returns the rank that made a bid (the inverse of [`bid`]).
pub(super) fn bidder(comm: &Comm, bid: u64) -> u64 {
    u64::from(comm.size()).saturating_sub(bid & !IN_USE)
}

/// Participates in closing a file that other members may have opened and this process has not.
pub(super) fn leave_to_others(
    comm: &Comm,
    amode: Amode,
    pointer: Option<SharedPointer>,
) -> Result<(), Error> {
    if !comm.engine().is_fault_tolerant() {
        // Without fault tolerance the open fails at all members, so only the pointer must be freed.
        return pointer.map_or(Ok(()), |pointer| pointer.free());
    }
    if let Some(pointer) = pointer {
        pointer.abandon();
    }
    let (own, deletes) = (comm.clone(), amode.delete_on_close);
    let end = async move { take_part(&own, deletes).await };
    comm.engine().operations().run_in_background(Box::pin(end));
    Ok(())
}

/// Participates in the agreements on closing, as a process that has not opened the file.
async fn take_part(comm: &Comm, is_deleted: bool) -> Result<(), Error> {
    loop {
        match comm.agreement().highest_of_living(0).await? {
            // No living member has opened the file.
            0 => return Ok(()),
            bid if bid & IN_USE != 0 => {}
            _ if !is_deleted => return Ok(()),
            _ if comm.agreement().highest_of_living(0).await? & TOLD != 0 => return Ok(()),
            // The rank that had to delete the file died without a report, so the members bid again.
            _ => {}
        }
    }
}
