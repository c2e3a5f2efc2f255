//! The server without its sockets: the connected guests, the machine, and the pending output of each guest.
//!
//! Input arrives by [`Hub::hear`], output is taken by [`Hub::outgoing`], and time is an argument. So a test can simulate any network.
//!
//! # Bounds
//!
//! | what | bound |
//! |---|---|
//! | guests that have no role yet, or are leaving | [`STRANGERS`]; a leaving one is dropped for a newcomer, or the oldest after [`GRACE`] |
//! | time that such a guest may stay | [`HELLO`] |
//! | observers | [`ONLOOKERS`], each for [`SILENCE`] after its last request |
//! | nodes | one guest each |
//! | bytes kept of a guest's incomplete frame | one frame |
//! | bytes that a guest has not read | [`UNREAD`], then it is disconnected |

use super::board::{Board, Rested, Written};
use super::frame::{GREETING, Greeting, REQUEST, Refusal, Reply, Request, Role, View};
use super::notice::{Ended, Notice};
use fpga_model::MAX_NODES;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Maximum number of guests without a role.
pub(super) const STRANGERS: usize = 64;
/// Minimum time that a guest has to send its role, however many newcomers wait: more than a busy machine needs to schedule it.
/// Without it, a flood of connections would push out a node between its connection and its hello.
pub(super) const GRACE: Duration = Duration::from_millis(250);
/// Maximum time that a guest may be without a role.
pub(super) const HELLO: Duration = Duration::from_secs(2);
/// Maximum number of observers.
pub(super) const ONLOOKERS: usize = 16;
/// Maximum time between an observer's requests.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// Maximum number of unsent bytes for a guest; a node that follows the protocol has at most two replies.
const UNREAD: usize = 4096;

/// Maximum time that a node may be silent during programming while others wait for the receiver.
///
/// It is less than the time that those wait (10 s), and long for a process that is not scheduled on a busy machine.
const SPEECH: Duration = Duration::from_secs(6);

/// A guest's number; never reused.
pub(super) type GuestId = u64;

/// The board and its guests.
#[derive(Debug)]
pub(super) struct Hub {
    board: Board,
    /// Writes of nodes that want to send while another one does, in order of arrival; they are not answered yet.
    patient: VecDeque<(GuestId, usize, Request)>,
    /// The guest that drives the wire of each node.
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
    /// The received part of an incomplete frame.
    heard: Vec<u8>,
    unread: Vec<u8>,
    /// True if the last reply was a release.
    has_news: bool,
    /// The time at which it connected, or got its role, or (an observer) last sent a request.
    since: Duration,
}

/// The role of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It has not sent its role.
    Stranger,
    Node(usize),
    Onlooker,
    /// Its last reply is queued; further input is ignored.
    Leaving,
}

