//! The watcher of this process ([`mpi_base::watcher`]): its role, and the inboxes of all lanes.

use super::GlobalLock;
use super::reserved::LOCKS;
use mpi_base::inbox::Inbox;
use mpi_base::mem::Held;
use mpi_base::race_detectors;
use mpi_base::watcher::Role;
use std::sync::OnceLock;

static ROLE: Role = Role::new();

/// The inbox of each lane of this process, set when lanes start.
static INBOXES: [OnceLock<Held<Inbox>>; LOCKS] = [const { OnceLock::new() }; LOCKS];

/// Stores the inbox of a lane. The owner of its doorbell is the thread that holds the lane's lock.
pub fn set_inbox(lane: usize, inbox: Held<Inbox>) {
    // Threads of several lanes access the role and the inboxes with atomic loads and stores.
    race_detectors::exclude(&ROLE);
    race_detectors::exclude(&*inbox);
    let _ = INBOXES[lane % LOCKS].set(inbox);
}

/// Returns the inbox of a lane, if lanes have started.
pub fn inbox(lane: usize) -> Option<&'static Held<Inbox>> {
    INBOXES[lane % LOCKS].get()
}

/// Returns the role of the watcher, which the holder of a lane's lock may claim for the lane.
pub fn role() -> &'static Role {
    &ROLE
}

/// Passes the role on, if the lane has it. The caller is about to leave the lane, and holds its lock.
#[inline]
pub fn leave(lock: &GlobalLock) {
    leave_lane(lock.number);
}

/// As [`leave`], by the number of the lane.
#[inline]
pub fn leave_lane(lane: usize) {
    if ROLE.must_pass_on(lane) {
        pass_on(lane);
    }
}

#[cold]
fn pass_on(lane: usize) {
    let others = (0..LOCKS).filter(|other| *other != lane);
    let inboxes = others.filter_map(inbox);
    ROLE.pass_on(lane, inboxes.map(|inbox| inbox.doorbell()));
}
