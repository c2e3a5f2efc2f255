//! The component on one communicator, as a module of the plugin ABI.
//!
//! All state is in one cell that is borrowed for one look at a time and never while MPI progresses,
//! because progress looks at the nonblocking barriers of the same module.

use crate::parley::{Finding, Parley};
use crate::port::{self, MOST_NODES, Mark, Port};
use crate::queue::{Over, Queue};
use crate::settings::Settings;
use crate::setup::{self, Ready};
use mpi_core::plugin::guest::{self, Comm, Served, Started};
use std::cell::{Cell, RefCell};
use std::task::Poll;
use std::time::Duration;

pub struct Module {
    comm: Comm,
    settings: Settings,
    state: RefCell<Option<State>>,
    /// Looks since the clock and the messages were last looked at.
    looks: Cell<u32>,
}

/// What there is between enable and disable; the wire goes before the port.
struct State {
    queue: Queue,
    parley: Parley,
    port: Box<dyn Port>,
    /// What the port said when it failed; from then on it is not touched.
    lost: Option<String>,
    /// This node has told the user why the hardware is left, or has seen that another one does.
    warned: bool,
}

/// Where nobody hears rank 0, no more nodes than these say so.
const SPEAKERS: u32 = 3;

/// The clock and the messages are looked at once in so many looks at the wire.
const SELDOM: u32 = 16;

impl Module {
    pub fn new(comm: Comm) -> Result<Module, String> {
        if !comm.is_world() {
            return Err("each node has one wire pair, and it belongs to MPI_COMM_WORLD".into());
        }
        let settings = Settings::read(&comm)?;
        if comm.size() > MOST_NODES {
            return Err(format!(
                "there are {} ranks, and the barrier has at most {MOST_NODES} wires",
                comm.size()
            ));
        }
        port::suits(&settings.port, &comm)?;
        Ok(Module {
            comm,
            settings,
            state: RefCell::default(),
            looks: Cell::new(0),
        })
    }

    /// Looks once at what moves the barriers.
    fn look(&self) -> Result<(), String> {
        let mut state = self.state.borrow_mut();
        let state = state.as_mut().ok_or("the component is not enabled")?;
        state.drive();
        let looks = self.looks.get() + 1;
        self.looks.set(looks % SELDOM);
        if looks == SELDOM || state.lost.is_some() {
            state.look_further(&self.comm, self.settings.timeout)?;
        }
        Ok(())
    }

    /// Looks, and tells whether this barrier is over.
    fn over(&self, ticket: u64) -> Result<Poll<Over>, String> {
        self.look()?;
        let mut state = self.state.borrow_mut();
        let state = state.as_mut().ok_or("the component is not enabled")?;
        let over = state.queue.over(ticket);
        if over == Poll::Ready(Over::Released) {
            state.port.mark(Mark::Leave);
        }
        Ok(over)
    }

    /// Starts a barrier, unless the hardware has been left.
    fn begin(&self) -> Result<Started, String> {
        let mut state = self.state.borrow_mut();
        let state = state.as_mut().ok_or("the component is not enabled")?;
        if state.queue.is_closed() {
            return Ok(Started::Next);
        }
        state.port.mark(Mark::Enter);
        let ticket = state.queue.start();
        state.drive();
        Ok(Started::Ticket(ticket))
    }
}

impl State {
    /// Moves the barriers; a port that fails does so once, and the members then leave the hardware together.
    fn drive(&mut self) {
        if self.lost.is_none() {
            self.lost = self.queue.drive().err();
        }
    }

    /// Gives up when it is time, and takes part when somebody else has.
    fn look_further(&mut self, comm: &Comm, timeout: Option<Duration>) -> Result<(), String> {
        if self.queue.is_closed() {
            return Ok(());
        }
        let waiting = self.queue.waiting();
        let limit = timeout.unwrap_or(Duration::MAX);
        let give_up = self.lost.is_some() || waiting.is_some_and(|waiting| waiting >= limit);
        let entered = self.queue.entered();
        let lost = self.lost.as_deref();
        let finding = self.parley.look(comm, give_up, entered, lost)?;
        match finding {
            Finding::Nothing => return Ok(()),
            Finding::Stopped => self.queue.stop(),
            Finding::Verdict(released) => self.queue.leave(released),
        }
        if !self.warned
            && let Some(why) = self.why(comm, give_up, entered, waiting.or(timeout))
        {
            self.warned = true;
            comm.warn(&format!(
                "the hardware barrier of {} nodes {why}; {} goes on in software",
                comm.size(),
                comm.name(),
            ));
        }
        Ok(())
    }

