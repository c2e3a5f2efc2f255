//! Starting processes by way of a PMIx launcher: `PMIx_Spawn` (PMIx 4.1, section 11.1).
//!
//! What a parent leaves for its children travels in their environment, as [`left`] names it.
//! The launcher knows working directory and hosts of the reserved info keys; the program is looked for where it starts.

#![allow(unsafe_code)]

use super::abi::{self, App, Info, Status};
use super::library::{Library, succeeded};
use crate::rte::{RteError, SpawnRequest, SpawnedApp};
use std::ffi::{CString, c_char};

/// The variable in which a child finds what its parent has left under a key.
pub(super) fn left(key: &str) -> String {
    format!("PORTCULLIS_LEFT_{key}")
}

/// Strings as C programs have them: an array of pointers that ends with a null pointer.
struct Strings {
    _held: Vec<CString>,
    pointers: Vec<*mut c_char>,
}

impl Strings {
    fn new(all: Vec<String>) -> Result<Strings, RteError> {
        let held: Vec<CString> = all.into_iter().map(c_string).collect::<Result<_, _>>()?;
        let pointers = held.iter().map(|text| text.as_ptr().cast_mut());
        Ok(Strings {
            pointers: pointers.chain([std::ptr::null_mut()]).collect(),
            _held: held,
        })
    }
}

fn c_string(text: String) -> Result<CString, RteError> {
    CString::new(text).map_err(|error| RteError::NotStarted {
        why: format!("{error}, which no program can be given"),
    })
}

/// A program with everything that its C structure points to.
struct Held {
    cmd: CString,
    argv: Strings,
    env: Strings,
    cwd: Option<CString>,
    _hosts: Option<CString>,
    info: Vec<Info>,
    maxprocs: i32,
}

impl Held {
    fn of(app: &SpawnedApp, left_for_all: &[(String, String)]) -> Result<Held, RteError> {
        let info = |key: &str| app.info.iter().find(|(known, _)| known == key);
        let value = |key: &str| info(key).map(|(_, value)| value.clone());
        let cwd = value("wdir").map(c_string).transpose()?;
        let hosts = value("host").or_else(|| value("hosts"));
        let hosts = hosts.map(c_string).transpose()?;
        let argv = std::iter::once(&app.program).chain(&app.args).cloned();
        let lines = app.info.iter().filter(|(key, _)| key == "env");
        let lines = lines.map(|(_, line)| line.clone());
        let legacies = left_for_all.iter();
        let legacies = legacies.map(|(key, value)| format!("{}={value}", left(key)));
        Ok(Held {
            cmd: c_string(app.program.clone())?,
            argv: Strings::new(argv.collect())?,
            env: Strings::new(lines.chain(legacies).collect())?,
            info: hosts
                .iter()
                .map(|hosts| abi::text_info("pmix.host", hosts))
                .collect(),
            cwd,
            _hosts: hosts,
            maxprocs: i32::try_from(app.procs).unwrap_or(i32::MAX),
        })
    }

    /// As C has it; it lives as long as `self`.
    fn app(&mut self) -> App {
        App {
            cmd: self.cmd.as_ptr().cast_mut(),
            argv: self.argv.pointers.as_mut_ptr(),
            env: self.env.pointers.as_mut_ptr(),
            cwd: self
                .cwd
                .as_ref()
                .map_or(std::ptr::null_mut(), |cwd| cwd.as_ptr().cast_mut()),
            maxprocs: self.maxprocs,
            info: self.info.as_mut_ptr(),
            ninfo: self.info.len(),
        }
    }
}

/// What is asked of the launcher, ready to be handed to the library.
pub(super) struct Request(Vec<Held>);

impl Request {
    pub fn of(request: &SpawnRequest) -> Result<Request, RteError> {
        let apps = request.apps.iter();
        let apps = apps.map(|app| Held::of(app, &request.left));
        apps.collect::<Result<_, _>>().map(Request)
    }
}

impl Library {
    /// Starts a job, all of it or nothing; its namespace. `None` if the library is too old to do that.
    pub(super) fn spawn(&self, mut request: Request) -> Option<Result<String, Status>> {
        let spawn = self.spawn?;
        let apps: Vec<App> = request.0.iter_mut().map(Held::app).collect();
        let mut namespace = [0; abi::NAMESPACE_ROOM];
        // SAFETY: the programs and what they point to live until the call has returned, which only reads them;
        // the namespace has the room that the interface says, and is written to before the call returns.
        let status = unsafe {
            spawn(
                std::ptr::null(),
                0,
                apps.as_ptr(),
                apps.len(),
                namespace.as_mut_ptr(),
            )
        };
        Some(succeeded(status).map(|()| abi::text(&namespace)))
    }
}
