//! Accelerator component for CUDA: calls the functions of the CUDA driver library `libcuda.so.1`.
//!
//! Never run on a real GPU: the tests load a stand-in library with the same functions.
//!
//! * `cuPointerGetAttributes` describes an address. For memory that CUDA does not know,
//!   the function returns `CUDA_ERROR_INVALID_VALUE` or the memory type 0.
//! * Memory of `cuMemCreate` and of a memory pool belongs to no context;
//!   a thread without a current context copies such memory in the device's primary context.
//!   CUDA may report such memory as host memory although only a device reaches it,
//!   so its allocation handle or its pool is checked too.
//! * Memory of `cuMemAlloc` has an IPC handle for other processes of the node;
//!   managed memory, pools and memory of `cuMemCreate` have none.
//! * Copies use the thread's default stream (`CU_STREAM_PER_THREAD`),
//!   which waits for work in the legacy default stream.

use super::ipc::Mappings;
use super::library::functions;
use super::{
    Accelerator, AcceleratorError, Component, Direction, Export, Flight, Lacks, Memory, Strip,
    pieces,
};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The CUDA component, for the list of built-in accelerators.
pub const COMPONENT: Component = Component {
    name: "cuda",
    resident: Cuda::resident,
};

/// Result codes (`CUresult`).
const SUCCESS: c_int = 0;
const NOT_READY: c_int = 600;

/// Attributes of an address (`CUpointer_attribute`).
const CONTEXT: c_int = 1;
const MEMORY_TYPE: c_int = 2;
const BUFFER_ID: c_int = 7;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;
const MEMPOOL_HANDLE: c_int = 17;

/// Types of memory (`CUmemorytype`).
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const UNIFIED: c_uint = 4;

/// `CU_MEM_LOCATION_TYPE_DEVICE`: the memory is located on a device.
const AT_DEVICE: c_int = 1;

/// `CU_STREAM_PER_THREAD`: the default stream of the calling thread.
const STREAM: *mut c_void = std::ptr::without_provenance_mut(2);

/// `CU_STREAM_LEGACY`: the default stream of programs that do not choose per-thread streams.
const LEGACY: *mut c_void = std::ptr::without_provenance_mut(1);

