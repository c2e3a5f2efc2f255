//! Remote memory access by libfabric: memory of this process that peers may access, and operations on memory of peers.
//!
//! The key that peers receive consists of the base address that the provider expects and the registration's own key.

#![allow(unsafe_code)]

use super::super::abi::{self, Object, Pointer};
use super::objects::close;
use crate::btl::{Exposed, GetError, Region, Rights, Span};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ptr::null_mut;

/// Offsets of two fields in a registration (`fid_mr`): the key, and the local descriptor.
const KEY: usize = 32;
const LOCAL_DESCRIPTOR: usize = 24;
/// The keys that this process requests for registrations are larger than this value.
/// Smaller keys could be confused with other numbers.
const FIRST: u64 = 1 << 20;

/// The provider's requirements for registrations (`mr_mode`).
#[derive(Clone, Copy)]
pub(super) struct Modes {
    /// True if the local memory of an operation must be registered.
    pub local: bool,
    /// True if an operation needs the virtual address in the peer, false if it needs the offset in the registration.
    pub virtual_addresses: bool,
    /// True if the provider chooses the keys.
    pub provider_keys: bool,
    /// True if a registration must be bound to an endpoint.
    pub of_endpoint: bool,
}

impl Modes {
    /// Decodes the `mr_mode` bits in `domain_attr`.
    pub fn of(bits: u32) -> Modes {
        Modes {
            local: bits & abi::MR_LOCAL != 0,
            virtual_addresses: bits & abi::MR_VIRTUAL_ADDRESSES != 0,
            provider_keys: bits & abi::MR_PROVIDER_KEYS != 0,
            of_endpoint: bits & abi::MR_OF_ENDPOINT != 0,
        }
    }
}

/// The registrations of memory for peers, and the active operations.
pub(super) struct Remote {
    domain: Object,
    endpoint: Object,
    read: abi::ReadMemory,
    write: Option<abi::WriteMemory>,
    modes: Modes,
    last: Cell<u64>,
    exposed: RefCell<HashMap<u64, Object>>,
    /// The active operations, indexed by the address of their context.
    active: RefCell<HashMap<usize, Active>>,
}

/// An operation that the provider has accepted.
struct Active {
    number: u64,
    /// The context memory that the provider needs during the operation.
    context: Box<[u64; 8]>,
    /// The registration of the local memory, if the provider requires one.
    local: Option<Object>,
}

/// The local memory of an operation, registered if the provider requires this.
struct Local {
    start: Pointer,
    len: usize,
    /// The provider's descriptor of the registration, or null.
    mark: Pointer,
    registration: Option<Object>,
}

/// The remote memory of an operation: the address that the provider expects, and the key.
struct Place {
    address: u64,
    key: u64,
}

impl Place {
    fn of(span: &Span<'_>) -> Result<Place, GetError> {
        let ([address, key], []) = span.key.as_chunks::<8>() else {
            return Err(GetError::BadAddress);
        };
        Ok(Place {
            address: u64::from_le_bytes(*address).wrapping_add(span.offset),
            key: u64::from_le_bytes(*key),
        })
    }
}

impl Remote {
    /// Creates the state for an open domain and an enabled endpoint
    /// that supports remote memory access.
    pub fn of(
        domain: Object,
        endpoint: Object,
        (read, write): (abi::ReadMemory, Option<abi::WriteMemory>),
        modes: Modes,
    ) -> Remote {
        Remote {
            domain,
            endpoint,
            read,
            write,
            modes,
            last: Cell::new(FIRST),
            exposed: RefCell::default(),
            active: RefCell::default(),
        }
    }

