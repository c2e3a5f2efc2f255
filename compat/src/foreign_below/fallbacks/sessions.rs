//! Emulated sessions, on a backend that supports only the World Model (`MPI_Init`).
//!
//! [`crate::foreign_below::interposed::world`] initializes and finalizes the backend.
//! A session is a duplicate of `MPI_COMM_SELF`, whose error handler is the session's.
//! The process sets are `mpi://WORLD` and `mpi://SELF`.

use super::Foreign;
use crate::backend;
use crate::family::Kind;
use crate::foreign_below::error_handlers::with_subject;
use crate::foreign_below::fortran::class_below;
use crate::foreign_below::infos::entry;
use crate::foreign_below::interposed::of_groups::made_of_groups;
use crate::foreign_below::interposed::world::{hold, is_held};
use crate::foreign_below::refusal::fail_at_self;
use crate::foreign_below::standard::{MPI_COMM_SELF, MPI_COMM_WORLD, class};
use crate::lock::lock;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::{Mutex, MutexGuard};

const SETS: [&CStr; 2] = [c"mpi://WORLD", c"mpi://SELF"];

/// A session of the program, emulated on a backend without sessions.
#[derive(Clone)]
struct Session {
    /// The duplicate of `MPI_COMM_SELF`, by its `Foreign::request_number`.
    comm: usize,
    level: CString,
}

static SESSIONS: Mutex<Vec<Option<Session>>> = Mutex::new(Vec::new());

fn sessions() -> MutexGuard<'static, Vec<Option<Session>>> {
    lock(&SESSIONS)
}

fn world<F: Foreign>() -> F::Below {
    F::handle_in(Kind::Comm, MPI_COMM_WORLD)
}

fn own_self<F: Foreign>() -> F::Below {
    F::handle_in(Kind::Comm, MPI_COMM_SELF)
}

fn find<F: Foreign>(session: F::Below) -> Option<Session> {
    let index = F::emulated_index(Kind::Session, session)?;
    sessions().get(index)?.clone()
}

/// Calls the error handler `handler` with an error class of the standard.
/// The handler receives the program's handle `subject` as its first argument.
unsafe fn tell<F: Foreign>(handler: F::Below, subject: usize, class: c_int) -> c_int {
    let mut comm = F::null(Kind::Comm);
    let code = class_below::<F>(class);
    // SAFETY: a handler exists, so the backend is initialized.
    // The communicator is created and freed here.
    unsafe {
        if (backend::MPI_Comm_dup::<F>())(own_self::<F>(), &raw mut comm) == 0 {
            (backend::MPI_Comm_set_errhandler::<F>())(comm, handler);
            with_subject(subject, || {
                (backend::MPI_Comm_call_errhandler::<F>())(comm, code)
            });
            (backend::MPI_Comm_free::<F>())(&raw mut comm);
        }
    }
    code
}

/// Calls a session's error handler with an error class. Returns the backend's error code.
unsafe fn fail<F: Foreign>(session: F::Below, class: c_int) -> c_int {
    let code = class_below::<F>(class);
    match find::<F>(session) {
        // SAFETY: the communicator of an open session is valid in the backend.
        Some(known) => unsafe {
            let comm = F::of_request_number(known.comm);
            let subject = F::handle_out(Kind::Session, session);
            with_subject(subject, || {
                (backend::MPI_Comm_call_errhandler::<F>())(comm, code)
            });
        },
        // SAFETY: `is_held` has checked that the backend is initialized.
        None if is_held() => unsafe {
            fail_at_self::<F>(class);
        },
        None => {}
    }
    code
}

/// Calls `ask` with the emulated session, or raises `MPI_ERR_SESSION` for an invalid handle.
unsafe fn with<F: Foreign>(session: F::Below, ask: impl FnOnce(Session) -> c_int) -> c_int {
    match find::<F>(session) {
        Some(known) => ask(known),
        // SAFETY: `fail` accepts any handle.
        None => unsafe { fail::<F>(session, class::SESSION) },
    }
}

unsafe fn info_of<F: Foreign>(key: &CStr, value: &CStr, info: *mut F::Below) -> c_int {
    // SAFETY: `info` is an output argument of the program, valid by the standard.
    unsafe {
        match (backend::MPI_Info_create::<F>())(info) {
            0 => (backend::MPI_Info_set::<F>())(*info, key.as_ptr(), value.as_ptr()),
            code => code,
        }
    }
}

