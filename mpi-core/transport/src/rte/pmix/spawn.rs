//! Spawning of jobs through a PMIx launcher: `PMIx_Spawn` (PMIx 4.1, section 11.1).
//!
//! Values that a parent job stores for its children are passed in the children's environment, in the variables [`left`].
//! The launcher evaluates the reserved info keys for working directory and hosts.
//! It searches for the program in the working directory.

#![allow(unsafe_code)]

use super::abi::{self, App, Info, Status};
use super::library::{Library, succeeded};
use crate::rte::{RteError, SpawnRequest, SpawnedApp};
use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt as _;

/// Returns the name of the environment variable for the value that a parent job has stored under a key.
pub(super) fn left(key: &str) -> String {
    format!("PORTCULLIS_LEFT_{key}")
}

fn c_string(text: impl AsRef<OsStr>) -> Result<CString, RteError> {
    CString::new(text.as_ref().as_bytes()).map_err(|error| RteError::NotStarted {
        why: format!("{error}, which no program can be given"),
    })
}

/// Copies a text into memory from malloc.
fn duplicate(text: &CStr) -> *mut c_char {
    // SAFETY: `strdup` only reads the text, which is a valid C string. A null result means that no memory is left; it then ends the array early.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// Returns a null-terminated array of texts; array and texts are allocated with malloc. Returns null if no memory is left.
fn array(all: &[CString]) -> *mut *mut c_char {
    // SAFETY: `calloc` accepts any sizes; the memory is zeroed, so all pointers in it are null.
    let start = unsafe { libc::calloc(all.len() + 1, size_of::<*mut c_char>()) };
    let start: *mut *mut c_char = start.cast();
    if !start.is_null() {
        for (at, text) in all.iter().enumerate() {
            // SAFETY: `at < all.len()`, and the array has `all.len() + 1` elements, of which the last remains null.
            unsafe { *start.add(at) = duplicate(text) };
        }
    }
    start
}

/// # Safety
/// `start` must be null or an array from [`array`] that is not used afterwards.
unsafe fn free_array(start: *mut *mut c_char) {
    if start.is_null() {
        return;
    }
    let mut at = start;
    // SAFETY: by the contract of this function the array is from [`array`]: each element before the null pointer is a text from malloc, and no other pointer to the text exists.
    unsafe {
        while !(*at).is_null() {
            libc::free((*at).cast());
            at = at.add(1);
        }
        libc::free(start.cast());
    }
}

/// The programs to spawn as C structures. All pointers in them are from malloc, because the library reallocates the environments to extend them.
pub(super) struct Request(Vec<App>);

impl Request {
    pub fn of(request: &SpawnRequest) -> Result<Request, RteError> {
        let mut all = Request(Vec::new());
        for app in &request.apps {
            all.add(app, &request.left)?;
        }
        Ok(all)
    }

    fn add(&mut self, app: &SpawnedApp, legacies: &[(String, String)]) -> Result<(), RteError> {
        let info = |key: &str| app.info.iter().find(|(known, _)| known == key);
        let value = |key: &str| info(key).map(|(_, value)| c_string(value)).transpose();
        let cwd = value("wdir")?;
        let hosts = match value("host")? {
            Some(hosts) => Some(hosts),
            None => value("hosts")?,
        };
        let program = c_string(&app.program)?;
        let args = app.args.iter().map(c_string);
        let argv: Vec<CString> = std::iter::once(Ok(program.clone()))
            .chain(args)
            .collect::<Result<_, _>>()?;
        let lines = app.info.iter().filter(|(key, _)| key == "env");
        let lines = lines.map(|(_, line)| c_string(line));
        let legacies = legacies.iter();
        let legacies = legacies.map(|(key, value)| c_string(format!("{}={value}", left(key))));
        let env: Vec<CString> = lines.chain(legacies).collect::<Result<_, _>>()?;
        let mut new = App {
            cmd: duplicate(&program),
            argv: array(&argv),
            env: array(&env),
            cwd: cwd.map_or(std::ptr::null_mut(), |cwd| duplicate(&cwd)),
            maxprocs: i32::try_from(app.procs).unwrap_or(i32::MAX),
            info: std::ptr::null_mut(),
            ninfo: 0,
        };
        if let Some(hosts) = hosts {
            // SAFETY: `calloc` allocates one structure, which is written before it is read.
            unsafe {
                let place: *mut Info = libc::calloc(1, size_of::<Info>()).cast();
                if !place.is_null() {
                    let mut info = abi::text_info("pmix.host", &hosts);
                    info.value.data.text = duplicate(&hosts);
                    place.write(info);
                    (new.info, new.ninfo) = (place, 1);
                }
            }
        }
        self.0.push(new);
        Ok(())
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        for app in &self.0 {
            // SAFETY: every pointer was allocated by this module, or by the library as its replacement. Only this request owns it, and it is freed once.
            unsafe {
                libc::free(app.cmd.cast());
                free_array(app.argv);
                free_array(app.env);
                libc::free(app.cwd.cast());
                if let Some(info) = app.info.as_ref() {
                    libc::free(info.value.data.text.cast());
                }
                libc::free(app.info.cast());
            }
        }
    }
}

impl Library {
    /// Starts a job. Either all its processes are started, or none. Returns the job's namespace; `None` if the library lacks the function.
    pub(super) fn spawn(&self, mut request: Request) -> Option<Result<String, Status>> {
        let spawn = self.spawn?;
        let apps = &mut request.0;
        let mut namespace = [0; abi::NAMESPACE_ROOM];
        // SAFETY: the programs and their pointers are from malloc, as the library requires, and `request` lives until the call has returned.
        // `namespace` has the size that the interface requires, and only this call writes it.
        let status = unsafe {
            spawn(
                std::ptr::null(),
                0,
                apps.as_mut_ptr(),
                apps.len(),
                namespace.as_mut_ptr(),
            )
        };
        Some(succeeded(status).map(|()| abi::text(&namespace)))
    }
}
