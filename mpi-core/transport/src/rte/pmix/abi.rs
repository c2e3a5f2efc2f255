//! The part of PMIx's C interface that this component uses, as `repr(C)` types.
//!
//! Source: `include/pmix.h` and `include/pmix_common.h.in` of openpmix. Sizes, offsets and values in this file are the same
//! in all versions since 3.1. The standard (PMIx 4.1, chapter 3) specifies the structures and their fields but not the values.
//! The header's macros that create and free structures are library functions in newer versions, which older versions lack.
//! So this file initializes structures itself: a zeroed structure is a valid empty one.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{offset_of, size_of};

/// The C type `pmix_status_t`.
pub type Status = c_int;

pub const SUCCESS: Status = 0;
pub const UNREACHABLE: Status = -25;
pub const NOT_FOUND: Status = -46;
pub const NOT_SUPPORTED: Status = -47;
pub const LOST_CONNECTION: Status = -61;
pub const LOST_CONNECTION_TO_SERVER: Status = -101;
pub const EVENT_ACTION_COMPLETE: Status = -334;

/// The codes of events that report the death of a process: aborted, aborted on request, ended without finalizing, killed.
pub const DEATHS: [Status; 5] = [-7, -8, -200, -400, -402];

/// The value of `pmix_scope_t` for data that all processes can read.
pub const GLOBAL: u8 = 3;

/// The value of a rank that means all processes of a namespace.
pub const WILDCARD: u32 = 0xffff_fffe;

/// Values of the C type `pmix_data_type_t`.
pub mod kind {
    pub const BOOL: u16 = 1;
    pub const STRING: u16 = 3;
    pub const SIZE: u16 = 4;
    pub const INT: u16 = 6;
    pub const INT32: u16 = 9;
    pub const UINT: u16 = 11;
    pub const UINT16: u16 = 13;
    pub const UINT32: u16 = 14;
    pub const UINT64: u16 = 15;
    pub const PROC: u16 = 22;
    pub const BYTE_OBJECT: u16 = 27;
    pub const PROC_RANK: u16 = 40;
}

/// The sizes `PMIX_MAX_NSLEN` and `PMIX_MAX_KEYLEN`, plus one for the terminating zero.
pub const NAMESPACE_ROOM: usize = 256;
pub const KEY_ROOM: usize = 512;

/// The C structure `pmix_proc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Proc {
    pub namespace: [c_char; NAMESPACE_ROOM],
    pub rank: u32,
}

/// The C structure `pmix_byte_object_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    pub start: *mut c_char,
    pub size: usize,
}

/// The members of the union in `pmix_value_t` that this component uses.
/// The last member gives the union the size of the largest member in C.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Data {
    pub flag: bool,
    pub text: *mut c_char,
    pub size: usize,
    pub int: c_int,
    pub u16: u16,
    pub u32: u32,
    pub u64: u64,
    pub process: *mut Proc,
    pub bytes: Bytes,
    pub whole: [u64; 3],
}

/// The C structure `pmix_value_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    pub kind: u16,
    pub data: Data,
}

/// The C structure `pmix_info_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Info {
    pub key: [c_char; KEY_ROOM],
    pub flags: u32,
    pub value: Value,
}

/// The C structure `pmix_app_t`.
#[repr(C)]
pub struct App {
    pub cmd: *mut c_char,
    pub argv: *mut *mut c_char,
    pub env: *mut *mut c_char,
    pub cwd: *mut c_char,
    pub maxprocs: c_int,
    pub info: *mut Info,
    pub ninfo: usize,
}

/// The C structure `pmix_pdata_t`.
#[repr(C)]
pub struct Looked {
    pub publisher: Proc,
    pub key: [c_char; KEY_ROOM],
    pub value: Value,
}

const _: () = {
    assert!(size_of::<App>() == 56 && offset_of!(App, info) == 40);
    assert!(size_of::<Looked>() == 808);
    assert!(offset_of!(Looked, key) == 260 && offset_of!(Looked, value) == 776);
    assert!(size_of::<Proc>() == 260 && offset_of!(Proc, rank) == 256);
    assert!(size_of::<Value>() == 32 && offset_of!(Value, data) == 8);
    assert!(size_of::<Info>() == 552);
    assert!(offset_of!(Info, flags) == 512 && offset_of!(Info, value) == 520);
};

/// The C type `pmix_event_notification_cbfunc_fn_t`: the function that a handler calls when it has finished.
pub type Done = unsafe extern "C" fn(
    status: Status,
    results: *mut Info,
    nresults: usize,
    then: *mut c_void,
    argument: *mut c_void,
    notification: *mut c_void,
);

/// The C type `pmix_notification_fn_t`: an event handler.
pub type Handler = unsafe extern "C" fn(
    registration: usize,
    status: Status,
    source: *const Proc,
    info: *mut Info,
    ninfo: usize,
    results: *mut Info,
    nresults: usize,
    done: Option<Done>,
    argument: *mut c_void,
);

