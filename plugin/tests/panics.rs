//! Tests that a panic in a transport becomes a failure with its text and does not cross the table.
#![allow(unsafe_code)]

use portcullis_plugin::btl::abi::{self, DONE, FAILED, Host as HostTable, TRANSPORT_VERSION, Why};
use portcullis_plugin::btl::{Events, Host, Sent, Transport, table};
use std::ffi::CStr;
use std::os::fd::RawFd;
use std::ptr::{null, null_mut};
use std::time::Duration;

/// A transport whose functions panic; `open` succeeds if `OPENS`.
struct Broken<const OPENS: bool>;

impl<const OPENS: bool> Transport for Broken<OPENS> {
    const NAME: &'static CStr = c"broken";
    const VERSION: &'static CStr = c"1.0";
    const EXCLUSIVITY: u32 = 1;
    const EAGER: usize = 1;
    const LONGEST: usize = 1;

    fn open(_: Host) -> Result<Self, String> {
        assert!(OPENS, "no cable");
        Ok(Broken)
    }

    fn address(&self) -> Vec<u8> {
        panic!("no address")
    }

    fn connect(&self, _: u32, _: &[u8]) -> Result<(), String> {
        panic!("no peer")
    }

    fn close(&self, _: u32, _: bool) {
        panic!("no end")
    }

    fn send(&self, _: u32, _: &[u8]) -> Result<Sent, String> {
        panic!("no way")
    }

    fn progress(&self, _: &Events) {
        panic!("no poll")
    }

    fn is_quiet(&self) -> bool {
        panic!("no quiet")
    }

    fn wait_on(&self) -> (Option<RawFd>, Option<Duration>) {
        panic!("no descriptor")
    }
}

/// Returns a library's function table of this version, with no function set.
fn host() -> HostTable {
    // SAFETY: zero is valid in every field.
    let mut host: HostTable = unsafe { std::mem::zeroed() };
    (host.size, host.abi_version) = (size_of::<HostTable>(), TRANSPORT_VERSION);
    host
}

/// Opens a transport. Returns the table, the transport's pointer, the return code and the reason.
fn opened<T: Transport>() -> (&'static abi::Transport, *mut std::ffi::c_void, i32, String) {
    // SAFETY: the table is a constant.
    let table = unsafe { &*table::<T>() };
    let (mut this, mut why) = (null_mut(), Why::new());
    let open = table.open.expect("a function");
    // SAFETY: all pointers point to locals.
    let code = unsafe { open(&host(), null_mut(), &mut this, &mut why) };
    (table, this, code, why.sentence())
}

#[test]
fn a_panic_in_open_is_its_reason() {
    let (_, _, code, why) = opened::<Broken<false>>();
    assert_eq!((code, &*why), (FAILED, "it stopped at a defect: no cable"));
}

#[test]
fn a_panic_in_other_functions_is_a_failure_or_nothing() {
    let (table, this, code, _) = opened::<Broken<true>>();
    assert_eq!(code, DONE);
    let send = table.send.expect("a function");
    let (progress, is_quiet) = (table.progress.expect("one"), table.is_quiet.expect("one"));
    let free = table.free.expect("a function");
    let mut why = Why::new();
    // SAFETY: `this` is an opened transport, no data are passed, and `free` is the last call.
    unsafe {
        assert_eq!(send(this, 0, null(), 0, 1, &mut why), FAILED);
        progress(this, null_mut());
        assert_eq!(is_quiet(this), 1);
        free(this);
    }
    assert_eq!(why.sentence(), "it stopped at a defect: no way");
    assert!(table.expose.is_none() && table.access.is_none());
}
