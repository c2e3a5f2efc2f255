//! Where connections are made: calls to peers, guests who call us, and nothing that has not proved itself gets out of here.
//!
//! **Racing.** A call tries the peer's addresses in their order, a new one whenever the last has failed or has not answered for [`STAGGER`]
//! (after RFC 8305, "Happy Eyeballs"); all that were begun stay in the race.
//! The first that answers with the right challenge wins, whatever its address, and the others are closed.
//! So an address that leads nowhere costs a moment, not the job.
//! There is no time limit on an answer, because a peer may compute for an hour before it looks.
//!
//! **Two that call each other** keep one connection: that of the lower rank.
//! The higher rank gives its own call up when the lower one's guest has proved itself;
//! the lower rank keeps a proven guest in reserve until its own call has ended, for it may be that only one direction works.
//!
//! **Strangers** are dropped at the first byte that is wrong.
//! Those who stay silent are dropped after [`PATIENCE`], and at most [`GUESTS`] are in the room: a flood turns out those who have said least and waited longest.
//! A peer that is turned out that way sees its connection closed and calls again ([`RETRIES`]).

use super::super::ProcId;
use super::address::Candidate;
use super::hello::{self, Hello, Nonce};
use mpi_base::fdpass::Key;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, connect,
    getpeername, getsockname, recv, send, socket_with, sockopt,
};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long an address may keep silent before the next one joins the race.
const STAGGER: Duration = Duration::from_millis(50);
/// How long a guest may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(5);
/// Guests in the room at once.
const GUESTS: usize = 128;
/// Guests let in at one look.
const DOOR: usize = 32;
/// How often an address is tried again that has closed a connection before it answered.
const RETRIES: u32 = 50;

/// What the poller reports for everything in here.
pub const TOKEN: u64 = u64::MAX;

pub struct Lobby {
    me: ProcId,
    size: u32,
    link: u32,
    key: Key,
    listener: OwnedFd,
    buffers: Buffers,
    guests: Vec<Guest>,
    calls: Vec<Call>,
}

/// Sizes of a socket's buffers; zero leaves it to the system, which adapts them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers {
    pub send: usize,
    pub receive: usize,
}

/// A connection whose both ends have proved themselves.
pub struct Met {
    pub proc: ProcId,
    pub socket: OwnedFd,
    /// Both ends, for error texts.
    pub ends: String,
    /// The other end's address.
    pub remote: Option<SocketAddr>,
}

/// What came of a look around.
pub enum News {
    Met(Met),
    /// No address of a peer answered; what each one said.
    Failed {
        proc: ProcId,
        why: String,
    },
}

/// Where the lobby stands with a peer, as its owner knows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// There is a connection or there was one.
    Yes,
    No,
}

struct Guest {
    socket: OwnedFd,
    since: Instant,
    heard: Heard,
    stage: GuestStage,
}

enum GuestStage {
    Silent,
    Challenged(Hello, Nonce),
    /// Kept in reserve while a call of ours to the same peer is under way.
    Proven(Hello, Nonce),
}

struct Call {
    proc: ProcId,
    key: Key,
    hello: Hello,
    waiting: VecDeque<(Candidate, u32)>,
    racers: Vec<Racer>,
    next: Instant,
    failures: Vec<String>,
}

struct Racer {
    socket: OwnedFd,
    candidate: Candidate,
    /// How often this address may be tried again.
    retries: u32,
    heard: Heard,
    stage: RacerStage,
}

enum RacerStage {
    Connecting,
    Greeted,
    Proven(Nonce),
}

/// Bytes of a message that has not come whole; never reads beyond it, since frames may follow.
#[derive(Default)]
struct Heard(Vec<u8>);

/// What has become of a connection in here.
enum Step {
    Waiting,
    /// It has got on; look at it again.
    On,
    Done,
    Over(String),
}

impl Heard {
    /// The message of `len` bytes, once it is there.
    fn read(&mut self, socket: &OwnedFd, len: usize) -> Result<Option<Vec<u8>>, String> {
        let mut bytes = [0; 128];
        let missing = (len - self.0.len()).min(bytes.len());
        match recv(socket, &mut bytes[..missing], RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Err("it closed the connection without an answer".into()),
            Ok((_, read)) => {
                self.0.extend_from_slice(&bytes[..read]);
                Ok((self.0.len() == len).then(|| std::mem::take(&mut self.0)))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(text(error)),
        }
    }
}

/// Everything said in here fits any socket's buffer; one that does not take it whole is given up.
fn say(socket: &OwnedFd, bytes: &[u8]) -> Result<(), String> {
    match send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err("the connection takes nothing".into()),
        Err(error) => Err(text(error)),
    }
}

