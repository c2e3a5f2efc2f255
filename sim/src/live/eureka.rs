//! The wires of one node at the eureka line of a [`Board`], as embedded-hal pins for `barrier_driver::Eureka`.
//!
//! A node's wires belong to one process at a time, as those to the barrier do, and are claimed by themselves.
//! Reading commits nothing. No node is rung: a node that searches looks at the line itself.

use super::board::Board;
use super::line::{Line, LineState};
use super::shared::HeadWord;
use super::wires::{Claim, WiresError};
use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use std::convert::Infallible;
use std::fmt;
use std::hint::spin_loop;
use std::sync::Arc;

/// What [`Board::eureka`] hands out: three handles that may go to different threads.
#[derive(Debug)]
pub struct EurekaWires<'m> {
    /// The wire by which the node says that it has found it.
    pub out: SaysWire<'m>,
    /// The line to all nodes.
    pub found: ToldWire<'m>,
    /// The wire to this node alone, which is high when it was first.
    pub first: ToldWire<'m>,
}

/// The wire from a node to the line.
#[derive(Debug)]
pub struct SaysWire<'m>(Hand<'m>);

/// A wire from the line to a node.
#[derive(Debug)]
pub struct ToldWire<'m> {
    hand: Hand<'m>,
    told: Told,
}

/// Which of the two wires to a node.
#[derive(Clone, Copy, Debug)]
enum Told {
    Found,
    First,
}

/// A node's place at the line; the wire to it alone commits, and is not cloned.
#[derive(Clone)]
struct Hand<'m> {
    board: Board<'m>,
    line: Line<'m>,
    node: usize,
    _claim: Arc<Claim<'m>>,
}

impl fmt::Debug for Hand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} at the eureka line", self.node)
    }
}

impl<'m> Board<'m> {
    /// Takes the wires of `node` at the line beside the board.
    pub fn eureka(&self, node: usize) -> Result<EurekaWires<'m>, WiresError> {
        let (nodes, line) = (self.nodes(), self.line());
        let line = line.filter(|_| node < nodes);
        let line = line.ok_or(WiresError::NoSuchNode { node, nodes })?;
        let hand = Hand {
            board: *self,
            line,
            node,
            _claim: Arc::new(Claim::take(line.claim(node), node)?),
        };
        Ok(EurekaWires {
            out: SaysWire(hand.clone()),
            found: ToldWire {
                hand: hand.clone(),
                told: Told::Found,
            },
            first: ToldWire {
                hand,
                told: Told::First,
            },
        })
    }
}

impl Hand<'_> {
    /// The line now, and the head that a commit has to replace.
    fn now(&self) -> (HeadWord, LineState) {
        let (head, mut state) = self.line.copy();
        // Both are read after the copy: neither is behind it.
        let (releases, now) = (self.board.committed_releases(), self.board.now_ns());
        state.run_until(now, releases);
        (head, state)
    }

    /// Drives the node's wire. A wire that rises is seen by the line when this returns, so that the node reads what it has said.
    fn say(&mut self, high: bool) {
        // A node that writes a level that is there already changes nothing.
        if self.line.copy().1.says(self.node) == high {
            return;
        }
        let seen = loop {
            let (head, mut state) = self.now();
            state.say(self.node, high);
            if self.line.commit(head, self.node, &state) {
                break state.seen_ns();
            }
        };
        while high && self.board.now_ns() < seen {
            spin_loop();
        }
    }
}

impl ErrorType for SaysWire<'_> {
    type Error = Infallible;
}

impl ErrorType for ToldWire<'_> {
    type Error = Infallible;
}

impl OutputPin for SaysWire<'_> {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.0.say(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.0.say(true);
        Ok(())
    }
}

impl InputPin for ToldWire<'_> {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        let (_, line) = self.hand.now();
        Ok(match self.told {
            Told::Found => line.found(),
            Told::First => line.first() == Some(self.hand.node),
        })
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}
