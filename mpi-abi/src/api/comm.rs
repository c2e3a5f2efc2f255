//! Communicators (section 7.4).
#![allow(unsafe_code)]

use super::args::{InOut, Later, Out, Text, TextOut};
use super::groups;
use crate::abi::*;
use crate::error::{Failure, Outcome, Target};
use crate::info::{self, Hints};
use crate::lanes;
use crate::object::Attached;
use crate::object::attribute::Owner;
use crate::object::comm::CommObject;
use crate::registry::comm::{register, register_some, register_with, remove, report_connections};
use crate::registry::request::{self, reap_orphans, running, wait_for_orphans};
use crate::state;
use mpi_base::hardware::Kind;
use mpi_core::comm::{Comm, SplitKey};
use std::ffi::{c_int, c_void};
use std::rc::Rc;

pub fn MPI_Comm_rank(comm: MPI_Comm, rank: Out<c_int>) -> Outcome {
    let mine = state::comm(comm)?.comm.rank();
    rank.set(mine as c_int, "rank")
}

pub fn MPI_Comm_size(comm: MPI_Comm, size: Out<c_int>) -> Outcome {
    let members = state::comm(comm)?.comm.size();
    size.set(members as c_int, "size")
}

pub fn MPI_Comm_compare(comm1: MPI_Comm, comm2: MPI_Comm, result: Out<c_int>) -> Outcome {
    let compared = state::comm(comm1)?.comm.compare(&state::comm(comm2)?.comm);
    result.set(groups::comparison(compared), "result")
}

pub fn MPI_Comm_group(comm: MPI_Comm, group: Out<MPI_Group>) -> Outcome {
    let object = state::comm(comm)?;
    let members = groups::register(object.comm.group().clone(), object.session.clone())?;
    group.set(members, "group")
}

/// Registers a handle for a communicator derived from `parent`.
/// Returns `MPI_COMM_NULL` on a process that is not a member.
pub(super) fn child(new: Option<Comm>, parent: &CommObject) -> Result<MPI_Comm, Failure> {
    let attached = Attached::inheriting(&parent.attached);
    register_some(new, attached, parent.session.clone())
}

/// Copies the parent's attributes to a duplicate, and sets the hints of the duplicate.
/// If a copy callback fails, the duplicate is freed.
fn complete_duplicate(new: Comm, parent: &CommObject, hints: &Hints) -> Result<MPI_Comm, Failure> {
    let object = register(new, parent)?;
    copy_topology(&object, parent);
    *object.attached.hints.borrow_mut() = Hints::known(hints);
    if let Err(failure) = parent.owner().copy_all(&object.owner()) {
        let _ = object.owner().delete_all();
        remove(object.handle())?;
        return Err(failure);
    }
    Ok(object.handle())
}

/// Copies the topology of the parent to its duplicate.
fn copy_topology(object: &CommObject, parent: &CommObject) {
    if let Some(topology) = parent.topology.get() {
        // A new communicator has no topology yet, so `set` succeeds.
        let _ = object.topology.set(topology.clone());
    }
}

pub fn MPI_Comm_dup(comm: MPI_Comm, newcomm: Out<MPI_Comm>) -> Outcome {
    let parent = state::comm(comm)?;
    let new = parent.comm.constructors().dup_now()?;
    // Since MPI-4.0 a duplicate does not inherit the parent's hints (section 7.4.2).
    newcomm.set(complete_duplicate(new, &parent, &Hints::new())?, "newcomm")
}

pub fn MPI_Comm_dup_with_info(comm: MPI_Comm, info: MPI_Info, newcomm: Out<MPI_Comm>) -> Outcome {
    let (parent, hints) = (state::comm(comm)?, info::hints(info)?);
    let new = parent.comm.constructors().dup_now()?;
    newcomm.set(complete_duplicate(new, &parent, &hints)?, "newcomm")
}

