//! Sessions, process sets, and communicators created from groups (sections 7.4.2, 7.6.2 and 11.3).

use super::args::{InOut, Out, SizedText, Text};
use super::{groups, intercomm::leader_error};
use crate::abi::*;
use crate::error::handler;
use crate::error::{Failure, Outcome, Target};
use crate::info::Hints;
use crate::object::Attached;
use crate::object::hints::{ALLOC_KINDS, THREAD_LEVEL};
use crate::registry::comm::register_some;
use crate::registry::session;
use crate::{info, init, state};
use mpi_core::btl::ProcId;
use mpi_core::group::Group;
use std::ffi::c_int;

/// The process sets of every job (section 11.3.2).
const PROCESS_SETS: [&str; 2] = ["mpi://WORLD", "mpi://SELF"];

/// Returns the members of a process set.
pub(super) fn process_set(name: &str) -> Result<Group, Failure> {
    let engine = state::engine()?;
    // Process set names are URIs. Their scheme is case-insensitive.
    // The names of the standard are case-insensitive as a whole.
    match PROCESS_SETS
        .iter()
        .position(|p| p.eq_ignore_ascii_case(name))
    {
        Some(0) => Ok(Group::range(0, engine.size())),
        Some(_) => Ok(Group::range(engine.me(), 1)),
        None => Err(Failure::new(
            MPI_ERR_ARG,
            format!("there is no process set {name}; there are mpi://WORLD and mpi://SELF"),
        )),
    }
}

/// Calls `make` for a new object, with an error handler that is also called if the creation fails.
fn with_handler(
    errhandler: MPI_Errhandler,
    target: Target,
    make: impl FnOnce(Attached) -> Outcome,
) -> Outcome {
    handler::check_serves(errhandler, target)?;
    let attached = Attached::new();
    attached.set_errhandler(errhandler)?;
    make(attached).map_err(|failure| failure.on(Target::New(errhandler)))
}

pub fn MPI_Session_init(
    info: MPI_Info,
    errhandler: MPI_Errhandler,
    session: Out<MPI_Session>,
) -> Outcome {
    with_handler(errhandler, Target::Session(MPI_SESSION_NULL), |attached| {
        let given = info::hints(info)?;
        let level = init::begin_session(given.get(THREAD_LEVEL))?;
        *attached.hints.borrow_mut() = Hints::of_session(level, given.get(ALLOC_KINDS));
        session.set(session::register(attached)?.handle(), "session")
    })
}

pub fn MPI_Session_finalize(session: InOut<MPI_Session>) -> Outcome {
    let handle = session.get("session")?;
    let object = state::session(handle)?;
    if object.buffer.is_attached() {
        // The handle is passed by pointer, so the wrapper cannot determine the error handler.
        let flushed = object.buffer.flush(&state::engine()?);
        flushed.map_err(|error| Failure::from(error).on(Target::Session(handle)))?;
    }
    session::remove(handle)?;
    init::end_session()?;
    session.set(MPI_SESSION_NULL, "session")
}

pub fn MPI_Session_get_info(session: MPI_Session, info_used: Out<MPI_Info>) -> Outcome {
    let mut hints = state::session(session)?.attached.hints.borrow().clone();
    hints.set_alloc_kinds();
    info_used.set(info::create(hints)?, "info_used")
}

pub fn MPI_Session_get_num_psets(
    session: MPI_Session,
    _info: MPI_Info,
    npset_names: Out<c_int>,
) -> Outcome {
    state::session(session)?;
    npset_names.set(PROCESS_SETS.len() as c_int, "npset_names")
}

pub fn MPI_Session_get_nth_pset(
    session: MPI_Session,
    _info: MPI_Info,
    n: c_int,
    pset_name: SizedText,
) -> Outcome {
    state::session(session)?;
    let name = usize::try_from(n).ok().and_then(|n| PROCESS_SETS.get(n));
    let name = name.ok_or_else(|| {
        let sets = PROCESS_SETS.len();
        Failure::new(
            MPI_ERR_ARG,
            format!("n is {n}, but there are {sets} process sets"),
        )
    })?;
    if pset_name.size("pset_len")? > 0 {
        pset_name.buffer().set(name, "pset_name")?;
    }
    // `pset_len` counts the terminating NUL.
    pset_name.length().set(name.len() as c_int + 1, "pset_len")
}

