//! A libfabric endpoint with its domain, completion queue and address table: the port of this transport.

#![allow(unsafe_code)]

use super::abi::{self, Completion, ErrorEntry, Functions, Object, Pointer};
use super::{LIBRARY, provider};
use crate::btl::ProcId;
use crate::btl::fabric::frame::HEADER;
use crate::btl::fabric::library::{LibraryError, Opened};
use crate::btl::fabric::pool::{Buffer, Slot};
use crate::btl::fabric::port::{Close, Events, Port, Posted};
use crate::btl::fabric::settings::Settings;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_int};
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// Number of receive buffers, each for one message. Buffers for many messages (`FI_MULTI_RECV`) are not used:
/// the provider `ofi_rxm` returns such a buffer before the longer ones of its messages are complete.
const RECEIVES: usize = 64;
/// Maximum number of completions per read.
const COMPLETIONS: usize = 16;
/// Longest address of an endpoint.
const ADDRESS: usize = 512;
/// Providers have failed to signal their descriptor, so no sleep on it is longer.
const WITH_DESCRIPTOR: Duration = Duration::from_millis(5);
/// Sleep of a process whose provider has no descriptor, or one that is always readable.
const WITHOUT: Duration = Duration::from_micros(100);
/// A sleep that ends sooner without an event was no sleep; after this number of them the descriptor is not used any more.
const FALSE_WAKE: Duration = Duration::from_micros(50);
const FALSE_WAKES: u32 = 64;

/// The objects of the library, in the order in which they are opened; closed in the reverse order.
struct Objects {
    library: Functions,
    info: Pointer,
    open: Vec<Object>,
}

/// The functions that are called for each message.
struct Calls {
    send: abi::Send,
    inject: abi::Inject,
    receive: abi::Receive,
    read: abi::Read,
    read_error: abi::ReadError,
    insert: abi::Insert,
    try_wait: Option<abi::TryWait>,
}

pub struct Endpoint {
    objects: Objects,
    calls: Calls,
    fabric: Object,
    domain: Object,
    queue: Object,
    addresses: Object,
    endpoint: Object,
    descriptor: Option<RawFd>,
    /// The provider's name and this endpoint's address, for the card.
    address: Vec<u8>,
    inject_size: usize,
    /// The provider needs registered memory; the registrations, by the address of the memory.
    registers: bool,
    registered: RefCell<HashMap<usize, Registration>>,
    receives: Vec<Receive>,
    /// Receive buffers that the library has given back.
    unposted: RefCell<Vec<usize>>,
    peers: RefCell<HashMap<ProcId, u64>>,
    /// When the process began to sleep, and the number of sleeps in a row that were none.
    slept: Cell<Option<Instant>>,
    false_wakes: Cell<u32>,
}

#[derive(Clone, Copy)]
struct Registration {
    object: Object,
    /// What is passed with the memory in each call.
    mark: Pointer,
}

/// A buffer for arriving messages, and the memory that the provider needs during the receive.
struct Receive {
    context: Box<[u64; 8]>,
    bytes: Box<[u8]>,
}

// SAFETY: the domain is opened for use by one thread at a time, and its pointers are used through this value only.
unsafe impl Send for Endpoint {}

impl Objects {
    fn text(&self, error: isize) -> String {
        let number = c_int::try_from(error.unsigned_abs()).unwrap_or(c_int::MAX);
        // SAFETY: the function takes any number and returns a static string, or null.
        let text = unsafe { (self.library.fi_strerror)(number) };
        match text.is_null() {
            true => format!("error {error} of libfabric"),
            // SAFETY: the string is not null, ends with a zero and is static.
            false => unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        }
    }

    fn failed(&self, doing: &'static str, error: c_int) -> LibraryError {
        failure(doing, self.text(error as isize))
    }

    /// Notes an object that was opened by `doing`.
    fn opened(
        &mut self,
        doing: &'static str,
        result: c_int,
        object: Pointer,
    ) -> Result<Object, LibraryError> {
        match (result, object.is_null()) {
            (0, false) => {
                self.open.push(Object(object));
                Ok(Object(object))
            }
            (error, _) => Err(self.failed(doing, error)),
        }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        for object in self.open.drain(..).rev() {
            // SAFETY: all objects have this function; each is closed once, after those that were opened later.
            if let Some(close) = unsafe { object.function::<abi::Close>(abi::CLOSE) } {
                // SAFETY: as above.
                unsafe { close(object.0) };
            }
        }
        if !self.info.is_null() {
            // SAFETY: the list of `fi_getinfo`, freed once.
            unsafe { (self.library.fi_freeinfo)(self.info) };
        }
    }
}

