//! The server without its sockets: who is connected, the machine, and what each guest is to be sent.
//!
//! Bytes come in by [`Hub::hear`] and go out by [`Hub::outgoing`]; time is an argument. So a test can play any network.
//!
//! # What is bounded
//!
//! | what | bound |
//! |---|---|
//! | guests that have not said who they are, or are leaving | [`STRANGERS`]; one that leaves makes room for a newcomer, or the oldest after [`GRACE`] |
//! | how long such a guest may stay | [`HELLO`] |
//! | onlookers | [`ONLOOKERS`], each for [`SILENCE`] after its last question |
//! | nodes | one guest each |
//! | bytes kept of a guest that has not finished its frame | one frame |
//! | bytes that a guest has not read | [`UNREAD`], then it is cut off |

use super::frame::{GREETING, Greeting, REQUEST, Refusal, Reply, Request, Role, VERSION, View};
use crate::live::Snapshot;
use fpga_model::{BadNodeCount, LATENCY_EDGES, MAX_NODES, ToggleMachine};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Guests without a role, at most.
pub(super) const STRANGERS: usize = 64;
/// How long a guest has to say who it is, however many newcomers wait: more than a crowded machine needs to let it run.
/// Without it, a flood of strangers would push out a node between its connection and its hello.
pub(super) const GRACE: Duration = Duration::from_millis(250);
/// How long a guest may be without a role.
pub(super) const HELLO: Duration = Duration::from_secs(2);
/// Onlookers, at most.
pub(super) const ONLOOKERS: usize = 16;
/// How long an onlooker may ask nothing.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// Bytes that wait for a guest to read them, at most; a node that follows the protocol has two replies at most.
const UNREAD: usize = 4096;

/// A guest's number; none is used twice.
pub(super) type GuestId = u64;

/// The board and its guests.
#[derive(Debug)]
pub(super) struct Hub {
    machine: ToggleMachine,
    inputs: u64,
    /// Who drives the wire of each node.
    seats: [Option<GuestId>; MAX_NODES],
    guests: BTreeMap<GuestId, Guest>,
    next: GuestId,
    notices: Vec<Notice>,
}

/// A connection.
#[derive(Debug)]
struct Guest {
    peer: SocketAddr,
    part: Part,
    /// The beginning of a frame, of which the rest has not come.
    heard: Vec<u8>,
    unread: Vec<u8>,
    /// Whether the last reply was a release.
    has_news: bool,
    /// When it came, or got its part, or (an onlooker) last asked.
    since: Duration,
}

/// What a guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It has not said what it wants.
    Stranger,
    Node(usize),
    Onlooker,
    /// It has been told its last word; what it still says is not heard.
    Leaving,
}

/// Something worth a line of the server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A node has connected.
    Joined {
        /// Which.
        node: usize,
        /// From where.
        peer: SocketAddr,
    },
    /// A node has said goodbye.
    Left {
        /// Which.
        node: usize,
        /// From where it was connected.
        peer: SocketAddr,
    },
    /// A node's connection has ended without a goodbye, and its wire is idle again.
    Died {
        /// Which.
        node: usize,
        /// From where it was connected.
        peer: SocketAddr,
        /// How the connection ended.
        how: Ended,
        /// Whether it had entered a barrier that was not released.
        inside: bool,
        /// The level that its wire has now.
        idle: bool,
    },
    /// A guest that was turned away.
    Refused {
        /// From where.
        peer: SocketAddr,
        /// What it was told.
        why: Refusal,
    },
    /// A guest of another version, or of another protocol.
    Foreign {
        /// From where.
        peer: SocketAddr,
        /// Its version, if it speaks ours in some version.
        version: Option<u8>,
    },
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The other side closed it.
    Closed,
    /// The system reported this.
    Broken(String),
    /// What the other side sent was none of the protocol.
    Malformed,
    /// The other side did not read what it was sent.
    Deaf,
}

impl Hub {
    pub fn new(nodes: usize) -> Result<Self, BadNodeCount> {
        Ok(Self {
            machine: ToggleMachine::new(nodes)?,
            inputs: 0,
            seats: [None; MAX_NODES],
            guests: BTreeMap::new(),
            next: 0,
            notices: Vec::new(),
        })
    }

    pub fn nodes(&self) -> usize {
        self.machine.nodes()
    }

