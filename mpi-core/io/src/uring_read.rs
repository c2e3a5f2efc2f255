//! Long nonblocking reads by io_uring(7), for data that are not in the page cache:
//! they continue in the background while the program computes.
//!
//! Measured (docs/performance.md): io_uring gains nothing for cached data, which a processor copies
//! with and without io_uring, and nothing for writes, which end in the page cache.
//! Reading 64 MiB from disk, overlapped with an equally long computation, took half the time.
//! Short reads are faster if the starting call completes them. So io_uring is used only for nonblocking reads
//! of at least [`LONG`] contiguous bytes, from the first byte that is not cached.
//! Reads with `RWF_NOWAIT` detect that byte.
//! Many container runtimes forbid io_uring; then the call that starts a read completes it.
//!
//! The completion of a piece rings no doorbell, so each iteration of a wait polls the read.
//! After [`PATIENCE`] polls without a completion, the wait blocks in the kernel
//! until the next piece of at most [`SLICE`] bytes is complete.
//!
//! The kernel writes to the program's buffer while pieces are in flight,
//! so dropping a [`Reading`] waits for all of its pieces.
#![allow(unsafe_code)]

use crate::access::{failed, read_all};
use crate::disk::Disk;
use crate::error::IoError;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::Errno;
use std::future::poll_fn;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::task::Poll;

/// The minimum length in bytes of a read in the background; shorter reads complete when started.
pub(crate) const LONG: i64 = 4 << 20;

/// The length of a piece in bytes.
const SLICE: usize = 1 << 20;

/// The maximum number of pieces in flight.
const DEPTH: u32 = 16;

/// The number of polls without a completion after which a wait for the read blocks in the kernel.
const PATIENCE: u32 = 64;

/// The result of starting a read.
pub(crate) enum Start {
    /// The read is complete; the value is the number of bytes read.
    Done(usize),
    Under(Box<Reading>),
}

pub(crate) struct Reading {
    ring: IoUring,
    disk: Rc<Disk>,
    buffer: *mut u8,
    len: usize,
    offset: u64,
    /// The number of bytes that were read from the page cache before the submission of pieces.
    cached: usize,
    /// For each piece, the number of its bytes read so far.
    there: Vec<usize>,
    /// The number of pieces that have been submitted to the kernel at least one time.
    asked: usize,
    /// The indices of the pieces that were read partially and must be submitted again.
    again: Vec<usize>,
    flying: u32,
    failed: Option<Errno>,
}

impl Start {
    /// Starts a read from byte `offset` of a file into `buffer`.
    ///
    /// # Safety
    /// No other code uses `buffer` until the `Reading` is dropped.
    pub unsafe fn of(disk: &Rc<Disk>, buffer: &mut [u8], offset: i64) -> Result<Start, IoError> {
        let mut cached = 0;
        let at_once = |done: usize, buffer: &mut [u8]| {
            let read = read_all(disk, &mut buffer[done..], offset + done as i64)?;
            Ok(Start::Done(done + read))
        };
        while cached < buffer.len() {
            match disk.pread_cached(&mut buffer[cached..], (offset + cached as i64) as u64) {
                // The file ends at the end of the cached bytes.
                Ok(0) => return Ok(Start::Done(cached)),
                Ok(read) => cached += read,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // Some file systems do not support `RWF_NOWAIT`.
                Err(_) => return at_once(cached, buffer),
            }
        }
        if buffer.len() - cached < SLICE {
            return at_once(cached, buffer);
        }
        let Ok(ring) = IoUring::new(DEPTH) else {
            return at_once(cached, buffer);
        };
        let rest = &mut buffer[cached..];
        let mut reading = Reading {
            ring,
            disk: disk.clone(),
            len: rest.len(),
            offset: (offset + cached as i64) as u64,
            cached,
            there: vec![0; rest.len().div_ceil(SLICE)],
            buffer: rest.as_mut_ptr(),
            asked: 0,
            again: Vec::new(),
            flying: 0,
            failed: None,
        };
        reading.ask();
        match reading.enter(false) {
            Ok(()) => Ok(Start::Under(Box::new(reading))),
            Err(_) if reading.flying == 0 => at_once(cached, buffer),
            Err(errno) => {
                reading.failed = Some(errno);
                Ok(Start::Under(Box::new(reading)))
            }
        }
    }
}

impl Reading {
    /// Returns the length of a piece in bytes; the last piece may be shorter than [`SLICE`].
    fn piece(&self, number: usize) -> usize {
        SLICE.min(self.len - number * SLICE)
    }

