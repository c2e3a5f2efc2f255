//! A barrier as a schedule of messages: operations in an order that can be evaluated in one pass.
//!
//! The order depends on the messages only and not on times, so one order serves all arrival times.

use std::collections::{HashMap, VecDeque};
use std::fmt;

/// A node's next operation, as an algorithm defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Send a message to this node.
    Send(usize),
    /// Receive one message from each of these nodes, in any order.
    Receive(Vec<usize>),
}

/// A node's next operation, with messages identified by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'s> {
    /// Send the message with this number.
    Send(usize),
    /// Receive the messages with these numbers.
    Receive(&'s [usize]),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stored {
    Send(usize),
    Receive(Vec<usize>),
}

/// The operations of all nodes, ordered so that every message is sent before it is received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    operations: Vec<(usize, Stored)>,
    messages: usize,
}

/// The error for a schedule in which nodes wait for messages that no node sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSchedule {
    /// The nodes that wait for a message that no node sends.
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
    /// Numbers the messages, and orders the operations; operations of one node stay in order.
    pub(super) fn new(acts: Vec<Vec<Act>>) -> Result<Self, BadSchedule> {
        let mut acts: Vec<VecDeque<Act>> = acts.into_iter().map(VecDeque::from).collect();
        // Messages between the same two nodes arrive in order.
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

    /// Returns the number of messages.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Returns every operation with the node that performs it, in the order of evaluation.
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
