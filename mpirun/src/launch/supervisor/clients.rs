//! PMI requests of ranks and their effects: answers, aborts, ranks to start.
//!
//! A rank that sends a malformed request, or does not read its answers, has failed.

use super::super::ending::Cause;
use super::super::pmi_socket::{PmiSocket, Received, SendOutcome};
use super::super::ranks::Rank;
use super::super::sys::Ended;
use super::super::wire::ToDaemon;
use super::Supervisor;
use super::events::watch_client;
use crate::pmi::{Effect, Proc};

impl Supervisor<'_> {
    /// Serves a rank's socket that has data or space for queued bytes.
    pub(super) fn serve_client(&mut self, proc: Proc) {
        self.send_client(proc, PmiSocket::drain);
        self.read_client(proc);
    }

    pub(super) fn read_client(&mut self, proc: Proc) {
        loop {
            let Some(client) = self.ranks.get_mut(proc).and_then(|rank| rank.pmi.as_mut()) else {
                return;
            };
            let Some(socket) = &client.socket else {
                return;
            };
            let heard = socket.receive(|bytes| client.lines.push(bytes));
            if !self.answer_lines(proc) {
                return;
            }
            match heard {
                Received::Bytes => {}
                Received::Nothing => return,
                Received::HungUp => return self.hung_up(proc),
            }
        }
    }

    /// Serves the requests that a rank has sent. Returns true if the rank may go on.
    pub(super) fn answer_lines(&mut self, proc: Proc) -> bool {
        let Some(client) = self.ranks.get_mut(proc).and_then(|rank| rank.pmi.as_mut()) else {
            return false;
        };
        let lines: Result<Vec<_>, _> =
            std::iter::from_fn(|| client.lines.next_line().transpose()).collect();
        let protocol_error = match lines {
            Ok(lines) => lines.into_iter().find_map(|line| {
                self.unserved.is_settled(proc);
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
        true
    }

    fn hung_up(&mut self, proc: Proc) {
        let Some(rank) = self.ranks.get_mut(proc) else {
            return;
        };
        rank.pmi = None;
        match rank.is_adopted && rank.alive {
            // Only its parent knows its exit status; here it matters only whether it had left MPI.
            true => self.record_death(proc, Ended::Exited(0), None),
            false => self.find_abandoned(),
        }
    }

    fn give_up_on(&mut self, proc: Proc, reason: String) {
        if let Some(rank) = self.ranks.get_mut(proc) {
            rank.pmi = None;
        }
        self.fail(proc, Cause::ProtocolError(reason), 1);
    }

    /// Sends bytes to a rank of this host, and polls its socket for space while bytes are queued.
    fn send_client(&mut self, proc: Proc, tell: impl FnOnce(&mut PmiSocket) -> SendOutcome) {
        let client = self.ranks.get_mut(proc).and_then(|rank| rank.pmi.as_mut());
        let Some(socket) = client.and_then(|client| client.socket.as_mut()) else {
            return;
        };
        let waited = socket.has_queued();
        let said = tell(socket);
        if socket.has_queued() != waited {
            watch_client(&self.epoll, socket, proc);
        }
        match said {
            SendOutcome::Sent => {}
            // Its earlier requests are still to be read; its end is found there.
            SendOutcome::HungUp => {}
            SendOutcome::Unread => {
                self.give_up_on(proc, "it does not read the answers it asked for".into())
            }
        }
    }

    pub(super) fn apply(&mut self, effects: Vec<Effect>) {
        self.carry_out(effects);
        self.find_abandoned();
    }

    /// Carries out the effects that the server has decided on.
    pub(super) fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(to, bytes) => {
                    let Some(rank) = self.ranks.get(to) else {
                        continue;
                    };
                    match rank.here {
                        true => self.send_client(to, |socket| socket.say(&bytes)),
                        false => {
                            let (host, proc) = (rank.host, to.0);
                            self.send_host(host, &ToDaemon::Pmi { proc, bytes });
                        }
                    }
                }
                Effect::Abort { by, code, message } => {
                    let cause = Cause::Aborted { code, message };
                    // An exit status has eight bits, and an abort is never a success.
                    let status = match code & 0xff {
                        0 => 1,
                        low => low,
                    };
                    self.abort(by, cause, status);
                }
                Effect::Spawn { parent, request } => self.spawn(parent, request),
            }
        }
    }

    /// Finds ranks that have ended and closed their sockets: they never enter a barrier, and ranks that wait there would wait indefinitely.
    ///
    /// If a job survives deaths, such a rank is a loss even if no rank waits yet: others may wait elsewhere than in a barrier.
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
            !rank.alive && !rank.is_dismissed && rank.pmi.is_none() && rank.lost.is_none()
        };
        let gone = self
            .ranks
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
