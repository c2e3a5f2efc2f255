//! Intercommunicators (section 7.6).

use super::args::Out;
use super::{groups, p2p};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::registry::comm::register;
use crate::state;
use mpi_core::comm::LeaderError;
use mpi_core::group::Group;
use std::ffi::c_int;

pub fn MPI_Comm_test_inter(comm: MPI_Comm, flag: Out<c_int>) -> Outcome {
    let inter = state::comm(comm)?.comm.is_inter();
    flag.set(inter.into(), "flag")
}

/// Returns the remote group of an intercommunicator.
fn remote_group(comm: MPI_Comm) -> Result<Group, Failure> {
    let object = state::comm(comm)?;
    object.comm.remote_group().cloned().ok_or_else(|| {
        let label = object.label();
        Failure::new(MPI_ERR_COMM, format!("{label} is not an intercommunicator"))
    })
}

pub fn MPI_Comm_remote_size(comm: MPI_Comm, size: Out<c_int>) -> Outcome {
    size.set(remote_group(comm)?.size() as c_int, "size")
}

pub fn MPI_Comm_remote_group(comm: MPI_Comm, group: Out<MPI_Group>) -> Outcome {
    let session = state::comm(comm)?.session.clone();
    let remote = groups::register(remote_group(comm)?, session)?;
    group.set(remote, "group")
}

/// Converts a leader's failure into the error that it sends to its group.
/// The other members of the group would otherwise wait indefinitely.
pub(super) fn leader_error(mistake: &Failure) -> LeaderError {
    LeaderError {
        code: mistake.code(),
        why: mistake.message().into(),
    }
}

pub fn MPI_Intercomm_create(
    local_comm: MPI_Comm,
    local_leader: c_int,
    peer_comm: MPI_Comm,
    remote_leader: c_int,
    tag: c_int,
    newintercomm: Out<MPI_Comm>,
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
    newintercomm.set(register(new, &local)?.handle(), "newintercomm")
}

pub fn MPI_Intercomm_merge(
    intercomm: MPI_Comm,
    high: c_int,
    newintracomm: Out<MPI_Comm>,
) -> Outcome {
    let parent = state::comm(intercomm)?;
    let new = state::engine()?.block_on(parent.comm.inter().merge(high != 0))?;
    newintracomm.set(register(new, &parent)?.handle(), "newintracomm")
}
