//! Accelerator component for ROCm: calls the functions of the HIP library `libamdhip64.so`.
//!
//! Untested: neither a GPU nor a stand-in library with these functions was available.
//!
//! * Version 6 of HIP renumbered the memory types; versions 5 and 6 have different file names.
//! * An address is valid in all contexts, so a copy does not switch contexts.

use super::library::functions;
use super::{Accelerator, AcceleratorError, Component, Direction, Lacks, Memory, Strip, pieces};
use std::ffi::{c_int, c_uint, c_void};

/// The ROCm component, for the list of built-in accelerators.
pub const COMPONENT: Component = Component {
    name: "rocm",
    resident: Rocm::resident,
};

const SUCCESS: c_int = 0;

/// Values of `hipMemcpyKind`, the direction of a copy.
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;

/// `hipStreamPerThread`: the default stream of the calling thread.
const STREAM: *mut c_void = std::ptr::without_provenance_mut(2);

/// `hipHostRegisterPortable`: pinned for all contexts.
const PORTABLE: c_uint = 1;

/// `hipPointerAttribute_t`: the properties of the memory at an address.
#[repr(C)]
struct Attributes {
    kind: c_int,
    device: c_int,
    device_pointer: *mut c_void,
    host_pointer: *mut c_void,
    is_managed: c_int,
    flags: c_uint,
    /// Space for fields that newer versions of the library add.
    reserved: [u64; 8],
}

functions! {
    Hip of "libamdhip64.so.6" or "libamdhip64.so.7" or "libamdhip64.so.5";
    required {
        attributes: "hipPointerGetAttributes" (*mut Attributes, *const c_void);
        copy: "hipMemcpyAsync" (*mut c_void, *const c_void, usize, c_int, *mut c_void);
        synchronize: "hipStreamSynchronize" (*mut c_void);
    }
    optional {
        copy_2d: "hipMemcpy2DAsync" (*mut c_void, usize, *const c_void, usize, usize, usize, c_int, *mut c_void);
        register: "hipHostRegister" (*mut c_void, usize, c_uint);
    }
}

/// The functions of the loaded HIP library.
struct Rocm {
    hip: Hip,
    /// True if the library numbers memory types as version 5 does.
    is_old: bool,
}

impl Rocm {
    fn resident() -> Option<Result<Box<dyn Accelerator>, Lacks>> {
        let found = Hip::resident()?;
        let is_old = super::Library::resident(c"libamdhip64.so.5").is_some();
        Some(found.map(|hip| Box::new(Rocm { hip, is_old }) as Box<dyn Accelerator>))
    }

    fn checked(function: &'static str, code: c_int) -> Result<(), AcceleratorError> {
        match code {
            SUCCESS => Ok(()),
            code => Err(AcceleratorError {
                title: "ROCm",
                function,
                reason: format!("error {code}"),
            }),
        }
    }

    /// Starts the copies of a strip's blocks on the stream.
    ///
    /// # Safety
    /// As [`Accelerator::copy`]; the host memory stays valid until the stream has been synchronized.
    unsafe fn start(&self, direction: Direction, strip: Strip) -> Result<(), AcceleratorError> {
        let ends = |device: *mut u8, host: *mut u8| match direction {
            Direction::ToHost => (host, device, DEVICE_TO_HOST),
            Direction::ToDevice => (device, host, HOST_TO_DEVICE),
        };
        if strip.blocks > 1
            && let Some(copy_2d) = self.hip.copy_2d
        {
            let (to, from, kind) = ends(strip.device, strip.host);
            let pitch = strip.stride;
            // SAFETY: the host blocks are valid by the contract of this function.
            let code = unsafe {
                copy_2d(
                    to.cast(),
                    pitch,
                    from.cast(),
                    pitch,
                    strip.len,
                    strip.blocks,
                    kind,
                    STREAM,
                )
            };
            if code == SUCCESS {
                return Ok(());
            }
        }
        for (device, host, len) in pieces(strip) {
            let (to, from, kind) = ends(device, host);
            // SAFETY: the host blocks are valid by the contract of this function.
            let code = unsafe { (self.hip.copy)(to.cast(), from.cast(), len, kind, STREAM) };
            Self::checked("hipMemcpyAsync", code)?;
        }
        Ok(())
    }
}

impl Accelerator for Rocm {
    fn name(&self) -> &'static str {
        COMPONENT.name
    }

    fn title(&self) -> &'static str {
        "ROCm"
    }

    fn recognise(&self, at: *const u8) -> Option<Memory> {
        let mut found = Attributes {
            kind: -1,
            device: 0,
            device_pointer: std::ptr::null_mut(),
            host_pointer: std::ptr::null_mut(),
            is_managed: 0,
            flags: 0,
            reserved: [0; 8],
        };
        // SAFETY: the result has the library's layout, and space for the fields of newer versions.
        let code = unsafe { (self.hip.attributes)(&raw mut found, at.cast()) };
        if code != SUCCESS {
            return None;
        }
        // The types of device memory, unified memory and managed memory.
        let on_device: &[c_int] = match self.is_old {
            true => &[1, 3, 4],
            false => &[2, 11, 3],
        };
        let is_managed = found.is_managed != 0;
        (is_managed || on_device.contains(&found.kind)).then_some(Memory {
            is_managed,
            context: 0,
            device: found.device,
        })
    }

    unsafe fn copy(
        &self,
        _memory: &Memory,
        direction: Direction,
        strips: &mut dyn Iterator<Item = Strip>,
    ) -> Result<(), AcceleratorError> {
        // SAFETY: the host blocks are valid by the contract of this function, and the stream is synchronized below.
        let mut started = strips.map(|strip| unsafe { self.start(direction, strip) });
        let started = started.find(Result::is_err).unwrap_or(Ok(()));
        // Executed also after a failure: copies that were started still access the host memory.
        // SAFETY: the stream exists in every thread.
        let code = unsafe { (self.hip.synchronize)(STREAM) };
        started?;
        Self::checked("hipStreamSynchronize", code)
    }

    unsafe fn pin(&self, _memory: &Memory, at: *mut u8, len: usize) -> bool {
        // SAFETY: the memory stays mapped by the contract of this function.
        let register = |register: unsafe extern "C" fn(*mut c_void, usize, c_uint) -> c_int| unsafe {
            register(at.cast(), len, PORTABLE) == SUCCESS
        };
        self.hip.register.is_some_and(register)
    }
}