    /// Submits pieces, up to the maximum number in flight.
    fn ask(&mut self) {
        while self.flying < DEPTH && self.failed.is_none() {
            let number = match self.again.pop() {
                Some(number) => number,
                None if self.asked < self.there.len() => {
                    self.asked += 1;
                    self.asked - 1
                }
                None => return,
            };
            let at = number * SLICE + self.there[number];
            let left = (self.piece(number) - self.there[number]) as u32;
            let fd = types::Fd(self.disk.descriptor().as_raw_fd());
            let read = opcode::Read::new(fd, self.buffer.wrapping_add(at), left);
            let entry = read.offset(self.offset + at as u64).build();
            // With ASYNC, a kernel thread waits for uncached data, so this process does not block.
            let entry = entry.flags(squeue::Flags::ASYNC).user_data(number as u64);
            // SAFETY: the piece is inside `buffer`, which this reading uses alone until all pieces are complete (contract of `Start::of`; `drop` waits); the descriptor lives in `disk`.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                self.again.push(number);
                return;
            }
            self.flying += 1;
        }
    }

    /// Passes the submissions to the kernel. If `waits` is true, blocks until a piece is complete.
    fn enter(&mut self, waits: bool) -> Result<(), Errno> {
        let entered = match waits {
            true => self.disk.waits_for_piece(|| self.ring.submit_and_wait(1)),
            false if self.ring.submission().is_empty() => return Ok(()),
            false => self.ring.submit(),
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                // Interrupted, or too many pieces are in flight: the next call passes the submissions again.
                Some(Errno::INTR | Errno::AGAIN | Errno::BUSY) => Ok(()),
                errno => {
                    // The kernel has not accepted the submissions that are left in the queue.
                    let unseen = self.ring.submission().len() as u32;
                    self.flying = self.flying.saturating_sub(unseen);
                    Err(errno.unwrap_or(Errno::IO))
                }
            },
        }
    }

    /// Processes the completed pieces. Returns true if there was at least one.
    fn take(&mut self) -> bool {
        let come: Vec<(usize, i32)> = self
            .ring
            .completion()
            .map(|one| (one.user_data() as usize, one.result()))
            .collect();
        for (number, result) in &come {
            self.flying = self.flying.saturating_sub(1);
            match *result {
                // The file ends before this piece, or at the point where a partial read ended.
                0 => {}
                1.. => {
                    let at = number * SLICE + self.there[*number];
                    self.disk
                        .count_piece(self.offset + at as u64, *result as usize);
                    self.there[*number] += *result as usize;
                    if self.there[*number] < self.piece(*number) {
                        self.again.push(*number);
                    }
                }
                error => match Errno::from_raw_os_error(-error) {
                    Errno::INTR | Errno::AGAIN => self.again.push(*number),
                    errno => self.failed = self.failed.or(Some(errno)),
                },
            }
        }
        !come.is_empty()
    }

    /// Polls one time. Returns the result if the read has ended. While the read is in progress,
    /// returns `Err(progressed)`; `progressed` is true if a piece has completed.
    fn advance(&mut self, waits: bool) -> Result<Result<usize, Errno>, bool> {
        self.ask();
        if let Err(errno) = self.enter(waits && self.flying > 0) {
            self.failed = self.failed.or(Some(errno));
        }
        let come = self.take();
        let all_asked = self.asked == self.there.len() && self.again.is_empty();
        match self.failed {
            Some(errno) if self.flying == 0 => Ok(Err(errno)),
            None if self.flying == 0 && all_asked => Ok(Ok(self.cached + self.filled())),
            _ => Err(come),
        }
    }

    /// Returns the number of contiguous bytes read from the start of the buffer.
    fn filled(&self) -> usize {
        let pieces = self.there.iter().enumerate();
        let whole = pieces.take_while(|(number, there)| **there == self.piece(*number));
        let whole = whole.count();
        let begun = self.there.get(whole).copied().unwrap_or(0);
        (whole * SLICE).min(self.len) + begun
    }

    /// Completes the read. Returns the number of bytes read.
    pub async fn over(mut self) -> Result<usize, IoError> {
        let mut looks = 0;
        let read = poll_fn(|_| match self.advance(looks >= PATIENCE) {
            Ok(outcome) => Poll::Ready(outcome),
            Err(come) => {
                looks = if come { 0 } else { looks + 1 };
                Poll::Pending
            }
        });
        read.await.map_err(|errno| failed("reading", errno))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        while self.flying > 0 {
            // Without a working io_uring, no completion can arrive.
            if self.enter(true).is_err() {
                return;
            }
            self.take();
        }
    }
}