/// The system's words for an error.
pub fn text(error: Errno) -> String {
    std::io::Error::from(error).to_string()
}

/// A number nobody can guess.
fn nonce() -> Result<Nonce, String> {
    let random = Key::random().map_err(|error| error.to_string())?;
    let mut nonce = Nonce::default();
    nonce.copy_from_slice(&random.bytes()[..size_of::<Nonce>()]);
    Ok(nonce)
}

impl Lobby {
    /// Listens on `port` or, if it is zero, on one the system chooses, on all addresses of this machine.
    pub fn open(
        me: ProcId,
        size: u32,
        link: u32,
        key: Key,
        port: u16,
        buffers: Buffers,
    ) -> Result<(Lobby, u16), Errno> {
        // One socket for both families where the machine has both.
        let v6 = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, port));
        let v4 = SocketAddr::from((std::net::Ipv4Addr::UNSPECIFIED, port));
        let listener = listen(v6, buffers).or_else(|_| listen(v4, buffers))?;
        let port = local_address(&listener).map_or(0, |address| address.port());
        let lobby = Lobby {
            me,
            size,
            link,
            key,
            listener,
            buffers,
            guests: Vec::new(),
            calls: Vec::new(),
        };
        Ok((lobby, port))
    }

    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Whether it wants to be looked at even if no descriptor is ready.
    pub fn is_waiting(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Begins a call.
    pub fn call(
        &mut self,
        proc: ProcId,
        key: Key,
        candidates: Vec<Candidate>,
    ) -> Result<(), String> {
        let hello = Hello {
            from: self.me,
            to: proc,
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
            failures: Vec::new(),
        });
        Ok(())
    }

    /// Looks at everything once.
    pub fn progress(
        &mut self,
        epoll: BorrowedFd<'_>,
        settled: impl Fn(ProcId) -> Settled,
        news: &mut Vec<News>,
    ) {
        let now = Instant::now();
        self.let_in(epoll, now);
        self.hear_guests(&settled, now, news);
        let mut calls = std::mem::take(&mut self.calls);
        calls.retain_mut(|call| self.advance(call, epoll, now, news));
        self.calls = calls;
    }

    fn let_in(&mut self, epoll: BorrowedFd<'_>, now: Instant) {
        for _ in 0..DOOR {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let Ok(socket) = accept_with(&self.listener, flags) else {
                return;
            };
            if self.guests.len() >= GUESTS {
                let least = |guest: &&Guest| matches!(guest.stage, GuestStage::Silent);
                let out = self.guests.iter().position(|g| least(&g)).unwrap_or(0);
                self.guests.remove(out);
            }
            if watch(epoll, &socket, epoll::EventFlags::IN).is_ok() {
                self.guests.push(Guest {
                    socket,
                    since: now,
                    heard: Heard::default(),
                    stage: GuestStage::Silent,
                });
            }
        }
    }

    fn hear_guests(
        &mut self,
        settled: &impl Fn(ProcId) -> Settled,
        now: Instant,
        news: &mut Vec<News>,
    ) {
        let mut at = 0;
        while let Some(guest) = self.guests.get_mut(at) {
            let step = loop {
                match guest.listen(self.me, self.size, self.link, &self.key) {
                    Step::On => {}
                    step => break step,
                }
            };
            let stays = match step {
                Step::Over(_) => false,
                Step::Waiting | Step::On => match guest.stage {
                    GuestStage::Silent => now.duration_since(guest.since) < PATIENCE,
                    _ => true,
                },
                Step::Done => {
                    let from = guest.from();
                    let ours = self.calls.iter().position(|call| call.proc == from);
                    if settled(from) == Settled::Yes {
                        false
                    } else if ours.is_some() && self.me < from {
                        true
                    } else {
                        if let Some(ours) = ours {
                            self.calls.remove(ours);
                        }
                        let guest = self.guests.remove(at);
                        news.extend(guest.welcome(&self.key).map(News::Met));
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

    /// Takes a call further; false when it has ended.
    fn advance(
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
                    // The race is won: the others are closed, and no more are started.
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
                Step::Over(why) => {
                    let racer = call.racers.remove(at);
                    match racer.stage {
                        // Refused or unreachable: there is nobody of ours.
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
        if now >= call.next
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
            matches!(guest.stage, GuestStage::Proven(..)) && guest.from() == call.proc
        });
        match reserve.and_then(|at| self.guests.remove(at).welcome(&self.key)) {
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

impl Guest {
    fn from(&self) -> ProcId {
        match &self.stage {
            GuestStage::Challenged(hello, _) | GuestStage::Proven(hello, _) => hello.from,
            GuestStage::Silent => ProcId::MAX,
        }
    }

    fn listen(&mut self, me: ProcId, size: u32, link: u32, key: &Key) -> Step {
        let len = match self.stage {
            GuestStage::Silent => hello::HELLO,
            GuestStage::Challenged(..) => hello::PROOF,
            GuestStage::Proven(..) => {
                // It has nothing to say now; if it does, or if it has hung up, it is no use in reserve.
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
        let stranger = || Step::Over("it is a stranger".into());
        match self.stage {
            GuestStage::Silent => {
                let Some(hello) = Hello::decode(&bytes, key) else {
                    return stranger();
                };
                let right = hello.to == me && hello.from < size && hello.link == link;
                if !right || hello.from == me {
                    return stranger();
                }
                let nonce = match nonce() {
                    Ok(nonce) => nonce,
                    Err(why) => return Step::Over(why),
                };
                match say(&self.socket, &hello.challenge(key, &nonce)) {
                    Ok(()) => self.stage = GuestStage::Challenged(hello, nonce),
                    Err(why) => return Step::Over(why),
                }
                Step::On
            }
            GuestStage::Challenged(hello, nonce) if hello.is_proof(key, &nonce, &bytes) => {
                self.stage = GuestStage::Proven(hello, nonce);
                Step::Done
            }
            _ => stranger(),
        }
    }

    /// Lets a proven guest in.
    fn welcome(self, key: &Key) -> Option<Met> {
        let GuestStage::Proven(hello, nonce) = self.stage else {
            return None;
        };
        say(&self.socket, &hello.welcome(key, &nonce)).ok()?;
        Some(Met::new(hello.from, self.socket))
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
                    return Step::Over("somebody who is not of this job answered".into());
                };
                match say(&self.socket, &hello.proof(key, &nonce)) {
                    Ok(()) => self.stage = RacerStage::Proven(nonce),
                    Err(why) => return Step::Over(why),
                }
                Step::On
            }
            RacerStage::Proven(nonce) if hello.is_welcome(key, &nonce, &bytes) => Step::Done,
            _ => Step::Over("somebody who is not of this job answered".into()),
        }
    }

    fn greet(&mut self, hello: &Hello, key: &Key, epoll: BorrowedFd<'_>) -> Step {
        match sockopt::socket_error(&self.socket) {
            Ok(Ok(())) => {}
            Ok(Err(error)) | Err(error) => return Step::Over(text(error)),
        }
        // No error and no peer: the call is still on its way.
        match getpeername(&self.socket) {
            Ok(Some(_)) => {}
            Ok(None) | Err(Errno::NOTCONN) => return Step::Waiting,
            Err(error) => return Step::Over(text(error)),
        }
        // A port that the system chose for this very call can meet itself (simultaneous open).
        if local_address(&self.socket) == Some(self.candidate.to) {
            return Step::Over("nobody listens there".into());
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

impl Met {
    fn new(proc: ProcId, socket: OwnedFd) -> Met {
        let shown = |address: Option<SocketAddr>| {
            address.map_or_else(|| "an unknown address".into(), |a| a.to_string())
        };
        let remote = getpeername(&socket)
            .ok()
            .flatten()
            .and_then(|address| SocketAddr::try_from(address).ok())
            .map(canonical);
        Met {
            proc,
            ends: format!("{} to {}", shown(local_address(&socket)), shown(remote)),
            remote,
            socket,
        }
    }
}

fn local_address(socket: &OwnedFd) -> Option<SocketAddr> {
    let address = SocketAddr::try_from(getsockname(socket).ok()?).ok()?;
    Some(canonical(address))
}

/// An IPv4 address that a socket of both families shows as IPv6, as what it is.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn watch(epoll: BorrowedFd<'_>, socket: &OwnedFd, events: epoll::EventFlags) -> Result<(), Errno> {
    epoll::add(epoll, socket, epoll::EventData::new_u64(TOKEN), events)
}

fn open_socket(for_address: &SocketAddr, buffers: Buffers) -> Result<OwnedFd, Errno> {
    let family = match for_address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    // Before the connection exists, since the window's scale is agreed when it is made.
    if buffers.send > 0 {
        sockopt::set_socket_send_buffer_size(&socket, buffers.send)?;
    }
    if buffers.receive > 0 {
        sockopt::set_socket_recv_buffer_size(&socket, buffers.receive)?;
    }
    Ok(socket)
}

fn listen(address: SocketAddr, buffers: Buffers) -> Result<OwnedFd, Errno> {
    let socket = open_socket(&address, buffers)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, 4096)?;
    Ok(socket)
}
