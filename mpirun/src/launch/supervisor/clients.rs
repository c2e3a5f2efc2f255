//! What ranks ask of the PMI server, and what comes of it: answers, aborts, ranks to be started.
//!
//! A rank that says nonsense, or does not read what it asked for, has failed.

use super::super::ending::Cause;
use super::super::ranks::{Heard, Reply, hear, reply};
use super::super::wire::ToDaemon;
use super::Supervisor;
use crate::pmi::{Effect, Proc};

impl Supervisor<'_> {
    pub(super) fn read_client(&mut self, proc: Proc) {
        loop {
            let Some(client) = self.ranks.get_mut(proc).and_then(|rank| rank.pmi.as_mut()) else {
                return;
            };
            let Some(fd) = &client.fd else {
                return;
            };
            let heard = hear(fd, |bytes| client.lines.push(bytes));
            if !self.answer_lines(proc) {
                return;
            }
            match heard {
                Heard::Bytes => {}
                Heard::Nothing => return,
                Heard::HungUp => return self.hung_up(proc),
            }
        }
    }

    /// Serves what a rank has said; whether it may go on.
    pub(super) fn answer_lines(&mut self, proc: Proc) -> bool {
        let Some(client) = self.ranks.get_mut(proc).and_then(|rank| rank.pmi.as_mut()) else {
            return false;
        };
        let lines: Result<Vec<_>, _> =
            std::iter::from_fn(|| client.lines.next_line().transpose()).collect();
        let nonsense = match lines {
            Ok(lines) => lines.into_iter().find_map(|line| {
                match self.server.line(proc, &line) {
                    Ok(effects) => self.apply(effects),
                    Err(nonsense) => return Some(nonsense.to_string()),
                }
                None
            }),
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = nonsense {
            self.give_up_on(proc, reason);
            return false;
        }
        true
    }

    fn hung_up(&mut self, proc: Proc) {
        if let Some(rank) = self.ranks.get_mut(proc) {
            rank.pmi = None;
        }
        self.find_abandoned();
    }

    fn give_up_on(&mut self, proc: Proc, reason: String) {
        if let Some(rank) = self.ranks.get_mut(proc) {
            rank.pmi = None;
        }
        self.fail(proc, Cause::Nonsense(reason), 1);
    }

    pub(super) fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(to, bytes) => {
                    let Some(rank) = self.ranks.get(to) else {
                        continue;
                    };
                    match (
                        rank.here,
                        rank.pmi.as_ref().and_then(|client| client.fd.as_ref()),
                    ) {
                        (true, Some(fd)) => match reply(fd, &bytes) {
                            Reply::Sent => {}
                            Reply::HungUp => self.hung_up(to),
                            Reply::Unread => self
                                .give_up_on(to, "it does not read the answers it asked for".into()),
                        },
                        (true, None) => {}
                        (false, _) => {
                            let (host, proc) = (rank.host, to.0);
                            self.send_host(host, &ToDaemon::Pmi { proc, bytes });
                        }
                    }
                }
                Effect::Abort { who, code, message } => {
                    let cause = Cause::Aborted { code, message };
                    // An exit status has eight bits, and an abort is never a success.
                    let status = match code & 0xff {
                        0 => 1,
                        low => low,
                    };
                    self.abort(who, cause, status);
                }
                Effect::Spawn { parent, request } => self.spawn(parent, request),
            }
        }
        self.find_abandoned();
    }

    /// A rank that has ended and closed its socket never enters a barrier; if others wait there, they wait for ever.
    pub(super) fn find_abandoned(&mut self) {
        if !self.is_running() {
            return;
        }
        let found = self
            .ranks
            .iter()
            .filter(|(_, rank)| !rank.alive && rank.pmi.is_none())
            .map(|(proc, _)| (proc, self.server.waiting_for(proc)))
            .find(|(_, waiting)| !waiting.is_empty());
        if let Some((proc, waiting)) = found {
            self.fail(proc, Cause::LeftOthersWaiting { waiting }, 1);
        }
    }
}
