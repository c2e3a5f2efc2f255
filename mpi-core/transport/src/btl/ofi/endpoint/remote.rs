//! Memory that peers may read, and reads of that of peers.
//!
//! A key is the address that the provider expects, and the number of the registration.

#![allow(unsafe_code)]

use super::super::abi::{self, Object, Pointer};
use super::objects::close;
use crate::btl::{Exposed, GetError, Region};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ptr::null_mut;

/// The offset of the key in a registration (`fid_mr`), and that of the local descriptor.
const KEY: usize = 32;
const LOCAL_DESCRIPTOR: usize = 24;
/// The first number that this process requests for a registration; lower ones are not used by others, but easy to confuse.
const FIRST: u64 = 1 << 20;

/// What a provider requires of registrations.
#[derive(Clone, Copy)]
pub(super) struct Modes {
    /// Memory that a read fills must be registered.
    pub local: bool,
    /// A read names the peer's address, and not the offset in the registration.
    pub virtual_addresses: bool,
    /// The provider chooses the numbers.
    pub provider_keys: bool,
    /// A registration belongs to an endpoint.
    pub of_endpoint: bool,
}

impl Modes {
    /// Of the bits in `domain_attr`.
    pub fn of(bits: u32) -> Modes {
        Modes {
            local: bits & abi::MR_LOCAL != 0,
            virtual_addresses: bits & abi::MR_VIRTUAL_ADDRESSES != 0,
            provider_keys: bits & abi::MR_PROVIDER_KEYS != 0,
            of_endpoint: bits & abi::MR_OF_ENDPOINT != 0,
        }
    }
}

/// The registrations for reads, and the active reads.
pub(super) struct Remote {
    domain: Object,
    endpoint: Object,
    read: abi::ReadMemory,
    modes: Modes,
    last: Cell<u64>,
    exposed: RefCell<HashMap<u64, Object>>,
    /// By the address of the context.
    reads: RefCell<HashMap<usize, Read>>,
}

struct Read {
    number: u64,
    /// The memory that the provider needs during the operation.
    _context: Box<[u64; 8]>,
    /// The registration of the memory that is filled.
    local: Option<Object>,
}

impl Remote {
    /// For an open domain and an enabled endpoint with the capability of remote memory access.
    pub fn of(domain: Object, endpoint: Object, read: abi::ReadMemory, modes: Modes) -> Remote {
        Remote {
            domain,
            endpoint,
            read,
            modes,
            last: Cell::new(FIRST),
            exposed: RefCell::default(),
            reads: RefCell::default(),
        }
    }

    /// Registers memory with these access rights.
    ///
    /// # Safety
    /// The memory is not freed before the registration is closed.
    unsafe fn register(&self, region: Region, access: u64) -> Option<(u64, Object)> {
        let number = self.last.get() + 1;
        self.last.set(number);
        let memory: Pointer = std::ptr::with_exposed_provenance_mut(region.address as usize);
        let mut object = null_mut();
        // SAFETY: the domain is open as long as this value; the caller promises that the memory stays.
        unsafe {
            let register: abi::Register = self.domain.function(abi::REGISTER)?;
            let result = register(
                self.domain.0,
                memory.cast_const(),
                region.len as usize,
                access,
                0,
                number,
                0,
                &raw mut object,
                null_mut(),
            );
            if result != 0 || object.is_null() {
                return None;
            }
            let registration = Object(object);
            if self.modes.of_endpoint && self.bind(registration).is_none() {
                close(registration);
                return None;
            }
            Some((number, registration))
        }
    }

    /// Binds a registration to the endpoint.
    ///
    /// # Safety
    /// The registration is open.
    unsafe fn bind(&self, registration: Object) -> Option<()> {
        // SAFETY: both objects are open, and the functions have the types of all objects' tables.
        unsafe {
            let bind: abi::Bind = registration.function(abi::BIND)?;
            let control: abi::Control = registration.function(abi::CONTROL)?;
            let bound = bind(registration.0, self.endpoint.0, 0) == 0;
            (bound && control(registration.0, abi::ENABLE, null_mut()) == 0).then_some(())
        }
    }