impl Hub {
    pub fn new(board: Board) -> Self {
        Self {
            board,
            patient: VecDeque::new(),
            seats: [None; MAX_NODES],
            guests: BTreeMap::new(),
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
    pub fn seated(&self) -> usize {
        self.seats.iter().flatten().count()
    }

    /// Returns true if any node or observer is connected.
    pub fn is_attended(&self) -> bool {
        let has_part = |guest: &Guest| !guest.is_passing();
        self.guests.values().any(has_part)
    }

    /// Returns the notices since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Returns the board now, as this node or an observer sees it.
    pub fn view(&mut self, node: Option<usize>, now: Duration) -> View {
        let connected = (0..self.nodes()).filter(|node| self.seats[*node].is_some());
        let connected = connected.fold(0, |mask, node| mask | 1 << node);
        View {
            board: self.board.snapshot(node, now),
            connected,
        }
    }

    /// Returns true if a newcomer can be accepted, possibly instead of a guest without a role; if not, newcomers wait in the system's queue.
    pub fn has_room(&self, now: Duration) -> bool {
        self.passing().count() < STRANGERS || self.dispensable(now).is_some()
    }

    /// Returns the guests without a role.
    fn passing(&self) -> impl Iterator<Item = (GuestId, &Guest)> {
        let guests = self.guests.iter().map(|(id, guest)| (*id, guest));
        guests.filter(|(_, guest)| guest.is_passing())
    }

    /// Returns the guest that a newcomer replaces: one that is leaving, else the oldest whose [`GRACE`] is over.
    fn dispensable(&self, now: Duration) -> Option<GuestId> {
        let over = |guest: &Guest| guest.part == Part::Leaving || now >= guest.since + GRACE;
        self.passing()
            .filter(|(_, guest)| over(guest))
            .min_by_key(|(_, guest)| (guest.part != Part::Leaving, guest.since))
            .map(|(id, _)| id)
    }

    /// Adds an accepted connection, for which there is [room](Self::has_room).
    pub fn arrive(&mut self, peer: SocketAddr, now: Duration) -> GuestId {
        if self.passing().count() >= STRANGERS
            && let Some(leaver) = self.dispensable(now)
        {
            self.guests.remove(&leaver);
        }
        let id = self.next;
        self.next += 1;
        let greeting = Greeting {
            version: self.board.version(),
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

    /// Returns true if the guest still exists; if not, its connection must be closed.
    pub fn has(&self, id: GuestId) -> bool {
        self.guests.contains_key(&id)
    }

    /// Returns true if the guest is leaving.
    pub fn is_leaving(&self, id: GuestId) -> bool {
        self.guests
            .get(&id)
            .is_some_and(|guest| guest.part == Part::Leaving)
    }

    /// Returns the pending output of the guest; the caller removes what it has sent.
    pub fn outgoing(&mut self, id: GuestId) -> Option<&mut Vec<u8>> {
        let guest = self.guests.get_mut(&id)?;
        (!guest.unread.is_empty()).then_some(&mut guest.unread)
    }

    /// Returns the number of bytes kept for and from a guest.
    #[cfg(test)]
    pub fn waiting(&self, id: GuestId) -> usize {
        let kept = |guest: &Guest| guest.heard.len() + guest.unread.len();
        self.guests.get(&id).map_or(0, kept)
    }

    /// Returns true if the guest has an unsolicited reply pending.
    pub fn has_news(&self, id: GuestId) -> bool {
        self.guests.get(&id).is_some_and(|guest| guest.has_news)
    }

    /// Processes received bytes of the guest; any number of any bytes.
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

    /// Processes the end of the guest's connection.
    pub fn end(&mut self, id: GuestId, how: Ended, now: Duration) {
        let Some(guest) = self.guests.remove(&id) else {
            return;
        };
        self.bury(guest.peer, guest.part, how, now);
    }

    /// Disconnects guests whose time is over.
    pub fn sweep(&mut self, now: Duration) {
        self.guests
            .retain(|_, guest| guest.deadline().is_none_or(|deadline| now < deadline));
        self.let_speak(now);
    }

    /// Returns the time at which [`sweep`](Self::sweep) next has work.
    pub fn deadline(&self) -> Option<Duration> {
        let guests = self.guests.values().filter_map(Guest::deadline);
        // A silent sender is checked after every sleep of the server.
        guests.min()
    }

    fn hello(&mut self, id: GuestId, frame: &[u8], now: Duration) {
        let greeting = <&[u8; GREETING]>::try_from(frame)
            .ok()
            .and_then(|bytes| Greeting::decode(bytes).ok());
        let version = greeting.map(|greeting| greeting.version);
        let ours = self.board.version();
        let Some(Greeting { word, .. }) = greeting.filter(|greeting| greeting.version == ours)
        else {
            // It has this server's greeting, and a client of another version may not understand more.
            if let Some(guest) = self.guests.get_mut(&id) {
                guest.part = Part::Leaving;
                let peer = guest.peer;
                self.notices.push(Notice::Foreign {
                    peer,
                    version,
                    ours,
                });
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
                let view = self.view(part.node(), now);
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

    /// Rejects a guest with a reason; it has no role any more.
    fn refuse(&mut self, id: GuestId, why: Refusal) {
        if let Some(guest) = self.guests.get_mut(&id) {
            guest.part = Part::Leaving;
            guest.send(Reply::Refused(why));
            let peer = guest.peer;
            self.notices.push(Notice::Refused { peer, why });
        }
    }

    /// Serves a request of a node or an observer.
    fn serve(&mut self, id: GuestId, part: Part, frame: &[u8], now: Duration) {
        let request = <&[u8; REQUEST]>::try_from(frame)
            .ok()
            .and_then(|bytes| Request::decode(bytes).ok());
        if let Some(guest) = self.guests.get_mut(&id) {
            guest.since = now;
        }
        match (request, part) {
            (Some(Request::Look), part) => self.answer(id, part, now),
            (Some(Request::Goodbye), _) => self.farewell(id, part, now),
            (Some(Request::Hear), _) => self.tell(id, part, now),
            (Some(request), Part::Node(node)) => self.write(id, node, request, now),
            (Some(_), _) => self.refuse(id, Refusal::OnlyLooks),
            (None, _) => self.cast_out(id, part, now),
        }
    }

    /// Disconnects a guest that has violated the protocol.
    fn cast_out(&mut self, id: GuestId, part: Part, now: Duration) {
        if let Some(guest) = self.guests.get(&id) {
            self.bury(guest.peer, part, Ended::Malformed, now);
        }
        self.refuse(id, Refusal::Malformed);
    }

    fn answer(&mut self, id: GuestId, part: Part, now: Duration) {
        let view = self.view(part.node(), now);
        self.send(id, Reply::Answer(view), now);
    }

    /// Sends the eureka line; for a board without one the request is malformed.
    fn tell(&mut self, id: GuestId, part: Part, now: Duration) {
        match self.board.eureka() {
            Some(eureka) => self.send(id, Reply::Eureka(eureka), now),
            None => self.cast_out(id, part, now),
        }
    }

    fn farewell(&mut self, id: GuestId, part: Part, now: Duration) {
        if let Some(guest) = self.guests.get_mut(&id) {
            guest.part = Part::Leaving;
            guest.send(Reply::Farewell);
            if let Part::Node(node) = part {
                let peer = guest.peer;
                self.seats[node] = None;
                self.board.hang_up(node, now);
                self.notices.push(Notice::Left { node, peer });
            }
        }
        self.let_speak(now);
    }

    /// Performs a node's write, lets the machine settle, answers, and notifies the other nodes of a release.
    fn write(&mut self, id: GuestId, node: usize, request: Request, now: Duration) {
        match self.board.write(node, request, now) {
            Written::Foreign => self.cast_out(id, Part::Node(node), now),
            Written::NotYet => self.patient.push_back((id, node, request)),
            Written::Done { released } => {
                if released {
                    self.tell_others(node, now);
                }
                match request {
                    Request::Say { .. } => self.tell(id, Part::Node(node), now),
                    _ => self.answer(id, Part::Node(node), now),
                }
                self.let_speak(now);
            }
        }
    }

    fn tell_others(&mut self, writer: usize, now: Duration) {
        for node in (0..self.nodes()).filter(|node| *node != writer) {
            if let Some(id) = self.seats[node] {
                let view = self.view(Some(node), now);
                self.send(id, Reply::Released(view), now);
            }
        }
    }

    /// Performs the first pending write if no node is sending, or if the sender has been silent for [`SPEECH`]:
    /// the board then takes the receiver from it.
    fn let_speak(&mut self, now: Duration) {
        let speaker = self.board.speaker();
        let speaker = speaker.and_then(|node| Some((node, self.seats[node]?)));
        if let Some((node, id)) = speaker {
            let silent = |guest: &Guest| now >= guest.since + SPEECH;
            if !self.patient.is_empty() && self.guests.get(&id).is_some_and(silent) {
                self.end(id, Ended::Silent, now);
            }
            if self.board.speaker() == Some(node) {
                return;
            }
        }
        if let Some((id, node, request)) = self.patient.pop_front() {
            self.write(id, node, request, now);
        }
    }

    /// Sends a reply, or disconnects a guest that has not read for too long.
    fn send(&mut self, id: GuestId, reply: Reply, now: Duration) {
        let Some(guest) = self.guests.get_mut(&id) else {
            return;
        };
        guest.send(reply);
        if guest.unread.len() > UNREAD {
            self.end(id, Ended::Deaf, now);
        }
    }

    /// Cleans up after a guest: the wires of a node that died return to idle.
    fn bury(&mut self, peer: SocketAddr, part: Part, how: Ended, now: Duration) {
        let Part::Node(node) = part else {
            return;
        };
        self.seats[node] = None;
        self.patient.retain(|(_, waiting, _)| *waiting != node);
        let Rested { inside, level } = self.board.rest(node, now);
        self.notices.push(Notice::Died {
            node,
            peer,
            how,
            inside,
            level,
        });
        self.let_speak(now);
    }
}

impl Part {
    fn node(self) -> Option<usize> {
        match self {
            Part::Node(node) => Some(node),
            Part::Stranger | Part::Onlooker | Part::Leaving => None,
        }
    }
}

impl Guest {
    fn send(&mut self, reply: Reply) {
        self.unread.extend_from_slice(&reply.encode());
        self.has_news = matches!(reply, Reply::Released(_));
    }

    /// Returns true if it has no role yet, or none any more.
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