/// The destination of a new communicator's handle in a nonblocking call.
pub(crate) enum HandleSink {
    /// The output argument of an MPI function of this ABI.
    Place(Later<MPI_Comm>),
    /// A callback of a library for another ABI, and the callback's context argument.
    Contextual(unsafe extern "C" fn(*mut c_void, MPI_Comm), *mut c_void),
}

impl HandleSink {
    /// Returns the destination for an output argument.
    /// The argument is set to `MPI_COMM_NULL` until completion.
    fn place(newcomm: Out<MPI_Comm>) -> Result<HandleSink, Failure> {
        newcomm.set(MPI_COMM_NULL, "newcomm")?;
        Ok(HandleSink::Place(newcomm.later("newcomm")?))
    }

    /// Stores the handle in the destination.
    ///
    /// # Safety
    /// The destination is still valid.
    pub(crate) unsafe fn write(&self, comm: MPI_Comm) {
        match self {
            // SAFETY: `place` is still valid by the `# Safety` contract of this function.
            HandleSink::Place(place) => unsafe { place.put(comm) },
            // SAFETY: by the `# Safety` contract, `deliver` may still be called with `place`.
            HandleSink::Contextual(deliver, place) => unsafe { deliver(*place, comm) },
        }
    }
}

/// Copies error handler, hints and attributes at the time of the call (section 7.4.2).
/// Changes that the program makes before the duplicate exists affect only the parent.
fn copied(parent: &CommObject, hints: &Hints) -> Result<Attached, Failure> {
    let attached = Attached::inheriting(&parent.attached);
    *attached.hints.borrow_mut() = Hints::known(hints);
    let unborn = Owner {
        handle: MPI_COMM_NULL.0,
        attributes: &attached.attributes,
        ..parent.owner()
    };
    if let Err(failure) = parent.owner().copy_all(&unborn) {
        let _ = unborn.delete_all();
        return Err(failure);
    }
    Ok(attached)
}

/// Starts a duplication that stores the new handle at completion.
///
/// # Safety
/// The destination stays valid until the request is complete.
pub(crate) unsafe fn idup(
    comm: MPI_Comm,
    hints: &Hints,
    later: HandleSink,
    request: Out<MPI_Request>,
) -> Outcome {
    let parent = state::comm(comm)?;
    let source = parent.clone();
    let (attached, refusal) = match copied(&parent, hints) {
        Ok(attached) => (Some(attached), None),
        Err(failure) => (None, Some(failure)),
    };
    let duplication = async move {
        let new = source.comm.constructors().dup().await?;
        let Some(attached) = attached else {
            return Ok(());
        };
        // `register_with` fails only if the program holds 2^19 other communicators.
        // The program then reads `MPI_COMM_NULL`.
        if let Ok(object) = register_with(new, attached, source.session.clone()) {
            copy_topology(&object, &source);
            // SAFETY: `later` is valid until completion by the `# Safety` contract.
            unsafe { later.write(object.handle()) };
        }
        Ok(())
    };
    let req = state::engine()?.operations().start(Box::pin(duplication));
    let handle = running(req, &parent)?;
    if let Some(refusal) = refusal {
        // The operation continues: the other members need this member for their duplicates.
        // The program gets no handle for the duplicate on this rank.
        request::free(handle)?;
        return Err(refusal);
    }
    request.set(handle, "request")
}

/// Starts a duplication that stores the new handle in an output argument at completion.
fn idup_into(
    comm: MPI_Comm,
    hints: &Hints,
    newcomm: Out<MPI_Comm>,
    request: Out<MPI_Request>,
) -> Outcome {
    state::comm(comm)?;
    let later = HandleSink::place(newcomm)?;
    // SAFETY: an output argument of a nonblocking call is valid until its request completes.
    unsafe { idup(comm, hints, later, request) }
}

pub fn MPI_Comm_idup(comm: MPI_Comm, newcomm: Out<MPI_Comm>, request: Out<MPI_Request>) -> Outcome {
    idup_into(comm, &Hints::new(), newcomm, request)
}

pub fn MPI_Comm_idup_with_info(
    comm: MPI_Comm,
    info: MPI_Info,
    newcomm: Out<MPI_Comm>,
    request: Out<MPI_Request>,
) -> Outcome {
    idup_into(comm, &info::hints(info)?, newcomm, request)
}

