//! The port of the transport `ucx`: a UCX context with one worker and its endpoints.

#![allow(unsafe_code)]

use super::LIBRARY;
use super::abi::{self, Functions, InPlaceFunctions, MemoryFunctions, Pointer, Status, Texts};
use super::callbacks::{Arrival, Hook, Rest, Shared, on_error, on_message, on_sent};
use super::memory::RegisteredMemory;
use super::sleep::Sleep;
use crate::btl::fabric::library::{LibraryError, Opened};
use crate::btl::fabric::named_address::{join, split};
use crate::btl::fabric::pool::Slot;
use crate::btl::fabric::port::{Close, Events, Memory, Offer, Operation, Port, Posted, Rendezvous};
use crate::btl::fabric::settings::Settings;
use crate::btl::{Exposed, GetError, ProcId, Region, Rights};
use mpi_base::environment;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_uint};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// The ID of the active message in UCX that contains all frames of this library.
pub(super) const ID: c_uint = 17;
/// Time limit for closing the endpoints when the worker is dropped.
const CLOSING: Duration = Duration::from_secs(2);

/// The versions of UCX whose new protocols end the process when a peer fails during a delivery in place:
/// without a registration cache, `ucp_request_memh_invalidate` uses a null pointer. 1.22 checks the pointer.
/// With these versions the transport selects UCX's older protocols, or does not deliver in place
/// if the user has chosen the protocols or a device reads long messages.
const FAULTY: Range<(c_uint, c_uint)> = (1, 14)..(1, 22);

pub struct Worker {
    pub(super) ucp: Functions,
    texts: Option<Texts>,
    context: Pointer,
    worker: Pointer,
    /// Operations on peers' registered memory; `None` if UCX lacks the functions or they are disabled.
    memory: Option<RegisteredMemory>,
    /// Delivery in place; `None` if UCX lacks the function.
    pub(super) in_place: Option<InPlaceUcx>,
    /// True if UCX has sent or received anything since the flag was cleared.
    pub(super) has_moved: Cell<bool>,
    sleep: Sleep,
    address: Vec<u8>,
    pub(super) shared: ManuallyDrop<Box<Shared>>,
    /// The endpoints, indexed by the peer's process number.
    endpoints: RefCell<Vec<Option<Endpoint>>>,
    /// Endpoints that are being closed, with their requests.
    closing: RefCell<Vec<Closing>>,
    /// The request of the latest flush, or null.
    flush: Cell<Pointer>,
}

/// The functions of UCX for delivery in place, and the minimum length of the data in bytes.
#[derive(Clone, Copy)]
pub(super) struct InPlaceUcx {
    pub ucp: InPlaceFunctions,
    pub shortest: usize,
}

struct Endpoint {
    handle: Pointer,
    hook: Box<Hook>,
    /// True if UCX detects failures of the peer, and ends all transfers when the endpoint is closed by force.
    reports: bool,
}

struct Closing {
    request: Pointer,
    _hook: Box<Hook>,
}

// SAFETY: the worker is created for use by one thread at a time (serialized), and its pointers are used only through this value.
unsafe impl Send for Worker {}

/// Returns the properties of UCX that must be the same in both processes of a connection: the version, and the length of TCP's segments.
/// UCX 1.13 and 1.20 cannot connect by their transport `tcp`, and a process ends if it receives a longer segment than its own.
fn dialect((major, minor): (c_uint, c_uint)) -> String {
    const SEGMENT: &str = "UCX_TCP_RX_SEG_SIZE";
    let segment = environment::text(SEGMENT).unwrap_or_default();
    let segment = bytes(&segment).map_or(segment, |bytes| bytes.to_string());
    format!("UCX {major}.{minor} with {SEGMENT}={segment}")
}

/// Returns the number of bytes of a size as UCX writes it: a whole number with one of the units b, k, m and g, or without a unit.
/// Other spellings, which UCX may accept, return `None`.
fn bytes(size: &str) -> Option<u64> {
    let units = [('b', 0), ('k', 10), ('m', 20), ('g', 30)];
    let size = size.to_ascii_lowercase();
    let unit = units
        .iter()
        .find_map(|(unit, shift)| Some((size.strip_suffix(*unit)?, *shift)));
    let (number, shift) = unit.unwrap_or((&size, 0));
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse::<u64>().ok().filter(|_| is_number)?;
    number.checked_mul(1 << shift)
}

