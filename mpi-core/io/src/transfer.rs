//! Read and write calls: individual, collective, ordered and split (MPI 5.0, section 14.4).
#![allow(unsafe_code)]

use super::access::{self, RangeLock};
use super::error::{IoClass, IoError};
use super::file::{File, told};
use super::hints::Switch;
use super::report::Counter;
use super::view::View;
use crate::Error;
use crate::collective::plan::{Decision, Plan};
use crate::collective::shm_aggregation::ShmBuffers;
use crate::datatype::{Datatype, RecvBuf, SendBuf};
use crate::direction::Transfer;
use crate::engine::Engine;
use crate::request::{Body, Req, Status};
use crate::split_collective::{SharedMemory, SplitCollective};
use crate::uring_read::{LONG, Start};
use mpi_base::clock::now_ns;
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

/// The position of an access: an explicit offset, or the file pointer that it uses and advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An explicit offset in etypes.
    At(i64),
    Individual,
    Shared,
}

/// The result of starting a nonblocking access.
pub enum Begun {
    /// The access is complete; the value is the number of transferred bytes of the buffer.
    Done(i64),
    /// The access is in progress; the request completes when it ends.
    Under(Req),
}

/// The operations in the background that complete the requests of nonblocking accesses.
#[derive(Default)]
struct Workers(RefCell<Vec<Req>>);

/// Runs an access in the background. Returns the request that its end completes.
fn goes_on(engine: &Engine, outcome: impl Future<Output = Result<i64, IoError>> + 'static) -> Req {
    let requests = engine.pml().requests();
    let access = requests.begin(Body::General);
    let (completes, at) = (access.clone(), engine.clone());
    let worker = engine.operations().start(Box::pin(async move {
        let _always = at.operations().poll_always();
        let status = outcome.await.map(|bytes| Status {
            bytes: bytes.max(0) as u64,
            ..Status::EMPTY
        });
        let requests = at.pml().requests();
        requests.complete(&completes, status.map_err(Error::from));
        Ok(())
    }));
    let workers = engine.extension(Workers::default);
    let mut all = workers.0.borrow_mut();
    all.push(worker);
    all.retain(|worker| {
        let ended = worker.is_complete();
        if ended {
            requests.release(worker);
        }
        !ended
    });
    access
}

/// Combines the result of an earlier individual access, if any, with that of the collective part.
/// If both succeed, returns the number of bytes of the individual access.
fn both(
    first: Option<Result<i64, IoError>>,
    together: Result<i64, IoError>,
) -> Result<i64, IoError> {
    match first {
        Some(Ok(bytes)) => together.map(|_| bytes),
        Some(failed) => failed,
        None => together,
    }
}

impl File {
    /// Returns the read and write calls of this file.
    #[inline]
    pub fn accesses(&self) -> Accesses<'_> {
        Accesses { file: self }
    }
}

/// The read and write calls of a file.
#[derive(Clone, Copy)]
pub struct Accesses<'a> {
    file: &'a File,
}

impl<'a> Accesses<'a> {
    /// Returns the length of a buffer in etypes.
    fn etypes(self, datatype: &Datatype, bytes: i64) -> Result<i64, IoError> {
        let size = self.file.view.borrow().etype.size().max(1);
        match bytes % size {
            0 => Ok(bytes / size),
            _ => {
                let sentence = format!(
                    "the buffer has {bytes} bytes of {datatype}, which is no multiple of the {size} of the view's etype"
                );
                Err(IoError::new(IoClass::Arg, sentence))
            }
        }
    }

    /// Returns the offset of an access; advances the file pointer, if used, by `etypes`.
    fn begin(self, place: Place, etypes: i64) -> Result<Result<i64, IoError>, Error> {
        Ok(match place {
            Place::Shared => Ok(self.file.shared.add(etypes)?),
            Place::At(offset) if offset < 0 => {
                let sentence = format!("offset is {offset}, which is negative");
                Err(IoError::new(IoClass::Arg, sentence))
            }
            Place::At(offset) => self.file.random_access().map(|()| offset),
            Place::Individual => self.file.random_access().map(|()| {
                let at = self.file.position.get();
                self.file.position.set(at.saturating_add(etypes));
                at
            }),
        })
    }