pub fn MPI_Comm_create(comm: MPI_Comm, group: MPI_Group, newcomm: Out<MPI_Comm>) -> Outcome {
    let (parent, group) = (state::comm(comm)?, state::group(group)?);
    let new = state::engine()?.block_on(parent.comm.constructors().create(&group))?;
    newcomm.set(child(new, &parent)?, "newcomm")
}

pub fn MPI_Comm_create_group(
    comm: MPI_Comm,
    group: MPI_Group,
    tag: c_int,
    newcomm: Out<MPI_Comm>,
) -> Outcome {
    let (parent, group) = (state::comm(comm)?, state::group(group)?);
    super::p2p::check_tag(tag)?;
    let new = state::engine()?.block_on(parent.comm.constructors().create_group(&group, tag))?;
    newcomm.set(child(new, &parent)?, "newcomm")
}

pub fn MPI_Comm_split(comm: MPI_Comm, color: c_int, key: c_int, newcomm: Out<MPI_Comm>) -> Outcome {
    let parent = state::comm(comm)?;
    let color = match color {
        MPI_UNDEFINED => None,
        color => Some(u64::try_from(color).map_err(|_| {
            Failure::new(
                MPI_ERR_ARG,
                format!("color is {color}, which is negative and not MPI_UNDEFINED"),
            )
        })?),
    };
    let new =
        state::engine()?.block_on(parent.comm.constructors().split(SplitKey { color, key }))?;
    newcomm.set(child(new, &parent)?, "newcomm")
}

pub fn MPI_Comm_split_type(
    comm: MPI_Comm,
    split_type: c_int,
    key: c_int,
    info: MPI_Info,
    newcomm: Out<MPI_Comm>,
) -> Outcome {
    let parent = state::comm(comm)?;
    let (engine, comm) = (state::engine()?, &parent.comm);
    let given = info::hints(info)?;
    let no_color = SplitKey { color: None, key };
    let unguided = split_type == MPI_COMM_TYPE_HW_UNGUIDED;
    let goes_down = match comm.is_inter() {
        true => unguided,
        false => engine.block_on(comm.internal().any(unguided))?,
    };
    let new = match split_type {
        MPI_COMM_TYPE_SHARED => engine.block_on(comm.hardware().split_shared(key))?,
        MPI_COMM_TYPE_HW_GUIDED | MPI_COMM_TYPE_RESOURCE_GUIDED => {
            let wanted = given.get("mpi_hw_resource_type");
            let set = given.get("mpi_pset_name").filter(|_| wanted.is_none());
            let kind = Kind::ALL.into_iter().find(|k| wanted == Some(k.uri()));
            match (kind, wanted, set) {
                (Some(kind), ..) => engine.block_on(comm.hardware().split_hardware(kind, key))?,
                (_, Some("mpi_shared_memory"), _) => {
                    engine.block_on(comm.hardware().split_shared(key))?
                }
                (.., Some(name)) if split_type == MPI_COMM_TYPE_RESOURCE_GUIDED => {
                    let members = super::session::process_set(name)?;
                    let inside = members.rank_of(engine.me()).map(|_| match members.size() {
                        1 => u64::from(engine.me()) + 1,
                        _ => 0,
                    });
                    engine.block_on(comm.constructors().split(SplitKey { color: inside, key }))?
                }
                // No two processes share a resource of an unknown type, so all get `MPI_COMM_NULL`.
                _ => engine.block_on(comm.constructors().split(no_color))?,
            }
        }
        MPI_COMM_TYPE_HW_UNGUIDED => {
            let found = engine.block_on(comm.hardware().split_next_level(Some(key)))?;
            if let (Some((_, kind)), true) = (&found, info != MPI_INFO_NULL) {
                let key = "mpi_hw_resource_type".to_string();
                info::change(info, |hints| hints.set(key, kind.uri().into()))?;
            }
            found.map(|(new, _)| new)
        }
        MPI_UNDEFINED if goes_down => {
            engine.block_on(comm.hardware().split_next_level(None))?;
            None
        }
        MPI_UNDEFINED => engine.block_on(comm.constructors().split(no_color))?,
        other => {
            return Err(Failure::new(
                MPI_ERR_ARG,
                format!("split_type is {other}, which is no MPI_COMM_TYPE_ constant"),
            ));
        }
    };
    let attached = Attached::inheriting(&parent.attached);
    *attached.hints.borrow_mut() = Hints::known(&given);
    let new = register_some(new, attached, parent.session.clone())?;
    newcomm.set(new, "newcomm")
}

