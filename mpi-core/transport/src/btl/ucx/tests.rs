//! Tests of `ucx` over UCX's transports that need no hardware. If UCX is not installed, they are skipped with a message.

use super::*;
use crate::btl::suite::{Net, cramped, endpoint, send_numbered};
use crate::btl::{Am, Btl, Endpoint, Header, ProcId, Reach, SendError, Sink};
use crate::rte::TestModex;
use mpi_base::param::{Params, Source};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// Opens the transports of a job of `size` processes over UCX's transports `by`. Returns `None` if UCX is not installed.
fn job(size: u32, by: &str, pairs: &[(&str, &str)]) -> Option<Vec<Box<dyn Btl + Send>>> {
    job_on(&TestModex::default(), size, by, pairs)
}

fn job_on(
    modex: &TestModex,
    size: u32,
    by: &str,
    pairs: &[(&str, &str)],
) -> Option<Vec<Box<dyn Btl + Send>>> {
    let mut params: Params = cramped(pairs);
    params.set("btl_ucx_transports", by, Source::CommandLine);
    let mut settings = params::KNOBS.read(&params).expect("they are right");
    // Sets the parameters as for a machine with a fabric device.
    settings.look_at(&["a device".into()]);
    let mut all: Vec<Box<dyn Btl + Send>> = Vec::new();
    for me in 0..size {
        let context = OpenContext {
            me,
            size,
            node: None,
            params: &params,
            modex: Some(modex.of(me)),
        };
        match FABRICS.fabric(&context, &settings, &[]) {
            Ok(fabric) => all.push(Box::new(fabric)),
            Err(why) => {
                eprintln!("skipped: {why}");
                return None;
            }
        }
    }
    Some(all)
}

/// Opens a job in reverse order of ranks, so the higher rank is the sender.
fn net(size: u32, by: &str, pairs: &[(&str, &str)]) -> Option<Net> {
    Some(Net {
        btls: job(size, by, pairs)?.into_iter().rev().collect(),
        procs: (0..size).rev().collect::<Vec<ProcId>>(),
        pair: (0, 1),
    })
}

mod over_tcp {
    crate::btl_suite!(|| super::net(3, "tcp,self", &[]));
}

mod over_sysv {
    crate::btl_suite!(long || super::net(2, "sysv,self", &[]));
}

mod over_posix {
    crate::btl_suite!(long || super::net(2, "posix,self", &[("btl_ucx_max_send_size", "300k")]));
}

/// A sink that records messages and losses.
#[derive(Default)]
struct Watch {
    came: RefCell<Vec<u64>>,
    lost: RefCell<Vec<String>>,
    parted: Cell<u32>,
}

impl Sink for Watch {
    fn deliver(&self, _: ProcId, _: Am, header: Header, _: &[u8]) {
        self.came.borrow_mut().push(header[0]);
    }

    fn lost(&self, _: ProcId, why: &str) {
        self.lost.borrow_mut().push(why.into());
    }

    fn parted(&self, _: ProcId) {
        self.parted.set(self.parted.get() + 1);
    }
}

