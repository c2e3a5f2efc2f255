//! Shutdown of the daemon: it forwards remaining output, and event rings for the trace.

use super::super::local_ranks::Read;
use super::super::output::Target;
use super::super::wire::FromDaemon;
use super::Daemon;
use mpi_base::node::Event;

/// The number of events per frame.
const PIECE: usize = 2048;

impl Daemon {
    pub(super) fn empty_pipes(&mut self) {
        for proc in self.local.open() {
            for of in [Target::Stdout, Target::Stderr] {
                while self.relay(proc, of) == Read::Some {
                    if self.uplink.is_full() {
                        self.uplink.write_all(&self.guard);
                    }
                }
            }
        }
    }

    /// Forwards the last frames of the daemons on further hosts, which shut down at the same time.
    pub(super) fn await_links(&mut self) {
        while !self.uplink.is_lost() && self.links.any_open() {
            let _ = self.wait();
            self.read_guard();
            self.read_above();
            self.read_links();
            self.step();
        }
    }

    /// Sends the event rings of all ranks, after all ranks have ended.
    pub(super) fn send_event_rings(&mut self) {
        for proc in self.local.all() {
            let Some(played) = self.local.played(proc) else {
                continue;
            };
            for piece in played.events.chunks(PIECE) {
                self.report(&FromDaemon::EventRing {
                    proc: proc.0,
                    lost: played.lost,
                    events: piece.iter().map(Event::words).collect(),
                });
                if self.uplink.is_full() {
                    self.uplink.write_all(&self.guard);
                }
            }
        }
        self.report(&FromDaemon::EventRingsSent);
    }
}
