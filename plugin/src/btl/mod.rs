//! A transport in safe Rust, and the C functions over it.
//!
//! A transport implements [`Transport`], and [`portcullis_transport!`](crate::portcullis_transport) makes a plugin file of the library package that contains it.
#![allow(unsafe_code)]

pub mod abi;
mod functions;
#[rustfmt::skip]
mod table;

pub use functions::{manifest, table};

use abi::Job;
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::time::Duration;

/// What became of a message that was passed to [`Transport::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The transport has copied it.
    Copied,
    /// There is no space now; the library offers it again later.
    NoSpace,
}

/// An access to the memory of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access<'a> {
    /// Fills this process's memory with that of the peer.
    Read(Part<'a>),
    /// Fills the peer's memory with that of this process; its end does not show that the data are there.
    Write(Part<'a>),
    /// Ends when the data of all writes to the peer that have ended are in its memory.
    Flush,
}

/// Part of a peer's exposed memory, and memory of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// As the peer's transport made it in [`Transport::expose`]. It comes from another process: check it.
    pub key: &'a [u8],
    /// From the begin of the exposed memory.
    pub offset: u64,
    /// The memory of this process, which this access alone uses until it has ended.
    pub local: *mut u8,
    /// The length of both.
    pub bytes: usize,
}

/// What became of an access that was passed to [`Transport::access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accessed {
    /// It has ended.
    Ended,
    /// [`Events::ended`] will report its end.
    Pending,
    /// There is no space now; the library tries again.
    NoSpace,
    /// It is not possible; the library sends messages in its place.
    Refused,
}

/// A transport of one process: it brings messages to other processes of the job, each exactly once, in any order.
///
/// The library puts them in order, publishes addresses, and cuts long messages into ones of at most [`Transport::LONGEST`] bytes.
/// There is one call at a time, though not always from the same thread.
pub trait Transport: Sized + 'static {
    /// Its name in `--mca btl self,NAME` and in the file's name, `btl_NAME.so`.
    const NAME: &'static CStr;
    /// All processes of a job must have the same version.
    const VERSION: &'static CStr;
    /// Of several transports that reach a peer the highest is used: `sm` has 1024, `tcp` 100.
    const EXCLUSIVITY: u32;
    /// The default of `btl_NAME_eager_limit`.
    const EAGER: usize;
    /// The default of `btl_NAME_max_send_size`; messages also have a head of 32 bytes.
    const LONGEST: usize;
    /// True if peers read and write exposed memory without this process: then it has the three methods for that.
    const MEMORY: bool = false;
    /// Parameters: name, default, help.
    const PARAMS: &'static [abi::Param] = &[];

    /// Opens the transport; the error is a sentence that says why this process cannot use it.
    fn open(host: Host) -> Result<Self, String>;

    /// Returns the address that its peers need, at most 4000 bytes.
    fn address(&self) -> Vec<u8>;

    /// Prepares to send to a peer that has published this address. The address comes from another process: check it.
    fn connect(&self, peer: u32, address: &[u8]) -> Result<(), String>;

    /// Ends the connection to a peer; `at_once` drops what was not sent.
    fn close(&self, peer: u32, at_once: bool);

    /// Sends a message to a connected peer; the error is a sentence that says why the peer cannot be reached any more.
    fn send(&self, peer: u32, message: &[u8]) -> Result<Sent, String>;

    /// Polls, and reports what has happened.
    fn progress(&self, events: &Events);

    /// Returns true if everything that was sent has arrived, or has been given up.
    fn is_quiet(&self) -> bool;

    /// Returns a descriptor that becomes readable at the next event, or `None` if the library must poll again before it sleeps;
    /// and the longest time to sleep.
    fn wait_on(&self) -> (Option<RawFd>, Option<Duration>);

    /// Exposes memory to peers, which may write it if `writable`; returns a number for [`Transport::withdraw`], and the key for their accesses.
    ///
    /// # Safety
    /// The memory is not freed before [`Transport::withdraw`].
    unsafe fn expose(&self, _: *mut u8, _: usize, _writable: bool) -> Option<(u64, Vec<u8>)> {
        None
    }

    /// Ends an exposure.
    fn withdraw(&self, _: u64) {}

    /// Starts an access to the memory of a connected peer; the library uses it for long messages and for windows.
    ///
    /// # Safety
    /// The local memory of a part is valid, and until the access has ended no other code writes it, nor reads it if the access does.
    unsafe fn access(&self, _peer: u32, _: Access<'_>, _number: u64) -> Accessed {
        Accessed::Refused
    }
}

/// A parameter of a transport; users write `btl_TRANSPORT_NAME`.
pub const fn param(name: &'static CStr, default: &'static CStr, help: &'static CStr) -> abi::Param {
    abi::Param {
        name: name.as_ptr(),
        default_value: default.as_ptr(),
        help: help.as_ptr(),
        kind: std::ptr::null(),
    }
}

/// The services of the library, valid as long as the transport.
#[derive(Clone, Copy)]
pub struct Host {
    table: abi::Host,
    job: *mut Job,
}

impl Host {
    /// This process's rank in the job.
    pub fn rank(&self) -> u32 {
        // SAFETY: the library's table and job are valid as long as the transport.
        self.table.rank.map_or(0, |rank| unsafe { rank(self.job) })
    }

    /// The number of processes of the job.
    pub fn ranks(&self) -> u32 {
        // SAFETY: the library's table and job are valid as long as the transport.
        self.table
            .ranks
            .map_or(1, |ranks| unsafe { ranks(self.job) })
    }

    /// The value of one of the transport's parameters; empty if it has none of that name.
    pub fn param(&self, name: &CStr) -> String {
        let Some(param) = self.table.param else {
            return String::new();
        };
        // SAFETY: the library's table and job are valid as long as the transport.
        let value = unsafe { param(self.job, name.as_ptr()) };
        if value.is_null() {
            return String::new();
        }
        // SAFETY: the library returns null or a text that ends with a NUL and lives as long as the transport.
        let value = unsafe { CStr::from_ptr(value) };
        value.to_string_lossy().into_owned()
    }

    /// Prints a line for the user.
    pub fn warn(&self, line: &str) {
        if let (Some(log), Ok(line)) = (self.table.log, CString::new(line)) {
            // SAFETY: the library's table and job are valid as long as the transport; the text ends with a NUL.
            unsafe { log(self.job, crate::coll::abi::WARNING, line.as_ptr()) };
        }
    }
}

/// Where a poll reports what has happened.
pub struct Events<'a> {
    table: &'a abi::Host,
    events: *mut abi::Events,
}

impl Events<'_> {
    /// A message has arrived, whole.
    pub fn arrived(&self, message: &[u8]) {
        if let Some(arrived) = self.table.arrived {
            // SAFETY: the library passed `events` for this poll, and copies or uses the message before it returns.
            unsafe { arrived(self.events, message.as_ptr().cast(), message.len()) };
        }
    }

    /// An access has ended.
    pub fn ended(&self, access: u64, succeeded: bool) {
        if let Some(ended) = self.table.ended {
            // SAFETY: the library passed `events` for this poll.
            unsafe { ended(self.events, access, succeeded.into()) };
        }
    }

    /// A peer cannot be reached any more, for this reason.
    pub fn failed(&self, peer: u32, why: &str) {
        let why = CString::new(why).unwrap_or_default();
        if let Some(failed) = self.table.failed {
            // SAFETY: the library passed `events` for this poll; the text ends with a NUL.
            unsafe { failed(self.events, peer, why.as_ptr()) };
        }
    }
}