/// Polls all transports until `done` returns true. Fails the test after 30 seconds.
#[track_caller]
fn until(all: &[(&dyn Btl, &Watch)], done: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < limit, "it has not happened");
        for (btl, watch) in all {
            btl.progress(*watch);
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_peer_that_leaves_parts_after_its_last_message_and_one_that_cuts_is_lost_at_both_ends() {
    let Some(mut all) = job(2, "tcp,self", &[]) else {
        return;
    };
    let (one, other) = (Watch::default(), Watch::default());
    let talk = |all: &[Box<dyn Btl + Send>], from: usize| {
        let to = endpoint(&*all[from], 1 - from as ProcId);
        for n in 0..20 {
            send_numbered(&*all[from], to, n, 5000).expect("there is space");
        }
    };
    talk(&all, 0);
    talk(&all, 1);
    let ends: [(&dyn Btl, &Watch); 2] = [(&*all[0], &one), (&*all[1], &other)];
    until(&ends, || {
        one.came.borrow().len() + other.came.borrow().len() == 40
    });
    assert!(one.came.borrow().iter().copied().eq(0..20));
    let to = endpoint(&*all[0], 1);
    all[0].capabilities().cut(to);
    until(&ends, || {
        one.lost.borrow().len() == 1 && other.lost.borrow().len() == 1
    });
    let said = &other.lost.borrow()[0];
    assert!(
        said.contains("job ranks 1 and 0 over UCX") && said.contains("given up"),
        "{said}"
    );
    assert_eq!(send_numbered(&*all[0], to, 0, 8), Err(SendError::PeerGone));
    drop(all.drain(..));

    let Some(mut all) = job(2, "tcp,self", &[]) else {
        return;
    };
    let (one, other) = (Watch::default(), Watch::default());
    talk(&all, 1);
    let ends: [(&dyn Btl, &Watch); 2] = [(&*all[0], &one), (&*all[1], &other)];
    until(&ends, || one.came.borrow().len() == 20);
    let gone = all.pop().expect("there are two");
    std::thread::scope(|s| {
        s.spawn(move || {
            if let Some(connections) = gone.capabilities().connections {
                connections.shutdown();
            }
        });
        until(&[(&*all[0], &one)], || one.parted.get() == 1);
    });
    assert_eq!(*one.lost.borrow(), [""; 0]);
}

#[test]
fn a_card_that_is_damaged_or_of_another_process_is_not_used() {
    let modex = TestModex::default();
    let Some(all) = job_on(&modex, 2, "tcp,self", &[]) else {
        return;
    };
    let card = modex.get(1, "btl-ucx").expect("it is published");
    let mut damaged = card.clone();
    damaged[40] ^= 1;
    for wrong in [
        damaged,
        modex.get(0, "btl-ucx").expect("it is published"),
        vec![],
    ] {
        modex.put(1, "btl-ucx", &wrong);
        let Reach::No(why) = all[0].reach(1) else {
            panic!("a card that is not whole is used");
        };
        assert_eq!(why, "its published card is malformed");
    }
    modex.put(1, "btl-ucx", &card);
    assert_eq!(all[0].reach(1), Reach::Yes(Endpoint(1)));
}

/// Returns true if the process can sleep now, and then wakes only after a time or an event.
fn sleeps(btl: &dyn Btl) -> bool {
    if btl.pending() {
        return false;
    }
    let mut all = Vec::new();
    let wakeup = btl.capabilities().wakeup.expect("it has a descriptor");
    wakeup.descriptors(&mut all);
    assert_eq!(all.is_empty(), wakeup.longest_sleep().is_some());
    let mut all: Vec<PollFd<'_>> = all
        .iter()
        .map(|fd| PollFd::new(fd, PollFlags::IN))
        .collect();
    poll(&mut all, Some(&Timespec::default())) == Ok(0)
}

#[test]
fn a_process_sleeps_while_a_peer_does_not_acknowledge_the_connection() {
    let Some(all) = job(2, "tcp,self", &[]) else {
        return;
    };
    let (one, other) = (Watch::default(), Watch::default());
    let to = endpoint(&*all[0], 1);
    send_numbered(&*all[0], to, 0, 8).expect("there is space");
    // While the socket connects, an event may end some sleeps.
    let slept = (0..1000).filter(|_| sleeps(&*all[0])).count();
    assert!(slept >= 900, "{slept} of 1000");
    let ends: [(&dyn Btl, &Watch); 2] = [(&*all[0], &one), (&*all[1], &other)];
    until(&ends, || !other.came.borrow().is_empty());
    let wakeup = |btl: &dyn Btl| {
        btl.capabilities()
            .wakeup
            .and_then(|wakeup| wakeup.longest_sleep())
    };
    until(&ends, || {
        ends.iter()
            .all(|(btl, _)| sleeps(*btl) && wakeup(*btl).is_none())
    });
}
