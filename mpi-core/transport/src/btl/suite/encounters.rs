//! Conformance test of two processes of different jobs that connect, disconnect and reconnect in any order and at any speed.

use super::super::{Am, Btl, Endpoint, Header, ProcId, Reach, Sink};
use super::net::{kind, pattern, send_numbered};
use crate::universe::{Universe, job_number};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An action of one of the two processes.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// A communicator with the other process is created.
    Meet,
    /// The last communicator with the other process is freed.
    Part,
    Send,
    /// The process polls its transport this number of times.
    Poll(u16),
}

/// A sequence of actions. The flag chooses the process: false for the first, true for the second.
pub type Course = Vec<(bool, Act)>;

pub fn courses() -> impl Strategy<Value = Course> {
    let act = prop_oneof![
        3 => Just(Act::Meet),
        3 => Just(Act::Part),
        4 => Just(Act::Send),
        4 => prop_oneof![Just(1), Just(70)].prop_map(Act::Poll),
    ];
    prop::collection::vec((any::<bool>(), act), 1..60)
}

/// The state of one of the two processes; each is the only process of its job.
struct Side {
    btl: Box<dyn Btl>,
    universe: Arc<Universe>,
    /// The other process's number at this process; `None` while no communicator contains the other process.
    other: Option<ProcId>,
    sent: u64,
    came: Came,
}

/// A sink that checks that all messages arrive in order, over all connections, and records losses.
#[derive(Default)]
struct Came {
    next: Cell<u64>,
    lost: RefCell<Vec<String>>,
}

impl Sink for Came {
    fn deliver(&self, _: ProcId, am: Am, header: Header, payload: &[u8]) {
        let n = self.next.get();
        assert_eq!((am, header), (kind(n), [n, !n]), "message {n}");
        assert!(payload == pattern(n, LEN), "bytes of message {n}");
        self.next.set(n + 1);
    }

    fn lost(&self, _: ProcId, why: &str) {
        self.lost.borrow_mut().push(why.into());
    }
}

const LEN: usize = 100;

impl Side {
    fn meet(&mut self, other: &Universe) {
        if self.other.is_none() {
            let name = other.name(0).expect("it has a name");
            let proc = self.universe.introduce(name, other.own_card());
            let proc = proc.expect("it can be numbered");
            self.universe.hold([proc].into_iter());
            self.other = Some(proc);
        }
    }

    fn part(&mut self) {
        if let Some(proc) = self.other.take()
            && self.universe.release([proc].into_iter()) == [proc]
        {
            self.btl.capabilities().disconnect(proc);
        }
    }

    fn send(&mut self) {
        let Some(proc) = self.other else { return };
        let to: Endpoint = match self.btl.reach(proc) {
            Reach::Yes(to) => to,
            Reach::No(why) => panic!("{proc} is not reached: {why}"),
        };
        send_numbered(&*self.btl, to, self.sent, LEN).expect("it is taken");
        self.sent += 1;
    }

    fn poll(&self) {
        self.btl.progress(&self.came);
    }

    fn act(&mut self, act: Act, other: &Universe) {
        match act {
            Act::Meet => self.meet(other),
            Act::Part => self.part(),
            Act::Send => self.send(),
            Act::Poll(times) => (0..times).for_each(|_| self.poll()),
        }
    }
}

/// For every sequence of actions: each message is delivered once and in order, no process is lost, and no segment or number is left after both have disconnected.
pub fn every_encounter_has_its_own_messages_and_its_own_end(
    open: impl Fn(&Arc<Universe>) -> Box<dyn Btl>,
    course: Course,
) {
    let mut sides = ["a", "b"].map(|job| {
        let universe = Arc::new(Universe::new(job_number(job), 0, 1));
        Side {
            btl: open(&universe),
            universe,
            other: None,
            sent: 0,
            came: Came::default(),
        }
    });
    for (which, act) in course {
        let [a, b] = &mut sides;
        match which {
            false => a.act(act, &b.universe),
            true => b.act(act, &a.universe),
        }
    }
    sides.iter_mut().for_each(Side::part);
    let limit = Instant::now() + Duration::from_secs(30);
    let [a, b] = &sides;
    let is_over = || {
        let all = a.came.next.get() == b.sent && b.came.next.get() == a.sent;
        all && a.universe.foreign() + b.universe.foreign() == 0
    };
    while !is_over() {
        a.poll();
        b.poll();
        std::thread::yield_now();
        assert!(
            Instant::now() < limit,
            "{} of {} and {} of {} messages came, {} and {} processes are still known",
            a.came.next.get(),
            b.sent,
            b.came.next.get(),
            a.sent,
            a.universe.foreign(),
            b.universe.foreign()
        );
    }
    for side in &sides {
        assert!(side.came.lost.borrow().is_empty(), "{:?}", side.came.lost);
    }
}
