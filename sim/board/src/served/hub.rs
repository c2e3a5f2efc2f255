//! The board server without its sockets:
//! connected clients, board, and pending output of each client.
//!
//! Received bytes go into [`Hub::receive`], bytes to send come from [`Hub::outgoing`],
//! and time is an argument, so a test can simulate any network.
//!
//! # Bounds
//!
//! | what | bound |
//! |---|---|
//! | clients without a role, including those being disconnected | [`WITHOUT_ROLE_MAX`]; a new client replaces one that is being disconnected, or else the oldest after [`GRACE`] |
//! | time that a client may stay without a role | [`HELLO`] |
//! | observers | [`OBSERVERS_MAX`], each for [`SILENCE`] after its last request |
//! | nodes | one client each |
//! | bytes stored of a client's incomplete frame | one frame |
//! | bytes that a client has not read | [`UNREAD_MAX`], then it is disconnected |

use super::board::{Board, Rested, Written};
use super::frame::{GREETING, Greeting, REQUEST, Refusal, Reply, Request, Role, View};
use super::notice::{Ended, Notice};
use fpga_model::MAX_NODES;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Maximum number of clients without a role.
pub(super) const WITHOUT_ROLE_MAX: usize = 64;
/// Minimum time that each client has to send its role, whatever the number of new connections.
/// Even a busy machine schedules the client within this time.
/// Without this minimum, a flood of connections could replace a node that has connected
/// but has not sent its greeting yet.
pub(super) const GRACE: Duration = Duration::from_millis(250);
/// Maximum time that a client may be without a role.
pub(super) const HELLO: Duration = Duration::from_secs(2);
/// Maximum number of observers.
pub(super) const OBSERVERS_MAX: usize = 16;
/// Maximum time between an observer's requests.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// Maximum number of unsent bytes for a client; a correct node has at most two unread replies.
const UNREAD_MAX: usize = 4096;

/// Maximum time that a node may be silent during programming while others wait for the receiver.
///
/// The limit is shorter than the 10 s for which the other nodes wait, and longer than the time
/// for which a busy machine usually does not schedule a process.
const PROGRAMMING_SILENCE: Duration = Duration::from_secs(6);

/// The identifier of a client's connection; never reused.
pub(super) type ClientId = u64;

/// A board and the clients that use it.
#[derive(Debug)]
pub(super) struct Hub {
    board: Box<dyn Board>,
    /// Writes of nodes that need the serial receiver while another node sends, oldest first.
    /// They are not answered yet.
    deferred: VecDeque<(ClientId, usize, Request)>,
    /// The client that drives the wire of each node.
    node_clients: [Option<ClientId>; MAX_NODES],
    clients: BTreeMap<ClientId, Client>,
    next: ClientId,
    notices: Vec<Notice>,
}

/// A connection of a client.
#[derive(Debug)]
struct Client {
    peer: SocketAddr,
    state: ClientState,
    /// The received part of an incomplete frame.
    partial_frame: Vec<u8>,
    unread: Vec<u8>,
    /// True if the last queued reply was a release.
    has_news: bool,
    /// Time at which the client connected or got its role;
    /// for an observer, time of its last request.
    since: Duration,
}

/// The state of a client: without a role, with a role, or being disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientState {
    /// The client has not sent its role.
    NoRole,
    Node(usize),
    BoardObserver,
    /// The server disconnects the client: its last reply is queued, and further input is ignored.
    Leaving,
}

impl Hub {
    pub fn new(board: impl Board + 'static) -> Self {
        Self {
            board: Box::new(board),
            deferred: VecDeque::new(),
            node_clients: [None; MAX_NODES],
            clients: BTreeMap::new(),
            next: 0,
            notices: Vec::new(),
        }
    }

    pub fn nodes(&self) -> usize {
        self.board.nodes()
    }

    /// Returns the board's number of releases.
    pub fn releases(&self) -> u64 {
        self.board.releases()
    }

    /// Returns the number of connected nodes.
    #[cfg(test)]
    pub fn connected_nodes(&self) -> usize {
        self.node_clients.iter().flatten().count()
    }

    /// Returns true if at least one node or observer is connected.
    pub fn is_attended(&self) -> bool {
        let has_part = |client: &Client| !client.has_no_role();
        self.clients.values().any(has_part)
    }

    /// Returns the notices since the last call of this function.
    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Returns the present state of the board, as this node or (`None`) an observer sees it.
    pub fn view(&mut self, node: Option<usize>, now: Duration) -> View {
        let connected = (0..self.nodes()).filter(|node| self.node_clients[*node].is_some());
        let connected = connected.fold(0, |mask, node| mask | 1 << node);
        View {
            board: self.board.snapshot(node, now),
            connected,
        }
    }

