//! The daemon's part in a checkpoint that is images of all processes: it sends everything, and waits.
//!
//! The guard of the daemon reports to the supervisor that the daemon is silent, and dumps it with its ranks.
//! A restored daemon continues in the same wait.

use super::Daemon;
use crate::launch::affinity::Affinities;
use crate::launch::hold::{self, Described, Go};
use crate::launch::sys::Signal;
use rustix::process::{Signal as Kill, set_parent_process_death_signal};

impl Daemon {
    /// Waits until the end of a checkpoint, if the supervisor has asked for silence.
    pub(super) fn hold(&mut self) {
        let Some(hello) = self.hello.as_ref().filter(|_| self.is_held) else {
            return;
        };
        let own = (hello.branch.host, hello.branch.name.clone());
        self.is_held = false;
        self.uplink.write_all(&self.guard);
        // If the guard dies now, it may leave this process stopped, and no process would end the ranks.
        let _ = set_parent_process_death_signal(Some(Kill::KILL));
        let affinities = Affinities::read();
        let mut early: Vec<Signal> = Vec::new();
        let own = Described {
            hosts: vec![own],
            ..Described::default()
        };
        let asked = hold::hold(&self.guard, false, Vec::new(), (&own, &[]));
        let answer = asked.ok();
        let answer = answer.and_then(|()| hold::wait_for_go(&self.guard, &mut early));
        let _ = set_parent_process_death_signal(None);
        self.uplink.restart_clock();
        match (answer, early.first()) {
            (_, Some(signal)) => self.lose_launcher(*signal),
            (Some(Go { is_restored, .. }), None) => {
                if is_restored {
                    affinities.set();
                }
            }
            (None, None) => self.lose_launcher(libc::SIGTERM),
        }
    }
}
