//! Messages that the component has started and asks for: tested, never waited for.
//!
//! A receive is not posted: asked for, it is looked for among what has arrived, and received when it is there. So nothing has to
//! be taken back at the end, and where nothing has arrived at all one look answers for every message, for a while.
//! Between two ranks messages come in the order in which they were sent, so the oldest receive of a sender is asked for first.
#![allow(unsafe_code)]

use crate::library::{Handle, Library, done, place};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// The tag of these messages; blocking ones have another.
const TAG: c_int = 2;

/// How long one look that found nothing answers for all.
const QUIET: Duration = Duration::from_micros(20);

pub struct Messages {
    library: &'static Library,
    comm: Handle,
    under_way: RefCell<BTreeMap<u64, Message>>,
    next: Cell<u64>,
    /// When nothing had arrived.
    quiet: Cell<Option<Instant>>,
}

enum Message {
    Receive {
        source: u32,
        bytes: usize,
    },
    /// The library reads the data until the request is complete.
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
        // SAFETY: the data stay until the request is complete, or for ever.
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

    /// Whether a message is through: then it is forgotten, and a received one is in `to`.
    pub fn test(&self, number: u64, to: &mut [u8]) -> Result<bool, String> {
        let through = match self.look(number)? {
            Look::Sent(through) => through,
            Look::Wait => false,
            Look::Receive { source, bytes } => {
                if self.is_quiet()? || !self.has_arrived(rank(source)?)? {
                    return Ok(false);
                }
                if bytes != to.len() && !to.is_empty() {
                    return Err(format!(
                        "a message of {bytes} bytes is asked for as one of {}",
                        to.len()
                    ));
                }
                let mut data = vec![0u8; bytes];
                // SAFETY: the memory is as long as said.
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

    fn look(&self, number: u64) -> Result<Look, String> {
        let mut under_way = self.under_way.borrow_mut();
        let source = match under_way.get_mut(&number) {
            None => return Err(format!("no message of number {number} is under way")),
            Some(Message::Send { request, .. }) => {
                let mut through: c_int = 0;
                // SAFETY: the request is under way, and its place stays.
                let code = unsafe {
                    (self.library.functions.test)(
                        request,
                        &raw mut through,
                        self.library.constants.status_ignore,
                    )
                };
                done(code, "MPI_Test")?;
                return Ok(Look::Sent(through != 0));
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
            Some((oldest, bytes)) if oldest == number => Look::Receive { source, bytes },
            _ => Look::Wait,
        })
    }

    /// Whether nothing has arrived from any rank, now or a moment ago.
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
        // SAFETY: a place for the answer, and none for a status.
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
        // What has been sent and not been asked for since may still be read by the library.
        for message in std::mem::take(self.under_way.get_mut()).into_values() {
            if let Message::Send { data, .. } = message {
                Box::leak(data);
            }
        }
    }
}

enum Look {
    /// A sent message, and whether it is through.
    Sent(bool),
    /// An older receive comes first.
    Wait,
    Receive {
        source: u32,
        bytes: usize,
    },
}

/// A length as MPI counts.
pub fn length(bytes: usize) -> Result<c_int, String> {
    c_int::try_from(bytes).map_err(|_| format!("a message of {bytes} bytes is too long"))
}

/// A rank as MPI counts.
pub fn rank(rank: u32) -> Result<c_int, String> {
    c_int::try_from(rank).map_err(|_| format!("there is no rank {rank}"))
}
