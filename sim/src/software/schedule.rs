//! A barrier as a schedule of messages, put into an order in which it can be evaluated in one pass.
//!
//! Which message waits for which does not depend on when they are sent, so the order is found once for all arrivals.

use std::collections::{HashMap, VecDeque};
use std::fmt;

/// What a node does next, in an algorithm's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Sends a message to this node.
    Send(usize),
    /// Receives a message from each of these nodes, in whatever order they arrive.
    Receive(Vec<usize>),
}

/// What a node does next, with messages by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'s> {
    /// Sends this message.
    Send(usize),
    /// Receives these messages.
    Receive(&'s [usize]),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stored {
    Send(usize),
    Receive(Vec<usize>),
}

/// What all nodes do, in an order in which every message is sent before it is received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    operations: Vec<(usize, Stored)>,
    messages: usize,
}

/// Nodes that wait for messages which no node will send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSchedule {
    /// The nodes that wait.
    pub waiting: Vec<usize>,
}

impl fmt::Display for BadSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "nodes {:?} wait for messages that no node sends",
            self.waiting
        )
    }
}

impl std::error::Error for BadSchedule {}

impl Schedule {
    /// Numbers the messages and orders the acts of all nodes, each in its own order.
    pub(super) fn new(acts: Vec<Vec<Act>>) -> Result<Self, BadSchedule> {
        let mut acts: Vec<VecDeque<Act>> = acts.into_iter().map(VecDeque::from).collect();
        // Between two nodes messages arrive in the order in which they were sent.
        let mut sent: HashMap<(usize, usize), VecDeque<usize>> = HashMap::new();
        let (mut operations, mut messages) = (Vec::new(), 0);
        loop {
            let before = operations.len();
            for (node, acts) in acts.iter_mut().enumerate() {
                while let Some(act) = acts.front() {
                    let stored = match act {
                        Act::Send(to) => {
                            sent.entry((node, *to)).or_default().push_back(messages);
                            messages += 1;
                            Stored::Send(messages - 1)
                        }
                        Act::Receive(from) => {
                            let ready = |&from: &usize| {
                                sent.get(&(from, node)).is_some_and(|s| !s.is_empty())
                            };
                            if !from.iter().all(ready) {
                                break;
                            }
                            let taken = from
                                .iter()
                                .filter_map(|&from| sent.get_mut(&(from, node))?.pop_front());
                            Stored::Receive(taken.collect())
                        }
                    };
                    operations.push((node, stored));
                    acts.pop_front();
                }
            }
            if operations.len() == before {
                break;
            }
        }
        let waiting: Vec<_> = (0..acts.len()).filter(|&n| !acts[n].is_empty()).collect();
        if waiting.is_empty() {
            Ok(Self {
                operations,
                messages,
            })
        } else {
            Err(BadSchedule { waiting })
        }
    }

    /// How many messages there are.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Every operation with its node.
    pub fn in_order(&self) -> impl Iterator<Item = (usize, Operation<'_>)> {
        self.operations.iter().map(|(node, stored)| {
            let operation = match stored {
                Stored::Send(message) => Operation::Send(*message),
                Stored::Receive(messages) => Operation::Receive(messages),
            };
            (*node, operation)
        })
    }
}