impl Worker {
    /// Loads UCX and creates a worker.
    /// `choices` are names and values of UCX settings; empty values are ignored.
    /// `in_place_min` is the minimum length in bytes of a message that is delivered in place.
    /// Also returns the name and version of UCX.
    pub fn open(
        settings: &Settings,
        endpoints: u32,
        choices: &[(&CStr, String)],
        in_place_min: usize,
    ) -> Result<(Worker, String), LibraryError> {
        let library = Opened::open(&LIBRARY, &settings.library)?;
        let ucp = Functions::find(&library)?;
        let texts = Texts::find(&library).ok();
        let found = MemoryFunctions::find(&library).ok();
        let reading = found.filter(|_| settings.reads());
        let in_place = InPlaceFunctions::find(&library).ok().map(|ucp| InPlaceUcx {
            ucp,
            shortest: in_place_min.max(1),
        });
        let keeps_protocols = settings.reads() || environment::is_set("UCX_PROTO_ENABLE");
        library.keep();
        let (mut major, mut minor, mut release) = (0, 0, 0);
        // SAFETY: the pointers refer to three variables, which the call writes.
        unsafe { (ucp.ucp_get_version)(&raw mut major, &raw mut minor, &raw mut release) };
        let is_faulty = FAULTY.contains(&(major, minor));
        let in_place = in_place.filter(|_| !(is_faulty && keeps_protocols));
        let title = format!("UCX {major}.{minor}.{release}");
        let mut worker = Worker {
            ucp,
            texts,
            context: null_mut(),
            worker: null_mut(),
            memory: None,
            in_place,
            has_moved: Cell::new(false),
            sleep: Sleep::default(),
            address: Vec::new(),
            shared: ManuallyDrop::new(Shared::new(ucp.ucp_request_free)),
            endpoints: RefCell::default(),
            closing: RefCell::default(),
            flush: Cell::new(null_mut()),
        };
        worker.init(endpoints, reading.is_some(), choices, is_faulty)?;
        let takes_offers = worker.in_place.is_some();
        worker.shared.takes_offers.set(takes_offers);
        worker.create((major, minor))?;
        worker.memory = reading.map(|ucp| RegisteredMemory::of(ucp, worker.context));
        Ok((worker, title))
    }

    fn failed<T>(&self, doing: &'static str, status: Status) -> Result<T, LibraryError> {
        Err(LibraryError::Failed {
            title: LIBRARY.title,
            doing,
            reason: self.text(status),
        })
    }

    fn succeeded(&self, doing: &'static str, status: Status) -> Result<(), LibraryError> {
        match status {
            abi::OK => Ok(()),
            status => self.failed(doing, status),
        }
    }

    /// Reads UCX's configuration, applies `choices`, and initializes the context.
    fn init(
        &mut self,
        endpoints: u32,
        reads: bool,
        choices: &[(&CStr, String)],
        is_faulty: bool,
    ) -> Result<(), LibraryError> {
        let mut config: Pointer = null_mut();
        // SAFETY: `ucp_config_read` accepts null for the prefix and the file; `config` is a local variable, and the handle in it is released below.
        let status = unsafe {
            (self.ucp.ucp_config_read)(std::ptr::null(), std::ptr::null(), &raw mut config)
        };
        self.succeeded("reading its configuration", status)?;
        if is_faulty && self.in_place.is_some() {
            // SAFETY: the configuration is valid, and the call copies the two C strings.
            let status = unsafe {
                (self.ucp.ucp_config_modify)(config, c"PROTO_ENABLE".as_ptr(), c"n".as_ptr())
            };
            if status != abi::OK {
                self.in_place = None;
            }
        }
        let mut status = abi::OK;
        for (name, value) in choices.iter().filter(|(_, value)| !value.is_empty()) {
            let value = CString::new(value.as_str()).unwrap_or_default();
            if status == abi::OK {
                // SAFETY: the configuration is valid, and the call copies the two C strings.
                status =
                    unsafe { (self.ucp.ucp_config_modify)(config, name.as_ptr(), value.as_ptr()) };
            }
        }
        let doing = match status {
            abi::OK => "ucp_init",
            _ => "setting btl_ucx_transports or btl_ucx_devices",
        };
        if status == abi::OK {
            let parameters = abi::context(endpoints, reads);
            let (major, minor) = abi::VERSION;
            // SAFETY: the parameter block is longer than the structure, and its mask contains only the set fields; `context` receives a handle.
            status = unsafe {
                (self.ucp.ucp_init_version)(
                    major,
                    minor,
                    parameters.pointer(),
                    config,
                    &raw mut self.context,
                )
            };
        }
        // SAFETY: `ucp_config_read` returned the handle, and it is released once.
        unsafe { (self.ucp.ucp_config_release)(config) };
        self.succeeded(doing, status)
    }

