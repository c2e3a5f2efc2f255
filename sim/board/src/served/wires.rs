//! A node's wires on a served board, as embedded-hal pins.
//!
//! All handles of a node share its connection. Dropping the last handle frees the node
//! and returns when the server has confirmed it.
//! As at a real port, dropping the pins leaves the level on the wire; restoring it is the driver's duty.

use super::address::Address;
use super::error::{ConnectError, LineError};
use super::frame::{Role, VERSION, View};
use super::line::{LIMIT, Line, Wanted};
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A node's handles, which may go to different threads.
#[derive(Debug)]
pub struct Wires<R> {
    /// The wire to the barrier.
    pub out: OutWire<R>,
    /// The wire from the barrier.
    pub input: InWire<R>,
    /// The node's wires at the eureka line.
    pub eureka: EurekaWires<R>,
    /// The handle that reads the whole board.
    pub reader: BoardReader<R>,
}

/// The wire from a node to the barrier.
#[derive(Debug)]
pub struct OutWire<R>(Hand, R);

/// The wire from the barrier to a node.
#[derive(Debug)]
pub struct InWire<R>(Hand, R);

/// A node's wires at the eureka line, for `barrier_driver::Eureka`.
#[derive(Debug)]
pub struct EurekaWires<R> {
    /// The wire by which the node raises the line.
    pub out: RaiseWire<R>,
    /// The wire from the eureka line that all nodes read.
    pub found: EurekaInput<R>,
    /// The wire to this node only; high if this node raised the line first.
    pub first: EurekaInput<R>,
}

/// The wire from a node to the eureka line.
#[derive(Debug)]
pub struct RaiseWire<R>(Hand, R);

/// A wire from the eureka line to a node; each read sends a request to the server.
#[derive(Debug)]
pub struct EurekaInput<R>(Hand, R, EurekaSignal);

/// Selects one of the two wires from the eureka line to a node.
#[derive(Clone, Copy, Debug)]
enum EurekaSignal {
    Found,
    First,
}

/// A handle that reads the whole board over a node's connection.
#[derive(Debug)]
pub struct BoardReader<R>(Hand, R);

#[derive(Debug, Clone)]
struct Hand(Arc<Mutex<Line>>);

impl<R: Fn() + Clone> Wires<R> {
    /// Claims the wires of `node` on a board of `nodes` nodes.
    ///
    /// Each handle that receives a release calls `ring`,
    /// which must wake the sleeping nodes of this host:
    /// the server has notified them too, but a sleeping node does not read its connection.
    pub fn connect(
        server: &Address,
        node: usize,
        nodes: usize,
        ring: R,
    ) -> Result<Self, ConnectError> {
        Self::connect_within(server, node, nodes, LIMIT, ring)
    }

    /// As [`connect`](Self::connect), with another time limit for each answer.
    pub fn connect_within(
        server: &Address,
        node: usize,
        nodes: usize,
        limit: Duration,
        ring: R,
    ) -> Result<Self, ConnectError> {
        // A number above 255 becomes 255. No board has that node,
        // so the server rejects it in any case.
        let role = Role::Node(u8::try_from(node).unwrap_or(u8::MAX));
        let line = Line::connect_within(
            server,
            role,
            Wanted {
                version: Some(VERSION),
                nodes: Some(nodes),
            },
            limit,
        )?;
        let hand = Hand(Arc::new(Mutex::new(line)));
        Ok(Self {
            out: OutWire(hand.clone(), ring.clone()),
            input: InWire(hand.clone(), ring.clone()),
            eureka: EurekaWires {
                out: RaiseWire(hand.clone(), ring.clone()),
                found: EurekaInput(hand.clone(), ring.clone(), EurekaSignal::Found),
                first: EurekaInput(hand.clone(), ring.clone(), EurekaSignal::First),
            },
            reader: BoardReader(hand, ring),
        })
    }
}

impl Hand {
    fn line(&self) -> MutexGuard<'_, Line> {
        // If a request panics halfway, the next request fails with a message,
        // so a poisoned lock is usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` with the connection, and then `ring` if `act` has received a release.
    fn with_release_check<T>(&self, ring: impl Fn(), act: impl FnOnce(&mut Line) -> T) -> T {
        let mut line = self.line();
        let before = line.view().board.releases;
        let done = act(&mut line);
        let released = line.view().board.releases != before;
        drop(line);
        if released {
            ring();
        }
        done
    }
}

impl<R: Fn()> BoardReader<R> {
    /// Sets the limit within which a server that no longer answers is detected,
    /// also during a barrier.
    pub fn detect_loss_within(&self, limit: Duration) {
        self.0.line().detect_loss_within(limit);
    }

    /// Requests the present state of the board.
    pub fn look(&self) -> Result<View, LineError> {
        self.0.with_release_check(&self.1, |line| line.look())
    }
}

impl<R> ErrorType for OutWire<R> {
    type Error = LineError;
}

impl<R> ErrorType for InWire<R> {
    type Error = LineError;
}

impl<R: Fn()> OutputPin for OutWire<R> {
    fn set_low(&mut self) -> Result<(), LineError> {
        self.0.with_release_check(&self.1, |line| line.write(false))
    }

    fn set_high(&mut self) -> Result<(), LineError> {
        self.0.with_release_check(&self.1, |line| line.write(true))
    }
}

/// The board is behind a connection and raises no interrupt.
impl<R: Fn()> barrier_driver::InputEvents for InWire<R> {}

impl<R: Fn()> InputPin for InWire<R> {
    fn is_high(&mut self) -> Result<bool, LineError> {
        self.0.with_release_check(&self.1, Line::level)
    }

    fn is_low(&mut self) -> Result<bool, LineError> {
        self.is_high().map(|high| !high)
    }
}

impl<R> ErrorType for RaiseWire<R> {
    type Error = LineError;
}

impl<R> ErrorType for EurekaInput<R> {
    type Error = LineError;
}

impl<R: Fn()> OutputPin for RaiseWire<R> {
    fn set_low(&mut self) -> Result<(), LineError> {
        self.0.with_release_check(&self.1, |line| line.say(false))
    }

    fn set_high(&mut self) -> Result<(), LineError> {
        self.0.with_release_check(&self.1, |line| line.say(true))
    }
}

impl<R: Fn()> InputPin for EurekaInput<R> {
    fn is_high(&mut self) -> Result<bool, LineError> {
        let signal = self.2;
        self.0.with_release_check(&self.1, |line| {
            let eureka = line.eureka()?;
            Ok(match signal {
                EurekaSignal::Found => eureka.found,
                EurekaSignal::First => line.is_first(&eureka),
            })
        })
    }

    fn is_low(&mut self) -> Result<bool, LineError> {
        self.is_high().map(|high| !high)
    }
}
