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
}

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
        state.queue.drive()?;
        let looks = self.looks.get() + 1;
        self.looks.set(looks % SELDOM);
        if looks == SELDOM {
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
        state.queue.drive()?;
        Ok(Started::Ticket(ticket))
    }
}

impl State {
    /// Gives up when it is time, and takes part when somebody else has.
    fn look_further(&mut self, comm: &Comm, timeout: Option<Duration>) -> Result<(), String> {
        if self.queue.is_closed() {
            return Ok(());
        }
        let waited = self
            .queue
            .waiting()
            .filter(|waited| timeout.is_some_and(|timeout| *waited >= timeout));
        match self
            .parley
            .look(comm, waited.is_some(), self.queue.entered())?
        {
            Finding::Nothing => {}
            Finding::Stopped => self.queue.stop(),
            Finding::Verdict(released) => self.queue.leave(released),
        }
        if let Some(waited) = waited
            && self.port.may_warn()
        {
            let missing = self
                .port
                .arrived()
                .map(|arrived| missing(arrived, comm.size()));
            comm.warn(&format!(
                "the hardware barrier of {} nodes has not released for {waited:.1?}, {}; {} goes on in software",
                comm.size(),
                missing.unwrap_or_else(|| "and the port cannot tell who has not entered".into()),
                comm.name(),
            ));
        }
        Ok(())
    }
}

/// The part of a sentence that names the nodes without a bit.
fn missing(arrived: u64, nodes: u32) -> String {
    let missing: Vec<_> = (0..nodes)
        .filter(|node| arrived >> node & 1 == 0)
        .map(|node| node.to_string())
        .collect();
    match missing.as_slice() {
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
    use super::missing;

    #[test]
    fn missing_nodes_are_named() {
        assert_eq!(missing(0b1011, 4), "node 2 has not entered");
        assert_eq!(missing(0b0001, 4), "nodes 1, 2 and 3 have not entered");
        assert_eq!(missing(0b1111, 4), "although all have entered");
        assert_eq!(missing(0, 4), "and did so at this very moment");
    }
}
