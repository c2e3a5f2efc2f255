//! Accelerator component for Level Zero: calls the functions of its loader `libze_loader.so.1`.
//!
//! Never run on a real GPU: the tests load a stand-in library with the same functions.
//!
//! * The query of an address needs a context, which recognises all memory of its driver;
//!   so this component creates one context per driver.
//! * Copies use one synchronous immediate command list per device, one thread at a time.
//! * The program initializes the library. Until then no drivers exist and no memory is recognised.

use super::library::functions;
use super::{Accelerator, AcceleratorError, Component, Direction, Lacks, Memory, Strip, pieces};
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The Level Zero component, for the list of built-in accelerators.
pub const COMPONENT: Component = Component {
    name: "level_zero",
    resident: LevelZero::resident,
};

const SUCCESS: c_int = 0;

/// Values of `ze_structure_type_t`, the type in the first field of each structure.
const CONTEXT_DESC: c_int = 0xd;
const COMMAND_QUEUE_DESC: c_int = 0xe;
const MEMORY_ALLOCATION_PROPERTIES: c_int = 0x17;

/// Values of `ze_memory_type_t`, the type of an allocation.
const DEVICE: c_int = 2;
const SHARED: c_int = 3;

/// `ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS`: a copy is complete when its call returns.
const SYNCHRONOUS: c_int = 1;

/// `ze_context_desc_t`: the description of a context to be created.
#[repr(C)]
struct ContextDesc {
    kind: c_int,
    next: *const c_void,
    flags: u32,
}

/// `ze_command_queue_desc_t`: the description of the queue of an immediate command list to be created.
#[repr(C)]
struct QueueDesc {
    kind: c_int,
    next: *const c_void,
    ordinal: u32,
    index: u32,
    flags: u32,
    mode: c_int,
    priority: c_int,
}

/// `ze_memory_allocation_properties_t`: the properties of the memory at an address.
#[repr(C)]
struct Properties {
    kind: c_int,
    next: *mut c_void,
    memory: c_int,
    id: u64,
    page_size: u64,
}

functions! {
    Loader of "libze_loader.so.1" or "libze_loader.so";
    required {
        drivers: "zeDriverGet" (*mut u32, *mut *mut c_void);
        devices: "zeDeviceGet" (*mut c_void, *mut u32, *mut *mut c_void);
        create_context: "zeContextCreate" (*mut c_void, *const ContextDesc, *mut *mut c_void);
        properties: "zeMemGetAllocProperties" (*mut c_void, *const c_void, *mut Properties, *mut *mut c_void);
        create_list: "zeCommandListCreateImmediate" (*mut c_void, *mut c_void, *const QueueDesc, *mut *mut c_void);
        copy: "zeCommandListAppendMemoryCopy" (*mut c_void, *mut c_void, *const c_void, usize, *mut c_void, u32, *mut *mut c_void);
    }
    optional {
    }
}

/// A device, its driver's context and, after the first copy, its command list,
/// all as handles stored in integers.
struct Device {
    device: usize,
    context: usize,
    list: Option<usize>,
}

/// The contexts and devices found until now. A device is identified by its index in this list.
#[derive(Default)]
struct Known {
    /// For each driver: the driver's handle and the context that this component has created.
    contexts: Vec<(usize, usize)>,
    devices: Vec<Device>,
}

struct LevelZero {
    loader: Loader,
    known: Mutex<Known>,
}

fn handle(number: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(number)
}

fn checked(function: &'static str, code: c_int) -> Result<(), AcceleratorError> {
    match code {
        SUCCESS => Ok(()),
        code => Err(AcceleratorError {
            title: "Level Zero",
            function,
            reason: format!("error {code:#x}"),
        }),
    }
}