    fn stream_place(self, at: i64) -> Result<i64, IoError> {
        let each = self.file.view.borrow().etype_bytes();
        at.checked_mul(each)
            .ok_or_else(|| IoError::new(IoClass::Arg, format!("offset {at} is too far")))
    }

    pub(super) fn may_read(self) -> Result<(), IoError> {
        match self.file.amode.reads() {
            true => Ok(()),
            false => Err(IoError::new(IoClass::Access, "it is open for writing only")),
        }
    }

    pub(super) fn may_write(self) -> Result<(), IoError> {
        match self.file.amode.writes() {
            true => Ok(()),
            false => Err(IoError::new(
                IoClass::ReadOnly,
                "it is open for reading only",
            )),
        }
    }

    /// Reads into a buffer at stream byte `from`.
    pub(super) fn read_from(self, from: i64, buf: &mut RecvBuf) -> Result<i64, IoError> {
        let view = self.file.view.borrow();
        let _held = match self.file.atomic.get() {
            true => RangeLock::take(&self.file.disk, &view, from, buf.bytes(), false)?,
            false => None,
        };
        access::read(&self.file.disk, &view, from, buf)
    }

    /// Writes a buffer at stream byte `from`.
    pub(super) fn write_from(self, from: i64, buf: &SendBuf) -> Result<i64, IoError> {
        let view = self.file.view.borrow();
        let _held = match self.file.atomic.get() {
            true => RangeLock::take(&self.file.disk, &view, from, buf.bytes(), true)?,
            false => None,
        };
        let alone = self.file.comm.size() == 1 && self.file.amode.unique_open;
        let sieve = match view.is_dense() || !self.file.amode.reads() {
            true => None,
            false => self.file.disk.write_sieve(alone),
        };
        access::write(&self.file.disk, sieve, &view, from, buf)
    }

    /// Performs an MPI call and counts it if the user requests a report.
    fn counted(
        self,
        writes: bool,
        collective: bool,
        act: impl FnOnce() -> Result<i64, Error>,
    ) -> Result<i64, Error> {
        let begin = self.file.disk.record().map(|_| now_ns());
        let done = act();
        let bytes = done.as_ref().map_or(0, |bytes| *bytes as u64);
        self.file.disk.moves(writes, bytes);
        let (Some(record), Some(begin)) = (self.file.disk.record(), begin) else {
            return done;
        };
        if collective {
            record.add(Counter::Collective, 1);
        }
        record.call(writes, bytes, now_ns().saturating_sub(begin));
        done
    }

    fn count_aggregated(self) {
        if let Some(record) = self.file.disk.record() {
            record.add(Counter::Aggregated, 1);
        }
    }

    /// Reads individually. Returns the number of bytes of the buffer that were filled.
    pub fn read(self, place: Place, buf: &mut RecvBuf) -> Result<i64, Error> {
        self.alone(place, Transfer::Read(buf))
    }

    fn alone(self, place: Place, mut transfer: Transfer) -> Result<i64, Error> {
        self.counted(transfer.writes(), false, || {
            let from = self.part(place, &transfer)?;
            self.file
                .told(from.and_then(|from| transfer.alone(self.file, from)))
        })
    }

    /// Starts an individual read, which runs in the background if it is long and contiguous
    /// and its data are not in the page cache.
    ///
    /// # Safety
    /// No other code uses the buffer until the request is complete.
    pub unsafe fn begin_read(self, place: Place, buf: &mut RecvBuf) -> Result<Begun, Error> {
        let begin = now_ns();
        let from = self.part(place, &Transfer::Read(buf))?;
        let long = from
            .as_ref()
            .ok()
            .and_then(|from| self.long_run(*from, buf));
        let (Some(offset), Some(dest)) = (long, buf.contiguous()) else {
            let act = || {
                self.file
                    .told(from.and_then(|from| self.read_from(from, buf)))
            };
            return self.counted(false, false, act).map(Begun::Done);
        };
        // SAFETY: no other code uses the buffer until the request is complete,
        // by this function's contract. The request completes after the `Reading` has been dropped.
        let start = self
            .file
            .told(unsafe { Start::of(&self.file.disk, dest, offset) })?;
        let disk = self.file.disk.clone();
        let count = move |bytes: usize| {
            disk.moves(false, bytes as u64);
            if let Some(record) = disk.record() {
                record.call(false, bytes as u64, now_ns().saturating_sub(begin));
            }
            bytes as i64
        };
        let reading = match start {
            Start::Done(bytes) => return Ok(Begun::Done(count(bytes))),
            Start::Under(reading) => reading,
        };
        let (rank, path) = (self.file.comm.rank(), self.file.path.clone());
        let outcome = async move {
            let read = reading.over().await;
            read.map(count).map_err(|error| told(rank, &path, &error))
        };
        Ok(Begun::Under(goes_on(self.file.comm.engine(), outcome)))
    }

