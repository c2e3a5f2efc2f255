//! Incoming connections, from their acceptance to the end of their authentication.

use super::super::hello::{self, Hello, Nonce};
use super::socket::{Heard, Met, say, watch};
use super::{Connector, DOOR, MOST_ACCEPTED, News, PATIENCE, Settled, Step, nonce};
use crate::btl::{Names, ProcId};
use mpi_base::fdpass::Key;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, accept_with, recv};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

pub(super) struct Accepted {
    socket: OwnedFd,
    since: Instant,
    heard: Heard,
    pub(super) stage: AcceptedStage,
}

pub(super) enum AcceptedStage {
    Silent,
    Challenged(Hello, Nonce),
    /// Authenticated. The connection is in reserve while this process's own attempt is in progress, or until an older connection to the peer has ended.
    Proven(Hello, Nonce),
}

impl Connector {
    pub(super) fn let_in(&mut self, epoll: BorrowedFd<'_>, now: Instant) {
        for _ in 0..DOOR {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let mut listeners = self.listeners.sockets().iter();
            let Some(socket) = listeners.find_map(|door| accept_with(door, flags).ok()) else {
                return;
            };
            if self.guests.len() >= MOST_ACCEPTED {
                let least = |guest: &&Accepted| matches!(guest.stage, AcceptedStage::Silent);
                let out = self.guests.iter().position(|g| least(&g)).unwrap_or(0);
                self.guests.remove(out);
            }
            if watch(epoll, &socket, epoll::EventFlags::IN).is_ok() {
                self.guests.push(Accepted {
                    socket,
                    since: now,
                    heard: Heard::default(),
                    stage: AcceptedStage::Silent,
                });
            }
        }
    }

    pub(super) fn read_accepted(
        &mut self,
        settled: &impl Fn(ProcId) -> Settled,
        now: Instant,
        news: &mut Vec<News>,
    ) {
        let mut at = 0;
        while let Some(guest) = self.guests.get_mut(at) {
            let step = loop {
                match guest.listen(self.me, &*self.names, self.link, &self.key) {
                    Step::On => {}
                    step => break step,
                }
            };
            let stays = match step {
                Step::Refused(_) | Step::Over(_) => false,
                Step::Waiting | Step::On => match guest.stage {
                    AcceptedStage::Silent => now.duration_since(guest.since) < PATIENCE,
                    _ => true,
                },
                Step::Done => {
                    let name = guest.from();
                    let Some(from) = self.names.admit(name) else {
                        self.guests.remove(at);
                        continue;
                    };
                    let ours = self.calls.iter().position(|call| call.proc == from);
                    let settled = settled(from);
                    if settled != Settled::No {
                        settled == Settled::Connected
                    } else if ours.is_some() && self.me < name {
                        true
                    } else {
                        if let Some(ours) = ours {
                            self.calls.remove(ours);
                        }
                        let guest = self.guests.remove(at);
                        match guest.welcome(from, &self.key) {
                            Some(met) => news.push(News::Met(met)),
                            None => self.names.forget_if_idle(from),
                        }
                        continue;
                    }
                }
            };
            if stays {
                at += 1;
            } else {
                self.guests.remove(at);
            }
        }
    }
}

impl Accepted {
    pub(super) fn is_in_reserve(&self) -> bool {
        matches!(self.stage, AcceptedStage::Proven(..))
    }

    /// Returns the name that the caller claims; it is verified only by the authentication.
    pub(super) fn from(&self) -> u64 {
        match &self.stage {
            AcceptedStage::Challenged(hello, _) | AcceptedStage::Proven(hello, _) => hello.from,
            AcceptedStage::Silent => u64::MAX,
        }
    }

    fn listen(&mut self, me: u64, names: &dyn Names, link: u32, key: &Key) -> Step {
        let len = match self.stage {
            AcceptedStage::Silent => hello::HELLO,
            AcceptedStage::Challenged(..) => hello::PROOF,
            AcceptedStage::Proven(..) => {
                // No data are expected now. If data arrive, or if the peer has closed the connection, the connection cannot serve as a reserve.
                let mut byte = [0];
                let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
                return match recv(&self.socket, &mut byte, flags) {
                    Err(Errno::AGAIN | Errno::INTR) => Step::Done,
                    _ => Step::Over(String::new()),
                };
            }
        };
        let bytes = match self.heard.read(&self.socket, len) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Step::Waiting,
            Err(why) => return Step::Over(why),
        };
        let stranger = || Step::Over("it is an unknown client".into());
        match self.stage {
            AcceptedStage::Silent => {
                let Some(hello) = Hello::decode(&bytes, key) else {
                    return stranger();
                };
                let right = hello.to == me && hello.link == link && names.may_call(hello.from);
                if !right || hello.from == me {
                    return stranger();
                }
                let nonce = match nonce() {
                    Ok(nonce) => nonce,
                    Err(why) => return Step::Over(why),
                };
                match say(&self.socket, &hello.challenge(key, &nonce)) {
                    Ok(()) => self.stage = AcceptedStage::Challenged(hello, nonce),
                    Err(why) => return Step::Over(why),
                }
                Step::On
            }
            AcceptedStage::Challenged(hello, nonce) if hello.is_proof(key, &nonce, &bytes) => {
                self.stage = AcceptedStage::Proven(hello, nonce);
                Step::Done
            }
            _ => stranger(),
        }
    }

    /// Sends WELCOME on an authenticated connection, which is thereby established.
    pub(super) fn welcome(self, proc: ProcId, key: &Key) -> Option<Met> {
        let AcceptedStage::Proven(hello, nonce) = self.stage else {
            return None;
        };
        say(&self.socket, &hello.welcome(key, &nonce)).ok()?;
        Some(Met::new(proc, self.socket))
    }
}