    /// How many nodes are connected.
    #[cfg(test)]
    pub fn seated(&self) -> usize {
        self.seats.iter().flatten().count()
    }

    /// Whether anybody is there: a node or an onlooker.
    pub fn is_attended(&self) -> bool {
        let has_part = |guest: &Guest| !guest.is_passing();
        self.guests.values().any(has_part)
    }

    /// What has happened since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The board now.
    pub fn view(&self, now: Duration) -> View {
        let connected = (0..self.nodes()).filter(|node| self.seats[*node].is_some());
        View {
            board: Snapshot {
                at_ns: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
                inputs: self.inputs,
                outputs: self.machine.outputs(),
                releases: self.machine.releases(),
            },
            connected: connected.fold(0, |mask, node| mask | 1 << node),
        }
    }

    /// Whether a newcomer has a place, if need be that of a guest without a part; if not, newcomers wait in the system's queue.
    pub fn has_room(&self, now: Duration) -> bool {
        self.passing().count() < STRANGERS || self.dispensable(now).is_some()
    }

    /// The guests without a part.
    fn passing(&self) -> impl Iterator<Item = (GuestId, &Guest)> {
        let guests = self.guests.iter().map(|(id, guest)| (*id, guest));
        guests.filter(|(_, guest)| guest.is_passing())
    }

    /// Who makes room for a newcomer: whoever has had its last word, else the oldest whose [`GRACE`] is over.
    fn dispensable(&self, now: Duration) -> Option<GuestId> {
        let over = |guest: &Guest| guest.part == Part::Leaving || now >= guest.since + GRACE;
        self.passing()
            .filter(|(_, guest)| over(guest))
            .min_by_key(|(_, guest)| (guest.part != Part::Leaving, guest.since))
            .map(|(id, _)| id)
    }

    /// A connection has been accepted, for which there is [room](Self::has_room).
    pub fn arrive(&mut self, peer: SocketAddr, now: Duration) -> GuestId {
        if self.passing().count() >= STRANGERS
            && let Some(leaver) = self.dispensable(now)
        {
            self.guests.remove(&leaver);
        }
        let id = self.next;
        self.next += 1;
        let greeting = Greeting {
            version: VERSION,
            word: self.nodes() as u8,
        };
        let guest = Guest {
            peer,
            part: Part::Stranger,
            heard: Vec::with_capacity(REQUEST),
            unread: greeting.encode().to_vec(),
            has_news: false,
            since: now,
        };
        self.guests.insert(id, guest);
        id
    }

    /// Whether the guest is still one; if not, its connection is to be closed.
    pub fn has(&self, id: GuestId) -> bool {
        self.guests.contains_key(&id)
    }

    /// Whether the guest has been told its last word.
    pub fn is_leaving(&self, id: GuestId) -> bool {
        self.guests
            .get(&id)
            .is_some_and(|guest| guest.part == Part::Leaving)
    }

    /// What is to be sent to the guest; the caller removes what it has sent.
    pub fn outgoing(&mut self, id: GuestId) -> Option<&mut Vec<u8>> {
        let guest = self.guests.get_mut(&id)?;
        (!guest.unread.is_empty()).then_some(&mut guest.unread)
    }

    /// Bytes that are kept for or of a guest.
    #[cfg(test)]
    pub fn waiting(&self, id: GuestId) -> usize {
        let kept = |guest: &Guest| guest.heard.len() + guest.unread.len();
        self.guests.get(&id).map_or(0, kept)
    }

    /// Whether something waits for the guest that it has not asked for.
    pub fn has_news(&self, id: GuestId) -> bool {
        self.guests.get(&id).is_some_and(|guest| guest.has_news)
    }

    /// Bytes have come from the guest, any number of any.
    pub fn hear(&mut self, id: GuestId, mut bytes: &[u8], now: Duration) {
        while let Some(guest) = self.guests.get_mut(&id) {
            let need = match guest.part {
                Part::Stranger => GREETING,
                Part::Node(_) | Part::Onlooker => REQUEST,
                Part::Leaving => return,
            };
            let (first, rest) = bytes.split_at(bytes.len().min(need - guest.heard.len()));
            guest.heard.extend_from_slice(first);
            bytes = rest;
            if guest.heard.len() < need {
                return;
            }
            let frame = std::mem::take(&mut guest.heard);
            match guest.part {
                Part::Stranger => self.hello(id, &frame, now),
                part => self.serve(id, part, &frame, now),
            }
        }
    }