    /// Returns true if a new client can be accepted, possibly by replacing a client without a role.
    /// If not, new connections wait in the kernel's listen queue.
    pub fn can_accept(&self, now: Duration) -> bool {
        self.without_role().count() < WITHOUT_ROLE_MAX || self.droppable(now).is_some()
    }

    /// Returns the clients without a role.
    fn without_role(&self) -> impl Iterator<Item = (ClientId, &Client)> {
        let clients = self.clients.iter().map(|(id, client)| (*id, client));
        clients.filter(|(_, client)| client.has_no_role())
    }

    /// Returns the client that a new client replaces: one that is being disconnected,
    /// or else the oldest client without a role whose [`GRACE`] is over.
    fn droppable(&self, now: Duration) -> Option<ClientId> {
        let over =
            |client: &Client| client.state == ClientState::Leaving || now >= client.since + GRACE;
        self.without_role()
            .filter(|(_, client)| over(client))
            .min_by_key(|(_, client)| (client.state != ClientState::Leaving, client.since))
            .map(|(id, _)| id)
    }

    /// Adds an accepted connection. The caller has checked [`can_accept`](Self::can_accept).
    pub fn arrive(&mut self, peer: SocketAddr, now: Duration) -> ClientId {
        if self.without_role().count() >= WITHOUT_ROLE_MAX
            && let Some(leaver) = self.droppable(now)
        {
            self.clients.remove(&leaver);
        }
        let id = self.next;
        self.next += 1;
        let greeting = Greeting {
            version: self.board.version(),
            word: self.nodes() as u8,
        };
        let client = Client {
            peer,
            state: ClientState::NoRole,
            partial_frame: Vec::with_capacity(REQUEST),
            unread: greeting.encode().to_vec(),
            has_news: false,
            since: now,
        };
        self.clients.insert(id, client);
        id
    }

    /// Returns true if the client still exists; if not, its connection must be closed.
    pub fn has(&self, id: ClientId) -> bool {
        self.clients.contains_key(&id)
    }

    /// Returns true if the server is disconnecting the client.
    pub fn is_leaving(&self, id: ClientId) -> bool {
        self.clients
            .get(&id)
            .is_some_and(|client| client.state == ClientState::Leaving)
    }

    /// Returns the pending output of the client; the caller removes what it has sent.
    pub fn outgoing(&mut self, id: ClientId) -> Option<&mut Vec<u8>> {
        let client = self.clients.get_mut(&id)?;
        (!client.unread.is_empty()).then_some(&mut client.unread)
    }

    /// Returns the number of bytes stored for a client: unsent output and a partial input frame.
    #[cfg(test)]
    pub fn waiting(&self, id: ClientId) -> usize {
        let kept = |client: &Client| client.partial_frame.len() + client.unread.len();
        self.clients.get(&id).map_or(0, kept)
    }

    /// Returns true if the client has an unsolicited reply pending.
    pub fn has_news(&self, id: ClientId) -> bool {
        self.clients.get(&id).is_some_and(|client| client.has_news)
    }

    /// Processes bytes received from the client; accepts any number of bytes with any values.
    pub fn receive(&mut self, id: ClientId, mut bytes: &[u8], now: Duration) {
        while let Some(client) = self.clients.get_mut(&id) {
            let need = match client.state {
                ClientState::NoRole => GREETING,
                ClientState::Node(_) | ClientState::BoardObserver => REQUEST,
                ClientState::Leaving => return,
            };
            let (first, rest) = bytes.split_at(bytes.len().min(need - client.partial_frame.len()));
            client.partial_frame.extend_from_slice(first);
            bytes = rest;
            if client.partial_frame.len() < need {
                return;
            }
            let frame = std::mem::take(&mut client.partial_frame);
            match client.state {
                ClientState::NoRole => self.hello(id, &frame, now),
                state => self.serve(id, state, &frame, now),
            }
        }
    }

    /// Processes the end of the client's connection.
    pub fn end(&mut self, id: ClientId, how: Ended, now: Duration) {
        let Some(client) = self.clients.remove(&id) else {
            return;
        };
        self.disconnect(client.peer, client.state, how, now);
    }

    /// Disconnects the clients whose time limit has expired.
    pub fn sweep(&mut self, now: Duration) {
        self.clients
            .retain(|_, client| client.deadline().is_none_or(|deadline| now < deadline));
        self.run_deferred(now);
    }