    /// Returns the file offset of a read that is long enough for the background; otherwise `None`.
    fn long_run(self, from: i64, buf: &RecvBuf) -> Option<i64> {
        let view = self.file.view.borrow();
        let suits =
            buf.bytes() >= LONG && !self.file.atomic.get() && !view.representation.converts_reads();
        match suits {
            true => view.one_run(from, buf.bytes()),
            false => None,
        }
    }

    /// Writes individually. Returns the number of bytes of the buffer that were written.
    pub fn write(self, place: Place, buf: &SendBuf) -> Result<i64, Error> {
        self.alone(place, Transfer::Write(buf))
    }

    /// Returns the stream byte at which a member's access begins, or the error that prevents it.
    fn part(self, place: Place, transfer: &Transfer) -> Result<Result<i64, IoError>, Error> {
        let may = transfer.allowed_in(self.file);
        let etypes = match may.and_then(|()| self.etypes(transfer.datatype(), transfer.bytes())) {
            Ok(etypes) => etypes,
            Err(error) => return Ok(Err(error)),
        };
        let at = self.begin(place, etypes)?;
        Ok(at.and_then(|at| self.stream_place(at)))
    }

    /// Returns true if the members must agree on a plan; the result is equal on all members.
    fn wants_plan(self, converts: bool, wanted: Switch) -> bool {
        let alone = self.file.comm.size() == 1 || converts || self.file.atomic.get();
        !alone && wanted != Switch::Disable
    }

    /// Performs a member's access before the exchange, if possible, and returns its result.
    /// This applies to an access of one run, which does not interleave, and to empty or failed ones.
    /// So ranks with one run each synchronise one time per access instead of two times.
    fn first(
        self,
        from: &Result<i64, IoError>,
        (view, wanted): (&View, Switch),
        transfer: &mut Transfer,
    ) -> Option<Result<i64, IoError>> {
        let bytes = transfer.bytes();
        let from = match from {
            Ok(from) => *from,
            Err(error) => return Some(Err(error.clone())),
        };
        let one = || bytes == 0 || view.one_run(from, bytes).is_some();
        let suits = wanted == Switch::Automatic && one();
        suits.then(|| transfer.alone(self.file, from))
    }

    /// Returns the shared memory for a plan; `None` if the members must use messages.
    fn buffers(self, plan: &Plan) -> Result<Option<Rc<ShmBuffers>>, Error> {
        match &*self.file.buffers.borrow() {
            SharedMemory::Impossible => return Ok(None),
            SharedMemory::Ready(buffers) if buffers.suit(plan) => return Ok(Some(buffers.clone())),
            _ => {}
        }
        if let SharedMemory::Ready(old) = self.file.buffers.replace(SharedMemory::Untried) {
            old.give_back()?;
        }
        let made = ShmBuffers::new(&self.file.comm, &self.file.node_map, plan)?.map(Rc::new);
        *self.file.buffers.borrow_mut() = match &made {
            Some(buffers) => SharedMemory::Ready(buffers.clone()),
            None => SharedMemory::Impossible,
        };
        Ok(made)
    }

    /// Reads collectively. Returns the number of bytes of the buffer that were filled.
    pub fn read_all(self, place: Place, buf: &mut RecvBuf) -> Result<i64, Error> {
        self.all(place, Transfer::Read(buf))
    }

    /// Writes collectively. Returns the number of bytes of the buffer that were written.
    pub fn write_all(self, place: Place, buf: &SendBuf) -> Result<i64, Error> {
        self.all(place, Transfer::Write(buf))
    }

