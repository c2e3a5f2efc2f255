//! How members agree on the end of a file (`close`), and the part in it of a member that could not open the file.
//!
//! Where a death ends the job, the members share the outcomes of their parts as in every collective call.
//!
//! Where deaths are survived the living members end the file among themselves, by agreements on its communicator, each on the highest of their numbers:
//! 1. Each member that has the file bids; the highest bid is that of the lowest of these ranks.
//!    If a split collective has begun at a member and not ended, its bid carries that, and all members fail alike and keep the file.
//! 2. If the file is deleted on close, the rank that has bid highest deletes it and tells the outcome. If it has died before that, the members bid again.
//!
//! A member that could not open the file, while other members may have it, takes part in the background and bids nothing.

use super::amode::Amode;
use super::shared::SharedPointer;
use crate::Error;
use crate::comm::Comm;

/// In a bid: a split collective of the bidder has not ended.
pub(super) const IN_USE: u64 = 1 << 40;

/// In an outcome: the rank that deletes the file has done so, or has failed to with the class in the lower bits.
pub(super) const TOLD: u64 = 1 << 40;

/// The bid of a rank that has the file; more than any that does not.
pub(super) fn bid(comm: &Comm, is_in_use: bool) -> u64 {
    let place = u64::from(comm.size() - comm.rank());
    match is_in_use {
        true => IN_USE | place,
        false => place,
    }
}

/// The rank whose bid this is.
pub(super) fn bidder(comm: &Comm, bid: u64) -> u64 {
    u64::from(comm.size()).saturating_sub(bid & !IN_USE)
}

/// This process has not opened a file that other members may have: it leaves the end of the file to them, and takes part in it.
pub(super) fn leave_to_others(
    comm: &Comm,
    amode: Amode,
    pointer: Option<SharedPointer>,
) -> Result<(), Error> {
    if !comm.engine().is_fault_tolerant() {
        // All members have failed alike.
        return pointer.map_or(Ok(()), |pointer| pointer.free());
    }
    if let Some(pointer) = pointer {
        pointer.abandon();
    }
    let (own, deletes) = (comm.clone(), amode.delete_on_close);
    let end = async move { take_part(&own, deletes).await };
    comm.engine().run_in_background(Box::pin(end));
    Ok(())
}

/// The part of a member that does not have the file.
async fn take_part(comm: &Comm, is_deleted: bool) -> Result<(), Error> {
    loop {
        match comm.highest_of_living(0).await? {
            // No member has it.
            0 => return Ok(()),
            bid if bid & IN_USE != 0 => {}
            _ if !is_deleted => return Ok(()),
            _ if comm.highest_of_living(0).await? & TOLD != 0 => return Ok(()),
            // The rank that was to delete it has died.
            _ => {}
        }
    }
}