fn failure(doing: &'static str, reason: String) -> LibraryError {
    LibraryError::Failed {
        title: LIBRARY.title,
        doing,
        reason,
    }
}

/// Returns a function that this library's version must have.
///
/// # Safety
/// As for [`Object::function`].
unsafe fn need<F: Copy>(
    object: Object,
    entry: abi::Entry,
    doing: &'static str,
) -> Result<F, LibraryError> {
    // SAFETY: the caller's promise.
    let function = unsafe { object.function(entry) };
    function.ok_or_else(|| failure(doing, "this version has no such function".into()))
}

/// Reads a pointer field; null if the structure is.
///
/// # Safety
/// `object` is null or points to a structure with a pointer at this offset.
unsafe fn pointer_at(object: Pointer, offset: usize) -> Pointer {
    match object.is_null() {
        true => null_mut(),
        // SAFETY: the caller's promise.
        false => unsafe { object.byte_add(offset).cast::<Pointer>().read() },
    }
}

/// Sets a field of a structure that the library has allocated; nothing if it is null.
///
/// # Safety
/// As for [`pointer_at`], for a field of type `T`.
unsafe fn set<T>(object: Pointer, offset: usize, value: T) {
    if !object.is_null() {
        // SAFETY: the caller's promise.
        unsafe { object.byte_add(offset).cast::<T>().write(value) };
    }
}

/// Reads a field; `None` if the structure is null.
///
/// # Safety
/// As for [`set`].
unsafe fn field<T: Copy>(object: Pointer, offset: usize) -> Option<T> {
    // SAFETY: the caller's promise.
    (!object.is_null()).then(|| unsafe { object.byte_add(offset).cast::<T>().read() })
}

/// The provider that was chosen.
struct Chosen {
    info: Pointer,
    name: String,
}

/// Lists the providers and chooses one.
fn choose(objects: &mut Objects, wanted: &str) -> Result<Chosen, LibraryError> {
    use abi::info;
    // SAFETY: without an argument the function returns an empty structure with all parts, sized by the library.
    let hints = unsafe { (objects.library.fi_dupinfo)(null_mut()) };
    if hints.is_null() {
        return Err(failure("fi_dupinfo", "out of memory".into()));
    }
    // SAFETY: `hints` is an `fi_info` with all of its parts; offsets and types are those of the header.
    let error = unsafe {
        set(hints, info::CAPS, abi::MSG);
        set(hints, info::MODE, abi::CONTEXT | abi::CONTEXT2);
        set(
            pointer_at(hints, info::EP),
            info::TYPE,
            abi::RELIABLE_DATAGRAM,
        );
        for side in [info::TX, info::RX] {
            let side = pointer_at(hints, side);
            set(side, info::MSG_ORDER, abi::ORDER_SEND_AFTER_SEND);
        }
        let domain = pointer_at(hints, info::DOMAIN);
        set(domain, info::THREADING, abi::THREADS_OF_DOMAIN);
        set(domain, info::CONTROL_PROGRESS, abi::PROGRESS_MANUAL);
        set(domain, info::DATA_PROGRESS, abi::PROGRESS_MANUAL);
        set(domain, info::MR_MODE, abi::MR_MODES);
        let error = (objects.library.fi_getinfo)(
            abi::VERSION,
            std::ptr::null(),
            std::ptr::null(),
            0,
            hints,
            &raw mut objects.info,
        );
        (objects.library.fi_freeinfo)(hints);
        error
    };
    if error != 0 && error != abi::ENODATA {
        return Err(objects.failed("fi_getinfo", error));
    }
    let (mut all, mut names) = (Vec::new(), Vec::new());
    let mut next = if error == 0 { objects.info } else { null_mut() };
    while !next.is_null() {
        // SAFETY: `next` is an `fi_info` of the library's list; the provider's name is a C string or null.
        unsafe {
            let name = pointer_at(pointer_at(next, info::FABRIC), info::PROVIDER);
            if !name.is_null() {
                let name = CStr::from_ptr(name.cast()).to_string_lossy();
                names.push(name.into_owned());
                all.push(next);
            }
            next = pointer_at(next, info::NEXT);
        }
    }
    match provider::choose(&names, wanted) {
        Some(index) => Ok(Chosen {
            info: all[index],
            name: names.swap_remove(index),
        }),
        None => {
            names.dedup();
            let offered = match names.is_empty() {
                true => "none with reliable messages".to_owned(),
                false => names.join(", "),
            };
            let wanted = match wanted {
                "" => "none of its providers serves between hosts".to_owned(),
                wanted => format!("it has no provider {wanted} (btl_ofi_provider)"),
            };
            let reason = format!("{wanted}; offered: {offered}");
            Err(failure("choosing a provider", reason))
        }
    }
}