    /// Registers memory that peers may read.
    ///
    /// # Safety
    /// The memory is not freed before [`Remote::unregister`].
    pub unsafe fn expose(&self, region: Region) -> Option<Exposed> {
        // SAFETY: the caller promises that the memory stays.
        let (number, object) = unsafe { self.register(region, abi::REMOTE_READ) }?;
        self.exposed.borrow_mut().insert(number, object);
        let address = match self.modes.virtual_addresses {
            true => region.address,
            false => 0,
        };
        let name = match self.modes.provider_keys {
            // SAFETY: an open registration has its key at this offset.
            true => unsafe { object.0.byte_add(KEY).cast::<u64>().read() },
            false => number,
        };
        let key = [address.to_le_bytes(), name.to_le_bytes()].concat();
        Some(Exposed { number, key })
    }

    /// Ends a registration.
    pub fn unregister(&self, number: u64) {
        if let Some(object) = self.exposed.borrow_mut().remove(&number) {
            // SAFETY: the registration has just left the table.
            unsafe { close(object) };
        }
    }

    /// Starts a read from a peer with this number in the address table.
    ///
    /// # Safety
    /// Only this read uses `local` until it has ended.
    pub unsafe fn read(
        &self,
        from: u64,
        key: &[u8],
        local: Region,
        number: u64,
    ) -> Result<(), GetError> {
        let words = key.as_chunks::<8>();
        let ([address, name], []) = words else {
            return Err(GetError::BadAddress);
        };
        let (registration, mark) = match self.modes.local {
            false => (None, null_mut()),
            true => {
                // SAFETY: the caller promises memory that stays; the registration is closed when the read has ended.
                let made = unsafe { self.register(local, abi::READ_ACCESS) };
                let (_, object) = made.ok_or(GetError::Forbidden)?;
                // SAFETY: an open registration has its descriptor at this offset.
                let mark = unsafe { object.0.byte_add(LOCAL_DESCRIPTOR).cast::<Pointer>().read() };
                (Some(object), mark)
            }
        };
        let mut context = Box::new([0u64; 8]);
        let place: Pointer = context.as_mut_ptr().cast();
        let memory: Pointer = std::ptr::with_exposed_provenance_mut(local.address as usize);
        // SAFETY: an enabled endpoint; memory and context stay until the completion is read.
        let result = unsafe {
            (self.read)(
                self.endpoint.0,
                memory,
                local.len as usize,
                mark,
                from,
                u64::from_le_bytes(*address),
                u64::from_le_bytes(*name),
                place,
            )
        };
        if result == 0 {
            let read = Read {
                number,
                _context: context,
                local: registration,
            };
            self.reads.borrow_mut().insert(place.addr(), read);
            return Ok(());
        }
        if let Some(object) = registration {
            // SAFETY: the read was refused, so no operation uses the registration.
            unsafe { close(object) };
        }
        match result {
            abi::EAGAIN | abi::ENOMEM => Err(GetError::Busy),
            _ => Err(GetError::Forbidden),
        }
    }

    /// Returns the number of the read that has ended with this context, if it is one.
    pub fn ended(&self, context: Pointer) -> Option<u64> {
        let read = self.reads.borrow_mut().remove(&context.addr())?;
        if let Some(object) = read.local {
            // SAFETY: the read has ended, so no operation uses the registration.
            unsafe { close(object) };
        }
        Some(read.number)
    }

    /// Closes all registrations; called when the endpoint is closed and the domain is still open.
    pub fn unregister_all(&self) {
        let local = self.reads.take().into_values().filter_map(|mut read| {
            // The provider may still refer to the context of a read that has not ended.
            let local = read.local.take();
            std::mem::forget(read);
            local
        });
        for object in self.exposed.take().into_values().chain(local) {
            // SAFETY: the registration has just left its table, and no operation uses it after the endpoint was closed.
            unsafe { close(object) };
        }
    }
}