    /// The guest's connection has ended.
    pub fn end(&mut self, id: GuestId, how: Ended) {
        let Some(guest) = self.guests.remove(&id) else {
            return;
        };
        self.bury(guest.peer, guest.part, how);
    }

    /// Guests whose time is over go.
    pub fn sweep(&mut self, now: Duration) {
        self.guests
            .retain(|_, guest| guest.deadline().is_none_or(|deadline| now < deadline));
    }

    /// When [`sweep`](Self::sweep) next has something to do.
    pub fn deadline(&self) -> Option<Duration> {
        self.guests.values().filter_map(Guest::deadline).min()
    }

    fn hello(&mut self, id: GuestId, frame: &[u8], now: Duration) {
        let greeting = <&[u8; GREETING]>::try_from(frame)
            .ok()
            .and_then(|bytes| Greeting::decode(bytes).ok());
        let version = greeting.map(|greeting| greeting.version);
        let Some(Greeting { word, .. }) = greeting.filter(|greeting| greeting.version == VERSION)
        else {
            // It has our greeting, and another version may not understand more.
            if let Some(guest) = self.guests.get_mut(&id) {
                guest.part = Part::Leaving;
                let peer = guest.peer;
                self.notices.push(Notice::Foreign { peer, version });
            }
            return;
        };
        let part = match Role::from_word(word) {
            Role::Onlooker => self.admit_onlooker(),
            Role::Node(node) => self.admit_node(id, usize::from(node)),
        };
        match part {
            Err(why) => self.refuse(id, why),
            Ok(part) => {
                let view = self.view(now);
                if let Some(guest) = self.guests.get_mut(&id) {
                    guest.part = part;
                    guest.since = now;
                    guest.send(Reply::Welcome(view));
                    if let Part::Node(node) = part {
                        let peer = guest.peer;
                        self.notices.push(Notice::Joined { node, peer });
                    }
                }
            }
        }
    }

    fn admit_onlooker(&self) -> Result<Part, Refusal> {
        let onlookers = self.guests.values();
        let onlookers = onlookers.filter(|guest| guest.part == Part::Onlooker);
        match onlookers.count() < ONLOOKERS {
            true => Ok(Part::Onlooker),
            false => Err(Refusal::Crowded {
                onlookers: ONLOOKERS as u8,
            }),
        }
    }

    fn admit_node(&mut self, id: GuestId, node: usize) -> Result<Part, Refusal> {
        if node >= self.nodes() {
            return Err(Refusal::NoSuchNode {
                nodes: self.nodes() as u8,
            });
        }
        if let Some(holder) = self.seats[node].and_then(|holder| self.guests.get(&holder)) {
            return Err(Refusal::NodeTaken { by: holder.peer });
        }
        self.seats[node] = Some(id);
        Ok(Part::Node(node))
    }

    /// Tells a guest why it is not served; it has no part any more.
    fn refuse(&mut self, id: GuestId, why: Refusal) {
        if let Some(guest) = self.guests.get_mut(&id) {
            guest.part = Part::Leaving;
            guest.send(Reply::Refused(why));
            let peer = guest.peer;
            self.notices.push(Notice::Refused { peer, why });
        }
    }

    /// Serves a request of a node or an onlooker.
    fn serve(&mut self, id: GuestId, part: Part, frame: &[u8], now: Duration) {
        let request = <&[u8; REQUEST]>::try_from(frame)
            .ok()
            .and_then(|bytes| Request::decode(bytes).ok());
        if let Some(guest) = self.guests.get_mut(&id) {
            guest.since = now;
        }
        match (request, part) {
            (Some(Request::Look), _) => self.answer(id, now),
            (Some(Request::Write { high }), Part::Node(node)) => {
                self.drive(node, high, now);
                self.answer(id, now);
            }
            (Some(Request::Withdraw { high, seen }), Part::Node(node)) => {
                if seen == self.machine.releases() {
                    self.drive(node, high, now);
                }
                self.answer(id, now);
            }
            (Some(Request::Goodbye), _) => self.farewell(id, part),
            (Some(_), _) => self.refuse(id, Refusal::OnlyLooks),
            (None, _) => {
                if let Some(guest) = self.guests.get(&id) {
                    self.bury(guest.peer, part, Ended::Malformed);
                }
                self.refuse(id, Refusal::Malformed);
            }
        }
    }

