//! Bringing the wires up: all nodes together, with software fences between the steps.
//!
//! After each step the nodes tell rank 0 how it went and hear from it how it went everywhere,
//! so all go on together or all refuse with one sentence: that of a node with a fault of its own, if there is one,
//! else that of a node which waited in vain.
//! A node that found one keeps every fence of the step, so that nobody is left in one.

use crate::port::{self, Fault, Gate, Port, Way};
use crate::settings::Settings;
use barrier_driver::SelfTest;
use embedded_hal::digital::PinState;
use mpi_core::plugin::guest::Comm;
use std::cell::Cell;
use std::time::Duration;

/// For how long the self-test looks at a barrier that must not open.
const HOLD: Duration = Duration::from_micros(100);
/// How long a release of the self-test may take at most; far more than a crowded machine needs.
const LIMIT: Duration = Duration::from_secs(10);

/// A node that is ready for the program's barriers.
pub struct Ready {
    pub wire: Box<dyn Gate>,
    pub port: Box<dyn Port>,
}

pub fn bring_up(comm: &Comm, settings: &Settings) -> Result<Ready, String> {
    let mut port = agree(
        comm,
        port::attach(&settings.port, comm).map_err(Fault::Here),
    )?;
    let fenced = Cell::new(false);
    let mut fence = || {
        fenced.set(true);
        comm.fence()
    };
    let opened = port.open(&mut fence);
    if !fenced.get() {
        comm.fence()?;
    }
    let mut wire = agree(comm, opened.map_err(Fault::Here))?;

    let same = same_level(comm, wire.idle_level(), settings.reboot)?;
    agree(comm, same)?;

    let test = SelfTest {
        me: comm.rank() as usize,
        hold: HOLD,
        limit: settings.timeout.map_or(LIMIT, |timeout| timeout.min(LIMIT)),
    };
    // From the end, because rank 0 is the one that is late by nature.
    let late: Vec<_> = (0..comm.size() as usize)
        .rev()
        .take(settings.late_nodes)
        .collect();
    let rest = || {
        comm.progress();
        // More nodes than cores are the usual case of a simulation.
        std::thread::yield_now();
    };
    let tested = wire.self_test(test, &late, &mut || comm.fence(), &mut { rest });
    agree(comm, tested)?;
    let (wire, way): (Box<dyn Gate>, _) = match settings.reboot {
        None => (wire, Way::There),
        Some(level) => {
            let returning = wire.returning(level, &mut { rest }, test.limit);
            (agree(comm, returning)?, Way::ThereAndBack)
        }
    };
    port.ready(way);
    Ok(Ready { wire, port })
}

/// Whether all nodes have read the same idle level, and mean the same barrier; rank 0 knows, the others hear it when all agree.
fn same_level(
    comm: &Comm,
    mine: PinState,
    reboot: Option<PinState>,
) -> Result<Result<(), Fault>, String> {
    let code = |level| match level {
        None => 0,
        Some(PinState::Low) => 1,
        Some(PinState::High) => 2,
    };
    let word = [code(Some(mine)), code(reboot)];
    if comm.rank() != 0 {
        comm.send(0, &word)?;
        return Ok(Ok(()));
    }
    let (mut levels, mut same) = (vec![mine], Ok(()));
    for rank in 1..comm.size() {
        let mut theirs = word;
        comm.recv(rank, &mut theirs)?;
        levels.push(PinState::from(theirs[0] == code(Some(PinState::High))));
        if theirs[1] != word[1] && same.is_ok() {
            same = Err(Fault::Named(format!(
                "coll_hwbarr_reboot is not the same on node {rank} and on node 0"
            )));
        }
    }
    let level = barrier_driver::same_level(&levels);
    Ok(same.and(level.map_err(|dissent| Fault::Named(dissent.to_string()))))
}

/// Goes on with `mine` if the step went well at every node.
fn agree<T>(comm: &Comm, mine: Result<T, Fault>) -> Result<T, String> {
    let mut verdict = Verdict::of(comm.rank(), mine.as_ref().err());
    if comm.rank() != 0 {
        comm.send(0, &verdict.0)?;
        comm.recv(0, &mut verdict.0)?;
    } else {
        for rank in 1..comm.size() {
            let mut theirs = Verdict::of(rank, None);
            comm.recv(rank, &mut theirs.0)?;
            if theirs.weight() > verdict.weight() {
                verdict = theirs;
            }
        }
        for rank in 1..comm.size() {
            comm.send(rank, &verdict.0)?;
        }
    }
    match (verdict.sentence(), mine) {
        (None, Ok(mine)) => Ok(mine),
        (Some(sentence), _) => Err(sentence),
        (None, Err(Fault::Here(reason) | Fault::Somewhere(reason) | Fault::Named(reason))) => {
            Err(reason)
        }
    }
}

/// How a step went at one node, in a message: how much it says about where the fault is, and the sentence with zeros behind it.
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