    /// Returns the earliest time limit of a client, at which [`sweep`](Self::sweep) must be called.
    pub fn deadline(&self) -> Option<Duration> {
        let clients = self.clients.values().filter_map(Client::deadline);
        // While writes are deferred, each iteration of the server's loop
        // checks how long the sending node has been silent.
        clients.min()
    }

    fn hello(&mut self, id: ClientId, frame: &[u8], now: Duration) {
        let greeting = <&[u8; GREETING]>::try_from(frame)
            .ok()
            .and_then(|bytes| Greeting::decode(bytes).ok());
        let version = greeting.map(|greeting| greeting.version);
        let ours = self.board.version();
        let Some(Greeting { word, .. }) = greeting.filter(|greeting| greeting.version == ours)
        else {
            // The client has already received this server's greeting, with the server's version.
            // A client of another version may not understand further replies.
            if let Some(client) = self.clients.get_mut(&id) {
                client.state = ClientState::Leaving;
                let peer = client.peer;
                self.notices.push(Notice::Foreign {
                    peer,
                    version,
                    ours,
                });
            }
            return;
        };
        let state = match Role::from_word(word) {
            Role::BoardObserver => self.admit_observer(),
            Role::Node(node) => self.admit_node(id, usize::from(node)),
        };
        match state {
            Err(why) => self.refuse(id, why),
            Ok(state) => {
                let view = self.view(state.node(), now);
                if let Some(client) = self.clients.get_mut(&id) {
                    client.state = state;
                    client.since = now;
                    client.send(Reply::Welcome(view));
                    if let ClientState::Node(node) = state {
                        let peer = client.peer;
                        self.notices.push(Notice::Joined { node, peer });
                    }
                }
            }
        }
    }

    fn admit_observer(&self) -> Result<ClientState, Refusal> {
        let observers = self.clients.values();
        let observers = observers.filter(|client| client.state == ClientState::BoardObserver);
        match observers.count() < OBSERVERS_MAX {
            true => Ok(ClientState::BoardObserver),
            false => Err(Refusal::Crowded {
                observers: OBSERVERS_MAX as u8,
            }),
        }
    }

    fn admit_node(&mut self, id: ClientId, node: usize) -> Result<ClientState, Refusal> {
        if node >= self.nodes() {
            return Err(Refusal::NoSuchNode {
                nodes: self.nodes() as u8,
            });
        }
        if let Some(holder) = self.node_clients[node].and_then(|holder| self.clients.get(&holder)) {
            return Err(Refusal::NodeTaken { by: holder.peer });
        }
        self.node_clients[node] = Some(id);
        Ok(ClientState::Node(node))
    }