    /// Why the hardware is left, if this node knows and is the one to tell the user.
    fn why(
        &mut self,
        comm: &Comm,
        give_up: bool,
        entered: u64,
        waited: Option<Duration>,
    ) -> Option<String> {
        if let Some((node, reason)) = self.parley.loss() {
            return Some(format!("is lost at node {node}: {reason}"));
        }
        // Rank 0 hears of it and says so.
        if self.lost.is_some() {
            return None;
        }
        let missing = self.missing(comm, give_up, entered)?;
        Some(format!(
            "has not released for {:.1?}, {}",
            waited.unwrap_or_default(),
            sentence(&missing, comm.size())
        ))
    }

    /// Who has not entered, if this node knows and is the one to tell the user.
    fn missing(&mut self, comm: &Comm, give_up: bool, entered: u64) -> Option<Vec<u32>> {
        match self.port.arrived() {
            Some(arrived) => {
                let missing = (0..comm.size()).filter(|node| arrived >> node & 1 == 0);
                (give_up && self.port.may_warn()).then(|| missing.collect())
            }
            // The members know it of each other.
            None => (comm.rank() <= SPEAKERS)
                .then(|| self.parley.missing(entered))
                .flatten(),
        }
    }
}

/// The part of a sentence that names these nodes.
fn sentence(missing: &[u32], nodes: u32) -> String {
    let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [] => "although all have entered".into(),
        // This node has entered, so a barrier with nobody in it has let everybody go since.
        all if all.len() == nodes as usize => "and did so at this very moment".into(),
        [one] => format!("node {one} has not entered"),
        [most @ .., last] => format!("nodes {} and {last} have not entered", most.join(", ")),
    }
}

impl guest::Module for Module {
    fn enable(&self) -> Result<(), String> {
        let parley = Parley::new(&self.comm)?;
        let Ready { wire, port } = setup::bring_up(&self.comm, &self.settings)?;
        *self.state.borrow_mut() = Some(State {
            queue: Queue::new(wire),
            parley,
            port,
            lost: None,
            warned: false,
        });
        Ok(())
    }

    fn barrier(&self) -> Result<Served, String> {
        let Started::Ticket(ticket) = self.begin()? else {
            return Ok(Served::Next);
        };
        let mut over = Ok(Poll::Pending);
        self.comm.wait(None, || {
            // Asked again after it has answered, it remembers.
            if over == Ok(Poll::Pending) {
                over = self.over(ticket);
            }
            over != Ok(Poll::Pending)
        })?;
        Ok(served(over?))
    }

    fn start(&self) -> Result<Started, String> {
        self.begin()
    }

    fn test(&self, ticket: u64) -> Result<Poll<Served>, String> {
        Ok(match self.over(ticket)? {
            Poll::Pending => Poll::Pending,
            over => Poll::Ready(served(over)),
        })
    }

    fn disable(&self) {
        let Some(State {
            mut queue,
            mut port,
            ..
        }) = self.state.take()
        else {
            return;
        };
        queue.close();
        if let Err(reason) = port.close(queue.released()) {
            self.comm.warn(&reason);
        }
    }
}

fn served(over: Poll<Over>) -> Served {
    match over {
        Poll::Ready(Over::Released) => Served::Here,
        Poll::Ready(Over::Abandoned) | Poll::Pending => Served::Next,
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn missing_nodes_are_named() {
        assert_eq!(sentence(&[2], 4), "node 2 has not entered");
        assert_eq!(sentence(&[1, 2, 3], 4), "nodes 1, 2 and 3 have not entered");
        assert_eq!(sentence(&[], 4), "although all have entered");
        assert_eq!(sentence(&[0, 1], 2), "and did so at this very moment");
    }
}
