//! Sending the event rings of a daemon's ranks to the supervisor, for the trace.

use super::super::wire::FromDaemon;
use super::Daemon;
use mpi_base::node::Event;

/// Events per frame.
const PIECE: usize = 2048;

impl Daemon {
    /// Sends the events of all ranks; all ranks have ended.
    pub(super) fn send_event_rings(&mut self) {
        for index in 0..self.ranks.len() {
            let rank = &self.ranks[index];
            let (proc, local_rank) = (rank.proc, rank.local_rank);
            let node = self.nodes.iter().find(|(job, _)| *job == rank.job);
            let Some(tape) = node.map(|(_, node)| node.tape_of(local_rank)) else {
                continue;
            };
            for piece in tape.events.chunks(PIECE) {
                let events = piece.iter().map(Event::words).collect();
                let lost = tape.lost;
                self.report(&FromDaemon::EventRing { proc, lost, events });
                if self.uplink.is_full() {
                    self.uplink.write_all(&self.guard);
                }
            }
        }
        self.report(&FromDaemon::EventRingsSent);
    }
}