    fn answer(&mut self, id: GuestId, now: Duration) {
        let view = self.view(now);
        self.send(id, Reply::Answer(view));
    }

    fn farewell(&mut self, id: GuestId, part: Part) {
        if let Some(guest) = self.guests.get_mut(&id) {
            guest.part = Part::Leaving;
            guest.send(Reply::Farewell);
            if let Part::Node(node) = part {
                let peer = guest.peer;
                self.seats[node] = None;
                self.notices.push(Notice::Left { node, peer });
            }
        }
    }

    /// Sets a wire, lets the machine settle, and tells the other nodes of a release.
    fn drive(&mut self, node: usize, high: bool, now: Duration) {
        self.inputs = self.inputs & !(1 << node) | u64::from(high) << node;
        let before = self.machine.releases();
        // After so many edges with constant wires nothing changes any more: the writer sees all that its write has done.
        self.machine.fast_forward(self.inputs, LATENCY_EDGES);
        if self.machine.releases() == before {
            return;
        }
        let view = self.view(now);
        let writer = self.seats[node];
        for id in self.seats.iter().flatten().copied().collect::<Vec<_>>() {
            if Some(id) != writer {
                self.send(id, Reply::Released(view));
            }
        }
    }

    /// Sends, or cuts off who has not read for too long.
    fn send(&mut self, id: GuestId, reply: Reply) {
        let Some(guest) = self.guests.get_mut(&id) else {
            return;
        };
        guest.send(reply);
        if guest.unread.len() > UNREAD {
            self.end(id, Ended::Deaf);
        }
    }

    /// What remains to be done for a guest that is no more: the wire of a node that died returns to idle.
    fn bury(&mut self, peer: SocketAddr, part: Part, how: Ended) {
        let Part::Node(node) = part else {
            return;
        };
        self.seats[node] = None;
        let idle = self.machine.outputs() != 0;
        let inside = (self.inputs >> node & 1 == 1) != idle;
        // This wire equals the barrier's now, so the machine cannot toggle: nobody hears of it but the log.
        self.inputs = self.inputs & !(1 << node) | u64::from(idle) << node;
        self.machine.fast_forward(self.inputs, LATENCY_EDGES);
        self.notices.push(Notice::Died {
            node,
            peer,
            how,
            inside,
            idle,
        });
    }
}

impl Guest {
    fn send(&mut self, reply: Reply) {
        self.unread.extend_from_slice(&reply.encode());
        self.has_news = matches!(reply, Reply::Released(_));
    }

    /// Whether it has no part, not yet or not any more.
    fn is_passing(&self) -> bool {
        matches!(self.part, Part::Stranger | Part::Leaving)
    }

    fn deadline(&self) -> Option<Duration> {
        match self.part {
            Part::Stranger | Part::Leaving => Some(self.since + HELLO),
            Part::Onlooker => Some(self.since + SILENCE),
            Part::Node(_) => None,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed its connection without a goodbye"),
            Self::Broken(cause) => write!(f, "lost its connection: {cause}"),
            Self::Malformed => f.write_str("sent a request that means nothing"),
            Self::Deaf => f.write_str("did not read its answers"),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined { node, peer } => write!(f, "node {node} has joined from {peer}"),
            Self::Left { node, peer } => write!(f, "node {node} has left, from {peer}"),
            Self::Died {
                node,
                peer,
                how,
                inside,
                idle,
            } => {
                let level = if *idle { "high" } else { "low" };
                write!(f, "node {node} has died, from {peer}: it {how}; ")?;
                match inside {
                    true => write!(f, "its arrival is withdrawn and its wire is {level}, idle"),
                    false => write!(f, "its wire is {level}, idle"),
                }
            }
            Self::Refused { peer, why } => write!(f, "{peer} was turned away: {why}"),
            Self::Foreign {
                peer,
                version: Some(version),
            } => write!(
                f,
                "{peer} was turned away: it speaks version {version} and this server version {VERSION}"
            ),
            Self::Foreign {
                peer,
                version: None,
            } => write!(f, "{peer} was turned away: it speaks another protocol"),
        }
    }
}