pub fn MPI_Session_get_pset_info(
    session: MPI_Session,
    pset_name: Text,
    info: Out<MPI_Info>,
) -> Outcome {
    state::session(session)?;
    let name = pset_name.string(MPI_MAX_PSET_NAME_LEN, MPI_ERR_ARG, "pset_name")?;
    let mut hints = Hints::new();
    hints.set("mpi_size".into(), process_set(&name)?.size().to_string());
    info.set(info::create(hints)?, "info")
}

pub fn MPI_Group_from_session_pset(
    session: MPI_Session,
    pset_name: Text,
    newgroup: Out<MPI_Group>,
) -> Outcome {
    let object = state::session(session)?;
    let name = pset_name.string(MPI_MAX_PSET_NAME_LEN, MPI_ERR_ARG, "pset_name")?;
    let group = groups::register(process_set(&name)?, Some(object))?;
    newgroup.set(group, "newgroup")
}

/// Reads the `stringtag` argument, which distinguishes concurrent creations.
fn tag_of(stringtag: Text) -> Result<String, Failure> {
    stringtag.string(MPI_MAX_STRINGTAG_LEN, MPI_ERR_TAG, "stringtag")
}

pub fn MPI_Comm_create_from_group(
    group: MPI_Group,
    stringtag: Text,
    info: MPI_Info,
    errhandler: MPI_Errhandler,
    newcomm: Out<MPI_Comm>,
) -> Outcome {
    with_handler(errhandler, Target::Comm(MPI_COMM_NULL), |attached| {
        let (members, session) = (state::group(group)?, groups::session_of(group));
        let tag = tag_of(stringtag)?;
        *attached.hints.borrow_mut() = Hints::known(&info::hints(info)?);
        let engine = state::engine()?;
        let new = engine.block_on(engine.process().comm_from_group(&members, &tag))?;
        newcomm.set(register_some(new, attached, session)?, "newcomm")
    })
}

/// Returns the process that is the leader of the remote group.
fn leader_of(group: MPI_Group, rank: c_int) -> Result<ProcId, Failure> {
    let group = state::group(group)?;
    let leader = groups::member(&group, rank, "remote_leader")?;
    let gone = || Failure::new(MPI_ERR_GROUP, format!("the group has no member {leader}"));
    group.proc(leader).ok_or_else(gone)
}

pub fn MPI_Intercomm_create_from_groups(
    local_group: MPI_Group,
    local_leader: c_int,
    remote_group: MPI_Group,
    remote_leader: c_int,
    stringtag: Text,
    info: MPI_Info,
    errhandler: MPI_Errhandler,
    newintercomm: Out<MPI_Comm>,
) -> Outcome {
    with_handler(errhandler, Target::Comm(MPI_COMM_NULL), |attached| {
        let (members, session) = (state::group(local_group)?, groups::session_of(local_group));
        let engine = state::engine()?;
        // If either group is empty, the call is local and returns no communicator (section 7.6.2).
        // The remote group's handle is significant, and must be valid, only at the local leader.
        let is_alone = state::group(remote_group).is_ok_and(|group| group.size() == 0);
        if members.size() == 0 || is_alone {
            return newintercomm.set(MPI_COMM_NULL, "newintercomm");
        }
        let leader = groups::member(&members, local_leader, "local_leader")?;
        // The remote arguments are significant only at the local leader.
        let leads = members.proc(leader) == Some(engine.me());
        let other =
            leads.then(|| leader_of(remote_group, remote_leader).map_err(|e| leader_error(&e)));
        let tag = tag_of(stringtag)?;
        *attached.hints.borrow_mut() = Hints::known(&info::hints(info)?);
        let made = engine
            .process()
            .inter_from_groups((&members, leader), other, &tag);
        let new = engine.block_on(made)?;
        newintercomm.set(register_some(new, attached, session)?, "newintercomm")
    })
}
