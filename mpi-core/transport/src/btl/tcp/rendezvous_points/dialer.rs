//! Outgoing connections: connections to a peer's addresses race, and the first valid reply wins.

use super::super::address::Candidate;
use super::super::hello::{self, Hello, Nonce};
use super::acceptor::AcceptedStage;
use super::socket::{Buffers, Heard, Met, local_address, open_socket, say, text, watch};
use super::{Connector, GREETED, News, REFUSED_PAUSE, RETRIES, STAGGER, Step, TOKEN, nonce};
use crate::btl::ProcId;
use mpi_base::fdpass::Key;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{connect, getpeername, sockopt};
use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

pub(super) struct Call {
    pub(super) proc: ProcId,
    key: Key,
    hello: Hello,
    waiting: VecDeque<(Candidate, u32)>,
    racers: Vec<Racer>,
    next: Instant,
    /// The time until which an address that refuses connections is tried again; `None` means without a limit.
    patient_until: Option<Instant>,
    failures: Vec<String>,
}

struct Racer {
    socket: OwnedFd,
    candidate: Candidate,
    /// Number of further times that this address may be tried.
    retries: u32,
    heard: Heard,
    stage: RacerStage,
}

enum RacerStage {
    Connecting,
    Greeted,
    Proven(Nonce),
}

impl Connector {
    /// Starts a connection attempt. An address that refuses connections is tried again during `refused_for`, or without a limit if it is `None`.
    pub fn call(
        &mut self,
        proc: ProcId,
        key: Key,
        candidates: Vec<Candidate>,
        refused_for: Option<Duration>,
    ) -> Result<(), String> {
        let hello = Hello {
            from: self.me,
            to: self.names.name(proc).ok_or("it is not known any more")?,
            link: self.link,
            nonce: nonce()?,
        };
        self.calls.push(Call {
            proc,
            key,
            hello,
            waiting: candidates.into_iter().map(|c| (c, RETRIES)).collect(),
            racers: Vec::new(),
            next: Instant::now(),
            patient_until: refused_for.map(|time| Instant::now() + time),
            failures: Vec::new(),
        });
        Ok(())
    }

    /// Makes progress on one connection attempt. Returns false if the attempt has ended.
    pub(super) fn advance(
        &mut self,
        call: &mut Call,
        epoll: BorrowedFd<'_>,
        now: Instant,
        news: &mut Vec<News>,
    ) -> bool {
        let mut at = 0;
        while let Some(racer) = call.racers.get_mut(at) {
            let step = loop {
                match racer.advance(&call.hello, &call.key, epoll) {
                    Step::On => {}
                    step => break step,
                }
            };
            match step {
                Step::Waiting | Step::On if matches!(racer.stage, RacerStage::Proven(_)) => {
                    // This address has won the race: the other sockets are closed, and no more addresses are tried.
                    let winner = call.racers.swap_remove(at);
                    call.racers = vec![winner];
                    return true;
                }
                Step::Waiting | Step::On => at += 1,
                Step::Done => {
                    let racer = call.racers.swap_remove(at);
                    news.push(News::Met(Met::new(call.proc, racer.socket)));
                    return false;
                }
                Step::Refused(_) if call.patient_until.is_none_or(|end| now < end) => {
                    let racer = call.racers.remove(at);
                    call.waiting.push_back((racer.candidate, racer.retries));
                    if call.racers.is_empty() {
                        call.next = now + REFUSED_PAUSE;
                    }
                }
                Step::Refused(why) | Step::Over(why) => {
                    let racer = call.racers.remove(at);
                    match racer.stage {
                        // The connection was refused or the address is unreachable: no process of the job listens at this address.
                        RacerStage::Connecting => {}
                        _ if racer.retries > 0 => {
                            call.waiting.push_back((racer.candidate, racer.retries - 1))
                        }
                        _ => {}
                    }
                    call.failures.push(format!("{}: {why}", racer.candidate.to));
                    if call.racers.is_empty() && matches!(racer.stage, RacerStage::Connecting) {
                        call.next = now;
                    }
                }
            }
        }
        // If an address has accepted the connection, a process listens there, and may be computing.
        let is_greeted = |racer: &Racer| matches!(racer.stage, RacerStage::Greeted);
        let more = match call.racers.iter().any(is_greeted) {
            true => GREETED - STAGGER,
            false => Duration::ZERO,
        };
        if now >= call.next + more
            && let Some((candidate, retries)) = call.waiting.pop_front()
        {
            call.next = now + STAGGER;
            match Racer::start(candidate, retries, self.buffers, epoll) {
                Ok(racer) => call.racers.push(racer),
                Err(error) => {
                    call.failures
                        .push(format!("{}: {}", candidate.to, text(error)));
                    call.next = now;
                }
            }
        }
        if !call.racers.is_empty() || !call.waiting.is_empty() {
            return true;
        }
        let reserve = self.guests.iter().position(|guest| {
            matches!(guest.stage, AcceptedStage::Proven(..)) && guest.from() == call.hello.to
        });
        match reserve.and_then(|at| self.guests.remove(at).welcome(call.proc, &self.key)) {
            Some(met) => news.push(News::Met(met)),
            None => {
                call.failures.dedup();
                news.push(News::Failed {
                    proc: call.proc,
                    why: call.failures.join("; "),
                });
            }
        }
        false
    }
}

