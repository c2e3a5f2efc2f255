//! Long reads of what is not in the page cache, which the system carries out while the program computes: io_uring(7).
//!
//! Measured (docs/performance.md): what is cached is copied by a processor in either way, so there is nothing to gain; so it is with writes,
//! which end in the cache. What comes from the disk is worth waiting for elsewhere: 64 MiB and as much computing took half the time.
//! Short reads are faster done at once. So only the nonblocking reads of [`LONG`] contiguous bytes and more come here,
//! and only the part of them that is not cached, which a read that must not wait (`RWF_NOWAIT`) finds out.
//! Whether there is a ring at all is found by trying: many containers refuse it. Then the read is done when it is begun.
//!
//! Nothing rings this process's bell when a piece has come, so a reading is polled in every turn of a wait; one that has been looked at
//! [`PATIENCE`] times in vain waits in the system for the next piece, which is [`SLICE`] bytes at most.
//!
//! The kernel writes into the buffer of the program as long as pieces are on their way, so a reading that is dropped waits for them.
#![allow(unsafe_code)]

use super::access::{failed, read_all};
use super::disk::Disk;
use super::error::IoError;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::Errno;
use std::future::poll_fn;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::task::Poll;

/// Shorter reads are done when they are begun.
pub(super) const LONG: i64 = 4 << 20;

/// Bytes of a piece.
const SLICE: usize = 1 << 20;

/// Pieces on their way at a time.
const DEPTH: u32 = 16;

/// Looks in vain until one waits.
const PATIENCE: u32 = 64;

/// How a read began.
pub(super) enum Start {
    /// It is done: so many bytes were read.
    Done(usize),
    Under(Box<Reading>),
}

/// A read under way.
pub(super) struct Reading {
    ring: IoUring,
    disk: Rc<Disk>,
    room: *mut u8,
    len: usize,
    offset: u64,
    /// Bytes that were read before.
    cached: usize,
    /// How many bytes of each piece are there.
    there: Vec<usize>,
    /// Pieces that were asked for at least once.
    asked: usize,
    /// Pieces of which more has to be asked for.
    again: Vec<usize>,
    flying: u32,
    failed: Option<Errno>,
}

impl Start {
    /// Begins reading from byte `offset` of a file to `room`.
    ///
    /// # Safety
    /// The room is no other code's until the reading is dropped.
    pub unsafe fn of(disk: &Rc<Disk>, room: &mut [u8], offset: i64) -> Result<Start, IoError> {
        let mut cached = 0;
        let at_once = |done: usize, room: &mut [u8]| {
            let read = read_all(disk, &mut room[done..], offset + done as i64)?;
            Ok(Start::Done(done + read))
        };
        while cached < room.len() {
            match disk.pread_cached(&mut room[cached..], (offset + cached as i64) as u64) {
                // The end of the file.
                Ok(0) => return Ok(Start::Done(cached)),
                Ok(read) => cached += read,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // There are file systems that cannot say.
                Err(_) => return at_once(cached, room),
            }
        }
        if room.len() - cached < SLICE {
            return at_once(cached, room);
        }
        let Ok(ring) = IoUring::new(DEPTH) else {
            return at_once(cached, room);
        };
        let rest = &mut room[cached..];
        let mut reading = Reading {
            ring,
            disk: disk.clone(),
            len: rest.len(),
            offset: (offset + cached as i64) as u64,
            cached,
            there: vec![0; rest.len().div_ceil(SLICE)],
            room: rest.as_mut_ptr(),
            asked: 0,
            again: Vec::new(),
            flying: 0,
            failed: None,
        };
        reading.ask();
        match reading.enter(false) {
            Ok(()) => Ok(Start::Under(Box::new(reading))),
            Err(_) if reading.flying == 0 => at_once(cached, room),
            Err(errno) => {
                reading.failed = Some(errno);
                Ok(Start::Under(Box::new(reading)))
            }
        }
    }
}

impl Reading {
    /// The bytes of a piece.
    fn piece(&self, number: usize) -> usize {
        SLICE.min(self.len - number * SLICE)
    }

    /// Asks for pieces, as many as may be on their way.
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
            let read = opcode::Read::new(fd, self.room.wrapping_add(at), left);
            let entry = read.offset(self.offset + at as u64).build();
            // What is not cached is waited for by a thread of the kernel, not here.
            let entry = entry.flags(squeue::Flags::ASYNC).user_data(number as u64);
            // SAFETY: the piece lies in the room, which is ours until all pieces have come; the descriptor lives in the disk.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                self.again.push(number);
                return;
            }
            self.flying += 1;
        }
    }

    /// Hands over what was asked for; waits for a piece if told so.
    fn enter(&mut self, waits: bool) -> Result<(), Errno> {
        let entered = match waits {
            true => self.disk.waits_for_piece(|| self.ring.submit_and_wait(1)),
            false if self.ring.submission().is_empty() => return Ok(()),
            false => self.ring.submit(),
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                // Signals, and too much on its way: later.
                Some(Errno::INTR | Errno::AGAIN | Errno::BUSY) => Ok(()),
                errno => {
                    // These the kernel has never seen.
                    let unseen = self.ring.submission().len() as u32;
                    self.flying = self.flying.saturating_sub(unseen);
                    Err(errno.unwrap_or(Errno::IO))
                }
            },
        }
    }

    /// Takes what has come; whether anything had.
    fn take(&mut self) -> bool {
        let come: Vec<(usize, i32)> = self
            .ring
            .completion()
            .map(|one| (one.user_data() as usize, one.result()))
            .collect();
        for (number, result) in &come {
            self.flying = self.flying.saturating_sub(1);
            match *result {
                // The end of the file.
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

    /// One look; the outcome when it is over, and otherwise whether anything has come.
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

    /// The bytes up to the first that is not there.
    fn filled(&self) -> usize {
        let pieces = self.there.iter().enumerate();
        let whole = pieces.take_while(|(number, there)| **there == self.piece(*number));
        let whole = whole.count();
        let begun = self.there.get(whole).copied().unwrap_or(0);
        (whole * SLICE).min(self.len) + begun
    }

    /// Reads to the end; how many bytes there were.
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
            // Without the system's word there is nothing to wait for.
            if self.enter(true).is_err() {
                return;
            }
            self.take();
        }
    }
}
