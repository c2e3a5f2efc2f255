//! Connections of a fabric: connecting by cards, time limits, losses, and the shutdown of the transport.

use super::arrivals::Held;
use super::card::Card;
use super::frame::Kind;
use super::peer::{Peer, State};
use super::port::{Close, Port};
use super::{Chore, Fabric};
use crate::btl::{Am, Connections, Endpoint, Header, OVERTAKES, ProcId, SendError, Sink};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Time limit of a process that shuts down, for the transmission of its last messages
/// and for the disconnect messages of its peers.
const SHUTDOWN: Duration = Duration::from_secs(2);
/// Time limit for the transmission of accepted messages if a transport is dropped without a shutdown.
const DROPPED: Duration = Duration::from_millis(20);

impl<P: Port> Fabric<P> {
    /// Reads a peer's card from the modex and starts the connection.
    #[cold]
    pub(super) fn connect(&self, peer: &Peer) -> Result<(), String> {
        let bytes = self.modex.get(peer.proc, self.card_key)?;
        let card = Card::decode(&bytes)
            .filter(|card| card.fabric == self.kind && card.proc == peer.proc)
            .ok_or("its published card is malformed")?;
        let (theirs, ours) = (card.longest as usize, self.info.limits.max_send);
        if theirs != ours {
            return Err(format!(
                "its longest message has {theirs} bytes and that of this process {ours}; btl_{}_max_send_size must be the same everywhere",
                self.parameters
            ));
        }
        self.port.connect(peer.proc, &card.address)?;
        peer.key.set(card.key);
        peer.state.set(State::Up);
        Ok(())
    }

    /// Handles the connection changes that were deferred because they must not be made inside a call of the library.
    #[cold]
    pub(super) fn do_chores(&self, sink: Option<&dyn Sink>) {
        for chore in self.chores.take() {
            match chore {
                Chore::Connect(proc) => self.connect_back(proc),
                Chore::Answer(proc) => self.answer(proc, sink),
                Chore::Lose(proc, why, how) => self.lose(proc, &why, how, sink),
            }
        }
    }

    /// Connects to a peer that has sent a message. Without a connection, the library would not report the loss of the peer.
    fn connect_back(&self, proc: ProcId) {
        if let Some(peer) = self.peer(proc)
            && peer.state.get() == State::Fresh
        {
            // An error is ignored, because the peer's messages arrive even without a connection.
            let _ = self.connect(peer);
        }
    }

    /// Replies to a disconnect message and ends the connection. A process that shuts down has already sent its own disconnect message.
    fn answer(&self, proc: ProcId, sink: Option<&dyn Sink>) {
        let Some(peer) = self.peer(proc) else { return };
        if self.is_leaving.get() || peer.state.get() == State::Lost {
            return;
        }
        if peer.state.get() == State::Up {
            if self.say(peer, Kind::Disconnect) == Err(SendError::WouldBlock) {
                return self.chores.borrow_mut().push(Chore::Answer(proc));
            }
            self.port.close(proc, Close::InOrder);
        }
        peer.reset();
        match sink {
            Some(sink) => sink.parted(proc),
            None => self.held.borrow_mut().push_back(Held::Parted(proc)),
        }
    }

    /// Sends a control message of the fabric (disconnect or cut).
    fn say(&self, peer: &Peer, kind: Kind) -> Result<(), SendError> {
        let am: Am = if kind == Kind::Cut { OVERTAKES } else { 0 };
        let nothing: Header = [0; 2];
        let slot = self.pool.take(0).ok_or(SendError::WouldBlock)?;
        self.post(peer, slot, am, nothing, kind)
    }

    #[cold]
    fn lose(&self, proc: ProcId, why: &str, how: Close, sink: Option<&dyn Sink>) {
        let Some(peer) = self.peer(proc) else { return };
        if peer.state.replace(State::Lost) == State::Lost {
            return;
        }
        self.port.close(proc, how);
        self.drop_refused(peer);
        // The connection of a peer that has sent a disconnect message ends without a loss.
        if peer.has_left.get() {
            return peer.reset();
        }
        let (me, title) = (self.me, &self.title);
        let why = format!(
            "the connection between job ranks {me} and {proc} over {title} was lost: {why}"
        );
        match sink {
            Some(sink) => sink.lost(proc, &why),
            None => self.held.borrow_mut().push_back(Held::Lost(proc, why)),
        }
    }

    /// Discards the messages that the network library has refused to send to `peer`.
    fn drop_refused(&self, peer: &Peer) {
        for slot in peer.refused.take() {
            self.pool.put(slot);
            self.finished(peer);
        }
    }

