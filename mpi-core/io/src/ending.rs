//! The agreement of the members on the end of a file (`close`), also for a member that could not open it.
//!
//! In a run that is not fault tolerant, the members share their outcomes as in every collective call.
//!
//! In a fault-tolerant run the living members end the file by agreements on its communicator, each a MAX-reduction of one number:
//! 1. Each member that has the file bids; the highest bid is that of the lowest such rank.
//!    If a split collective is open at a member, its bid has a flag for it, and all members fail with the same class and keep the file.
//! 2. If the file is deleted on close, the rank with the highest bid deletes it and reports the outcome. If it has died before, the members bid again.
//!
//! A member that could not open the file, while other members may have it, takes part in the background and bids 0.

use super::amode::Amode;
use super::shared::SharedPointer;
use crate::Error;
use crate::comm::Comm;

/// Flag of a bid: a split collective of the bidder is open.
pub(super) const IN_USE: u64 = 1 << 40;

/// Flag of an outcome: the rank that deletes the file has done so; the lower bits are 0 or the class of its error.
pub(super) const TOLD: u64 = 1 << 40;

/// Returns the bid of a rank that has the file; it is at least 1, since 0 is the bid of a rank without the file.
pub(super) fn bid(comm: &Comm, is_in_use: bool) -> u64 {
    let place = u64::from(comm.size() - comm.rank());
    match is_in_use {
        true => IN_USE | place,
        false => place,
    }
}

/// Returns the rank of a bid.
pub(super) fn bidder(comm: &Comm, bid: u64) -> u64 {
    u64::from(comm.size()).saturating_sub(bid & !IN_USE)
}

/// Leaves the end of a file to the members that may have it, and takes part in their agreements, since this process could not open it.
pub(super) fn leave_to_others(
    comm: &Comm,
    amode: Amode,
    pointer: Option<SharedPointer>,
) -> Result<(), Error> {
    if !comm.engine().is_fault_tolerant() {
        // All members have failed with the same class.
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

/// Takes part in the agreements without having the file.
async fn take_part(comm: &Comm, is_deleted: bool) -> Result<(), Error> {
    loop {
        match comm.agreement().highest_of_living(0).await? {
            // No member has the file.
            0 => return Ok(()),
            bid if bid & IN_USE != 0 => {}
            _ if !is_deleted => return Ok(()),
            _ if comm.agreement().highest_of_living(0).await? & TOLD != 0 => return Ok(()),
            // The rank that had to delete it has died.
            _ => {}
        }
    }
}
