//! A transport in safe Rust, and the C functions over it.
#![allow(unsafe_code)]

use crate::table::{self, AGAIN, DONE, FAILED, Job, Why};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
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
    /// Parameters: name, default, help.
    const PARAMS: &'static [table::Param] = &[];

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
}

/// A parameter of a transport; users write `btl_TRANSPORT_NAME`.
pub const fn param(
    name: &'static CStr,
    default: &'static CStr,
    help: &'static CStr,
) -> table::Param {
    table::Param {
        name: name.as_ptr(),
        default_value: default.as_ptr(),
        help: help.as_ptr(),
        kind: std::ptr::null(),
    }
}

/// The services of the library, valid as long as the transport.
#[derive(Clone, Copy)]
pub struct Host {
    table: &'static table::Host,
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
            unsafe { log(self.job, 1, line.as_ptr()) };
        }
    }
}

/// Where a poll reports what has happened.
pub struct Events<'a> {
    table: &'a table::Host,
    events: *mut table::Events,
}

impl Events<'_> {
    /// A message has arrived, whole.
    pub fn arrived(&self, message: &[u8]) {
        if let Some(arrived) = self.table.arrived {
            // SAFETY: the library passed `events` for this poll, and copies or uses the message before it returns.
            unsafe { arrived(self.events, message.as_ptr().cast(), message.len()) };
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

/// The C functions of a transport, for [`portcullis_transport!`](crate::portcullis_transport).
pub mod functions {
    use super::*;
    use crate::manifest::Note;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Makes the manifest.
    pub const fn manifest<T: Transport>() -> Note {
        Note::of(&table::INTERFACE, c"btl", T::NAME, T::VERSION)
    }

    /// Returns the table.
    pub const fn table<T: Transport>() -> *const table::Transport {
        Table::<T>::TABLE
    }

    struct Table<T>(std::marker::PhantomData<T>);

    impl<T: Transport> Table<T> {
        const TABLE: &'static table::Transport = &table::Transport {
            size: size_of::<table::Transport>(),
            abi_version: table::VERSION,
            exclusivity: T::EXCLUSIVITY,
            name: T::NAME.as_ptr(),
            version: T::VERSION.as_ptr(),
            params: T::PARAMS.as_ptr(),
            param_count: T::PARAMS.len(),
            eager: T::EAGER,
            longest: T::LONGEST,
            poll_is_syscall: 1,
            reserved: 0,
            open: Some(open::<T>),
            address: Some(address::<T>),
            connect: Some(connect::<T>),
            close: Some(close::<T>),
            send: Some(send::<T>),
            progress: Some(progress::<T>),
            is_quiet: Some(is_quiet::<T>),
            wait_on: Some(wait_on::<T>),
            free: Some(free::<T>),
        };
    }

    /// The transport and the library's services, behind the pointer that the library passes.
    struct Opened<T> {
        transport: T,
        host: &'static table::Host,
    }

    /// # Safety
    /// `this` came from [`open`] of the same transport, and `free` has not been called.
    unsafe fn opened<'a, T>(this: *mut c_void) -> &'a Opened<T> {
        // SAFETY: `open` made the pointer from a box of this type, and the caller guarantees that it was not freed.
        unsafe { &*this.cast::<Opened<T>>() }
    }

    /// Stores a text, truncated if it is too long.
    ///
    /// # Safety
    /// `why` is null or writable.
    unsafe fn write(why: *mut Why, text: &str) {
        // SAFETY: the caller guarantees that `why` is null or writable.
        let Some(why) = (unsafe { why.as_mut() }) else {
            return;
        };
        why.text.fill(0);
        let last = why.text.len() - 1;
        for (to, from) in why.text[..last].iter_mut().zip(text.bytes()) {
            *to = from as c_char;
        }
    }

    fn said(panic: &(dyn std::any::Any + Send)) -> String {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        format!("it stopped at a defect: {}", text.unwrap_or("no text"))
    }

    /// Calls a function of the transport; a panic becomes an error with its text, as nothing may be thrown into the library.
    ///
    /// # Safety
    /// `why` is null or writable.
    unsafe fn answer(why: *mut Why, call: impl FnOnce() -> Result<c_int, String>) -> c_int {
        let reason = match catch_unwind(AssertUnwindSafe(call)) {
            Ok(Ok(code)) => return code,
            Ok(Err(reason)) => reason,
            Err(panic) => said(&*panic),
        };
        // SAFETY: the caller guarantees that `why` is null or writable.
        unsafe { write(why, &reason) };
        FAILED
    }

    /// Calls a function that cannot report an error.
    fn calm<R>(nothing: R, call: impl FnOnce() -> R) -> R {
        catch_unwind(AssertUnwindSafe(call)).unwrap_or(nothing)
    }

    unsafe extern "C-unwind" fn open<T: Transport>(
        host: *const table::Host,
        job: *mut Job,
        this: *mut *mut c_void,
        why: *mut Why,
    ) -> c_int {
        let open = || {
            // SAFETY: the library passes its table, which lives as long as the process.
            let host: &'static table::Host = unsafe { &*host };
            let transport = T::open(Host { table: host, job })?;
            let opened = Box::into_raw(Box::new(Opened { transport, host }));
            // SAFETY: the library passes a writable `this`.
            unsafe { this.write(opened.cast()) };
            Ok(DONE)
        };
        // SAFETY: the library passes a writable `why`.
        unsafe { answer(why, open) }
    }

    unsafe extern "C-unwind" fn address<T: Transport>(
        this: *mut c_void,
        to: *mut c_void,
        capacity: usize,
    ) -> usize {
        // SAFETY: the library keeps the contract of `opened`.
        let this = unsafe { opened::<T>(this) };
        let address = calm(Vec::new(), || this.transport.address());
        if address.len() <= capacity {
            // SAFETY: the library passes memory of `capacity` bytes.
            unsafe { std::ptr::copy_nonoverlapping(address.as_ptr(), to.cast(), address.len()) };
        }
        address.len()
    }

    unsafe extern "C-unwind" fn connect<T: Transport>(
        this: *mut c_void,
        peer: u32,
        address: *const c_void,
        bytes: usize,
        why: *mut Why,
    ) -> c_int {
        // SAFETY: the library keeps the contract of `opened`, and passes `bytes` bytes.
        let (this, address) = unsafe { (opened::<T>(this), slice(address, bytes)) };
        // SAFETY: the library passes a writable `why`.
        unsafe { answer(why, || this.transport.connect(peer, address).map(|()| DONE)) }
    }

    unsafe extern "C-unwind" fn close<T: Transport>(this: *mut c_void, peer: u32, at_once: c_int) {
        // SAFETY: the library keeps the contract of `opened`.
        let this = unsafe { opened::<T>(this) };
        calm((), || this.transport.close(peer, at_once != 0));
    }

    unsafe extern "C-unwind" fn send<T: Transport>(
        this: *mut c_void,
        peer: u32,
        data: *const c_void,
        bytes: usize,
        _message: u64,
        why: *mut Why,
    ) -> c_int {
        // SAFETY: the library keeps the contract of `opened`, and passes `bytes` bytes.
        let (this, message) = unsafe { (opened::<T>(this), slice(data, bytes)) };
        let send = || {
            Ok(match this.transport.send(peer, message)? {
                Sent::Copied => DONE,
                Sent::NoSpace => AGAIN,
            })
        };
        // SAFETY: the library passes a writable `why`.
        unsafe { answer(why, send) }
    }

    unsafe extern "C-unwind" fn progress<T: Transport>(
        this: *mut c_void,
        events: *mut table::Events,
    ) {
        // SAFETY: the library keeps the contract of `opened`.
        let this = unsafe { opened::<T>(this) };
        let events = Events {
            table: this.host,
            events,
        };
        calm((), || this.transport.progress(&events));
    }

    unsafe extern "C-unwind" fn is_quiet<T: Transport>(this: *mut c_void) -> c_int {
        // SAFETY: the library keeps the contract of `opened`.
        let this = unsafe { opened::<T>(this) };
        calm(1, || this.transport.is_quiet().into())
    }

    unsafe extern "C-unwind" fn wait_on<T: Transport>(
        this: *mut c_void,
        longest_ns: *mut u64,
    ) -> c_int {
        // SAFETY: the library keeps the contract of `opened`.
        let this = unsafe { opened::<T>(this) };
        let (descriptor, longest) = calm((None, None), || this.transport.wait_on());
        let longest = longest.map_or(0, |longest| longest.as_nanos() as u64);
        // SAFETY: the library passes a writable `longest_ns`.
        unsafe { longest_ns.write(longest) };
        descriptor.unwrap_or(FAILED)
    }

    unsafe extern "C-unwind" fn free<T: Transport>(this: *mut c_void) {
        // SAFETY: `open` made the pointer from a box of this type, and this is the library's last call.
        let opened = unsafe { Box::from_raw(this.cast::<Opened<T>>()) };
        calm((), || drop(opened));
    }

    /// # Safety
    /// `data` is readable for `bytes`, or null, or `bytes` is 0.
    unsafe fn slice<'a>(data: *const c_void, bytes: usize) -> &'a [u8] {
        if data.is_null() || bytes == 0 {
            return &[];
        }
        // SAFETY: not null, and the caller guarantees that `bytes` are readable.
        unsafe { std::slice::from_raw_parts(data.cast(), bytes) }
    }
}
