//! A client's connection: one request at a time,
//! answered within [`LIMIT`], and replies without a request.
//!
//! A stopped server keeps its connections, and a node that waits in a barrier only receives.
//! So a client may set a shorter limit ([`Line::detect_loss_within`]):
//! after a quarter of that limit without data from the server the client sends a request,
//! and a request without an answer within half of the limit ends the connection.

use super::address::Address;
use super::board::SELECT;
use super::error::{ConnectError, LineError};
use super::frame::{
    CHANNELS_VERSION, Eureka, GREETING, Greeting, REPLY, Refusal, Reply, Request, Role, VERSION,
    View,
};
use crate::live::{ChannelLook, LineLook};
use fpga_model::channels::MAX_CHANNELS;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use rustix::process::getpid;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Time limit for a connection or an answer; much longer than the delays of a busy machine.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// Time without traffic after which the kernel sends keepalive probes.
const IDLE: Duration = Duration::from_secs(5);
/// Number of unanswered keepalive probes, one second apart, after which the connection is lost.
const TRIES: u32 = 5;

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Line {
    stream: TcpStream,
    server: Address,
    role: Role,
    nodes: usize,
    /// Time limit for an answer.
    limit: Duration,
    /// Time without data after which the client sends a request as a liveness check; `None` disables the check.
    silence: Option<Duration>,
    /// Time of the last data from the server.
    last_received: Instant,
    /// Time at which the liveness check was sent; `None` once it is answered.
    checked_at: Option<Instant>,
    /// The protocol version that the server uses for its board.
    version: u8,
    /// The last state of the board that the server sent.
    view: View,
    /// True if this connection has written the node's wire.
    /// Until then the level is left over from an earlier process, and this process may withdraw it.
    wrote: bool,
    /// The received part of an incomplete reply.
    buffered: Vec<u8>,
    /// The error that ended the connection.
    broken: Option<LineError>,
    /// The process that connected. A forked child has another process ID and must not disconnect
    /// the parent's node.
    owner: rustix::process::Pid,
}

/// The client's requirements on the board; `None` accepts any.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    pub version: Option<u8>,
    pub nodes: Option<usize>,
}

/// The reason why a receive ended without a frame: the time limit, or an error.
enum Silence {
    Nothing,
    Ended(String),
}

impl Line {
    /// Connects as `role` to a board that meets the requirements `wanted`.
    pub fn connect(server: &Address, role: Role, wanted: Wanted) -> Result<Self, ConnectError> {
        Self::connect_within(server, role, wanted, LIMIT)
    }

    /// As [`connect`](Self::connect), with another time limit for each answer.
    pub fn connect_within(
        server: &Address,
        role: Role,
        wanted: Wanted,
        limit: Duration,
    ) -> Result<Self, ConnectError> {
        let server = server.clone();
        let stream = reach(&server, limit)?;
        let lost = |cause: String| ConnectError::Lost {
            server: server.clone(),
            cause,
        };
        prepare(&stream).map_err(|e| lost(e.to_string()))?;
        let silent = || ConnectError::TimedOut {
            server: server.clone(),
            limit,
        };
        let missing = |silence| match silence {
            Silence::Nothing => silent(),
            Silence::Ended(cause) => lost(cause),
        };
        let until = Instant::now() + limit;
        let mut buffered = Vec::new();
        let greeting = frame::<GREETING>(&stream, &mut buffered, Some(until)).map_err(missing)?;
        let Greeting { version, word } =
            Greeting::decode(&greeting).map_err(|_| ConnectError::Foreign {
                server: server.clone(),
            })?;
        let known = [VERSION, CHANNELS_VERSION].contains(&version);
        if !known || wanted.version.is_some_and(|ours| ours != version) {
            return Err(ConnectError::Version {
                server,
                theirs: version,
                ours: wanted.version,
            });
        }
        let theirs = usize::from(word);
        if let Some(ours) = wanted.nodes.filter(|ours| *ours != theirs) {
            return Err(ConnectError::NodeCount {
                server,
                theirs,
                ours,
            });
        }
        let refused = |why| ConnectError::Refused {
            server: server.clone(),
            client: role,
            why,
        };
        if matches!(role, Role::Node(node) if usize::from(node) >= theirs) {
            return Err(refused(Refusal::NoSuchNode { nodes: word }));
        }
        let hello = Greeting {
            version,
            word: role.to_word(),
        };
        transmit(&stream, &hello.encode(), until).map_err(|e| lost(e.to_string()))?;
        let reply = frame::<REPLY>(&stream, &mut buffered, Some(until)).map_err(missing)?;
        let view = match Reply::decode(&reply) {
            Ok(Reply::Welcome(view)) => view,
            Ok(Reply::Refused(why)) => return Err(refused(why)),
            _ => return Err(ConnectError::Foreign { server }),
        };
        Ok(Self {
            stream,
            role,
            nodes: theirs,
            version,
            limit,
            silence: None,
            last_received: Instant::now(),
            checked_at: None,
            view,
            wrote: false,
            buffered,
            broken: None,
            owner: getpid(),
            server,
        })
    }