pub unsafe extern "C-unwind" fn MPI_Session_init<F: Foreign>(
    info: F::Below,
    handler: F::Below,
    session: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if !hold::<F>() {
            return class_below::<F>(class::OTHER);
        }
        let mut comm = F::null(Kind::Comm);
        let code = (backend::MPI_Comm_dup::<F>())(own_self::<F>(), &raw mut comm);
        if code != 0 {
            return code;
        }
        (backend::MPI_Comm_set_errhandler::<F>())(comm, handler);
        let level = entry::<F>(info, c"thread_level");
        let made = Session {
            comm: F::request_number(comm),
            level: level.unwrap_or_else(|| c"MPI_THREAD_SINGLE".into()),
        };
        let mut sessions = sessions();
        sessions.push(Some(made));
        session.write(F::emulated(Kind::Session, sessions.len() - 1));
    }
    0
}

pub unsafe extern "C-unwind" fn MPI_Session_finalize<F: Foreign>(session: *mut F::Below) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let Some(known) = find::<F>(*session) else {
            return fail::<F>(*session, class::SESSION);
        };
        let mut comm = F::of_request_number(known.comm);
        (backend::MPI_Comm_free::<F>())(&raw mut comm);
        let index = F::emulated_index(Kind::Session, *session);
        if let Some(place) = index.and_then(|i| sessions().get_mut(i).map(std::mem::take)) {
            drop(place);
        }
        session.write(F::null(Kind::Session));
    }
    0
}

pub unsafe extern "C-unwind" fn MPI_Session_get_info<F: Foreign>(
    session: F::Below,
    info: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        with::<F>(session, |known| {
            info_of::<F>(c"thread_level", &known.level, info)
        })
    }
}

pub unsafe extern "C-unwind" fn MPI_Session_get_num_psets<F: Foreign>(
    session: F::Below,
    _info: F::Below,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        with::<F>(session, |_| {
            count.write(SETS.len() as c_int);
            0
        })
    }
}

pub unsafe extern "C-unwind" fn MPI_Session_get_nth_pset<F: Foreign>(
    session: F::Below,
    _info: F::Below,
    n: c_int,
    length: *mut c_int,
    name: *mut c_char,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        with::<F>(session, |_| {
            let Some(set) = usize::try_from(n).ok().and_then(|n| SETS.get(n)) else {
                return fail::<F>(session, class::ARG);
            };
            let bytes = set.to_bytes();
            let space = usize::try_from(length.read()).unwrap_or(0);
            if space > 0 {
                let kept = bytes.len().min(space - 1);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), name.cast(), kept);
                name.add(kept).write(0);
            }
            length.write(bytes.len() as c_int + 1);
            0
        })
    }
}

/// Returns the communicator with the members of a process set, or `None` for an unknown set.
unsafe fn members<F: Foreign>(name: *const c_char) -> Option<F::Below> {
    // SAFETY: the program passes a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    if name.eq_ignore_ascii_case(SETS[0].to_bytes()) {
        Some(world::<F>())
    } else if name.eq_ignore_ascii_case(SETS[1].to_bytes()) {
        Some(own_self::<F>())
    } else {
        None
    }
}

pub unsafe extern "C-unwind" fn MPI_Session_get_pset_info<F: Foreign>(
    session: F::Below,
    name: *const c_char,
    info: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        with::<F>(session, |_| {
            let Some(comm) = members::<F>(name) else {
                return fail::<F>(session, class::ARG);
            };
            let mut size = 0;
            (backend::MPI_Comm_size::<F>())(comm, &raw mut size);
            let size = CString::new(size.to_string()).unwrap_or_default();
            info_of::<F>(c"mpi_size", &size, info)
        })
    }
}

pub unsafe extern "C-unwind" fn MPI_Group_from_session_pset<F: Foreign>(
    session: F::Below,
    name: *const c_char,
    group: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        with::<F>(session, |_| match members::<F>(name) {
            Some(comm) => (backend::MPI_Comm_group::<F>())(comm, group),
            None => fail::<F>(session, class::ARG),
        })
    }
}