pub fn MPI_Comm_free(comm: InOut<MPI_Comm>) -> Outcome {
    let handle = comm.get("comm")?;
    let object = freeable(handle)?;
    object.owner().delete_all().map_err(heard_by(handle))?;
    if object.buffer.is_attached() {
        let flushed = object.buffer.flush(&state::engine()?);
        flushed.map_err(|error| heard_by(handle)(error.into()))?;
    }
    let is_mixed = object.comm.is_mixed();
    drop(object);
    // Operations in progress keep the object alive until they complete.
    remove(handle)?;
    reap_orphans();
    if is_mixed {
        report_connections();
    }
    comm.set(MPI_COMM_NULL, "comm")
}

/// Returns a function that assigns a failure to `comm`, whose error handler is then called.
/// The wrapper cannot assign the failure, since the handle argument is passed by pointer.
fn heard_by(comm: MPI_Comm) -> impl Fn(Failure) -> Failure {
    move |failure| failure.on(Target::Comm(comm))
}

/// Returns a communicator that the program may free.
fn freeable(handle: MPI_Comm) -> Result<Rc<CommObject>, Failure> {
    let object = state::comm(handle)?;
    match handle {
        MPI_COMM_WORLD | MPI_COMM_SELF => Err(Failure::new(
            MPI_ERR_COMM,
            format!("{} cannot be freed", object.label()),
        )),
        _ => Ok(object),
    }
}

pub fn MPI_Comm_disconnect(comm: InOut<MPI_Comm>) -> Outcome {
    let handle = comm.get("comm")?;
    let object = freeable(handle)?;
    // The program has completed its own requests (section 11.10.4).
    // This call also completes operations whose handles were freed.
    wait_for_orphans(&object).map_err(heard_by(handle))?;
    lanes::drain_comm(&state::engine()?, handle, true);
    lanes::end_on_failure();
    // No member leaves before all members have arrived, so no message is in transit afterwards.
    let left = state::engine()?.block_on(object.comm.internal().farewell());
    left.map_err(|error| heard_by(handle)(error.into()))?;
    drop(object);
    MPI_Comm_free(comm)
}

pub fn MPI_Comm_set_name(comm: MPI_Comm, comm_name: Text) -> Outcome {
    let object = state::comm(comm)?;
    let name = comm_name.name("comm_name")?;
    object.comm.set_name(&name);
    Ok(())
}

pub fn MPI_Comm_get_name(comm: MPI_Comm, comm_name: TextOut, resultlen: Out<c_int>) -> Outcome {
    // The name of MPI_COMM_NULL can be queried too (section 7.8).
    let name = match comm {
        MPI_COMM_NULL => "MPI_COMM_NULL".to_string(),
        _ => state::comm(comm)?.comm.name(),
    };
    comm_name.set_with_length(resultlen, &name, "comm_name")
}

pub fn MPI_Comm_set_info(comm: MPI_Comm, info: MPI_Info) -> Outcome {
    let object = state::comm(comm)?;
    let given = info::read(info, Hints::clone)?;
    object.attached.hints.borrow_mut().take_known(&given);
    Ok(())
}

pub fn MPI_Comm_get_info(comm: MPI_Comm, info_used: Out<MPI_Info>) -> Outcome {
    let hints = state::comm(comm)?.attached.hints.borrow().in_force();
    info_used.set(info::create(hints)?, "info_used")
}
