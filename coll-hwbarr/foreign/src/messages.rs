//! Nonblocking messages of the component: they are tested, and no call waits for one.
//!
//! A receive is not posted: each test probes for the message, and receives it if it has arrived.
//! So no receive must be cancelled at the end.
//! After a probe that finds no message, this process does not probe again for [`QUIET`].
//! Messages between two ranks arrive in order, so the oldest receive from a sender is tested first.
#![allow(unsafe_code)]

use crate::library::{Handle, Library, done, place};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// The tag of the nonblocking messages; blocking messages have another tag.
const TAG: c_int = 2;

/// Duration for which a probe that finds no message is valid for all receives.
const QUIET: Duration = Duration::from_micros(20);

pub struct Messages {
    library: &'static Library,
    comm: Handle,
    under_way: RefCell<BTreeMap<u64, Message>>,
    next: Cell<u64>,
    /// Time of the last probe that found no message.
    quiet: Cell<Option<Instant>>,
}

enum Message {
    Receive {
        source: u32,
        bytes: usize,
    },
    /// A send; the library may read the data until the request is complete.
    Send {
        request: Handle,
        data: Box<[u8]>,
    },
}

impl Messages {
    pub fn new(library: &'static Library, comm: Handle) -> Messages {
        Messages {
            library,
            comm,
            under_way: RefCell::default(),
            next: Cell::new(1),
            quiet: Cell::new(None),
        }
    }

    pub fn receive(&self, source: u32, bytes: usize) -> u64 {
        self.keep(Message::Receive { source, bytes })
    }

    pub fn send(&self, dest: u32, data: &[u8]) -> Result<u64, String> {
        let data: Box<[u8]> = data.into();
        let mut request = place();
        // SAFETY: `data` is kept until the request is complete, or leaked in `drop`.
        let code = unsafe {
            (self.library.functions.isend)(
                data.as_ptr().cast(),
                length(data.len())?,
                self.library.constants.byte,
                rank(dest)?,
                TAG,
                self.comm,
                &raw mut request,
            )
        };
        done(code, "MPI_Isend")?;
        Ok(self.keep(Message::Send { request, data }))
    }

    fn keep(&self, message: Message) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.under_way.borrow_mut().insert(number, message);
        number
    }

    /// Returns true if message `number` is complete, and then removes it from the list.
    /// A received message's data are copied to `to`.
    pub fn test(&self, number: u64, to: &mut [u8]) -> Result<bool, String> {
        let through = match self.poll_message(number)? {
            PollResult::Sent(through) => through,
            PollResult::Wait => false,
            PollResult::Receive { source, bytes } => {
                if self.is_quiet()? || !self.has_arrived(rank(source)?)? {
                    return Ok(false);
                }
                if bytes != to.len() && !to.is_empty() {
                    return Err(format!(
                        "a message of {bytes} bytes is received as one of {} bytes",
                        to.len()
                    ));
                }
                let mut data = vec![0u8; bytes];
                // SAFETY: `to` is valid for the length that is passed.
                let code = unsafe {
                    (self.library.functions.recv)(
                        data.as_mut_ptr().cast(),
                        length(bytes)?,
                        self.library.constants.byte,
                        rank(source)?,
                        TAG,
                        self.comm,
                        self.library.constants.status_ignore,
                    )
                };
                done(code, "MPI_Recv")?;
                to.iter_mut().zip(data).for_each(|(to, from)| *to = from);
                true
            }
        };
        if through {
            self.under_way.borrow_mut().remove(&number);
        }
        Ok(through)
    }

    fn poll_message(&self, number: u64) -> Result<PollResult, String> {
        let mut under_way = self.under_way.borrow_mut();
        let source = match under_way.get_mut(&number) {
            None => return Err(format!("no message of number {number} is in progress")),
            Some(Message::Send { request, .. }) => {
                let mut through: c_int = 0;
                // SAFETY: the request is active, and its variable is alive.
                let code = unsafe {
                    (self.library.functions.test)(
                        request,
                        &raw mut through,
                        self.library.constants.status_ignore,
                    )
                };
                done(code, "MPI_Test")?;
                return Ok(PollResult::Sent(through != 0));
            }
            Some(Message::Receive { source, .. }) => *source,
        };
        let mut of_source = under_way
            .iter()
            .filter_map(|(number, message)| match message {
                Message::Receive {
                    source: from,
                    bytes,
                } if *from == source => Some((*number, *bytes)),
                _ => None,
            });
        Ok(match of_source.next() {
            Some((oldest, bytes)) if oldest == number => PollResult::Receive { source, bytes },
            _ => PollResult::Wait,
        })
    }

    /// Returns true if a probe, now or less than [`QUIET`] ago, has found no message of any rank.
    fn is_quiet(&self) -> Result<bool, String> {
        if self.quiet.get().is_some_and(|at| at.elapsed() < QUIET) {
            return Ok(true);
        }
        let quiet = !self.has_arrived(self.library.constants.any_source)?;
        self.quiet.set(quiet.then(Instant::now));
        Ok(quiet)
    }

    fn has_arrived(&self, source: c_int) -> Result<bool, String> {
        let mut arrived: c_int = 0;
        // SAFETY: the flag is a live local, and the status is `MPI_STATUS_IGNORE`.
        let code = unsafe {
            (self.library.functions.iprobe)(
                source,
                TAG,
                self.comm,
                &raw mut arrived,
                self.library.constants.status_ignore,
            )
        };
        done(code, "MPI_Iprobe")?;
        Ok(arrived != 0)
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        // Data of sends that may be incomplete are leaked, because the library may still read them.
        for message in std::mem::take(self.under_way.get_mut()).into_values() {
            if let Message::Send { data, .. } = message {
                Box::leak(data);
            }
        }
    }
}

enum PollResult {
    /// The message is a send; true if it is complete.
    Sent(bool),
    /// The message is a receive, and an older receive from the same rank must complete first.
    Wait,
    Receive {
        source: u32,
        bytes: usize,
    },
}

/// Converts a length to MPI's type `int`.
pub fn length(bytes: usize) -> Result<c_int, String> {
    c_int::try_from(bytes).map_err(|_| format!("a message of {bytes} bytes is too long"))
}

/// Converts a rank to MPI's type `int`.
pub fn rank(rank: u32) -> Result<c_int, String> {
    c_int::try_from(rank).map_err(|_| format!("there is no rank {rank}"))
}