    /// Creates the worker, registers the message callback, and reads the worker's descriptor and address. `version` is that of UCX.
    fn create(&mut self, version: (c_uint, c_uint)) -> Result<(), LibraryError> {
        let parameters = abi::worker();
        // SAFETY: the context is valid, and the parameter block is longer than the structure; `worker` receives a handle.
        let status = unsafe {
            (self.ucp.ucp_worker_create)(self.context, parameters.pointer(), &raw mut self.worker)
        };
        self.succeeded("ucp_worker_create", status)?;
        let shared: *const Shared = &raw const **self.shared;
        let handler = abi::handler(ID, on_message, shared.cast());
        // SAFETY: the worker is valid, and the callback's argument is boxed and outlives the worker.
        let status =
            unsafe { (self.ucp.ucp_worker_set_am_recv_handler)(self.worker, handler.pointer()) };
        self.succeeded("ucp_worker_set_am_recv_handler", status)?;
        let mut descriptor = -1;
        // SAFETY: the worker is valid, and the pointer refers to a variable, which the call writes.
        let status = unsafe { (self.ucp.ucp_worker_get_efd)(self.worker, &raw mut descriptor) };
        self.sleep
            .set((status == abi::OK && descriptor >= 0).then_some(descriptor));
        let (mut address, mut len) = (null_mut(), 0);
        // SAFETY: the worker is valid; the call writes a pointer to `len` bytes, which are copied and released below.
        let status = unsafe {
            (self.ucp.ucp_worker_get_address)(self.worker, &raw mut address, &raw mut len)
        };
        self.succeeded("ucp_worker_get_address", status)?;
        if !address.is_null() {
            // SAFETY: the call has succeeded, so `address` points to `len` bytes until it is released, once, here.
            unsafe {
                let address_bytes = std::slice::from_raw_parts(address.cast::<u8>(), len);
                self.address = join(&dialect(version), address_bytes);
                (self.ucp.ucp_worker_release_address)(self.worker, address);
            }
        }
        Ok(())
    }

    pub(super) fn text(&self, status: Status) -> String {
        let text = match &self.texts {
            // SAFETY: the function accepts any number and returns a static string, or null.
            Some(texts) => unsafe { (texts.ucs_status_string)(status) },
            None => std::ptr::null(),
        };
        match text.is_null() {
            true => format!("error {status} of UCX"),
            // SAFETY: the string is not null, is zero-terminated and static.
            false => unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        }
    }

    fn create_endpoint(
        &self,
        address: &[u8],
        reports: bool,
        hook: &Hook,
        handle: &mut Pointer,
    ) -> Status {
        let argument: *const Hook = hook;
        let parameters = abi::endpoint(address, reports, on_error, argument.cast());
        // SAFETY: the worker is valid; the address is read during the call only; the hook is boxed and freed after the endpoint is closed.
        unsafe { (self.ucp.ucp_ep_create)(self.worker, parameters.pointer(), handle) }
    }