impl Endpoint {
    /// Loads libfabric and opens an endpoint of a provider.
    pub fn open(
        settings: &Settings,
        peers: u32,
        wanted: &str,
    ) -> Result<(Endpoint, String), LibraryError> {
        let library = Opened::open(&LIBRARY, &settings.library)?;
        let functions = Functions::find(&library)?;
        library.keep();
        // SAFETY: the function takes no arguments.
        let version = unsafe { (functions.fi_version)() };
        let mut objects = Objects {
            library: functions,
            info: null_mut(),
            open: Vec::new(),
        };
        let Chosen { info, name } = choose(&mut objects, wanted)?;
        let title = format!(
            "libfabric {}.{}, provider {name}",
            version >> 16,
            version & 0xffff
        );
        let endpoint = Endpoint::of(objects, info, &name, settings, peers)?;
        Ok((endpoint, title))
    }

    /// Opens fabric, domain, queue, address table and endpoint, in this order.
    fn of(
        mut objects: Objects,
        info: Pointer,
        name: &str,
        settings: &Settings,
        peers: u32,
    ) -> Result<Endpoint, LibraryError> {
        let none: Pointer = null_mut();
        let mut made = none;
        // SAFETY: `info` is one of the library's list; each object is used only after its opening has succeeded, with functions of its type.
        unsafe {
            let fabric_attr = pointer_at(info, abi::info::FABRIC);
            let result = (objects.library.fi_fabric)(fabric_attr, &raw mut made, none);
            let fabric = objects.opened("fi_fabric", result, made)?;
            let open: abi::OpenDomain = need(fabric, abi::DOMAIN, "fi_domain")?;
            let result = open(fabric.0, info, &raw mut made, none);
            let domain = objects.opened("fi_domain", result, made)?;
            let (queue, descriptor) = open_queue(&mut objects, domain)?;
            let open: abi::Open = need(domain, abi::AV_OPEN, "fi_av_open")?;
            let attributes = abi::addresses(peers as usize);
            let result = open(domain.0, attributes.pointer(), &raw mut made, none);
            let addresses = objects.opened("fi_av_open", result, made)?;
            let open: abi::Open = need(domain, abi::ENDPOINT, "fi_endpoint")?;
            let result = open(domain.0, info.cast_const(), &raw mut made, none);
            let endpoint = objects.opened("fi_endpoint", result, made)?;
            let bind: abi::Bind = need(endpoint, abi::BIND, "fi_ep_bind")?;
            let control: abi::Control = need(endpoint, abi::CONTROL, "fi_enable")?;
            let mut result = bind(endpoint.0, addresses.0, 0);
            if result == 0 {
                result = bind(endpoint.0, queue.0, abi::SEND | abi::RECV);
            }
            if result == 0 {
                result = control(endpoint.0, abi::ENABLE, none);
            }
            if result != 0 {
                return Err(objects.failed("fi_enable", result));
            }
            let longest = settings.limits.max_send + HEADER;
            let tx = pointer_at(info, abi::info::TX);
            let domain_attr = pointer_at(info, abi::info::DOMAIN);
            let modes = field::<u32>(domain_attr, abi::info::MR_MODE).unwrap_or(0);
            let all = Endpoint {
                calls: Calls {
                    send: need(endpoint, abi::SENDS, "fi_send")?,
                    inject: need(endpoint, abi::INJECT, "fi_inject")?,
                    receive: need(endpoint, abi::RECEIVE, "fi_recv")?,
                    read: need(queue, abi::READ, "fi_cq_read")?,
                    read_error: need(queue, abi::READ_ERROR, "fi_cq_readerr")?,
                    insert: need(addresses, abi::INSERT, "fi_av_insert")?,
                    try_wait: fabric.function(abi::TRYWAIT),
                },
                address: own_address(&objects, endpoint, name)?,
                inject_size: field::<usize>(tx, abi::info::INJECT_SIZE).unwrap_or(0),
                registers: modes & abi::MR_LOCAL != 0,
                objects,
                fabric,
                domain,
                queue,
                addresses,
                endpoint,
                descriptor,
                registered: RefCell::default(),
                receives: receives(longest),
                unposted: RefCell::new((0..RECEIVES).collect()),
                peers: RefCell::default(),
                slept: Cell::new(None),
                false_wakes: Cell::new(0),
            };
            all.post_receives()
                .map_err(|error| all.objects.failed("fi_recv", error as c_int))?;
            Ok(all)
        }
    }

