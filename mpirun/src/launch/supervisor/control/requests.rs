//! PMI requests of ranks and their effects: answers, aborts, spawned jobs.
//!
//! A rank that sends a malformed request or does not read its answers has failed.

use super::super::jobs::Rank;
use super::JobControl;
use crate::launch::ending::Cause;
use crate::launch::pmi_socket::Received;
use crate::launch::wire::End;
use crate::pmi::{Effect, Proc, SpawnRequest};

/// The error of a rank for which too many bytes are queued.
const UNREAD: &str = "it does not read the answers it asked for";

impl JobControl<'_> {
    /// Reads the PMI socket of a rank of this host with one system call, and serves its requests.
    /// Returns true if more may be readable.
    pub(in super::super) fn read_requests(&mut self, proc: Proc) -> bool {
        let received = self.ranks.receive(proc);
        if !self.answer(proc) {
            return false;
        }
        if received == Received::HungUp {
            self.hung_up(proc);
        }
        received == Received::Bytes
    }

    /// Serves the received requests of a rank of any host.
    /// Returns true if the rank stays connected.
    pub(in super::super) fn answer(&mut self, proc: Proc) -> bool {
        let protocol_error = match self.ranks.jobs.take_requests(proc) {
            Ok(lines) => lines.into_iter().find_map(|line| {
                match self.server.line(proc, &line) {
                    Ok(effects) => self.apply(effects),
                    Err(protocol_error) => return Some(protocol_error.to_string()),
                }
                None
            }),
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = protocol_error {
            self.give_up_on(proc, reason);
            return false;
        }
        self.ranks.jobs.get(proc).is_some_and(Rank::is_connected)
    }

    fn hung_up(&mut self, proc: Proc) {
        self.ranks.jobs.disconnect(proc);
        let adopted = self.ranks.jobs.get(proc).filter(|rank| rank.is_adopted);
        match adopted.is_some_and(|rank| rank.alive) {
            // mpirun is not an adopted process's parent, so the exit status is assumed to be 0.
            true => self.record_death(proc, End::Exited(0)),
            false => self.find_abandoned(),
        }
    }

    fn give_up_on(&mut self, proc: Proc, reason: String) {
        self.ranks.disconnect(proc);
        self.fail(proc, Cause::ProtocolError(reason), 1);
    }

    /// Writes the queued bytes for a rank of this host; a rank that does not read has failed.
    pub(in super::super) fn send_queued(&mut self, proc: Proc) {
        if !self.ranks.send_queued(proc) {
            self.give_up_on(proc, UNREAD.into());
        }
    }

    /// Returns the next spawn request with the rank that sent it.
    pub(in super::super) fn take_spawn(&mut self) -> Option<(Proc, SpawnRequest)> {
        self.spawns.pop_front()
    }

    pub(in super::super) fn apply(&mut self, effects: Vec<Effect>) {
        self.carry_out(effects);
        self.find_abandoned();
    }

    /// Executes the effects that the PMI server has returned.
    pub(in super::super) fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(to, bytes) => {
                    if !self.ranks.send(to, bytes) {
                        self.give_up_on(to, UNREAD.into());
                    }
                }
                Effect::Welcome {
                    proc,
                    program,
                    bytes,
                } => {
                    if !self.ranks.welcome(proc, program, bytes) {
                        self.give_up_on(proc, UNREAD.into());
                    }
                }
                Effect::Abort { by, code, message } => {
                    let cause = Cause::Aborted { code, message };
                    // An exit status has 8 bits, and an abort must not become status 0.
                    let status = match code & 0xff {
                        0 => 1,
                        low => low,
                    };
                    self.abort(by, cause, status);
                }
                Effect::Checkpoint { by, report } => self.serve_checkpoint(by, report),
                Effect::Left(proc) => self.leave_checkpoints(proc),
                Effect::Spawn { parent, request } => self.spawns.push_back((parent, request)),
            }
        }
    }

    /// Finds ranks that have ended and closed their sockets while others wait in a barrier.
    ///
    /// Without this check the waiting ranks would wait indefinitely.
    /// In a fault-tolerant job, a rank that has ended without sending `init`, while another process of its job
    /// has sent it, counts as lost even if no rank waits for it.
    pub(super) fn find_abandoned(&mut self) {
        while self.is_running()
            && let Some((proc, cause)) = self.abandoned()
        {
            self.fail(proc, cause, 1);
            if !self.plan.tolerates_deaths {
                return;
            }
        }
    }

    fn abandoned(&self) -> Option<(Proc, Cause)> {
        let gone = |rank: &Rank| {
            !rank.alive && !rank.is_dismissed && !rank.is_connected() && rank.lost.is_none()
        };
        let gone = self
            .ranks
            .jobs
            .iter()
            .filter(|(proc, rank)| gone(rank) && !self.is_explained(*proc));
        let server = &self.server;
        gone.map(|(proc, _)| proc).find_map(|proc| {
            let waiting = server.waiting_for(proc);
            let missed = self.plan.tolerates_deaths
                && !server.has_initialized(proc)
                && server.has_initialized_peers(proc);
            let cause = match waiting.is_empty() {
                false => Cause::LeftOthersWaiting { waiting },
                true if missed => Cause::NotInitialized,
                true => return None,
            };
            Some((proc, cause))
        })
    }
}