/// Sets the program's error handler and info on a communicator created from a group.
unsafe fn made<F: Foreign>(comm: F::Below, info: F::Below, handler: F::Below) {
    // SAFETY: the communicator is new, and `info` and `handler` are the program's arguments.
    unsafe {
        (backend::MPI_Comm_set_errhandler::<F>())(comm, handler);
        if info != F::null(Kind::Info) {
            (backend::MPI_Comm_set_info::<F>())(comm, info);
        }
    }
    made_of_groups::<F>(comm);
}

/// Hashes the string argument `stringtag` to a tag: equal strings have equal tags.
fn tag_of(string: *const c_char) -> c_int {
    // SAFETY: the program passes a C string.
    let bytes = unsafe { CStr::from_ptr(string) }.to_bytes();
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    // The backend's `MPI_TAG_UB` is at least 32767, as the standard requires.
    (hash % 32749) as c_int
}

pub unsafe extern "C-unwind" fn MPI_Comm_create_from_group<F: Foreign>(
    group: F::Below,
    string: *const c_char,
    info: F::Below,
    handler: F::Below,
    comm: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        comm.write(F::null(Kind::Comm));
        if group == F::null(Kind::Group) {
            return tell::<F>(handler, Kind::Comm.null(), class::GROUP);
        }
        let code =
            (backend::MPI_Comm_create_group::<F>())(world::<F>(), group, tag_of(string), comm);
        if code == 0 {
            made::<F>(*comm, info, handler);
        }
        code
    }
}

pub unsafe extern "C-unwind" fn MPI_Intercomm_create_from_groups<F: Foreign>(
    local: F::Below,
    local_leader: c_int,
    remote: F::Below,
    remote_leader: c_int,
    string: *const c_char,
    info: F::Below,
    handler: F::Below,
    comm: *mut F::Below,
) -> c_int {
    let null = F::null(Kind::Group);
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        comm.write(F::null(Kind::Comm));
        if local == null || remote == null {
            return tell::<F>(handler, Kind::Comm.null(), class::GROUP);
        }
        let (mut of_world, mut there) = (null, 0);
        (backend::MPI_Comm_group::<F>())(world::<F>(), &raw mut of_world);
        (backend::MPI_Group_translate_ranks::<F>())(
            remote,
            1,
            &raw const remote_leader,
            of_world,
            &raw mut there,
        );
        (backend::MPI_Group_free::<F>())(&raw mut of_world);
        let tag = tag_of(string);
        let mut here = F::null(Kind::Comm);
        let mut code =
            (backend::MPI_Comm_create_group::<F>())(world::<F>(), local, tag, &raw mut here);
        if code == 0 {
            code = (backend::MPI_Intercomm_create::<F>())(
                here,
                local_leader,
                world::<F>(),
                there,
                tag,
                comm,
            );
            (backend::MPI_Comm_free::<F>())(&raw mut here);
        }
        if code == 0 {
            made::<F>(*comm, info, handler);
        }
        code
    }
}

/// Creates an error handler for communicators, since an emulated session is a communicator.
pub unsafe extern "C-unwind" fn MPI_Session_create_errhandler<F: Foreign>(
    function: usize,
    handler: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if !hold::<F>() {
            return class_below::<F>(class::OTHER);
        }
        (backend::MPI_Comm_create_errhandler::<F>())(function, handler)
    }
}

pub unsafe extern "C-unwind" fn MPI_Session_set_errhandler<F: Foreign>(
    session: F::Below,
    handler: F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        with::<F>(session, |known| {
            (backend::MPI_Comm_set_errhandler::<F>())(F::of_request_number(known.comm), handler)
        })
    }
}

pub unsafe extern "C-unwind" fn MPI_Session_get_errhandler<F: Foreign>(
    session: F::Below,
    handler: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        with::<F>(session, |known| {
            (backend::MPI_Comm_get_errhandler::<F>())(F::of_request_number(known.comm), handler)
        })
    }
}

pub unsafe extern "C-unwind" fn MPI_Session_call_errhandler<F: Foreign>(
    session: F::Below,
    code: c_int,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        with::<F>(session, |known| {
            let comm = F::of_request_number(known.comm);
            let subject = F::handle_out(Kind::Session, session);
            with_subject(subject, || {
                (backend::MPI_Comm_call_errhandler::<F>())(comm, code)
            })
        })
    }
}
