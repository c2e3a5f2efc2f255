//! A group of ranks that performs collective setup steps by software messages,
//! all to and from the group's first member.
//!
//! After each step every member sends its own result to the first member,
//! and receives the group's result. So all members continue, or all refuse with the same message.
//! If several members report faults, a fault at a member itself has precedence
//! over the timeout of a member that only waited.

use crate::port::Fault;
use mpi_core::plugin::guest::Comm;

pub struct SetupGroup {
    comm: Comm,
    /// The members' ranks in the communicator, ascending; equal at every member.
    ranks: Vec<u32>,
    /// The number of this member's node in messages to the user.
    node: u32,
}

impl SetupGroup {
    /// Returns the group of all ranks; each rank is its own node.
    pub fn of_all(comm: &Comm) -> SetupGroup {
        SetupGroup {
            ranks: (0..comm.size()).collect(),
            node: comm.rank(),
            comm: comm.clone(),
        }
    }

    /// Returns the group of `ranks`, which contains this rank; this rank leads node `node`.
    pub fn of(comm: &Comm, ranks: Vec<u32>, node: u32) -> SetupGroup {
        SetupGroup {
            comm: comm.clone(),
            ranks,
            node,
        }
    }

    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    pub fn is_first(&self) -> bool {
        self.ranks.first() == Some(&self.comm.rank())
    }

    /// Gathers `mine` at the first member, in rank order; returns an empty vector at the others.
    pub fn gather<const N: usize>(&self, mine: [u8; N]) -> Result<Vec<[u8; N]>, String> {
        let (first, others) = self.split();
        if !self.is_first() {
            self.comm.send(first, &mine)?;
            return Ok(Vec::new());
        }
        let mut all = vec![mine];
        for rank in others {
            let mut theirs = mine;
            self.comm.recv(*rank, &mut theirs)?;
            all.push(theirs);
        }
        Ok(all)
    }

    /// Sends `word` from the first member to all other members.
    pub fn broadcast(&self, word: &mut [u8]) -> Result<(), String> {
        let (first, others) = self.split();
        if !self.is_first() {
            return self.comm.recv(first, word);
        }
        others
            .iter()
            .try_for_each(|rank| self.comm.send(*rank, word))
    }

    /// Returns after every member has called this.
    pub fn fence(&self) -> Result<(), String> {
        if self.ranks.len() == self.comm.size() as usize {
            return self.comm.fence();
        }
        self.gather([0])?;
        self.broadcast(&mut [0])
    }

    /// Returns `mine` if all members succeeded; otherwise the error that locates the fault best.
    pub fn agree<T>(&self, mine: Result<T, Fault>) -> Result<T, String> {
        let own = Verdict::of(self.node, mine.as_ref().err());
        let all = self.gather(own.0)?;
        let worst = all.into_iter().map(Verdict).reduce(|worst, next| {
            if next.weight() > worst.weight() {
                next
            } else {
                worst
            }
        });
        let mut verdict = worst.unwrap_or(own);
        self.broadcast(&mut verdict.0)?;
        match (verdict.sentence(), mine) {
            (None, Ok(mine)) => Ok(mine),
            (Some(sentence), _) => Err(sentence),
            (None, Err(fault)) => Err(fault.reason()),
        }
    }

    fn split(&self) -> (u32, &[u32]) {
        match self.ranks.split_first() {
            Some((first, others)) => (*first, others),
            None => (self.comm.rank(), &[]),
        }
    }
}

/// A node's result of a step, as a message: first how well the fault is located (0:
/// no fault), then the zero-padded text of the error.
struct Verdict([u8; 512]);

impl Verdict {
    fn of(node: u32, fault: Option<&Fault>) -> Verdict {
        let (weight, reason) = match fault {
            None => (0, None),
            Some(Fault::Somewhere(reason)) => (1, Some(format!("node {node}: {reason}"))),
            Some(Fault::Here(reason)) => (2, Some(format!("node {node}: {reason}"))),
            Some(Fault::Named(reason)) => (3, Some(reason.clone())),
        };
        let mut message = [0; 512];
        message[0] = weight;
        let sentence = reason.unwrap_or_default();
        for (to, from) in message[1..].iter_mut().zip(sentence.bytes()) {
            *to = from;
        }
        Verdict(message)
    }

    fn weight(&self) -> u8 {
        self.0[0]
    }

    fn sentence(&self) -> Option<String> {
        let text = &self.0[1..];
        let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
        (self.weight() > 0).then(|| String::from_utf8_lossy(&text[..end]).into_owned())
    }
}