    /// Returns true if a request has ended, and frees the request.
    fn has_ended(&self, request: Pointer) -> bool {
        if abi::status_of(request).is_some() {
            return true;
        }
        // SAFETY: UCX has returned the request, and it has not been freed.
        if unsafe { (self.ucp.ucp_request_check_status)(request) } == abi::IN_PROGRESS {
            return false;
        }
        // SAFETY: the request has ended and has not been freed; the caller does not use the pointer after this function has returned true.
        unsafe { (self.ucp.ucp_request_free)(request) };
        true
    }

    #[inline]
    fn deliver(&self, arrival: Arrival, events: &dyn Events) {
        let (head, copied) = arrival.bytes.split_at(arrival.head_len);
        match arrival.rest {
            Rest::Nothing => events.arrived(head, copied),
            Rest::Offered { handle, len } => {
                let handle = handle.expose_provenance();
                events.offered(head, Offer { handle, len });
            }
            Rest::Held { data, len } => {
                // SAFETY: `on_message` keeps data only if UCX has passed `MAY_KEEP`,
                // so the `len` bytes remain valid until `ucp_am_data_release` below.
                let kept = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
                events.arrived(head, kept);
                // SAFETY: the callback has returned `IN_PROGRESS` for these data, and they are released once.
                unsafe { (self.ucp.ucp_am_data_release)(self.worker, data) };
            }
        }
        self.shared.reuse(arrival);
    }

    /// Frees the keys of ended operations, and reports their ends.
    #[cold]
    fn end_operations(&self, events: &dyn Events) {
        for (number, status, key) in self.shared.ended.take() {
            if let Some(memory) = &self.memory {
                memory.forget_key(key);
            }
            events.ended(number, status == abi::OK);
        }
    }

    /// Reports the ends of deliveries in place.
    #[cold]
    fn end_transfers(&self, events: &dyn Events) {
        for (transfer, status) in self.shared.transferred.take() {
            let why = (status != abi::OK).then(|| self.text(status));
            events.transferred(transfer, why);
        }
    }

    /// Discards the messages that have arrived and those that will arrive, and releases their data.
    fn discard_arrivals(&self) {
        self.shared.is_closed.set(true);
        while let Some(arrival) = self.shared.next_arrival() {
            if let Rest::Held { data: handle, .. } | Rest::Offered { handle, .. } = arrival.rest {
                // SAFETY: the callback has returned `IN_PROGRESS` for this handle, which is released once.
                unsafe { (self.ucp.ucp_am_data_release)(self.worker, handle) };
            }
        }
    }

    /// Returns UCX's handle of the worker.
    pub(super) fn worker(&self) -> Pointer {
        self.worker
    }

    /// Returns UCX's handle of the endpoint to a peer, if there is one.
    pub(super) fn endpoint(&self, peer: ProcId) -> Option<Pointer> {
        let endpoints = self.endpoints.borrow();
        let endpoint = endpoints.get(peer as usize)?.as_ref()?;
        Some(endpoint.handle)
    }

    /// Returns true if UCX ends all transfers with a peer when the connection is closed by force.
    pub(super) fn ends_transfers(&self, peer: ProcId) -> bool {
        let endpoints = self.endpoints.borrow();
        let endpoint = endpoints.get(peer as usize).and_then(Option::as_ref);
        endpoint.is_some_and(|endpoint| endpoint.reports)
    }

    /// Removes the requests of closed endpoints and of the flush if these have ended.
    fn check_requests(&self) {
        if abi::status_of(self.flush.get()).is_none() && self.has_ended(self.flush.get()) {
            self.flush.set(null_mut());
        }
        if !self.closing.borrow().is_empty() {
            let closing = self.closing.take();
            let left: Vec<Closing> = closing
                .into_iter()
                .filter(|closing| !self.has_ended(closing.request))
                .collect();
            self.closing.borrow_mut().extend(left);
        }
    }
}

impl Port for Worker {
    fn address(&self) -> &[u8] {
        &self.address
    }

