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

/// The file pointer that an access uses and moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An explicit offset in etypes.
    At(i64),
    Individual,
    Shared,
}

/// The result of starting a nonblocking access.
pub enum Begun {
    /// Complete; the number of bytes of the buffer that were moved.
    Done(i64),
    /// In progress; its request.
    Under(Req),
}

/// The background operations that complete the requests of accesses, until they have ended.
#[derive(Default)]
struct Workers(RefCell<Vec<Req>>);

/// Runs an access in the background. Returns its request.
fn goes_on(engine: &Engine, outcome: impl Future<Output = Result<i64, IoError>> + 'static) -> Req {
    let requests = engine.pml().requests();
    let access = requests.begin(Body::General);
    let (completes, at) = (access.clone(), engine.clone());
    let worker = engine.start_future(Box::pin(async move {
        let _always = at.poll_always();
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

/// Combines the outcome of an access that was done first, if it was, with that of the collective part.
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
    /// Returns the length of a buffer in etypes.
    fn etypes(&self, datatype: &Datatype, bytes: i64) -> Result<i64, IoError> {
        let size = self.view.borrow().etype.size().max(1);
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

    /// Returns the offset of an access of `etypes` etypes, and advances the pointer by it.
    fn begin(&self, place: Place, etypes: i64) -> Result<Result<i64, IoError>, Error> {
        Ok(match place {
            Place::Shared => Ok(self.shared.add(etypes)?),
            Place::At(offset) if offset < 0 => {
                let sentence = format!("offset is {offset}, which is negative");
                Err(IoError::new(IoClass::Arg, sentence))
            }
            Place::At(offset) => self.random_access().map(|()| offset),
            Place::Individual => self.random_access().map(|()| {
                let at = self.position.get();
                self.position.set(at.saturating_add(etypes));
                at
            }),
        })
    }

    fn stream_place(&self, at: i64) -> Result<i64, IoError> {
        let each = self.view.borrow().etype_bytes();
        at.checked_mul(each)
            .ok_or_else(|| IoError::new(IoClass::Arg, format!("offset {at} is too far")))
    }

    pub(super) fn may_read(&self) -> Result<(), IoError> {
        match self.amode.reads() {
            true => Ok(()),
            false => Err(IoError::new(IoClass::Access, "it is open for writing only")),
        }
    }

    pub(super) fn may_write(&self) -> Result<(), IoError> {
        match self.amode.writes() {
            true => Ok(()),
            false => Err(IoError::new(
                IoClass::ReadOnly,
                "it is open for reading only",
            )),
        }
    }

    /// Reads at byte `from` of the stream.
    pub(super) fn read_from(&self, from: i64, buf: &mut RecvBuf) -> Result<i64, IoError> {
        let view = self.view.borrow();
        let _held = match self.atomic.get() {
            true => RangeLock::take(&self.disk, &view, from, buf.bytes(), false)?,
            false => None,
        };
        access::read(&self.disk, &view, from, buf)
    }

    /// Writes at byte `from` of the stream.
    pub(super) fn write_from(&self, from: i64, buf: &SendBuf) -> Result<i64, IoError> {
        let view = self.view.borrow();
        let _held = match self.atomic.get() {
            true => RangeLock::take(&self.disk, &view, from, buf.bytes(), true)?,
            false => None,
        };
        let alone = self.comm.size() == 1 && self.amode.unique_open;
        let sieve = match view.is_dense() || !self.amode.reads() {
            true => None,
            false => self.disk.write_sieve(alone),
        };
        access::write(&self.disk, sieve, &view, from, buf)
    }

    /// Performs an MPI call and counts it, if a report is requested.
    fn counted(
        &self,
        writes: bool,
        collective: bool,
        act: impl FnOnce() -> Result<i64, Error>,
    ) -> Result<i64, Error> {
        let Some(record) = self.disk.record() else {
            return act();
        };
        let begin = now_ns();
        let done = act();
        if collective {
            record.add(Counter::Collective, 1);
        }
        let bytes = done.as_ref().map_or(0, |bytes| *bytes as u64);
        record.call(writes, bytes, now_ns().saturating_sub(begin));
        done
    }

    fn count_aggregated(&self) {
        if let Some(record) = self.disk.record() {
            record.add(Counter::Aggregated, 1);
        }
    }

    /// Individual read. Returns the number of bytes of the buffer that were filled.
    pub fn read(&self, place: Place, buf: &mut RecvBuf) -> Result<i64, Error> {
        self.alone(place, Transfer::Read(buf))
    }

    fn alone(&self, place: Place, mut transfer: Transfer) -> Result<i64, Error> {
        self.counted(transfer.writes(), false, || {
            let from = self.part(place, &transfer)?;
            self.told(from.and_then(|from| transfer.alone(self, from)))
        })
    }

    /// Starts an individual read. A long, contiguous read of data that are not in the page cache continues in the background.
    ///
    /// # Safety
    /// No other code uses the buffer until the request is complete.
    pub unsafe fn begin_read(&self, place: Place, buf: &mut RecvBuf) -> Result<Begun, Error> {
        let begin = now_ns();
        let from = self.part(place, &Transfer::Read(buf))?;
        let long = from
            .as_ref()
            .ok()
            .and_then(|from| self.long_run(*from, buf));
        let (Some(offset), Some(dest)) = (long, buf.contiguous()) else {
            let act = || self.told(from.and_then(|from| self.read_from(from, buf)));
            return self.counted(false, false, act).map(Begun::Done);
        };
        // SAFETY: no other code uses the buffer until the request is complete, by this function's contract; the request completes after the reading has been dropped.
        let start = self.told(unsafe { Start::of(&self.disk, dest, offset) })?;
        let disk = self.disk.clone();
        let count = move |bytes: usize| {
            if let Some(record) = disk.record() {
                record.call(false, bytes as u64, now_ns().saturating_sub(begin));
            }
            bytes as i64
        };
        let reading = match start {
            Start::Done(bytes) => return Ok(Begun::Done(count(bytes))),
            Start::Under(reading) => reading,
        };
        let (rank, path) = (self.comm.rank(), self.path.clone());
        let outcome = async move {
            let read = reading.over().await;
            read.map(count).map_err(|error| told(rank, &path, &error))
        };
        Ok(Begun::Under(goes_on(self.comm.engine(), outcome)))
    }

    /// Returns the file offset of a read that is long enough for the background.
    fn long_run(&self, from: i64, buf: &RecvBuf) -> Option<i64> {
        let view = self.view.borrow();
        let suits =
            buf.bytes() >= LONG && !self.atomic.get() && !view.representation.converts_reads();
        match suits {
            true => view.one_run(from, buf.bytes()),
            false => None,
        }
    }

    /// Individual write. Returns the number of bytes of the buffer that were written.
    pub fn write(&self, place: Place, buf: &SendBuf) -> Result<i64, Error> {
        self.alone(place, Transfer::Write(buf))
    }

    /// Returns the stream position of a member's access, or the error that makes it impossible.
    fn part(&self, place: Place, transfer: &Transfer) -> Result<Result<i64, IoError>, Error> {
        let may = transfer.allowed_in(self);
        let etypes = match may.and_then(|()| self.etypes(transfer.datatype(), transfer.bytes())) {
            Ok(etypes) => etypes,
            Err(error) => return Ok(Err(error)),
        };
        let at = self.begin(place, etypes)?;
        Ok(at.and_then(|at| self.stream_place(at)))
    }

    /// Returns true if the members agree on a plan; the arguments are equal at all members.
    fn wants_plan(&self, converts: bool, wanted: Switch) -> bool {
        let alone = self.comm.size() == 1 || converts || self.atomic.get();
        !alone && wanted != Switch::Disable
    }

    /// Performs a member's access before the agreement, if possible, and returns its outcome: one run does not interleave with another,
    /// and an empty or failed access needs nothing. So ranks with one run each synchronise once in an access and not twice.
    fn first(
        &self,
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
        suits.then(|| transfer.alone(self, from))
    }

    /// Returns the shared memory for a plan; `None` if messages must be used.
    fn buffers(&self, plan: &Plan) -> Result<Option<Rc<ShmBuffers>>, Error> {
        match &*self.buffers.borrow() {
            SharedMemory::Impossible => return Ok(None),
            SharedMemory::Ready(buffers) if buffers.suit(plan) => return Ok(Some(buffers.clone())),
            _ => {}
        }
        if let SharedMemory::Ready(old) = self.buffers.replace(SharedMemory::Untried) {
            old.give_back()?;
        }
        let made = ShmBuffers::new(&self.comm, &self.node_map, plan)?.map(Rc::new);
        *self.buffers.borrow_mut() = match &made {
            Some(buffers) => SharedMemory::Ready(buffers.clone()),
            None => SharedMemory::Impossible,
        };
        Ok(made)
    }

    /// Collective read.
    pub fn read_all(&self, place: Place, buf: &mut RecvBuf) -> Result<i64, Error> {
        self.all(place, Transfer::Read(buf))
    }

    /// Collective write.
    pub fn write_all(&self, place: Place, buf: &SendBuf) -> Result<i64, Error> {
        self.all(place, Transfer::Write(buf))
    }

    fn all(&self, place: Place, transfer: Transfer) -> Result<i64, Error> {
        self.counted(transfer.writes(), true, || self.all_now(place, transfer))
    }

    fn all_now(&self, place: Place, mut transfer: Transfer) -> Result<i64, Error> {
        let view = self.view();
        let from = self.part(place, &transfer)?;
        let tuning = self.disk.tuning();
        let wanted = transfer.together_by(&tuning);
        if !self.wants_plan(transfer.converts(&view), wanted) {
            return self.agree(from.and_then(|from| transfer.alone(self, from)));
        }
        let done = self.first(&from, (&view, wanted), &mut transfer);
        let by = (wanted, &tuning, &self.node_map, transfer.writes());
        let at = from.unwrap_or(0);
        let part = (at, transfer.bytes());
        let outcome = match Plan::agree(&self.comm, by, done.as_ref(), &view, part)? {
            Decision::Over(all) => return self.agreed(done.unwrap_or(Ok(0)), &all),
            Decision::Each => done.unwrap_or_else(|| transfer.alone(self, at)),
            Decision::Together(plan) => {
                self.count_aggregated();
                let buffers = self.buffers(&plan)?;
                let by = (&plan, buffers.as_deref());
                let moved = transfer.together(self, by, (&view, at), done.is_some())?;
                both(done, moved)
            }
        };
        self.agree(outcome)
    }

    /// Returns the offset of this member's part of an ordered access: the parts follow each other in rank order from the shared pointer.
    fn in_order(&self, etypes: Result<i64, IoError>) -> Result<i64, Error> {
        let etypes = self.agree(etypes)?;
        let all = self
            .comm
            .engine()
            .block_on(self.comm.internal().share(&[etypes as u64]))?;
        let before: u64 = all[..self.comm.rank() as usize].iter().sum();
        let total: u64 = all.iter().sum();
        let base = match self.comm.rank() {
            0 => self.shared.add(total as i64)?,
            _ => 0,
        };
        let bases = self
            .comm
            .engine()
            .block_on(self.comm.internal().share(&[base as u64]))?;
        Ok((bases[0] + before) as i64)
    }

    /// Ordered read at the shared pointer.
    pub fn read_ordered(&self, buf: &mut RecvBuf) -> Result<i64, Error> {
        self.ordered(Transfer::Read(buf))
    }

    /// Ordered write at the shared pointer.
    pub fn write_ordered(&self, buf: &SendBuf) -> Result<i64, Error> {
        self.ordered(Transfer::Write(buf))
    }

    fn ordered(&self, mut transfer: Transfer) -> Result<i64, Error> {
        self.counted(transfer.writes(), true, || {
            let at = self.in_order(self.etypes(transfer.datatype(), transfer.bytes()))?;
            let may = transfer.allowed_in(self);
            let from = may.and_then(|()| self.stream_place(at));
            self.agree(from.and_then(|from| transfer.alone(self, from)))
        })
    }

    /// Begins a split collective; a file has at most one at a time.
    pub fn split_begins(
        &self,
        call: &'static str,
        act: impl FnOnce() -> Result<i64, Error>,
    ) -> Result<(), Error> {
        if let Some(open) = &*self.split.borrow() {
            let sentence = format!(
                "{call}_begin on file {} before {} has ended",
                self.path, open.call
            );
            return Err(IoError::new(IoClass::UnsupportedOperation, sentence).into());
        }
        let bytes = act()?;
        *self.split.borrow_mut() = Some(SplitCollective { call, bytes });
        Ok(())
    }

    /// Ends the split collective. Returns the number of bytes it has moved.
    pub fn split_ends(&self, call: &'static str) -> Result<i64, Error> {
        let open = self.split.take();
        match open {
            Some(split) if split.call == call => Ok(split.bytes),
            other => {
                let what = match &other {
                    Some(split) => format!("what has begun is {}", split.call),
                    None => "nothing has begun".to_owned(),
                };
                let sentence = format!("{call}_end on file {}: {what}", self.path);
                *self.split.borrow_mut() = other;
                Err(IoError::new(IoClass::UnsupportedOperation, sentence).into())
            }
        }
    }
}