/// `CU_EVENT_DISABLE_TIMING`: the event records no time.
const WITHOUT_TIME: c_uint = 2;

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`: enables access between the two devices when needed.
const WITH_PEER_ACCESS: c_uint = 1;

/// `CU_MEMHOSTREGISTER_PORTABLE`: pinned for all contexts.
const PORTABLE: c_uint = 1;

type Address = u64;

/// `CUipcMemHandle`: the handle of an allocation for other processes.
#[repr(C)]
#[derive(Clone, Copy)]
struct IpcHandle([u8; 64]);

/// `CUmemLocation`: the type and the number of a memory location, such as a device.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Location {
    kind: c_int,
    id: c_int,
}

/// `CUmemAllocationProp`: the properties of memory from `cuMemCreate`.
#[repr(C)]
struct AllocationProperties {
    kind: c_int,
    requested_handles: c_int,
    location: Location,
    win32_handle_meta_data: *mut c_void,
    flags: [u8; 8],
}

/// `CUDA_MEMCPY2D_v2`: the argument of `cuMemcpy2DAsync`.
#[repr(C)]
struct Copy2d {
    src_x: usize,
    src_y: usize,
    src_type: c_uint,
    src_host: *const c_void,
    src_device: Address,
    src_array: *mut c_void,
    src_pitch: usize,
    dst_x: usize,
    dst_y: usize,
    dst_type: c_uint,
    dst_host: *mut c_void,
    dst_device: Address,
    dst_array: *mut c_void,
    dst_pitch: usize,
    width: usize,
    height: usize,
}

functions! {
    Driver of "libcuda.so.1" or "libcuda.so";
    required {
        attributes: "cuPointerGetAttributes" (c_uint, *mut c_int, *mut *mut c_void, Address);
        to_host: "cuMemcpyDtoHAsync_v2" (*mut c_void, Address, usize, *mut c_void);
        to_device: "cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, *mut c_void);
        synchronize: "cuStreamSynchronize" (*mut c_void);
        current: "cuCtxGetCurrent" (*mut *mut c_void);
        push: "cuCtxPushCurrent_v2" (*mut c_void);
        pop: "cuCtxPopCurrent_v2" (*mut *mut c_void);
    }
    optional {
        retain_primary: "cuDevicePrimaryCtxRetain" (*mut *mut c_void, c_int);
        attribute: "cuPointerGetAttribute" (*mut c_void, c_int, Address);
        copy_2d: "cuMemcpy2DAsync_v2" (*const Copy2d, *mut c_void);
        register: "cuMemHostRegister_v2" (*mut c_void, usize, c_uint);
        retain_handle: "cuMemRetainAllocationHandle" (*mut u64, *mut c_void);
        handle_properties: "cuMemGetAllocationPropertiesFromHandle" (*mut AllocationProperties, u64);
        release_handle: "cuMemRelease" (u64);
        pool_access: "cuMemPoolGetAccess" (*mut c_int, *mut c_void, *mut Location);
 event_create: "cuEventCreate" (*mut *mut c_void, c_uint);
        event_record: "cuEventRecord" (*mut c_void, *mut c_void);
        event_query: "cuEventQuery" (*mut c_void);
        event_wait: "cuEventSynchronize" (*mut c_void);
        event_destroy: "cuEventDestroy_v2" (*mut c_void);
        copy_unified: "cuMemcpyAsync" (Address, Address, usize, *mut c_void);
        range: "cuMemGetAddressRange_v2" (*mut Address, *mut usize, Address);
        ipc_handle: "cuIpcGetMemHandle" (*mut IpcHandle, Address);
        ipc_open: "cuIpcOpenMemHandle_v2" (*mut Address, IpcHandle, c_uint);
        ipc_close: "cuIpcCloseMemHandle" (Address);
        error_name: "cuGetErrorName" (c_int, *mut *const c_char);
    }
}

/// The driver's functions for events; a driver that lacks one of them cannot copy asynchronously.
struct Events {
    create: unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int,
    record: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
    query: unsafe extern "C" fn(*mut c_void) -> c_int,
    wait: unsafe extern "C" fn(*mut c_void) -> c_int,
    destroy: unsafe extern "C" fn(*mut c_void) -> c_int,
}

/// The loaded driver library.
struct Cuda(Driver);

/// Allocations of other processes that are open in this process.
static MAPPINGS: Mutex<Mappings> = Mutex::new(Mappings::new());

fn mappings() -> MutexGuard<'static, Mappings> {
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cuda {
    fn resident() -> Option<Result<Box<dyn Accelerator>, Lacks>> {
        let found = Driver::resident()?;
        Some(found.map(|driver| Box::new(Cuda(driver)) as Box<dyn Accelerator>))
    }

    /// Converts the result code of a driver function to a `Result`.
    fn checked(&self, function: &'static str, code: c_int) -> Result<(), AcceleratorError> {
        match code {
            SUCCESS => Ok(()),
            code => Err(self.failed(function, code)),
        }
    }

    #[cold]
    fn failed(&self, function: &'static str, code: c_int) -> AcceleratorError {
        let mut name = std::ptr::null();
        let known = self.0.error_name.is_some_and(|error_name| {
            // SAFETY: the result is a pointer to a string of the library.
            unsafe { error_name(code, &raw mut name) == SUCCESS && !name.is_null() }
        });
        let reason = match known {
            // SAFETY: the library stored the address of a constant string (checked above).
            true => unsafe { CStr::from_ptr(name) }
                .to_string_lossy()
                .into_owned(),
            false => format!("error {code}"),
        };
        AcceleratorError {
            title: "CUDA",
            function,
            reason,
        }
    }

    /// Returns the device of memory that CUDA reports as host memory but that only a device reaches.
    fn device_behind(&self, at: *const u8, ordinal: c_int) -> Option<c_int> {
        self.device_of_handle(at)
            .or_else(|| self.device_of_pool(at, ordinal))
    }

    /// Returns the device that holds memory allocated by `cuMemCreate`; `None` for other memory.
    fn device_of_handle(&self, at: *const u8) -> Option<c_int> {
        let (retain, properties, release) = (
            self.0.retain_handle?,
            self.0.handle_properties?,
            self.0.release_handle?,
        );
        let mut handle = 0;
        // SAFETY: the driver library checks the address, and writes the handle to a local variable of its type.
        if unsafe { retain(&raw mut handle, at.cast_mut().cast()) } != SUCCESS {
            return None;
        }
        let mut about = AllocationProperties {
            kind: 0,
            requested_handles: 0,
            location: Location::default(),
            win32_handle_meta_data: std::ptr::null_mut(),
            flags: [0; 8],
        };
        // SAFETY: the handle is valid until it is released, and the local variable has the layout of the structure that the function writes.
        let found = unsafe {
            let code = properties(&raw mut about, handle);
            release(handle);
            code
        };
        (found == SUCCESS && about.location.kind == AT_DEVICE).then_some(about.location.id)
    }

    /// Returns the device that can access this address's memory pool; `None` without a pool.
    fn device_of_pool(&self, at: *const u8, ordinal: c_int) -> Option<c_int> {
        let (attribute, access) = (self.0.attribute?, self.0.pool_access?);
        let mut pool = std::ptr::null_mut::<c_void>();
        // SAFETY: the function writes the value of this attribute, a pointer, to the local variable.
        let code =
            unsafe { attribute((&raw mut pool).cast(), MEMPOOL_HANDLE, at.addr() as Address) };
        if code != SUCCESS || pool.is_null() {
            return None;
        }
        let mut location = Location {
            kind: AT_DEVICE,
            id: ordinal.max(0),
        };
        let mut flags = 0;
        // SAFETY: the pool belongs to existing memory, and both local variables have the types of the function's parameters.
        let code = unsafe { access(&raw mut flags, pool, &raw mut location) };
        (code == SUCCESS && flags != 0).then_some(location.id)
    }

    /// Runs `body` with a current context. If this thread has none, the memory's context is used,
    /// or the device's primary context for memory without a context.
    fn within<R>(
        &self,
        memory: &Memory,
        body: impl FnOnce() -> Result<R, AcceleratorError>,
    ) -> Result<R, AcceleratorError> {
        let mut current = std::ptr::null_mut();
        // SAFETY: the library stores one pointer in the local variable.
        let code = unsafe { (self.0.current)(&raw mut current) };
        self.checked("cuCtxGetCurrent", code)?;
        if !current.is_null() {
            return body();
        }
        let mut context = std::ptr::without_provenance_mut::<c_void>(memory.context);
        if let (true, Some(retain)) = (context.is_null(), self.0.retain_primary) {
            // The context is never released: it holds the program's memory until the process ends.
            // SAFETY: the library stores one pointer in the local variable.
            let code = unsafe { retain(&raw mut context, memory.device) };
            self.checked("cuDevicePrimaryCtxRetain", code)?;
        }
        // SAFETY: the library checks the context.
        let code = unsafe { (self.0.push)(context) };
        self.checked("cuCtxPushCurrent", code)?;
        let result = body();
        // SAFETY: the library stores one pointer in the local variable.
        unsafe { (self.0.pop)(&raw mut context) };
        result
    }

    /// Returns the functions for events, if the library has all of them.
    fn events(&self) -> Option<Events> {
        Some(Events {
            create: self.0.event_create?,
            record: self.0.event_record?,
            query: self.0.event_query?,
            wait: self.0.event_wait?,
            destroy: self.0.event_destroy?,
        })
    }

    /// Returns the current context of this thread.
    fn context(&self) -> Result<usize, AcceleratorError> {
        let mut current = std::ptr::null_mut();
        // SAFETY: the library stores one pointer in the local variable.
        let code = unsafe { (self.0.current)(&raw mut current) };
        self.checked("cuCtxGetCurrent", code)?;
        Ok(current.addr())
    }

    /// Calls `start`, which starts copies, and records an event after them.
    /// If `start` fails, its copies have ended when the call returns.
    fn flight(
        &self,
        mapping: u64,
        start: impl FnOnce() -> Result<(), AcceleratorError>,
    ) -> Result<Flight, AcceleratorError> {
        let Some(events) = self.events() else {
            return Err(self.has_no("events"));
        };
        let mut event = std::ptr::null_mut();
        // SAFETY: the library stores one pointer in the local variable.
        let code = unsafe { (events.create)(&raw mut event, WITHOUT_TIME) };
        self.checked("cuEventCreate", code)?;
        let started = start().and_then(|()| {
            // SAFETY: the event was created above, and the stream exists in every context.
            let code = unsafe { (events.record)(event, STREAM) };
            self.checked("cuEventRecord", code)
        });
        if let Err(error) = started {
            // SAFETY: the stream exists in every context, and the event was created above and is not used afterwards.
            unsafe {
                (self.0.synchronize)(STREAM);
                (events.destroy)(event);
            }
            return Err(error);
        }
        Ok(Flight {
            event: event.expose_provenance(),
            context: self.context()?,
            mapping,
        })
    }

    /// Opens an allocation of another process in this thread's context, or returns its open mapping.
    fn open(&self, owner: u64, from: &Export) -> Result<super::ipc::Mapping, AcceleratorError> {
        let (Some(open), Some(_)) = (self.0.ipc_open, self.0.ipc_close) else {
            return Err(self.has_no("memory of other processes"));
        };
        let context = self.context()?;
        // The lock is held during the call, so that no other thread opens the same handle.
        let mut all = mappings();
        if let Some(known) = all.lease(owner, context, from) {
            return Ok(known);
        }
        let Some(stale) = all.make_way(owner, from) else {
            return Err(self.has_no("so much memory of other processes"));
        };
        stale.iter().for_each(|mapping| self.close_mapping(mapping));
        let mut at = 0;
        // SAFETY: the driver library checks the handle, and writes an address to the local variable.
        let code = unsafe { open(&raw mut at, IpcHandle(from.handle), WITH_PEER_ACCESS) };
        self.checked("cuIpcOpenMemHandle", code)?;
        Ok(all.add(owner, context, from, at))
    }

    /// Closes the mapping of another process's allocation.
    fn close_mapping(&self, mapping: &super::ipc::Mapping) {
        let mut context = std::ptr::without_provenance_mut::<c_void>(mapping.context());
        if let Some(close) = self.0.ipc_close {
            // If the push fails, the context and its mappings no longer exist.
            // SAFETY: the library checks the context, and the address is that of an open mapping without users.
            unsafe {
                if (self.0.push)(context) == SUCCESS {
                    close(mapping.at);
                    (self.0.pop)(&raw mut context);
                }
            }
        }
    }

    /// Starts the copies of a strip's blocks on the stream.
    ///
    /// # Safety
    /// As [`Accelerator::copy`]; the host memory stays valid until the stream has been synchronized.
    unsafe fn start(&self, direction: Direction, strip: Strip) -> Result<(), AcceleratorError> {
        if strip.blocks > 1
            && let Some(copy_2d) = self.0.copy_2d
        {
            // SAFETY: the host blocks are valid by the contract of this function; the library copies the argument.
            let code = unsafe { copy_2d(&rows(direction, strip), STREAM) };
            // Devices limit the pitch of a 2D copy; blocks with a longer stride are copied one by one.
            if code == SUCCESS {
                return Ok(());
            }
        }
        for (device, host, len) in pieces(strip) {
            let device = device.addr() as Address;
            // SAFETY: the host blocks are valid by the contract of this function.
            unsafe {
                match direction {
                    Direction::ToHost => {
                        let code = (self.0.to_host)(host.cast(), device, len, STREAM);
                        self.checked("cuMemcpyDtoHAsync", code)?;
                    }
                    Direction::ToDevice => {
                        let code = (self.0.to_device)(device, host.cast(), len, STREAM);
                        self.checked("cuMemcpyHtoDAsync", code)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the strip as an argument of `cuMemcpy2DAsync`: one block per row.
fn rows(direction: Direction, strip: Strip) -> Copy2d {
    let (host, device) = (strip.host, strip.device.addr() as Address);
    let to_host = direction == Direction::ToHost;
    let (source, target) = if to_host {
        (DEVICE, HOST)
    } else {
        (HOST, DEVICE)
    };
    let only = |wanted: bool| if wanted { host } else { std::ptr::null_mut() };
    Copy2d {
        src_x: 0,
        src_y: 0,
        src_type: source,
        src_host: only(!to_host).cast(),
        src_device: if to_host { device } else { 0 },
        src_array: std::ptr::null_mut(),
        src_pitch: strip.stride,
        dst_x: 0,
        dst_y: 0,
        dst_type: target,
        dst_host: only(to_host).cast(),
        dst_device: if to_host { 0 } else { device },
        dst_array: std::ptr::null_mut(),
        dst_pitch: strip.stride,
        width: strip.len,
        height: strip.blocks,
    }
}

impl Accelerator for Cuda {
    fn name(&self) -> &'static str {
        COMPONENT.name
    }

    fn title(&self) -> &'static str {
        "CUDA"
    }

    fn recognise(&self, at: *const u8) -> Option<Memory> {
        let (mut context, mut kind) = (std::ptr::null_mut::<c_void>(), 0);
        let (mut managed, mut ordinal): (c_uint, c_int) = (0, -1);
        let mut wanted = [CONTEXT, MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL];
        let mut results: [*mut c_void; 4] = [
            (&raw mut context).cast(),
            (&raw mut kind).cast(),
            (&raw mut managed).cast(),
            (&raw mut ordinal).cast(),
        ];
        // SAFETY: the four local variables have the types of their attributes.
        let code = unsafe {
            (self.0.attributes)(
                wanted.len() as c_uint,
                wanted.as_mut_ptr(),
                results.as_mut_ptr(),
                at.addr() as Address,
            )
        };
        // CUDA is not initialized, or the address is not CUDA memory.
        if code != SUCCESS {
            return None;
        }
        let device = match kind {
            DEVICE | UNIFIED => ordinal,
            HOST if managed != 0 => ordinal,
            HOST => self.device_behind(at, ordinal)?,
            _ => return None,
        };
        Some(Memory {
            is_managed: managed != 0,
            context: context.addr(),
            device,
        })
    }

    unsafe fn copy(
        &self,
        memory: &Memory,
        direction: Direction,
        strips: &mut dyn Iterator<Item = Strip>,
    ) -> Result<(), AcceleratorError> {
        self.within(memory, || {
            // SAFETY: the host blocks are valid by the contract of this function, and the stream is synchronized below.
            let mut started = strips.map(|strip| unsafe { self.start(direction, strip) });
            let started = started.find(Result::is_err).unwrap_or(Ok(()));
            // Executed also after a failure: copies that were started still access the host memory.
            // SAFETY: the stream exists in every context.
            let code = unsafe { (self.0.synchronize)(STREAM) };
            started?;
            self.checked("cuStreamSynchronize", code)
        })
    }

    unsafe fn pin(&self, memory: &Memory, at: *mut u8, len: usize) -> bool {
        let Some(register) = self.0.register else {
            return false;
        };
        let pinned = self.within(memory, || {
            // SAFETY: the memory stays mapped by the contract of this function.
            let code = unsafe { register(at.cast(), len, PORTABLE) };
            self.checked("cuMemHostRegister", code)
        });
        pinned.is_ok()
    }

    fn has_flights(&self) -> bool {
        self.events().is_some()
    }

    unsafe fn begin(
        &self,
        memory: &Memory,
        direction: Direction,
        strip: Strip,
    ) -> Result<Flight, AcceleratorError> {
        self.within(memory, || {
            // SAFETY: the host blocks are valid until the end of the flight by the contract of this function.
            self.flight(0, || unsafe { self.start(direction, strip) })
        })
    }

    fn end(&self, flight: Flight, waits: bool) -> Option<Result<(), AcceleratorError>> {
        let events = self.events()?;
        let event = std::ptr::with_exposed_provenance_mut::<c_void>(flight.event);
        let memory = Memory {
            is_managed: false,
            context: flight.context,
            device: 0,
        };
        let ended = self.within(&memory, || {
            let ask = if waits { events.wait } else { events.query };
            // SAFETY: the event exists until it is destroyed below, once.
            let code = unsafe { ask(event) };
            if code == NOT_READY {
                return Ok(false);
            }
            // SAFETY: the event has not been destroyed before, and is not used afterwards.
            unsafe { (events.destroy)(event) };
            self.checked("cuEventQuery", code)?;
            Ok(true)
        });
        if matches!(ended, Ok(false)) {
            return None;
        }
        if flight.mapping != 0 {
            mappings().release(flight.mapping);
        }
        Some(ended.map(|_| ()))
    }

    fn export(&self, memory: &Memory, at: *const u8, len: usize) -> Option<Export> {
        let (handle_of, range, attribute) = (self.0.ipc_handle?, self.0.range?, self.0.attribute?);
        if self.0.copy_unified.is_none() || self.events().is_none() {
            return None;
        }
        // IPC handles exist only for memory of `cuMemAlloc`, which has a context and is not managed.
        if memory.is_managed || memory.context == 0 {
            return None;
        }
        let address = at.addr() as Address;
        let exported = self.within(memory, || {
            let (mut base, mut size, mut buffer) = (0, 0usize, 0u64);
            let mut handle = IpcHandle([0; 64]);
            // SAFETY: the driver library checks the address, and each output pointer refers to a local variable of the type that the function writes.
            unsafe {
                let code = range(&raw mut base, &raw mut size, address);
                self.checked("cuMemGetAddressRange", code)?;
                let code = attribute((&raw mut buffer).cast(), BUFFER_ID, address);
                self.checked("cuPointerGetAttribute", code)?;
                let code = handle_of(&raw mut handle, base);
                self.checked("cuIpcGetMemHandle", code)?;
                // Wait for this process's default stream, because the other process's copy does not.
                let code = (self.0.synchronize)(LEGACY);
                self.checked("cuStreamSynchronize", code)?;
            }
            Ok(Export {
                handle: handle.0,
                buffer,
                base,
                size: size as u64,
                offset: address.wrapping_sub(base),
            })
        });
        exported
            .ok()
            .filter(|export| export.offset < export.size && export.has(len))
    }

    unsafe fn import(
        &self,
        near: Option<&Memory>,
        owner: u64,
        from: &Export,
        to: *mut u8,
        len: usize,
    ) -> Result<Flight, AcceleratorError> {
        let Some(copy) = self.0.copy_unified else {
            return Err(self.has_no("copies between devices"));
        };
        let first = Memory {
            is_managed: false,
            context: 0,
            device: 0,
        };
        self.within(near.unwrap_or(&first), || {
            let mapping = self.open(owner, from)?;
            let source = mapping.at.wrapping_add(from.offset);
            let flight = self.flight(mapping.number, || {
                // SAFETY: addresses of devices are checked by the library, and memory of the host is valid by the contract of this function.
                let code = unsafe { copy(to.expose_provenance() as Address, source, len, STREAM) };
                self.checked("cuMemcpyAsync", code)
            });
            if flight.is_err() {
                mappings().release(mapping.number);
            }
            flight
        })
    }

    fn close(&self) {
        let all = mappings().take_all();
        all.iter().for_each(|mapping| self.close_mapping(mapping));
    }
}
