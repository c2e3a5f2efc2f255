//! The C functions of a transport, and its table, which is created at compile time.
#![allow(unsafe_code)]

use super::abi::{
    self, DONE, FAILED, FLUSH_MEMORY, INTERFACE, Job, MAY_READ_AND_WRITE, NO_SPACE, READ_MEMORY,
    SENDING, SENT, TRANSPORT_VERSION, WRITE_MEMORY, Why,
};
use super::{Access, Accessed, Events, Host, Part, Sent, Transport};
use crate::coll::caught::{answer, calm};
use crate::manifest::Note;
use std::ffi::{c_int, c_void};

/// Returns the manifest of a transport plugin.
pub const fn manifest<T: Transport>() -> Note {
    Note::of(&INTERFACE, c"btl", T::NAME, T::VERSION)
}

/// Returns the C table of a transport, which is created at compile time.
pub const fn table<T: Transport>() -> *const abi::Transport {
    Table::<T>::TABLE
}

struct Table<T>(std::marker::PhantomData<T>);

impl<T: Transport> Table<T> {
    const TABLE: &'static abi::Transport = &abi::Transport {
        size: size_of::<abi::Transport>(),
        abi_version: TRANSPORT_VERSION,
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
        expose: match T::MEMORY {
            true => Some(expose::<T>),
            false => None,
        },
        withdraw: match T::MEMORY {
            true => Some(withdraw::<T>),
            false => None,
        },
        access: match T::MEMORY {
            true => Some(access::<T>),
            false => None,
        },
    };
}

/// A transport and the library's function table; `this` of the C functions points to an `Opened`.
struct Opened<T> {
    transport: T,
    host: abi::Host,
}

/// # Safety
/// `this` came from [`open`] of the same transport, and `free` has not been called with it.
unsafe fn opened<'a, T>(this: *mut c_void) -> &'a Opened<T> {
    // SAFETY: `open` created the pointer from a box of this type; it was not freed (contract).
    unsafe { &*this.cast::<Opened<T>>() }
}

