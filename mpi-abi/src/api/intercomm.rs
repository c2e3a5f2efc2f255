//! Intercommunicators (section 7.6).

use super::args::out;
use super::{groups, p2p};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::registry::comm::register;
use crate::state;
use mpi_core::comm::LeaderError;
use mpi_core::group::Group;
use std::ffi::c_int;

pub unsafe fn MPI_Comm_test_inter(comm: MPI_Comm, flag: *mut c_int) -> Outcome {
    let inter = state::comm(comm)?.comm.is_inter();
    // SAFETY: `flag` is null or writable: the C binding of MPI_Comm_test_inter requires it of the caller.
    unsafe { out(flag, inter.into(), "flag") }
}

/// Returns the remote group of an intercommunicator.
fn remote_group(comm: MPI_Comm) -> Result<Group, Failure> {
    let object = state::comm(comm)?;
    object.comm.remote_group().cloned().ok_or_else(|| {
        let label = object.label();
        Failure::new(MPI_ERR_COMM, format!("{label} is not an intercommunicator"))
    })
}

pub unsafe fn MPI_Comm_remote_size(comm: MPI_Comm, size: *mut c_int) -> Outcome {
    // SAFETY: `size` is null or writable: the C binding of MPI_Comm_remote_size requires it of the caller.
    unsafe { out(size, remote_group(comm)?.size() as c_int, "size") }
}

pub unsafe fn MPI_Comm_remote_group(comm: MPI_Comm, group: *mut MPI_Group) -> Outcome {
    let session = state::comm(comm)?.session.clone();
    let remote = groups::register(remote_group(comm)?, session)?;
    // SAFETY: `group` is null or writable: the C binding of MPI_Comm_remote_group requires it of the caller.
    unsafe { out(group, remote, "group") }
}

/// Converts a leader's error into one for its group, which would wait indefinitely if the call returned only here.
pub(super) fn leader_error(mistake: &Failure) -> LeaderError {
    LeaderError {
        code: mistake.code(),
        why: mistake.message().into(),
    }
}

pub unsafe fn MPI_Intercomm_create(
    local_comm: MPI_Comm,
    local_leader: c_int,
    peer_comm: MPI_Comm,
    remote_leader: c_int,
    tag: c_int,
    newintercomm: *mut MPI_Comm,
) -> Outcome {
    let local = state::comm(local_comm)?;
    let leader = groups::member(local.comm.group(), local_leader, "local_leader")?;
    // The peer communicator is significant only at the local leader.
    let bridge = (local.comm.rank() == leader).then(|| {
        let peer = state::comm(peer_comm)?;
        let remote = groups::member(peer.comm.peers(), remote_leader, "remote_leader")?;
        p2p::check_tag(tag)?;
        Ok((peer, remote))
    });
    let across = bridge.as_ref().map(|bridge| match bridge {
        Ok((peer, remote)) => Ok((&peer.comm, *remote)),
        Err(failure) => Err(leader_error(failure)),
    });
    let new = state::engine()?.block_on(local.comm.inter().create(leader, across, tag))?;
    // SAFETY: `newintercomm` is null or writable: the C binding of MPI_Intercomm_create requires it of the caller.
    unsafe {
        out(
            newintercomm,
            register(new, &local)?.handle(),
            "newintercomm",
        )
    }
}

pub unsafe fn MPI_Intercomm_merge(
    intercomm: MPI_Comm,
    high: c_int,
    newintracomm: *mut MPI_Comm,
) -> Outcome {
    let parent = state::comm(intercomm)?;
    let new = state::engine()?.block_on(parent.comm.inter().merge(high != 0))?;
    // SAFETY: `newintracomm` is null or writable: the C binding of MPI_Intercomm_merge requires it of the caller.
    unsafe {
        out(
            newintracomm,
            register(new, &parent)?.handle(),
            "newintracomm",
        )
    }
}
