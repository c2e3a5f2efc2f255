//! Transports in safe Rust, and the C functions over them.
//!
//! A transport implements [`Transport`]. The macro `portcullis_transport!` makes it a plugin.
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

/// The result of [`Transport::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The transport has copied the message.
    Copied,
    /// The transport has no space now; the library retries later.
    NoSpace,
}

/// An access to exposed memory of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access<'a> {
    /// Copies the peer's memory to this process's memory.
    Read(Part<'a>),
    /// Copies this process's memory to the peer's. The data may arrive after the access has ended.
    Write(Part<'a>),
    /// Waits for earlier writes: ends when the data of all ended writes are in the peer's memory.
    Flush,
}

/// A range of a peer's exposed memory, and a range of this process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The key from the peer's [`Transport::expose`]. It comes from another process: validate it.
    pub key: &'a [u8],
    /// The offset in the exposed memory, in bytes.
    pub offset: u64,
    /// The memory of this process; no other code uses it until the access has ended.
    pub local: *mut u8,
    /// The length of both ranges in bytes.
    pub bytes: usize,
}

/// The result of [`Transport::access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accessed {
    /// The access has ended.
    Ended,
    /// The access is in progress; [`Events::ended`] will report its end.
    Pending,
    /// The transport has no space now; the library retries later.
    NoSpace,
    /// The transport cannot do this access; the library sends messages instead.
    Refused,
}

/// A transport of one process. It delivers each message exactly once, in any order.
///
/// The library orders messages and splits those longer than [`Transport::LONGEST`] bytes.
/// The library makes one call at a time, but calls may come from different threads.
pub trait Transport: Sized + 'static {
    /// The transport's name, as in `--mca btl self,NAME` and the file name `btl_NAME.so`.
    const NAME: &'static CStr;
    /// The version of the transport; it must be equal in all processes of a job.
    const VERSION: &'static CStr;
    /// The priority. For each peer the library uses the transport with the highest priority;
    /// `sm` has 1024, `tcp` 100.
    const EXCLUSIVITY: u32;
    /// The default value, in bytes, of the parameter `btl_NAME_eager_limit`.
    const EAGER: usize;
    /// The default value, in bytes, of `btl_NAME_max_send_size`; a 32-byte header is added.
    const LONGEST: usize;
    /// True if peers can access exposed memory: `expose`, `withdraw` and `access` are implemented.
    const MEMORY: bool = false;
    /// The parameters of the transport: name, default, help text.
    const PARAMS: &'static [abi::Param] = &[];

    /// Opens the transport. An error says why this process cannot use the transport.
    fn open(host: Host) -> Result<Self, String>;

    /// Returns the address that peers pass to [`Transport::connect`], at most 4000 bytes.
    fn address(&self) -> Vec<u8>;

    /// Prepares to send to the peer with this address, which comes from the peer: validate it.
    fn connect(&self, peer: u32, address: &[u8]) -> Result<(), String>;

    /// Closes the connection to a peer; `at_once` discards unsent data.
    fn close(&self, peer: u32, at_once: bool);

    /// Sends a message to a connected peer. An error says why the peer is unreachable.
    fn send(&self, peer: u32, message: &[u8]) -> Result<Sent, String>;

    /// Polls once, and reports all events to `events`.
    fn progress(&self, events: &Events);

    /// Returns true if all sent messages have arrived or were discarded.
    fn is_quiet(&self) -> bool;

    /// Returns a file descriptor that is readable at the next event, and the maximum sleep time.
    /// If there is no descriptor, the library polls without sleeping.
    fn wait_on(&self) -> (Option<RawFd>, Option<Duration>);

    /// Exposes memory to peers, which may write to it if `writable`.
    /// Returns a registration number and the key for the peers.
    ///
    /// # Safety
    /// The memory is not freed before [`Transport::withdraw`] of the registration number.
    unsafe fn expose(&self, _: *mut u8, _: usize, _writable: bool) -> Option<(u64, Vec<u8>)> {
        None
    }

    /// Ends peers' access to the memory with this registration number.
    fn withdraw(&self, _: u64) {}

    /// Starts an access to a connected peer's memory, for long messages and for windows.
    ///
    /// # Safety
    /// The local memory is valid.
    /// Until the access ends, no other code writes to it or, for a read access, reads it.
    unsafe fn access(&self, _peer: u32, _: Access<'_>, _number: u64) -> Accessed {
        Accessed::Refused
    }
}

/// Creates a parameter of a transport; users write `btl_TRANSPORT_NAME`.
pub const fn param(name: &'static CStr, default: &'static CStr, help: &'static CStr) -> abi::Param {
    abi::Param {
        name: name.as_ptr(),
        default_value: default.as_ptr(),
        help: help.as_ptr(),
        kind: std::ptr::null(),
    }
}

/// The library functions that a transport may call, until the transport is dropped.
#[derive(Clone, Copy)]
pub struct Host {
    table: abi::Host,
    job: *mut Job,
}

impl Host {
    /// Returns this process's rank in the job.
    pub fn rank(&self) -> u32 {
        // SAFETY: the library's table and job outlive the transport.
        self.table.rank.map_or(0, |rank| unsafe { rank(self.job) })
    }

    /// Returns the number of processes of the job.
    pub fn ranks(&self) -> u32 {
        // SAFETY: the library's table and job outlive the transport.
        self.table
            .ranks
            .map_or(1, |ranks| unsafe { ranks(self.job) })
    }

    /// Returns the value of a parameter of the transport; an empty string for an unknown name.
    pub fn param(&self, name: &CStr) -> String {
        let Some(param) = self.table.param else {
            return String::new();
        };
        // SAFETY: the library's table and job outlive the transport.
        let value = unsafe { param(self.job, name.as_ptr()) };
        if value.is_null() {
            return String::new();
        }
        // SAFETY: the text ends with a NUL and is valid until the transport is dropped.
        let value = unsafe { CStr::from_ptr(value) };
        value.to_string_lossy().into_owned()
    }

    /// Prints a warning line for the user.
    pub fn warn(&self, line: &str) {
        if let (Some(log), Ok(line)) = (self.table.log, CString::new(line)) {
            // SAFETY: the table and the job outlive the transport; the text ends with a NUL.
            unsafe { log(self.job, crate::coll::abi::WARNING, line.as_ptr()) };
        }
    }
}

/// Reports events to the library during a call of [`Transport::progress`].
pub struct Events<'a> {
    table: &'a abi::Host,
    events: *mut abi::Events,
}

impl Events<'_> {
    /// Reports that a complete message has arrived.
    pub fn arrived(&self, message: &[u8]) {
        if let Some(arrived) = self.table.arrived {
            // SAFETY: `events` are valid during this poll; the library does not keep the message.
            unsafe { arrived(self.events, message.as_ptr().cast(), message.len()) };
        }
    }

    /// Reports that the access with this number has ended.
    pub fn ended(&self, access: u64, succeeded: bool) {
        if let Some(ended) = self.table.ended {
            // SAFETY: the library's `events` are valid during this poll.
            unsafe { ended(self.events, access, succeeded.into()) };
        }
    }

    /// Reports that a peer is unreachable; `why` is the reason.
    pub fn failed(&self, peer: u32, why: &str) {
        let why = CString::new(why).unwrap_or_default();
        if let Some(failed) = self.table.failed {
            // SAFETY: the library's `events` are valid during this poll; the text ends with a NUL.
            unsafe { failed(self.events, peer, why.as_ptr()) };
        }
    }
}