    /// Sets the limit within which the client detects a server that no longer answers.
    pub fn detect_loss_within(&mut self, limit: Duration) {
        self.limit = LIMIT.min(limit / 2);
        self.silence = Some(limit / 4);
    }

    /// Returns the board's number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the last state of the board that the server sent.
    pub fn view(&self) -> View {
        self.view
    }

    /// Requests the present state of the board from the server.
    pub fn look(&mut self) -> Result<View, LineError> {
        self.ask(Request::Look)
    }

    /// Returns the level of the barrier's wires.
    /// While this node waits in a barrier, the last received state has the level;
    /// else the client sends a request to the server.
    pub fn level(&mut self) -> Result<bool, LineError> {
        match self.is_waiting() {
            true => self.listen()?,
            false => drop(self.look()?),
        }
        Ok(self.view.output())
    }

    /// Drives all lines of a node of version 2.
    /// An arrival line keeps its level if a release has consumed the arrival since the last reply.
    pub fn drive(&mut self, levels: u8) -> Result<View, LineError> {
        let seen = self.view.board.outputs;
        let selects = u64::from(levels & SELECT) & !self.view.board.inputs != 0;
        // The server answers after the sessions of the nodes that are programming the board have
        // ended.
        let limit = if selects { LIMIT } else { self.limit };
        self.exchange_view(Request::Drive { levels, seen }, limit)
    }

    /// Sets this node's wire.
    pub fn write(&mut self, high: bool) -> Result<(), LineError> {
        let request = match self.is_waiting() {
            // Since the last reply, a release may have consumed the arrival. The wire is then idle,
            // and an unconditional write would be the next arrival.
            true => Request::Withdraw {
                high,
                seen: self.view.board.releases,
            },
            false => Request::Write { high },
        };
        self.ask(request)?;
        self.wrote = true;
        Ok(())
    }

    /// Requests the present state of the eureka line from the server.
    pub fn eureka(&mut self) -> Result<Eureka, LineError> {
        self.exchange_eureka(Request::Hear)
    }

    /// Sets this node's wire to the eureka line to `high`.
    pub fn say(&mut self, high: bool) -> Result<(), LineError> {
        self.exchange_eureka(Request::Say { high }).map(drop)
    }

    /// Returns true if this connection's node was the first to raise the eureka line.
    pub fn is_first(&self, eureka: &Eureka) -> bool {
        matches!(self.role, Role::Node(node) if eureka.is_first(node))
    }

    /// Returns true if this node waits in a barrier.
    /// The next change of the barrier's level is then the release.
    fn is_waiting(&self) -> bool {
        let Role::Node(node) = self.role else {
            return false;
        };
        self.wrote && self.view.wire(node) != self.view.output()
    }

    /// Sends a request and waits for the reply with the board's state.
    fn ask(&mut self, request: Request) -> Result<View, LineError> {
        self.exchange_view(request, self.limit)
    }

    fn exchange_view(&mut self, request: Request, limit: Duration) -> Result<View, LineError> {
        match self.exchange(request, limit)? {
            Reply::Answer(view) => {
                self.view = view;
                Ok(view)
            }
            reply => Err(self.unexpected(reply)),
        }
    }

    /// Sends a request and waits for the reply with the eureka line.
    fn exchange_eureka(&mut self, request: Request) -> Result<Eureka, LineError> {
        match self.exchange(request, self.limit)? {
            Reply::Eureka(eureka) => Ok(eureka),
            reply => Err(self.unexpected(reply)),
        }
    }