    fn connect(&self, peer: ProcId, address: &[u8]) -> Result<(), String> {
        let (Some((ours, _)), Some((theirs, address))) = (split(&self.address), split(address))
        else {
            return Err("its published card is malformed".into());
        };
        if ours != theirs {
            return Err(format!(
                "it uses {} and this process {}; both must be the same everywhere",
                String::from_utf8_lossy(theirs),
                String::from_utf8_lossy(ours)
            ));
        }
        // UCX hardly checks the lengths inside an address. The card is complete and undamaged, so the address is the one that the peer has published.
        let hook = Box::new(Hook {
            shared: &raw const **self.shared,
            peer,
        });
        let mut handle: Pointer = null_mut();
        let mut reports = true;
        let mut status = self.create_endpoint(address, reports, &hook, &mut handle);
        if status == abi::UNREACHABLE {
            reports = false;
            // Older versions of UCX cannot detect failures in shared memory. With these versions the launcher reports deaths.
            status = self.create_endpoint(address, reports, &hook, &mut handle);
        }
        if status != abi::OK {
            return Err(format!("UCX has no way to it: {}", self.text(status)));
        }
        let endpoint = Endpoint {
            handle,
            hook,
            reports,
        };
        let mut endpoints = self.endpoints.borrow_mut();
        let index = peer as usize;
        if endpoints.len() <= index {
            endpoints.resize_with(index + 1, || None);
        }
        endpoints[index] = Some(endpoint);
        Ok(())
    }

    fn close(&self, peer: ProcId, how: Close) {
        let endpoint = self
            .endpoints
            .borrow_mut()
            .get_mut(peer as usize)
            .and_then(Option::take);
        let Some(Endpoint { handle, hook, .. }) = endpoint else {
            return;
        };
        let parameters = abi::close(how == Close::AtOnce);
        // SAFETY: the endpoint belongs to this worker and is closed once.
        let request = unsafe { (self.ucp.ucp_ep_close_nbx)(handle, parameters.pointer()) };
        self.closing.borrow_mut().push(Closing {
            request,
            _hook: hook,
        });
    }

    #[inline]
    fn post(&self, peer: ProcId, mut slot: Slot) -> Posted {
        let endpoints = self.endpoints.borrow();
        let Some(Some(endpoint)) = endpoints.get(peer as usize) else {
            return Posted::Gone(slot, "there is no connection".into());
        };
        slot.tag = (&raw const **self.shared).expose_provenance();
        let (head, payload) = (slot.head(), slot.payload());
        let (head, head_len) = (head.as_ptr(), head.len());
        let (data, len) = (payload.as_ptr(), payload.len());
        let slot = Box::into_raw(slot);
        let parameters = abi::send(on_sent, slot.cast_const().cast());
        // SAFETY: the endpoint belongs to this worker. Header and payload are in the buffer, which is neither freed nor written before the send ends:
        // if the call returns a status, the send has ended; otherwise UCX calls `on_sent`.
        let request = unsafe {
            (self.ucp.ucp_am_send_nbx)(
                endpoint.handle,
                ID,
                head.cast(),
                head_len,
                data.cast(),
                len,
                parameters.pointer(),
            )
        };
        let Some(status) = abi::status_of(request) else {
            return Posted::Pending;
        };
        // SAFETY: the send has ended during the call, so UCX does not call `on_sent`.
        let slot = unsafe { Box::from_raw(slot) };
        match status {
            abi::OK => Posted::Done(slot),
            abi::NO_RESOURCE | abi::NO_MEMORY | abi::BUSY => Posted::Again(slot),
            status => Posted::Gone(slot, self.text(status)),
        }
    }

    #[inline]
    fn progress(&self, events: &dyn Events) {
        // SAFETY: the worker is valid, and no UCX function is active, because the callbacks only record events.
        if unsafe { (self.ucp.ucp_worker_progress)(self.worker) } != 0 {
            self.has_moved.set(true);
            self.sleep.found_events();
        }
        while let Some(arrival) = self.shared.next_arrival() {
            self.deliver(arrival, events);
        }
        if !self.shared.sent.borrow().is_empty() {
            for (slot, status) in self.shared.sent.take() {
                let why = (status != abi::OK).then(|| self.text(status));
                events.sent(slot, why);
            }
        }
        if !self.shared.ended.borrow().is_empty() {
            self.end_operations(events);
        }
        if !self.shared.transferred.borrow().is_empty() {
            self.end_transfers(events);
        }
        if !self.shared.failed.borrow().is_empty() {
            for (peer, status) in self.shared.failed.take() {
                events.failed(peer, self.text(status));
            }
        }
        if !self.is_quiet() {
            self.check_requests();
        }
    }