    fn all(self, place: Place, transfer: Transfer) -> Result<i64, Error> {
        self.counted(transfer.writes(), true, || self.all_now(place, transfer))
    }

    fn all_now(self, place: Place, mut transfer: Transfer) -> Result<i64, Error> {
        let view = self.file.view();
        let from = self.part(place, &transfer)?;
        let tuning = self.file.disk.tuning();
        let wanted = transfer.together_by(&tuning);
        if !self.wants_plan(transfer.converts(&view), wanted) {
            return self
                .file
                .agree(from.and_then(|from| transfer.alone(self.file, from)));
        }
        let done = self.first(&from, (&view, wanted), &mut transfer);
        let by = (wanted, &tuning, &self.file.node_map, transfer.writes());
        let at = from.unwrap_or(0);
        let part = (at, transfer.bytes());
        let outcome = match Plan::agree(&self.file.comm, by, done.as_ref(), &view, part)? {
            Decision::Over(all) => return self.file.agreed(done.unwrap_or(Ok(0)), &all),
            Decision::Each => done.unwrap_or_else(|| transfer.alone(self.file, at)),
            Decision::Together(plan) => {
                self.count_aggregated();
                let buffers = self.buffers(&plan)?;
                let by = (&plan, buffers.as_deref());
                let moved = transfer.together(self.file, by, (&view, at), done.is_some())?;
                both(done, moved)
            }
        };
        self.file.agree(outcome)
    }

    /// Returns the offset in etypes of this member's data in an ordered access.
    /// The data of the members follow each other in rank order, from the shared pointer on.
    fn in_order(self, etypes: Result<i64, IoError>) -> Result<i64, Error> {
        let etypes = self.file.agree(etypes)?;
        let all = self.file.comm.internal().share_now(&[etypes as u64])?;
        let before: u64 = all[..self.file.comm.rank() as usize].iter().sum();
        let total: u64 = all.iter().sum();
        let base = match self.file.comm.rank() {
            0 => self.file.shared.add(total as i64)?,
            _ => 0,
        };
        let bases = self.file.comm.internal().share_now(&[base as u64])?;
        Ok((bases[0] + before) as i64)
    }

    /// Reads in rank order at the shared pointer.
    pub fn read_ordered(self, buf: &mut RecvBuf) -> Result<i64, Error> {
        self.ordered(Transfer::Read(buf))
    }

    /// Writes in rank order at the shared pointer.
    pub fn write_ordered(self, buf: &SendBuf) -> Result<i64, Error> {
        self.ordered(Transfer::Write(buf))
    }

    fn ordered(self, mut transfer: Transfer) -> Result<i64, Error> {
        self.counted(transfer.writes(), true, || {
            let at = self.in_order(self.etypes(transfer.datatype(), transfer.bytes()))?;
            let may = transfer.allowed_in(self.file);
            let from = may.and_then(|()| self.stream_place(at));
            self.file
                .agree(from.and_then(|from| transfer.alone(self.file, from)))
        })
    }

    /// Begins a split collective. A file has at most one open split collective.
    pub fn split_begins(
        self,
        call: &'static str,
        act: impl FnOnce() -> Result<i64, Error>,
    ) -> Result<(), Error> {
        if let Some(open) = &*self.file.split.borrow() {
            let sentence = format!(
                "{call}_begin on file {} while {}_begin has not been ended by {}_end",
                self.file.path, open.call, open.call
            );
            return Err(IoError::new(IoClass::UnsupportedOperation, sentence).into());
        }
        let bytes = act()?;
        *self.file.split.borrow_mut() = Some(SplitCollective { call, bytes });
        Ok(())
    }

    /// Ends the open split collective. Returns the number of bytes that it has transferred.
    pub fn split_ends(self, call: &'static str) -> Result<i64, Error> {
        let open = self.file.split.take();
        match open {
            Some(split) if split.call == call => Ok(split.bytes),
            other => {
                let what = match &other {
                    Some(split) => format!(
                        "the split collective that has begun is {}_begin",
                        split.call
                    ),
                    None => "no split collective has begun".to_owned(),
                };
                let sentence = format!("{call}_end on file {}: {what}", self.file.path);
                *self.file.split.borrow_mut() = other;
                Err(IoError::new(IoClass::UnsupportedOperation, sentence).into())
            }
        }
    }
}