pub type Init = unsafe extern "C" fn(me: *mut Proc, info: *mut Info, ninfo: usize) -> Status;
pub type Finalize = unsafe extern "C" fn(info: *const Info, ninfo: usize) -> Status;
pub type Put = unsafe extern "C" fn(scope: u8, key: *const c_char, value: *mut Value) -> Status;
pub type Commit = unsafe extern "C" fn() -> Status;
pub type Fence = unsafe extern "C" fn(
    processes: *const Proc,
    nprocesses: usize,
    info: *const Info,
    ninfo: usize,
) -> Status;
pub type Get = unsafe extern "C" fn(
    of: *const Proc,
    key: *const c_char,
    info: *const Info,
    ninfo: usize,
    value: *mut *mut Value,
) -> Status;
pub type Abort = unsafe extern "C" fn(
    status: c_int,
    message: *const c_char,
    processes: *mut Proc,
    nprocesses: usize,
) -> Status;
pub type RegisterEventHandler = unsafe extern "C" fn(
    codes: *mut Status,
    ncodes: usize,
    info: *mut Info,
    ninfo: usize,
    handler: Handler,
    registered: Option<unsafe extern "C" fn(Status, usize, *mut c_void)>,
    argument: *mut c_void,
) -> Status;
pub type Spawn = unsafe extern "C" fn(
    job: *const Info,
    njob: usize,
    apps: *const App,
    napps: usize,
    namespace: *mut c_char,
) -> Status;
pub type Publish = unsafe extern "C" fn(info: *const Info, ninfo: usize) -> Status;
pub type Lookup = unsafe extern "C" fn(
    data: *mut Looked,
    ndata: usize,
    info: *const Info,
    ninfo: usize,
) -> Status;
pub type Unpublish =
    unsafe extern "C" fn(keys: *mut *mut c_char, info: *const Info, ninfo: usize) -> Status;
pub type ErrorString = unsafe extern "C" fn(status: Status) -> *const c_char;

/// Returns `text` as a zero-terminated field; `None` if the text does not fit or contains a zero.
pub fn field<const LEN: usize>(text: &[u8]) -> Option<[c_char; LEN]> {
    if text.len() >= LEN || text.contains(&0) {
        return None;
    }
    let mut field = [0; LEN];
    for (to, &from) in field.iter_mut().zip(text) {
        *to = from as c_char;
    }
    Some(field)
}

/// Returns the text of a zero-terminated field.
pub fn text(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field
        .iter()
        .map(|&c| c as u8)
        .take_while(|&byte| byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Proc {
    /// Returns the identifier of the process with this rank in the same namespace; [`WILDCARD`] means all processes.
    pub fn peer(&self, rank: u32) -> Proc {
        Proc { rank, ..*self }
    }
}

impl Value {
    pub const EMPTY: Value = Value {
        kind: 0,
        data: Data { whole: [0; 3] },
    };

    /// Creates a value that refers to `bytes`. The bytes must outlive the value.
    pub fn of_bytes(bytes: &[u8]) -> Value {
        let bytes = Bytes {
            start: bytes.as_ptr().cast_mut().cast(),
            size: bytes.len(),
        };
        let mut value = Value::EMPTY;
        value.kind = kind::BYTE_OBJECT;
        value.data.bytes = bytes;
        value
    }

    /// Returns the value as a number, for every integer type that a server may use; otherwise `None`.
    pub fn number(&self) -> Option<u64> {
        // SAFETY: `kind` specifies the member that was written; all of these members are plain integers, for which every bit pattern is valid.
        unsafe {
            match self.kind {
                kind::UINT16 => Some(self.data.u16.into()),
                kind::UINT32 | kind::UINT | kind::PROC_RANK => Some(self.data.u32.into()),
                kind::UINT64 => Some(self.data.u64),
                kind::SIZE => Some(self.data.size as u64),
                kind::INT | kind::INT32 => u64::try_from(self.data.int).ok(),
                _ => None,
            }
        }
    }
}

/// Creates an info structure whose value refers to `text`. The text must outlive the structure.
pub fn text_info(key: &str, text: &CStr) -> Info {
    let mut value = Value::EMPTY;
    value.kind = kind::STRING;
    value.data.text = text.as_ptr().cast_mut();
    Info {
        key: field(key.as_bytes()).unwrap_or([0; KEY_ROOM]),
        flags: 0,
        value,
    }
}

/// Creates an info structure with the boolean value true.
pub fn directive(key: &str) -> Info {
    let mut value = Value::EMPTY;
    value.kind = kind::BOOL;
    value.data.flag = true;
    Info {
        // The keys that this library uses fit into the field.
        key: field(key.as_bytes()).unwrap_or([0; KEY_ROOM]),
        flags: 0,
        value,
    }
}