impl LevelZero {
    fn resident() -> Option<Result<Box<dyn Accelerator>, Lacks>> {
        let found = Loader::resident()?;
        Some(found.map(|loader| {
            let known = Mutex::default();
            Box::new(LevelZero { loader, known }) as Box<dyn Accelerator>
        }))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a context for each driver; no effect until the program has initialized the library.
    fn find_drivers(&self, known: &mut Known) {
        let (mut number, mut drivers) = (0, [std::ptr::null_mut(); 16]);
        // SAFETY: with a null pointer the library stores the number of drivers.
        let asked = unsafe { (self.loader.drivers)(&raw mut number, std::ptr::null_mut()) };
        number = number.min(drivers.len() as u32);
        // SAFETY: the array has `number` elements.
        let code = unsafe { (self.loader.drivers)(&raw mut number, drivers.as_mut_ptr()) };
        if asked != SUCCESS || code != SUCCESS {
            return;
        }
        let found = drivers.iter().take(number as usize);
        for &driver in found {
            let description = ContextDesc {
                kind: CONTEXT_DESC,
                next: std::ptr::null(),
                flags: 0,
            };
            let mut context = std::ptr::null_mut();
            // SAFETY: the driver is one of the library's, and the description has its layout.
            let code = unsafe {
                (self.loader.create_context)(driver, &raw const description, &raw mut context)
            };
            if code == SUCCESS {
                known
                    .contexts
                    .push((context.expose_provenance(), driver.expose_provenance()));
            }
        }
    }

    /// Returns the index of the device in `known`. For memory without a device,
    /// returns the index of the driver's first device.
    fn position(&self, known: &mut Known, at: (usize, usize), device: *mut c_void) -> Option<i32> {
        let (context, driver) = at;
        let mut device = device;
        if device.is_null() {
            let mut one = 1;
            // SAFETY: the driver is one of the library's, and the result is one pointer.
            let code =
                unsafe { (self.loader.devices)(handle(driver), &raw mut one, &raw mut device) };
            if code != SUCCESS || device.is_null() {
                return None;
            }
        }
        let number = device.expose_provenance();
        let same = |known: &Device| known.device == number && known.context == context;
        let found = known.devices.iter().position(same);
        let position = found.unwrap_or_else(|| {
            known.devices.push(Device {
                device: number,
                context,
                list: None,
            });
            known.devices.len() - 1
        });
        i32::try_from(position).ok()
    }

    /// Returns the device's command list, which the first call creates.
    fn list(&self, device: &mut Device) -> Result<*mut c_void, AcceleratorError> {
        if let Some(list) = device.list {
            return Ok(handle(list));
        }
        let description = QueueDesc {
            kind: COMMAND_QUEUE_DESC,
            next: std::ptr::null(),
            ordinal: 0,
            index: 0,
            flags: 0,
            mode: SYNCHRONOUS,
            priority: 0,
        };
        let mut list = std::ptr::null_mut();
        // SAFETY: context and device are the library's, and the description has its layout.
        let code = unsafe {
            (self.loader.create_list)(
                handle(device.context),
                handle(device.device),
                &raw const description,
                &raw mut list,
            )
        };
        checked("zeCommandListCreateImmediate", code)?;
        device.list = Some(list.expose_provenance());
        Ok(list)
    }
}

impl Accelerator for LevelZero {
    fn name(&self) -> &'static str {
        COMPONENT.name
    }

    fn title(&self) -> &'static str {
        "Level Zero"
    }

    fn recognise(&self, at: *const u8) -> Option<Memory> {
        let mut known = self.known();
        if known.contexts.is_empty() {
            self.find_drivers(&mut known);
        }
        let contexts = known.contexts.clone();
        contexts.into_iter().find_map(|(context, driver)| {
            let mut about = Properties {
                kind: MEMORY_ALLOCATION_PROPERTIES,
                next: std::ptr::null_mut(),
                memory: 0,
                id: 0,
                page_size: 0,
            };
            let mut device = std::ptr::null_mut();
            // SAFETY: the context is valid until the process ends.
            // The results have the library's layout.
            let code = unsafe {
                (self.loader.properties)(
                    handle(context),
                    at.cast(),
                    &raw mut about,
                    &raw mut device,
                )
            };
            let is_there = code == SUCCESS && [DEVICE, SHARED].contains(&about.memory);
            is_there.then_some(())?;
            Some(Memory {
                is_managed: about.memory == SHARED,
                context,
                device: self.position(&mut known, (context, driver), device)?,
            })
        })
    }

    unsafe fn copy(
        &self,
        memory: &Memory,
        direction: Direction,
        strips: &mut dyn Iterator<Item = Strip>,
    ) -> Result<(), AcceleratorError> {
        // Only one thread may use a command list, so the lock is held until the copies have ended.
        let mut known = self.known();
        let device = usize::try_from(memory.device).ok();
        let Some(device) = device.and_then(|device| known.devices.get_mut(device)) else {
            return Err(self.has_no("copies of this device"));
        };
        let list = self.list(device)?;
        for (device, host, len) in strips.flat_map(pieces) {
            let (to, from) = match direction {
                Direction::ToHost => (host, device),
                Direction::ToDevice => (device, host),
            };
            // SAFETY: the host blocks are valid by the contract of this function, and the list is synchronous.
            let code = unsafe {
                (self.loader.copy)(
                    list,
                    to.cast(),
                    from.cast(),
                    len,
                    std::ptr::null_mut(),
                    0,
                    std::ptr::null_mut(),
                )
            };
            checked("zeCommandListAppendMemoryCopy", code)?;
        }
        Ok(())
    }

    /// Always returns false: the library cannot pin memory that it has not allocated.
    unsafe fn pin(&self, _memory: &Memory, _at: *mut u8, _len: usize) -> bool {
        false
    }
}