    /// Registers memory with the access flags `access`. Returns the requested key and the registration.
    ///
    /// # Safety
    /// The memory must not be freed before the registration is closed.
    unsafe fn register(&self, region: Region, access: u64) -> Option<(u64, Object)> {
        let number = self.last.get() + 1;
        self.last.set(number);
        let memory: Pointer = std::ptr::with_exposed_provenance_mut(region.address as usize);
        let mut object = null_mut();
        // SAFETY: the domain remains open as long as this value exists; by the contract of this function the memory is not freed before the registration is closed.
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
    /// The registration must be open.
    unsafe fn bind(&self, registration: Object) -> Option<()> {
        // SAFETY: both objects are open, and the functions have the types that all objects' tables contain.
        unsafe {
            let bind: abi::Bind = registration.function(abi::BIND)?;
            let control: abi::Control = registration.function(abi::CONTROL)?;
            let bound = bind(registration.0, self.endpoint.0, 0) == 0;
            (bound && control(registration.0, abi::ENABLE, null_mut()) == 0).then_some(())
        }
    }

    /// Registers memory for access by peers. Returns `None` if that is impossible.
    ///
    /// # Safety
    /// The memory must not be freed before [`Remote::unregister`].
    pub unsafe fn expose(&self, region: Region, rights: Rights) -> Option<Exposed> {
        let access = match rights {
            Rights::Read => abi::REMOTE_READ,
            Rights::ReadWrite => abi::REMOTE_READ | abi::REMOTE_WRITE,
        };
        // SAFETY: by the contract of this function the memory is not freed before `unregister`, which closes the registration.
        let (number, object) = unsafe { self.register(region, access) }?;
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

    /// Ends the registration with the ID `number`.
    pub fn unregister(&self, number: u64) {
        if let Some(object) = self.exposed.borrow_mut().remove(&number) {
            // SAFETY: the registration was removed from the table, so it is closed only once.
            unsafe { close(object) };
        }
    }

    /// Starts a read from the peer with the index `from` in the address vector.
    ///
    /// # Safety
    /// Only this read may access `span.local` until it has ended.
    pub unsafe fn read(&self, from: u64, span: Span<'_>, number: u64) -> Result<(), GetError> {
        let place = Place::of(&span)?;
        // SAFETY: by the contract of this function the memory remains valid until the read has ended; then the registration is closed.
        let local = unsafe { self.local(span.local, abi::READ_ACCESS) }?;
        let mut context = Box::new([0u64; 8]);
        // SAFETY: the endpoint is enabled; memory and context remain valid until the completion is read.
        let result = unsafe {
            (self.read)(
                self.endpoint.0,
                local.start,
                local.len,
                local.mark,
                from,
                place.address,
                place.key,
                context.as_mut_ptr().cast(),
            )
        };
        self.started(result, number, context, local)
    }

    /// Starts a write to the peer with the index `to` in the address vector. The write ends when the data are in the peer's memory.
    ///
    /// # Safety
    /// `span.local` must be neither freed nor written until the write has ended.
    pub unsafe fn write(&self, to: u64, span: Span<'_>, number: u64) -> Result<(), GetError> {
        let write = self.write.ok_or(GetError::Forbidden)?;
        let place = Place::of(&span)?;
        // SAFETY: by the contract of this function the memory remains valid until the write has ended; then the registration is closed.
        let local = unsafe { self.local(span.local, abi::WRITE_ACCESS) }?;
        let mut context = Box::new([0u64; 8]);
        let from = abi::LocalPart {
            start: local.start,
            len: local.len,
        };
        let into = abi::RemotePart {
            address: place.address,
            len: local.len,
            key: place.key,
        };
        let message = abi::WriteMessage {
            local: &raw const from,
            marks: &raw const local.mark,
            local_count: 1,
            to,
            remote: &raw const into,
            remote_count: 1,
            context: context.as_mut_ptr().cast(),
            data: 0,
        };
        let flags = abi::COMPLETION | abi::DELIVERY_COMPLETE;
        // SAFETY: the endpoint is enabled; the library copies `message`, and memory and context remain valid until the completion is read.
        let result = unsafe { write(self.endpoint.0, &raw const message, flags) };
        self.started(result, number, context, local)
    }

    /// Returns the local memory of an operation; registers it if the provider requires this.
    ///
    /// # Safety
    /// The memory must not be freed before the operation has ended.
    unsafe fn local(&self, region: Region, access: u64) -> Result<Local, GetError> {
        let mut local = Local {
            start: std::ptr::with_exposed_provenance_mut(region.address as usize),
            len: region.len as usize,
            mark: null_mut(),
            registration: None,
        };
        if self.modes.local {
            // SAFETY: by the contract of this function the memory remains valid until the operation has ended, when its registration is closed.
            let made = unsafe { self.register(region, access) };
            let (_, object) = made.ok_or(GetError::Forbidden)?;
            local.registration = Some(object);
            // SAFETY: an open registration has its descriptor at this offset.
            local.mark = unsafe { object.0.byte_add(LOCAL_DESCRIPTOR).cast::<Pointer>().read() };
        }
        Ok(local)
    }

    /// Records an operation that the provider has accepted. Returns an error if the provider has refused it.
    fn started(
        &self,
        result: isize,
        number: u64,
        context: Box<[u64; 8]>,
        local: Local,
    ) -> Result<(), GetError> {
        if result == 0 {
            let operation = Active {
                number,
                local: local.registration,
                context,
            };
            let place = operation.context.as_ptr().addr();
            self.active.borrow_mut().insert(place, operation);
            return Ok(());
        }
        if let Some(object) = local.registration {
            // SAFETY: the operation was refused, so no operation uses the registration.
            unsafe { close(object) };
        }
        match result {
            abi::EAGAIN | abi::ENOMEM => Err(GetError::Busy),
            _ => Err(GetError::Forbidden),
        }
    }

    /// Removes the ended operation with this context. Returns its ID; `None` if the context does not belong to an operation.
    pub fn ended(&self, context: Pointer) -> Option<u64> {
        let ended = self.active.borrow_mut().remove(&context.addr())?;
        if let Some(object) = ended.local {
            // SAFETY: the operation has ended, so no operation uses the registration.
            unsafe { close(object) };
        }
        Some(ended.number)
    }

    /// Closes all registrations. Called after the endpoint is closed and while the domain is open.
    pub fn unregister_all(&self) {
        let local = self.active.take().into_values().filter_map(|mut active| {
            // The context is leaked, because the provider may still refer to the context of an active operation.
            let local = active.local.take();
            std::mem::forget(active);
            local
        });
        for object in self.exposed.take().into_values().chain(local) {
            // SAFETY: the registration was removed from its table, and no operation uses it after the endpoint was closed.
            unsafe { close(object) };
        }
    }
}
