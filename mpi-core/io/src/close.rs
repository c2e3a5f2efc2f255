//! `MPI_File_close`: closes a file; the agreement of its members is in [`ending`](super::ending).

use super::amode::delete;
use super::ending::{IN_USE, TOLD, bid, bidder};
use super::error::{IoClass, IoError, class_number};
use super::file::File;
use crate::Error;
use crate::split_collective::SharedMemory;

impl File {
    /// Implements `MPI_File_close`; collective.
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
            // All members have completed their accesses, so rank 0 can delete the file.
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
        let highest = |number| engine.block_on(self.comm.agreement().highest_of_living(number));
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
        if !self.amode.delete_on_close {
            return Ok(());
        }
        loop {
            let is_mine = bidder(&self.comm, best) == u64::from(self.comm.rank());
            let deleted = is_mine.then(|| self.delete());
            let told = deleted.as_ref().map_or(0, |done| TOLD | class_number(done));
            let told = highest(told)?;
            if told & TOLD != 0 {
                return self.told_of_deletion(bidder(&self.comm, best), deleted, told & !TOLD);
            }
            best = highest(mine)?;
        }
    }

    /// Returns the result of `MPI_File_close` after rank `rank` has reported
    /// whether it could delete the file.
    fn told_of_deletion(
        &self,
        rank: u64,
        own: Option<Result<(), IoError>>,
        class: u64,
    ) -> Result<(), Error> {
        match own {
            Some(Err(error)) => Err(self.of_rank(rank, &error)),
            None if class != 0 => {
                let error = IoError::new(IoClass::from_number(class), "deleting it has failed");
                Err(self.of_rank(rank, &error))
            }
            _ => Ok(()),
        }
    }

    /// Frees the windows that the members share: the shared pointer and the collective buffers.
    /// The members have agreed on closing the file.
    fn free_memory(&self) -> Result<(), Error> {
        self.shared.free()?;
        match self.buffers.take() {
            SharedMemory::Ready(buffers) => buffers.free_after_agreement(),
            SharedMemory::Untried | SharedMemory::Impossible => Ok(()),
        }
    }

    /// Deletes the file. Returns no error if another process has already deleted it.
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
