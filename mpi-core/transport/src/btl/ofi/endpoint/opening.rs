//! Opening of an endpoint: chooses a provider, then opens fabric, domain, completion queue, address vector and endpoint.

#![allow(unsafe_code)]

use super::super::abi::{self, Functions, Object, Pointer};
use super::super::{LIBRARY, provider};
use super::memory::RegisteredMemory;
use super::objects::{Objects, failure, field, need, pointer_at, set};
use super::receives::ReceiveBuffers;
use super::remote::{Modes, Remote};
use super::sleep::Sleep;
use super::{Calls, Endpoint};
use crate::btl::fabric::frame::HEADER;
use crate::btl::fabric::library::{LibraryError, Opened};
use crate::btl::fabric::named_address;
use crate::btl::fabric::settings::Settings;
use std::cell::RefCell;
use std::ffi::{CStr, c_int};
use std::os::fd::RawFd;
use std::ptr::null_mut;

/// Maximum length of an endpoint's address in bytes.
const ADDRESS: usize = 512;

/// The chosen provider: its entry in the list of `fi_getinfo`, and its name.
struct Chosen {
    info: Pointer,
    name: String,
}

/// Lists the providers and chooses one.
fn choose(objects: &mut Objects, wanted: &str, capabilities: u64) -> Result<Chosen, LibraryError> {
    use abi::info;
    // SAFETY: with null as argument the function returns an empty structure with all substructures, allocated by the library.
    let hints = unsafe { (objects.library.fi_dupinfo)(null_mut()) };
    if hints.is_null() {
        return Err(failure("fi_dupinfo", "out of memory".into()));
    }
    // SAFETY: `hints` is an `fi_info` with all substructures; offsets and types are those of the header.
    let error = unsafe {
        set(hints, info::CAPS, capabilities);
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
        // SAFETY: `next` is an `fi_info` of the library's list, and the provider's name is a C string or null.
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

/// Chooses a provider that can read remote memory, if `settings` require this and such a provider exists.
/// Otherwise chooses a provider for messages only.
fn offer(
    functions: Functions,
    settings: &Settings,
    wanted: &str,
) -> Result<(Objects, Chosen, bool), LibraryError> {
    if settings.reads() {
        let mut objects = Objects::of(functions);
        if let Ok(chosen) = choose(&mut objects, wanted, abi::MSG | abi::RMA) {
            return Ok((objects, chosen, true));
        }
    }
    let mut objects = Objects::of(functions);
    let chosen = choose(&mut objects, wanted, abi::MSG)?;
    Ok((objects, chosen, false))
}

impl Endpoint {
    /// Loads libfabric and opens an endpoint of a provider. Returns the endpoint and the texts about library and provider.
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
        let (objects, Chosen { info, name }, reads) = offer(functions, settings, wanted)?;
        let title = format!(
            "libfabric {}.{}, provider {name}",
            version >> 16,
            version & 0xffff
        );
        let endpoint = Endpoint::of(objects, info, &name, settings, peers, reads)?;
        Ok((endpoint, title))
    }

    /// Opens fabric, domain, completion queue, address vector and endpoint, in this order.
    fn of(
        mut objects: Objects,
        info: Pointer,
        name: &str,
        settings: &Settings,
        peers: u32,
        reads: bool,
    ) -> Result<Endpoint, LibraryError> {
        let none: Pointer = null_mut();
        let mut made = none;
        // SAFETY: `info` is an entry of the library's list; each object is used only after it was opened successfully, with functions of its type.
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
                remote: (endpoint.function(abi::READ_MEMORY).filter(|_| reads)).map(|read| {
                    let write = endpoint.function(abi::WRITE_MEMORY);
                    Remote::of(domain, endpoint, (read, write), Modes::of(modes))
                }),
                memory: RegisteredMemory::of(domain, modes & abi::MR_LOCAL != 0),
                objects,
                fabric,
                queue,
                addresses,
                endpoint,
                receives: ReceiveBuffers::of(longest),
                peers: RefCell::default(),
                sleep: Sleep::of(descriptor),
            };
            all.post_receives()
                .map_err(|error| all.objects.failed("fi_recv", error as c_int))?;
            Ok(all)
        }
    }
}

/// Opens the completion queue, with a file descriptor if the provider supports this.
fn open_queue(
    objects: &mut Objects,
    domain: Object,
) -> Result<(Object, Option<RawFd>), LibraryError> {
    let mut made = null_mut();
    // SAFETY: the domain is open, the attributes are longer than the structure, and the functions are those of the objects' types.
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

/// Returns the address that is published to the peers, with the provider's name.
fn own_address(objects: &Objects, endpoint: Object, name: &str) -> Result<Vec<u8>, LibraryError> {
    let (mut address, mut len) = ([0u8; ADDRESS], ADDRESS);
    // SAFETY: the endpoint is enabled, and the call writes at most `len` bytes.
    let result = unsafe {
        let get: abi::GetName = need(endpoint, abi::GETNAME, "fi_getname")?;
        get(endpoint.0, address.as_mut_ptr().cast(), &raw mut len)
    };
    if result != 0 || len > ADDRESS {
        return Err(objects.failed("fi_getname", result));
    }
    Ok(named_address::join(name, &address[..len]))
}