    /// Reports as lost the peers to which no connection was established within the time limit.
    #[cold]
    pub(super) fn check_deadlines(&self, sink: Option<&dyn Sink>) {
        let now = Instant::now();
        let limit = self.connect_within;
        let mut late = Vec::new();
        self.connecting.borrow_mut().retain(|proc| {
            let peer = match self.peer(*proc) {
                Some(peer) if !peer.is_made.get() && peer.state.get() == State::Up => peer,
                _ => return false,
            };
            let since = peer.waits_since.get();
            let over = since.is_some_and(|since| now.duration_since(since) >= limit);
            if over && !limit.is_zero() {
                late.push(*proc);
                return false;
            }
            since.is_some()
        });
        for proc in late {
            let why = format!(
                "it was not made within {} s (btl_{}_connect_timeout)",
                limit.as_secs_f64(),
                self.parameters
            );
            self.lose(proc, &why, Close::AtOnce, sink);
        }
    }

    /// Polls while `something` returns true, at most until `deadline`.
    fn wait_while(&self, deadline: Instant, sink: Option<&dyn Sink>, something: impl Fn() -> bool) {
        let mut nap = Duration::from_micros(1);
        while something() && Instant::now() < deadline {
            self.turn(sink);
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(1));
        }
    }

    /// Returns true if the transmission of a message to a connected peer is not complete.
    fn is_sending(&self) -> bool {
        self.known()
            .any(|peer| peer.is_sending() && peer.state.get() == State::Up)
    }

    fn flush_until(&self, deadline: Instant, sink: Option<&dyn Sink>) {
        self.wait_while(deadline, sink, || self.is_sending());
        self.port.flush();
        self.wait_while(deadline, sink, || !self.port.is_quiet());
    }

    /// Ends all connections within `limit`: sends a disconnect message to each peer. If `answers` is true, waits for the peers' disconnect messages.
    fn end(&self, limit: Duration, answers: bool) {
        self.is_leaving.set(true);
        let begin = Instant::now();
        let deadline = begin + limit;
        let sink: Option<&dyn Sink> = Some(&Discard);
        // Half of the time limit, so that a dead peer that was not reported leaves time for the other peers.
        self.wait_while(begin + limit / 2, sink, || self.is_sending());
        for peer in self.known().filter(|peer| peer.expects_disconnect()) {
            let said = Cell::new(self.say(peer, Kind::Disconnect));
            let is_refused = || said.get() == Err(SendError::WouldBlock);
            self.wait_while(deadline, sink, || {
                if is_refused() {
                    said.set(self.say(peer, Kind::Disconnect));
                }
                is_refused()
            });
        }
        let is_missing = |peer: &Peer| peer.expects_disconnect() && !peer.has_left.get();
        self.wait_while(deadline, sink, || answers && self.known().any(is_missing));
        self.flush_until(deadline, sink);
        let how = if answers {
            Close::InOrder
        } else {
            Close::AtOnce
        };
        for peer in self.known() {
            if peer.state.get() == State::Up {
                self.port.close(peer.proc, how);
            }
            self.drop_refused(peer);
            peer.reset();
        }
        self.wait_while(deadline, sink, || !self.port.is_quiet());
        self.connecting.take();
        self.chores.take();
        self.held.take();
        self.is_leaving.set(false);
    }

    /// Ends the connections of a transport that is dropped. Its peers may no longer poll, so the time limit is short.
    pub(super) fn end_now(&self) {
        self.end(DROPPED, false);
    }
}

impl<P: Port> Connections for Fabric<P> {
    fn is_connected(&self, to: Endpoint) -> bool {
        self.peer(to.0)
            .is_none_or(|peer| peer.is_made.get() || peer.unsent.get() == 0)
    }

    fn about(&self) -> Option<String> {
        Some(self.title.clone())
    }

    fn cut(&self, to: Endpoint) {
        let Some(peer) = self.peer(to.0) else { return };
        if peer.state.get() != State::Up {
            return;
        }
        // If no buffer is free for the cut message, the peer detects the end of the connection by itself.
        let _ = self.say(peer, Kind::Cut);
        let why = "this process has given it up".to_owned();
        // An active transfer of data in place ends only with a connection that is closed by force.
        let how = match self.transfers.are_active_with(peer.proc) {
            true => Close::AtOnce,
            false => Close::InOrder,
        };
        let lose = Chore::Lose(peer.proc, why, how);
        self.chores.borrow_mut().push(lose);
    }

    fn is_flushed(&self) -> bool {
        !self.is_sending()
    }

    /// The loss is a chore, because the connection must not be closed inside a callback of the network library.
    fn abandon(&self, peer: ProcId) {
        let Some(peer) = self.peer(peer) else { return };
        match peer.state.get() {
            State::Fresh => peer.state.set(State::Lost),
            State::Up => {
                let why = "its process has ended".to_owned();
                let lose = Chore::Lose(peer.proc, why, Close::AtOnce);
                self.chores.borrow_mut().push(lose);
            }
            State::Lost => {}
        }
    }

    fn flush(&self) {
        if self.busy.replace(true) {
            return;
        }
        self.flush_until(Instant::now() + SHUTDOWN, None);
        self.busy.set(false);
    }

    fn shutdown(&self) {
        self.end(SHUTDOWN, true);
    }
}

/// A sink that discards messages that arrive during the shutdown.
struct Discard;

impl Sink for Discard {
    fn deliver(&self, _: ProcId, _: Am, _: Header, _: &[u8]) {}
}