    /// Registers memory at its first use, if the provider needs that; returns the mark, or null.
    fn mark(&self, bytes: &[u8]) -> Result<Pointer, isize> {
        if !self.registers {
            return Ok(null_mut());
        }
        let key = bytes.as_ptr().addr();
        if let Some(known) = self.registered.borrow().get(&key) {
            return Ok(known.mark);
        }
        const MEMORY_MARK: usize = 24;
        let mut object = null_mut();
        // SAFETY: an open domain; the memory lives until the registration is closed, since buffers are freed after this endpoint.
        let registration = unsafe {
            let register: abi::Register = self
                .domain
                .function(abi::REGISTER)
                .ok_or(abi::ENOSYS as isize)?;
            let result = register(
                self.domain.0,
                bytes.as_ptr().cast(),
                bytes.len(),
                abi::SEND | abi::RECV,
                0,
                key as u64,
                0,
                &raw mut object,
                null_mut(),
            );
            if result != 0 {
                return Err(result as isize);
            }
            Registration {
                object: Object(object),
                mark: pointer_at(object, MEMORY_MARK),
            }
        };
        self.registered.borrow_mut().insert(key, registration);
        Ok(registration.mark)
    }

    /// Gives the library all receive buffers that it does not have.
    fn post_receives(&self) -> Result<(), isize> {
        loop {
            let Some(&index) = self.unposted.borrow().last() else {
                return Ok(());
            };
            let receive = &self.receives[index];
            let mark = self.mark(&receive.bytes)?;
            let context: *const [u64; 8] = &raw const *receive.context;
            let bytes = receive.bytes.as_ptr().cast_mut();
            // SAFETY: an enabled endpoint; buffer and context live as long as the endpoint, and only the library writes them while it has them.
            let result = unsafe {
                (self.calls.receive)(
                    self.endpoint.0,
                    bytes.cast(),
                    receive.bytes.len(),
                    mark,
                    abi::UNSPECIFIED,
                    context.cast_mut().cast(),
                )
            };
            match result {
                0 => drop(self.unposted.borrow_mut().pop()),
                abi::EAGAIN => return Ok(()),
                error => return Err(error),
            }
        }
    }

    /// Returns the number of the receive buffer of an operation.
    fn receive_of(&self, context: Pointer) -> Option<usize> {
        let is = |receive: &Receive| context.addr() == receive.context.as_ptr().addr();
        self.receives.iter().position(is)
    }

    fn completed(&self, completion: &Completion, events: &dyn Events) {
        let Some(index) = self.receive_of(completion.context) else {
            return self.sent(completion.context, None, events);
        };
        let bytes = self.receives[index].bytes.get(..completion.len);
        if let Some((head, payload)) = bytes.and_then(|bytes| bytes.split_at_checked(HEADER)) {
            events.arrived(head, payload);
        }
        self.unposted.borrow_mut().push(index);
    }

    /// Returns the slot of a send that has ended.
    fn sent(&self, context: Pointer, why: Option<String>, events: &dyn Events) {
        if context.is_null() {
            return;
        }
        // SAFETY: contexts that are not those of receives are slots that `post` has given up with `Box::into_raw`; each send ends once.
        let slot = unsafe { Box::from_raw(context.cast::<Buffer>()) };
        events.sent(slot, why);
    }

    /// Reads the error entry of a failed operation.
    #[cold]
    fn read_error(&self, events: &dyn Events) {
        let mut entry = ErrorEntry::default();
        // SAFETY: an open queue, and a zeroed entry that is longer than any version's.
        let result = unsafe { (self.calls.read_error)(self.queue.0, entry.pointer_mut(), 0) };
        if result <= 0 {
            return;
        }
        let error = entry.get32(56) as c_int;
        let context: Pointer = std::ptr::with_exposed_provenance_mut(entry.get64(0) as usize);
        match self.receive_of(context) {
            Some(index) => self.unposted.borrow_mut().push(index),
            None => self.sent(context, Some(self.objects.text(error as isize)), events),
        }
    }
}