    /// Rejects a client with a reason and ends its role.
    fn refuse(&mut self, id: ClientId, why: Refusal) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.state = ClientState::Leaving;
            client.send(Reply::Refused(why));
            let peer = client.peer;
            self.notices.push(Notice::Refused { peer, why });
        }
    }

    /// Serves a request of a node or an observer.
    fn serve(&mut self, id: ClientId, state: ClientState, frame: &[u8], now: Duration) {
        let request = <&[u8; REQUEST]>::try_from(frame)
            .ok()
            .and_then(|bytes| Request::decode(bytes).ok());
        if let Some(client) = self.clients.get_mut(&id) {
            client.since = now;
        }
        match (request, state) {
            (Some(Request::Look), state) => self.answer(id, state, now),
            (Some(Request::Disconnect), _) => self.leave(id, state, now),
            (Some(Request::Hear), _) => self.send_eureka(id, state, now),
            (Some(Request::ReadChannel { channel }), _) => {
                self.send_channel(id, state, channel, now);
            }
            (Some(request), ClientState::Node(node)) => self.write(id, node, request, now),
            (Some(_), _) => self.refuse(id, Refusal::OnlyLooks),
            (None, _) => self.reject_malformed(id, state, now),
        }
    }

    /// Disconnects a client that has violated the protocol.
    fn reject_malformed(&mut self, id: ClientId, state: ClientState, now: Duration) {
        if let Some(client) = self.clients.get(&id) {
            self.disconnect(client.peer, state, Ended::Malformed, now);
        }
        self.refuse(id, Refusal::Malformed);
    }

    fn answer(&mut self, id: ClientId, state: ClientState, now: Duration) {
        let view = self.view(state.node(), now);
        self.send(id, Reply::Answer(view), now);
    }

    /// Answers with the eureka line; on a board without one the request is malformed.
    fn send_eureka(&mut self, id: ClientId, state: ClientState, now: Duration) {
        match self.board.eureka() {
            Some(eureka) => self.send(id, Reply::Eureka(eureka), now),
            None => self.reject_malformed(id, state, now),
        }
    }

    /// Answers with a channel's state; on a board without channels the request is malformed.
    fn send_channel(&mut self, id: ClientId, state: ClientState, channel: u8, now: Duration) {
        match self.board.channel(channel.into(), now) {
            Some(look) => self.send(id, Reply::Channel(look), now),
            None => self.reject_malformed(id, state, now),
        }
    }

    fn leave(&mut self, id: ClientId, state: ClientState, now: Duration) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.state = ClientState::Leaving;
            client.send(Reply::Disconnected);
            if let ClientState::Node(node) = state {
                let peer = client.peer;
                self.node_clients[node] = None;
                self.board.release_lines(node, now);
                self.notices.push(Notice::Left { node, peer });
            }
        }
        self.run_deferred(now);
    }

    /// Performs a node's write, lets the machine settle, answers, and notifies the other nodes of a release.
    fn write(&mut self, id: ClientId, node: usize, request: Request, now: Duration) {
        match self.board.write(node, request, now) {
            Written::Foreign => self.reject_malformed(id, ClientState::Node(node), now),
            Written::NotYet => self.deferred.push_back((id, node, request)),
            Written::Done { released } => {
                if released {
                    self.send_releases(node, now);
                }
                match request {
                    Request::Say { .. } => self.send_eureka(id, ClientState::Node(node), now),
                    _ => self.answer(id, ClientState::Node(node), now),
                }
                self.run_deferred(now);
            }
        }
    }

    fn send_releases(&mut self, writer: usize, now: Duration) {
        for node in (0..self.nodes()).filter(|node| *node != writer) {
            if let Some(id) = self.node_clients[node] {
                let view = self.view(Some(node), now);
                self.send(id, Reply::Released(view), now);
            }
        }
    }

    /// Performs the first deferred write if no node is sending.
    /// If the sending node has been silent for [`PROGRAMMING_SILENCE`],
    /// its serial session is ended first.
    fn run_deferred(&mut self, now: Duration) {
        let speaker = self.board.speaker();
        let speaker = speaker.and_then(|node| Some((node, self.node_clients[node]?)));
        if let Some((node, id)) = speaker {
            let silent = |client: &Client| now >= client.since + PROGRAMMING_SILENCE;
            if !self.deferred.is_empty() && self.clients.get(&id).is_some_and(silent) {
                self.end(id, Ended::Silent, now);
            }
            if self.board.speaker() == Some(node) {
                return;
            }
        }
        if let Some((id, node, request)) = self.deferred.pop_front() {
            self.write(id, node, request, now);
        }
    }

    /// Sends a reply, or disconnects a client that has not read for too long.
    fn send(&mut self, id: ClientId, reply: Reply, now: Duration) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        client.send(reply);
        if client.unread.len() > UNREAD_MAX {
            self.end(id, Ended::Deaf, now);
        }
    }

    /// Ends a client's role; the wires of a node that died are set to idle.
    fn disconnect(&mut self, peer: SocketAddr, state: ClientState, how: Ended, now: Duration) {
        let ClientState::Node(node) = state else {
            return;
        };
        self.node_clients[node] = None;
        self.deferred.retain(|(_, waiting, _)| *waiting != node);
        let Rested { inside, level } = self.board.rest(node, now);
        self.notices.push(Notice::Died {
            node,
            peer,
            how,
            inside,
            level,
        });
        self.run_deferred(now);
    }
}

impl ClientState {
    fn node(self) -> Option<usize> {
        match self {
            ClientState::Node(node) => Some(node),
            ClientState::NoRole | ClientState::BoardObserver | ClientState::Leaving => None,
        }
    }
}

impl Client {
    fn send(&mut self, reply: Reply) {
        self.unread.extend_from_slice(&reply.encode());
        self.has_news = matches!(reply, Reply::Released(_));
    }

    /// Returns true if the client has not sent its role yet, or is being disconnected.
    fn has_no_role(&self) -> bool {
        matches!(self.state, ClientState::NoRole | ClientState::Leaving)
    }

    fn deadline(&self) -> Option<Duration> {
        match self.state {
            ClientState::NoRole | ClientState::Leaving => Some(self.since + HELLO),
            ClientState::BoardObserver => Some(self.since + SILENCE),
            ClientState::Node(_) => None,
        }
    }
}