impl Racer {
    fn start(
        candidate: Candidate,
        retries: u32,
        buffers: Buffers,
        epoll: BorrowedFd<'_>,
    ) -> Result<Racer, Errno> {
        let socket = open_socket(&candidate.to, buffers)?;
        match connect(&socket, &candidate.to) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        watch(epoll, &socket, epoll::EventFlags::OUT)?;
        Ok(Racer {
            socket,
            candidate,
            retries,
            heard: Heard::default(),
            stage: RacerStage::Connecting,
        })
    }

    fn advance(&mut self, hello: &Hello, key: &Key, epoll: BorrowedFd<'_>) -> Step {
        let result = match self.stage {
            RacerStage::Connecting => return self.greet(hello, key, epoll),
            RacerStage::Greeted => self.heard.read(&self.socket, hello::CHALLENGE),
            RacerStage::Proven(_) => self.heard.read(&self.socket, hello::WELCOME),
        };
        let bytes = match result {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Step::Waiting,
            Err(why) => return Step::Over(why),
        };
        match self.stage {
            RacerStage::Greeted => {
                let Some(nonce) = hello.read_challenge(key, &bytes) else {
                    return Step::Over("a process that is not of this job answered".into());
                };
                match say(&self.socket, &hello.proof(key, &nonce)) {
                    Ok(()) => self.stage = RacerStage::Proven(nonce),
                    Err(why) => return Step::Over(why),
                }
                Step::On
            }
            RacerStage::Proven(nonce) if hello.is_welcome(key, &nonce, &bytes) => Step::Done,
            _ => Step::Over("a process that is not of this job answered".into()),
        }
    }

    fn greet(&mut self, hello: &Hello, key: &Key, epoll: BorrowedFd<'_>) -> Step {
        match sockopt::socket_error(&self.socket) {
            Ok(Ok(())) => {}
            Ok(Err(error)) | Err(error) if error == Errno::CONNREFUSED => {
                return Step::Refused(text(error));
            }
            Ok(Err(error)) | Err(error) => return Step::Over(text(error)),
        }
        // Without an error and without a peer address, the connection attempt is in progress.
        match getpeername(&self.socket) {
            Ok(Some(_)) => {}
            Ok(None) | Err(Errno::NOTCONN) => return Step::Waiting,
            Err(error) => return Step::Over(text(error)),
        }
        // If the system has chosen the peer's port as this socket's own port, the socket has connected to itself (simultaneous open).
        if local_address(&self.socket) == Some(self.candidate.to) {
            return Step::Refused("no process listens there".into());
        }
        if let Err(why) = say(&self.socket, &hello.encode(key)) {
            return Step::Over(why);
        }
        self.stage = RacerStage::Greeted;
        let data = epoll::EventData::new_u64(TOKEN);
        match epoll::modify(epoll, &self.socket, data, epoll::EventFlags::IN) {
            Ok(()) => Step::On,
            Err(error) => Step::Over(text(error)),
        }
    }
}