/// Opens the completion queue with a descriptor, or without one if the provider has none.
fn open_queue(
    objects: &mut Objects,
    domain: Object,
) -> Result<(Object, Option<RawFd>), LibraryError> {
    let mut made = null_mut();
    // SAFETY: an open domain, attributes that are longer than the structure, and functions of the objects' types.
    unsafe {
        let open: abi::Open = need(domain, abi::CQ_OPEN, "fi_cq_open")?;
        let attributes = abi::queue(abi::WAIT_FD);
        let mut result = open(domain.0, attributes.pointer(), &raw mut made, null_mut());
        let waits = result == 0;
        if !waits {
            let attributes = abi::queue(abi::WAIT_NONE);
            result = open(domain.0, attributes.pointer(), &raw mut made, null_mut());
        }
        let queue = objects.opened("fi_cq_open", result, made)?;
        let mut descriptor: c_int = -1;
        if waits && let Some(control) = queue.function::<abi::Control>(abi::CONTROL) {
            let place: *mut c_int = &raw mut descriptor;
            if control(queue.0, abi::GETWAIT, place.cast()) != 0 {
                descriptor = -1;
            }
        }
        Ok((queue, (descriptor >= 0).then_some(descriptor)))
    }
}

/// Returns the provider's name, behind its length, and the endpoint's address.
fn own_address(objects: &Objects, endpoint: Object, name: &str) -> Result<Vec<u8>, LibraryError> {
    let (mut address, mut len) = ([0u8; ADDRESS], ADDRESS);
    // SAFETY: an enabled endpoint; the call writes at most `len` bytes.
    let result = unsafe {
        let get: abi::GetName = need(endpoint, abi::GETNAME, "fi_getname")?;
        get(endpoint.0, address.as_mut_ptr().cast(), &raw mut len)
    };
    if result != 0 || len > ADDRESS {
        return Err(objects.failed("fi_getname", result));
    }
    let mut all = vec![name.len() as u8];
    all.extend_from_slice(&name.as_bytes()[..name.len().min(u8::MAX.into())]);
    all.extend_from_slice(&address[..len]);
    Ok(all)
}