    fn flush(&self) {
        if abi::status_of(self.flush.get()).is_none() {
            return;
        }
        let parameters = abi::plain();
        // SAFETY: the worker is valid, and the parameter block is longer than the structure, with an empty mask.
        let request = unsafe { (self.ucp.ucp_worker_flush_nbx)(self.worker, parameters.pointer()) };
        self.flush.set(request);
    }

    fn is_quiet(&self) -> bool {
        abi::status_of(self.flush.get()).is_some() && self.closing.borrow().is_empty()
    }

    fn may_sleep(&self) -> bool {
        self.sleep
            // SAFETY: the worker is valid.
            .may_begin(|| unsafe { (self.ucp.ucp_worker_arm)(self.worker) } == abi::OK)
    }

    fn memory(&self) -> Option<&dyn Memory> {
        self.memory.as_ref().map(|_| self as &dyn Memory)
    }

    fn in_place(&self) -> Option<&dyn Rendezvous> {
        self.in_place.map(|_| self as &dyn Rendezvous)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        self.sleep.longest()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.sleep.descriptor()
    }
}

impl Memory for Worker {
    unsafe fn register(&self, region: Region, _rights: Rights) -> Option<Exposed> {
        // The access rights are ignored, because UCX does not distinguish them: every registration permits all accesses.
        // SAFETY: by the contract of `Memory::register` the memory is not freed before `unregister`.
        unsafe { self.memory.as_ref()?.register(region) }
    }

    fn unregister(&self, number: u64) {
        if let Some(memory) = &self.memory {
            memory.unregister(number);
        }
    }

    unsafe fn start(
        &self,
        peer: ProcId,
        operation: Operation<'_>,
        number: u64,
    ) -> Result<bool, GetError> {
        let memory = self.memory.as_ref().ok_or(GetError::Forbidden)?;
        let endpoints = self.endpoints.borrow();
        let Some(Some(endpoint)) = endpoints.get(peer as usize) else {
            return Err(GetError::PeerGone);
        };
        let shared: *const Shared = &raw const **self.shared;
        // SAFETY: the endpoint belongs to this worker, and by the contract of `Memory::start` the local memory remains valid as the operation requires.
        unsafe { memory.start(endpoint.handle, shared, operation, number) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.discard_arrivals();
        let peers = self.endpoints.borrow().len();
        for peer in 0..peers {
            self.close(peer as ProcId, Close::AtOnce);
        }
        let deadline = Instant::now() + CLOSING;
        while !self.is_quiet() && !self.worker.is_null() && Instant::now() < deadline {
            // SAFETY: the worker is valid.
            unsafe { (self.ucp.ucp_worker_progress)(self.worker) };
            self.check_requests();
        }
        if !self.is_quiet() {
            // UCX may still refer to buffers and hooks, so all of these are leaked.
            std::mem::forget(self.closing.take());
            return;
        }
        if let Some(memory) = &self.memory {
            memory.unregister_all();
        }
        // SAFETY: the handles are valid, or null if they were never created; they are not used afterwards, and all endpoints are closed.
        unsafe {
            if !self.worker.is_null() {
                (self.ucp.ucp_worker_destroy)(self.worker);
            }
            if !self.context.is_null() {
                (self.ucp.ucp_cleanup)(self.context);
            }
            ManuallyDrop::drop(&mut self.shared);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sizes_have_one_name_in_every_spelling() {
        for size in ["512k", "512K", "524288", "524288b"] {
            assert_eq!(bytes(size), Some(512 << 10), "{size}");
        }
        assert_eq!((bytes("1m"), bytes("3G")), (Some(1 << 20), Some(3 << 30)));
        for size in ["", "k", "-1k", "+1", "0.5m", "inf", "auto", "99999999999g"] {
            assert_eq!(bytes(size), None, "{size}");
        }
    }
}