    /// Requests the state of a channel of a version 2 board.
    fn channel(&mut self, channel: u8) -> Result<ChannelLook, LineError> {
        match self.exchange(Request::ReadChannel { channel }, self.limit)? {
            Reply::Channel(look) => Ok(look),
            reply => Err(self.unexpected(reply)),
        }
    }

    /// Sends a request and waits up to `limit` for its answer.
    /// Releases and answers to liveness checks that arrive before it are stored.
    fn exchange(&mut self, request: Request, limit: Duration) -> Result<Reply, LineError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let until = Instant::now() + limit;
        transmit(&self.stream, &request.encode(), until).map_err(|e| self.lost(e.to_string()))?;
        loop {
            let Some(reply) = self.receive(Some(until))? else {
                return Err(self.silent(limit));
            };
            if let Some(answer) = self.store_view(reply) {
                return Ok(answer);
            }
        }
    }

    /// Stores the board's state if the reply is a release or answers a liveness check.
    /// Returns any other reply.
    fn store_view(&mut self, reply: Reply) -> Option<Reply> {
        match reply {
            Reply::Released(view) => self.view = view,
            // Answers arrive in the order of the requests.
            Reply::Answer(view) if self.checked_at.take().is_some() => self.view = view,
            reply => return Some(reply),
        }
        None
    }

    /// Processes the replies that have arrived without a request; does not wait.
    pub fn listen(&mut self) -> Result<(), LineError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        // The limit is checked before the read: if this process was stopped
        // for longer than the limit, an answer may be waiting in the socket.
        let is_overdue = self.checked_at.is_some_and(|at| at.elapsed() >= self.limit);
        while let Some(reply) = self.receive(None)? {
            if let Some(reply) = self.store_view(reply) {
                return Err(self.unexpected(reply));
            }
        }
        match (self.checked_at, self.silence) {
            (Some(_), _) if is_overdue => Err(self.silent(self.limit)),
            (None, Some(silence)) if self.last_received.elapsed() >= silence => {
                let now = Instant::now();
                self.checked_at = Some(now);
                let question = Request::Look.encode();
                transmit(&self.stream, &question, now).map_err(|e| self.lost(e.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the next reply, or `None` if none arrives before `until`.
    /// With `until` = `None`, the call does not wait.
    fn receive(&mut self, until: Option<Instant>) -> Result<Option<Reply>, LineError> {
        match frame::<REPLY>(&self.stream, &mut self.buffered, until) {
            Ok(bytes) => match Reply::decode(&bytes) {
                Ok(reply) => {
                    self.last_received = Instant::now();
                    Ok(Some(reply))
                }
                Err(_) => Err(self.malformed()),
            },
            Err(Silence::Nothing) => Ok(None),
            Err(Silence::Ended(cause)) => Err(self.lost(cause)),
        }
    }

    fn unexpected(&mut self, reply: Reply) -> LineError {
        match reply {
            Reply::Refused(why) => self.breaks(LineError::Refused {
                server: self.server.clone(),
                client: self.role,
                why,
            }),
            _ => self.malformed(),
        }
    }

    fn silent(&mut self, limit: Duration) -> LineError {
        self.breaks(LineError::TimedOut {
            server: self.server.clone(),
            client: self.role,
            limit,
        })
    }

    fn malformed(&mut self) -> LineError {
        self.breaks(LineError::Malformed {
            server: self.server.clone(),
            client: self.role,
        })
    }

    fn lost(&mut self, cause: String) -> LineError {
        self.breaks(LineError::Lost {
            server: self.server.clone(),
            client: self.role,
            cause,
        })
    }

    /// Records the error that ended the connection.
    fn breaks(&mut self, error: LineError) -> LineError {
        self.broken = Some(error.clone());
        error
    }

    /// Disconnects the node; returns when the server has confirmed it.
    fn disconnect_node(&mut self) -> Result<(), LineError> {
        let until = Instant::now() + self.limit;
        let bytes = Request::Disconnect.encode();
        transmit(&self.stream, &bytes, until).map_err(|e| self.lost(e.to_string()))?;
        // A release may arrive before the confirmation.
        // Any other reply ends the wait like the confirmation.
        while let Some(reply) = self.receive(Some(until))? {
            if self.store_view(reply).is_some() {
                break;
            }
        }
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.broken.is_none() && self.owner == getpid() {
            // If the server does not answer, the node becomes free later, when the connection ends.
            let _ = self.disconnect_node();
        }
    }
}

/// A connection that only reads the board.
#[derive(Debug)]
pub struct BoardObserver(Box<Line>);

impl BoardObserver {
    /// Connects to a served board as an observer.
    pub fn connect(server: &Address) -> Result<Self, ConnectError> {
        let line = Line::connect(server, Role::BoardObserver, Wanted::default())?;
        Ok(Self(Box::new(line)))
    }

    /// Returns the board's number of nodes.
    pub fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// Requests the present state of the channels; empty for a board of version 1.
    pub fn channels(&mut self) -> Result<Vec<ChannelLook>, LineError> {
        let count = if self.has_channels() { MAX_CHANNELS } else { 0 };
        let numbers = (0..count).filter_map(|number| u8::try_from(number).ok());
        numbers.map(|number| self.0.channel(number)).collect()
    }

    /// Returns true for a board of version 2;
    /// the server does not send the levels of such a board's lines to an observer.
    pub fn has_channels(&self) -> bool {
        self.0.version != VERSION
    }

    /// Requests the present state of the board.
    pub fn look(&mut self) -> Result<View, LineError> {
        self.0.look()
    }

    /// Requests the present state of the eureka line; `None` if the board has none.
    pub fn eureka_line(&mut self) -> Result<Option<LineLook>, LineError> {
        if self.has_channels() {
            return Ok(None);
        }
        let Eureka { found, first } = self.0.eureka()?;
        let first = (first != 0).then(|| first.trailing_zeros() as usize);
        Ok(Some(LineLook { found, first }))
    }
}

/// Connects to the first of the host's addresses that accepts a connection.
fn reach(server: &Address, limit: Duration) -> Result<TcpStream, ConnectError> {
    let unreachable = |cause: String| ConnectError::Unreachable {
        server: server.clone(),
        cause,
    };
    let mut cause = "its name has no address".to_owned();
    for at in server
        .parts()
        .to_socket_addrs()
        .map_err(|e| unreachable(e.to_string()))?
    {
        match TcpStream::connect_timeout(&at, limit) {
            Ok(stream) => return Ok(stream),
            Err(e) => cause = e.to_string(),
        }
    }
    Err(unreachable(cause))
}

/// Disables Nagle's algorithm and enables keepalive probes, which detect a dead host.
pub(super) fn prepare(stream: &TcpStream) -> Result<(), Errno> {
    sockopt::set_tcp_nodelay(stream, true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, IDLE)?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepcnt(stream, TRIES)?;
    sockopt::set_tcp_user_timeout(stream, LIMIT.as_millis() as u32)
}

/// Returns the next `N` bytes, beginning with those in `buffered`.
/// Waits until `until`; with `None` the call does not wait.
fn frame<const N: usize>(
    stream: &TcpStream,
    buffered: &mut Vec<u8>,
    until: Option<Instant>,
) -> Result<[u8; N], Silence> {
    loop {
        if let Ok(bytes) = <[u8; N]>::try_from(buffered.as_slice()) {
            buffered.clear();
            return Ok(bytes);
        }
        let mut buffer = [0; N];
        let space = N.saturating_sub(buffered.len());
        match recv(stream, &mut buffer[..space], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(Silence::Ended("the server has closed it".into())),
            Ok((count, _)) => buffered.extend_from_slice(&buffer[..count.min(space)]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait(stream, PollFlags::IN, until)?,
            Err(e) => return Err(Silence::Ended(e.to_string())),
        }
    }
}

/// Sends all bytes. A request is so short that it fits into the socket's buffer,
/// unless the peer does not read.
fn transmit(stream: &TcpStream, mut bytes: &[u8], until: Instant) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => bytes = &bytes[count.min(bytes.len())..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                wait(stream, PollFlags::OUT, Some(until)).map_err(|_| Errno::TIMEDOUT)?;
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Waits until the connection is ready, at most until `until`.
fn wait(stream: &TcpStream, what: PollFlags, until: Option<Instant>) -> Result<(), Silence> {
    let Some(until) = until else {
        return Err(Silence::Nothing);
    };
    // Polls once more after the time limit, because this process may not have been scheduled.
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    };
    match poll(&mut [PollFd::new(stream, what)], Some(&timeout)) {
        Ok(0) if left.is_zero() => Err(Silence::Nothing),
        // The caller tries again and checks the time limit.
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(Silence::Ended(e.to_string())),
    }
}