/// The provider's name and the address of a card.
fn parts(address: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = address.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

fn receives(longest: usize) -> Vec<Receive> {
    let receive = |_| Receive {
        context: Box::default(),
        bytes: vec![0; longest].into(),
    };
    (0..RECEIVES).map(receive).collect()
}

impl Port for Endpoint {
    fn address(&self) -> &[u8] {
        &self.address
    }

    fn connect(&self, peer: ProcId, address: &[u8]) -> Result<(), String> {
        let (Some((ours, our_address)), Some((theirs, address))) =
            (parts(&self.address), parts(address))
        else {
            return Err("its published card is malformed".into());
        };
        if ours != theirs {
            return Err(format!(
                "it uses libfabric's provider {}, and this process {}; btl_ofi_provider chooses one for all",
                String::from_utf8_lossy(theirs),
                String::from_utf8_lossy(ours)
            ));
        }
        if self.peers.borrow().contains_key(&peer) {
            return Ok(());
        }
        if address.len() != our_address.len() {
            return Err("the address on its card has another length than ours".into());
        }
        let mut number = abi::UNSPECIFIED;
        // SAFETY: an open table; the address has the length of this provider's addresses and is read during the call.
        let result = unsafe {
            let insert = self.calls.insert;
            insert(
                self.addresses.0,
                address.as_ptr().cast(),
                1,
                &raw mut number,
                0,
                null_mut(),
            )
        };
        if result != 1 {
            let why = self.objects.text(result as isize);
            return Err(format!("libfabric does not take its address: {why}"));
        }
        // Entries stay: some providers fail when an address is removed and inserted again.
        self.peers.borrow_mut().insert(peer, number);
        Ok(())
    }

    fn close(&self, _peer: ProcId, _how: Close) {}

    #[inline]
    fn post(&self, peer: ProcId, slot: Slot) -> Posted {
        let Some(to) = self.peers.borrow().get(&peer).copied() else {
            return Posted::Gone(slot, "there is no connection".into());
        };
        let bytes = slot.message();
        if bytes.len() <= self.inject_size {
            // SAFETY: an enabled endpoint; the call copies the message.
            let result = unsafe {
                (self.calls.inject)(self.endpoint.0, bytes.as_ptr().cast(), bytes.len(), to)
            };
            return match result {
                0 => Posted::Done(slot),
                abi::EAGAIN | abi::ENOMEM => Posted::Again(slot),
                error => Posted::Gone(slot, self.objects.text(error)),
            };
        }
        let mark = match self.mark(slot.whole()) {
            Ok(mark) => mark,
            Err(error) => return Posted::Gone(slot, self.objects.text(error)),
        };
        let (data, len) = (bytes.as_ptr(), bytes.len());
        let context: Pointer = Box::into_raw(slot).cast();
        context.expose_provenance();
        // SAFETY: an enabled endpoint; message and context are in the slot, which is neither freed nor written before its completion is read.
        let result =
            unsafe { (self.calls.send)(self.endpoint.0, data.cast(), len, mark, to, context) };
        if result == 0 {
            return Posted::Pending;
        }
        // SAFETY: a refused send has no completion, so this is the only owner.
        let slot = unsafe { Box::from_raw(context.cast::<Buffer>()) };
        match result {
            abi::EAGAIN | abi::ENOMEM => Posted::Again(slot),
            error => Posted::Gone(slot, self.objects.text(error)),
        }
    }

    fn progress(&self, events: &dyn Events) {
        let empty = Completion {
            context: null_mut(),
            flags: 0,
            len: 0,
            bytes: null_mut(),
            data: 0,
        };
        let mut all = [empty; COMPLETIONS];
        // SAFETY: an open queue, whose entries have this form; the call writes at most `COMPLETIONS` of them.
        let read = unsafe { (self.calls.read)(self.queue.0, all.as_mut_ptr().cast(), COMPLETIONS) };
        match usize::try_from(read) {
            Ok(read) => {
                self.false_wakes.set(0);
                let read = &all[..read.min(COMPLETIONS)];
                read.iter().for_each(|one| self.completed(one, events));
            }
            Err(_) if read == abi::EAVAIL => self.read_error(events),
            Err(_) => self.count_wake(),
        }
        self.slept.set(None);
        if !self.unposted.borrow().is_empty() {
            // What cannot be posted now is tried again at the next poll.
            let _ = self.post_receives();
        }
    }

    fn flush(&self) {}

    fn is_quiet(&self) -> bool {
        true
    }

    fn may_sleep(&self) -> bool {
        self.slept.set(Some(Instant::now()));
        let Some(try_wait) = self.calls.try_wait.filter(|_| self.descriptor().is_some()) else {
            return true;
        };
        // SAFETY: an open fabric and an array of one open queue.
        unsafe { try_wait(self.fabric.0, &raw const self.queue.0, 1) == 0 }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let descriptor = self.descriptor?;
        // SAFETY: the descriptor belongs to the queue, which this value outlives by the lifetime of the result.
        (self.false_wakes.get() < FALSE_WAKES)
            .then(|| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    fn longest_sleep(&self) -> Option<Duration> {
        match self.descriptor() {
            Some(_) => Some(WITH_DESCRIPTOR),
            None => Some(WITHOUT),
        }
    }
}

impl Endpoint {
    /// Counts a sleep that was none: some providers' descriptors stay readable.
    fn count_wake(&self) {
        if let Some(slept) = self.slept.get()
            && slept.elapsed() < FALSE_WAKE
        {
            self.false_wakes
                .set(self.false_wakes.get().saturating_add(1));
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // The endpoint is closed before the memory of its operations is unregistered or freed. Slots of unfinished sends stay: their provider may be writing to them.
        if self.objects.open.last() == Some(&self.endpoint) {
            self.objects.open.pop();
            // SAFETY: the endpoint is closed once and not used afterwards.
            unsafe {
                if let Some(close) = self.endpoint.function::<abi::Close>(abi::CLOSE) {
                    close(self.endpoint.0);
                }
            }
        }
        for registration in self.registered.take().into_values() {
            // SAFETY: each registration is closed once, before its domain.
            unsafe {
                if let Some(close) = registration.object.function::<abi::Close>(abi::CLOSE) {
                    close(registration.object.0);
                }
            }
        }
    }
}