unsafe extern "C-unwind" fn open<T: Transport>(
    host: *const abi::Host,
    job: *mut Job,
    this: *mut *mut c_void,
    why: *mut Why,
) -> c_int {
    let open = || {
        // SAFETY: the library passes its table, which starts with its size.
        let host = unsafe { abi::read(host) };
        if host.abi_version != TRANSPORT_VERSION {
            return Err(format!(
                "it speaks version {TRANSPORT_VERSION} of the transport ABI and the library version {}",
                host.abi_version
            ));
        }
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
    // SAFETY: `this` came from `open`, and the library has not called `free`.
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
    // SAFETY: `this` came from `open` and was not freed; `address` has `bytes` bytes.
    let (this, address) = unsafe { (opened::<T>(this), slice(address, bytes)) };
    // SAFETY: the library passes a writable `why`.
    unsafe { answer(why, || this.transport.connect(peer, address).map(|()| DONE)) }
}

unsafe extern "C-unwind" fn close<T: Transport>(this: *mut c_void, peer: u32, at_once: c_int) {
    // SAFETY: `this` came from `open`, and the library has not called `free`.
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
    // SAFETY: `this` came from `open` and was not freed; `data` has `bytes` bytes.
    let (this, message) = unsafe { (opened::<T>(this), slice(data, bytes)) };
    let send = || {
        Ok(match this.transport.send(peer, message)? {
            Sent::Copied => SENT,
            Sent::NoSpace => NO_SPACE,
        })
    };
    // SAFETY: the library passes a writable `why`.
    unsafe { answer(why, send) }
}

unsafe extern "C-unwind" fn progress<T: Transport>(this: *mut c_void, events: *mut abi::Events) {
    // SAFETY: `this` came from `open`, and the library has not called `free`.
    let this = unsafe { opened::<T>(this) };
    let events = Events {
        table: &this.host,
        events,
    };
    calm((), || this.transport.progress(&events));
}

unsafe extern "C-unwind" fn is_quiet<T: Transport>(this: *mut c_void) -> c_int {
    // SAFETY: `this` came from `open`, and the library has not called `free`.
    let this = unsafe { opened::<T>(this) };
    calm(1, || this.transport.is_quiet().into())
}

unsafe extern "C-unwind" fn wait_on<T: Transport>(
    this: *mut c_void,
    longest_ns: *mut u64,
) -> c_int {
    // SAFETY: `this` came from `open`, and the library has not called `free`.
    let this = unsafe { opened::<T>(this) };
    let (descriptor, longest) = calm((None, None), || this.transport.wait_on());
    let longest = longest.map_or(0, |longest| longest.as_nanos() as u64);
    // SAFETY: the library passes a writable `longest_ns`.
    unsafe { longest_ns.write(longest) };
    descriptor.unwrap_or(FAILED)
}

unsafe extern "C-unwind" fn free<T: Transport>(this: *mut c_void) {
    // SAFETY: `open` created the pointer from a box of this type; this is the library's last call.
    let opened = unsafe { Box::from_raw(this.cast::<Opened<T>>()) };
    calm((), || drop(opened));
}

unsafe extern "C-unwind" fn expose<T: Transport>(
    this: *mut c_void,
    memory: *mut c_void,
    bytes: usize,
    rights: c_int,
    number: *mut u64,
    key: *mut c_void,
    capacity: usize,
) -> usize {
    // SAFETY: `this` came from `open`, and the library has not called `free`.
    let this = unsafe { opened::<T>(this) };
    let writable = rights == MAY_READ_AND_WRITE;
    // SAFETY: the library keeps the memory allocated until `withdraw`.
    let expose = || unsafe { this.transport.expose(memory.cast(), bytes, writable) };
    let Some((registration, made)) = calm(None, expose) else {
        return 0;
    };
    if made.is_empty() || made.len() > capacity {
        calm((), || this.transport.withdraw(registration));
        return 0;
    }
    // SAFETY: the library passes a writable `number`, and memory of `capacity` bytes.
    unsafe {
        number.write(registration);
        std::ptr::copy_nonoverlapping(made.as_ptr(), key.cast(), made.len());
    }
    made.len()
}

unsafe extern "C-unwind" fn withdraw<T: Transport>(this: *mut c_void, number: u64) {
    // SAFETY: `this` came from `open`, and the library has not called `free`.
    let this = unsafe { opened::<T>(this) };
    calm((), || this.transport.withdraw(number));
}

unsafe extern "C-unwind" fn access<T: Transport>(
    this: *mut c_void,
    peer: u32,
    access: *const abi::Access,
    number: u64,
) -> c_int {
    // SAFETY: `this` came from `open` and was not freed; the access starts with its size.
    let (this, access) = unsafe { (opened::<T>(this), abi::read(access)) };
    let part = Part {
        // SAFETY: the library passes `key_bytes` bytes.
        key: unsafe { slice(access.key, access.key_bytes) },
        offset: access.offset,
        local: access.local.cast(),
        bytes: access.bytes,
    };
    let access = match access.kind {
        READ_MEMORY => Access::Read(part),
        WRITE_MEMORY => Access::Write(part),
        FLUSH_MEMORY => Access::Flush,
        _ => return FAILED,
    };
    // SAFETY: no other code uses the local memory until the access ends, as the header requires.
    let access = || unsafe { this.transport.access(peer, access, number) };
    match calm(Accessed::Refused, access) {
        Accessed::Ended => SENT,
        Accessed::Pending => SENDING,
        Accessed::NoSpace => NO_SPACE,
        Accessed::Refused => FAILED,
    }
}

/// # Safety
/// `data` is readable for `bytes` bytes, or `data` is null, or `bytes` is 0.
unsafe fn slice<'a>(data: *const c_void, bytes: usize) -> &'a [u8] {
    if data.is_null() || bytes == 0 {
        return &[];
    }
    // SAFETY: `data` is not null, so `bytes` bytes are readable by this function's contract.
    unsafe { std::slice::from_raw_parts(data.cast(), bytes) }
}
