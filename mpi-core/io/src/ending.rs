//! The end of a file: `MPI_File_close`, and the part in it of a member that could not open the file.
//!
//! Where a death ends the job, the members share the outcomes of their parts as in every collective call.
//!
//! Where deaths are survived the living members end the file among themselves, by agreements on its communicator, each on the highest of their numbers:
//! 1. Each member that has the file bids; the highest bid is that of the lowest of these ranks.
//!    If a split collective has begun at a member and not ended, its bid says so, and all members fail alike and keep the file.
//! 2. If the file is deleted on close, the rank that has bid highest deletes it and tells the outcome. If it has died before that, the members bid again.
//!
//! A member that could not open the file, while other members may have it, takes part in the background and bids nothing.

use super::amode::{Amode, delete};
use super::error::{IoClass, IoError, class_number};
use super::file::File;
use super::shared::SharedPointer;
use super::split::Staging;
use crate::Error;
use crate::comm::Comm;

/// In a bid: a split collective of the bidder has not ended.
const IN_USE: u64 = 1 << 40;

/// In an outcome: the rank that deletes the file has done so, or has failed to with the class in the lower bits.
const TOLD: u64 = 1 << 40;

/// The bid of a rank that has the file; more than any that does not.
fn bid(comm: &Comm, is_in_use: bool) -> u64 {
    let place = u64::from(comm.size() - comm.rank());
    match is_in_use {
        true => IN_USE | place,
        false => place,
    }
}

/// The rank whose bid this is.
fn bidder(comm: &Comm, bid: u64) -> u64 {
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

impl File {
    /// `MPI_File_close`; every member calls.
    pub fn close(&self) -> Result<(), Error> {
        let open = match &*self.split.borrow() {
            None => Ok(()),
            Some(split) => Err(IoError::new(
                IoClass::FileInUse,
                format!("{} has begun and has not ended", split.call),
            )),
        };
        if self.comm.engine().is_fault_tolerant() {
            return self.close_among_living(open);
        }
        self.agree(open)?;
        self.free_memory()?;
        self.disk.write_record();
        if self.amode.delete_on_close {
            // All have done what they wanted to do with it.
            let deleted = match self.comm.rank() {
                0 => self.delete(),
                _ => Ok(()),
            };
            self.agree(deleted)?;
        }
        Ok(())
    }

    fn close_among_living(&self, open: Result<(), IoError>) -> Result<(), Error> {
        let engine = self.comm.engine();
        let highest = |number| engine.block_on(self.comm.highest_of_living(number));
        let mine = bid(&self.comm, open.is_err());
        let mut best = highest(mine)?;
        if best & IN_USE != 0 {
            return Err(match open {
                Err(error) => self.of_rank(u64::from(self.comm.rank()), &error),
                Ok(()) => {
                    let error =
                        IoError::new(IoClass::FileInUse, "a split collective has not ended");
                    self.of_rank(bidder(&self.comm, best), &error)
                }
            });
        }
        self.free_memory()?;
        self.disk.write_record();
        while self.amode.delete_on_close {
            let deleted = match bidder(&self.comm, best) == u64::from(self.comm.rank()) {
                true => Some(self.delete()),
                false => None,
            };
            let told = deleted.as_ref().map_or(0, |done| TOLD | class_number(done));
            let told = highest(told)?;
            if told & TOLD != 0 {
                let (rank, class) = (bidder(&self.comm, best), told & !TOLD);
                return match deleted {
                    Some(Err(error)) => Err(self.of_rank(rank, &error)),
                    None if class != 0 => {
                        let error =
                            IoError::new(IoClass::from_number(class), "deleting it has failed");
                        Err(self.of_rank(rank, &error))
                    }
                    _ => Ok(()),
                };
            }
            best = highest(mine)?;
        }
        Ok(())
    }

    /// Gives back the memory that the members share.
    fn free_memory(&self) -> Result<(), Error> {
        self.shared.free()?;
        match self.stages.take() {
            Staging::Ready(stages) => stages.free(),
            Staging::Untried | Staging::Impossible => Ok(()),
        }
    }

    /// Deletes the file; a name that another process has removed meanwhile is what is wanted.
    fn delete(&self) -> Result<(), IoError> {
        match delete(&self.path) {
            Err(error) if error.class == IoClass::NoSuchFile => Ok(()),
            done => done,
        }
    }

    fn of_rank(&self, rank: u64, error: &IoError) -> Error {
        let sentence = format!("rank {rank} on file {}: {error}", self.path);
        IoError::new(error.class, sentence).into()
    }
}
