//! Tests of flow control with ranks that send far more messages than are received.

use mpi_core::btl::Sink;
use mpi_core::comm::Comm;
use mpi_core::datatype::{RecvBytes, Scratch};
use mpi_core::pml::Mode;
use mpi_core::pml::testing::{COST, LOOK, wire};
use mpi_core::pml::{Config, Pml, Sent};
use mpi_core::request::Req;
use mpi_core::testing::Job;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const BOUND: u64 = 256 << 10;
/// The number of bytes that the senders can send before THROTTLE arrives (`LOOK` each), plus the capacity of small rings or sockets.
const SLACK: u64 = 3 * LOOK as u64 + (4 << 20);

/// A flood of messages of one length. `must_be_bounded` asserts that their memory is more than twice the permitted maximum.
#[derive(Clone, Copy)]
struct Flood {
    count: u64,
    /// Length of each message in bytes, at most [`LONGEST`].
    bytes: usize,
}

/// A ninth of the number of messages of [`OF_WORDS`], with approximately the same memory.
const FLOOD: Flood = Flood {
    count: 13_500,
    bytes: LONGEST,
};
/// Messages whose memory consists almost completely of the overhead per message.
const OF_WORDS: Flood = Flood {
    count: 120_000,
    bytes: 8,
};
const LONGEST: usize = 1024;

impl Flood {
    /// Returns the memory of all messages if they were buffered, in bytes.
    fn memory(self) -> u64 {
        self.count * (self.bytes + COST) as u64
    }

    /// Returns a message that starts with `value`, its number in the flood.
    fn message(self, value: u64) -> Scratch {
        let message = Scratch::bytes(self.bytes as i64).expect("memory");
        message.all().unpack_at(0, &value.to_ne_bytes());
        message
    }
}

fn bounded(job: Job) -> Job {
    let pml = Config {
        unexpected_max: BOUND,
        ..Config::default()
    };
    let job = Job { pml, ..job };
    job.with("btl_tcp_sndbuf", "64k")
        .with("btl_tcp_rcvbuf", "64k")
}

/// The parameters that select each transport except self.
const WAYS: [&[(&str, &str)]; 3] = [
    &[],
    &[("btl", "self,tcp")],
    &[("btl", "self,tcp"), ("btl_tcp_links", "2")],
];

fn over(way: &[(&str, &str)], ranks: u32) -> Job {
    let set = |job: Job, (name, value): &(&str, &str)| job.with(name, value);
    way.iter().fold(bounded(Job::of(ranks)), set)
}

fn isend(comm: &Comm, flood: Flood, value: u64, dest: i32) -> Option<(Req, Scratch)> {
    let data = flood.message(value);
    match comm
        .p2p()
        .isend(data.all().as_send(), dest, 1, Mode::Standard)
    {
        Ok(Sent::Done) => None,
        Ok(Sent::Pending(req)) => Some((req, data)),
        Err(error) => panic!("message {value}: {error}"),
    }
}

fn recv(comm: &Comm, source: i32, tag: i32) -> u64 {
    let mut buffer = [0; LONGEST];
    // SAFETY: the array outlives the call, which returns only after the end of the operation.
    let bytes = unsafe { RecvBytes::new(buffer.as_mut_ptr(), buffer.len()) };
    comm.p2p()
        .recv_bytes(bytes, source, tag)
        .expect("a message");
    let (number, _) = buffer.split_first_chunk().expect("a number");
    u64::from_ne_bytes(*number)
}

fn must_be_bounded(pml: &Pml, flood: u64) {
    let most = pml.unexpected_bytes().1;
    assert!(
        most > BOUND,
        "only {most} bytes arrived before a receive: no flood"
    );
    assert!(
        flood > 2 * (BOUND + SLACK),
        "the flood is too small to tell"
    );
    assert!(
        most < BOUND + SLACK,
        "{most} bytes of a flood of {flood} were kept"
    );
    assert_eq!(pml.unexpected_bytes().0, 0, "memory is still charged");
    assert_eq!(pml.protocol_errors(), 0);
}

#[test]
fn a_rank_that_waits_for_another_is_not_filled_by_a_flood() {
    nobody_is_filled_by(FLOOD);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn a_rank_that_waits_for_another_is_not_filled_by_a_flood_of_words() {
    nobody_is_filled_by(OF_WORDS);
}

fn nobody_is_filled_by(flood: Flood) {
    for way in WAYS {
        let sent = AtomicU64::new(0);
        over(way, 3).run(|engine| {
            let world = engine.world().expect("a world");
            match engine.me() {
                0 => {
                    for at in 0..flood.count {
                        let data = flood.message(at);
                        world
                            .p2p()
                            .send(data.all().as_send(), 1, 1, Mode::Standard)
                            .expect("sent");
                        sent.store(at, Ordering::Relaxed);
                    }
                }
                1 => {
                    assert_eq!(recv(&world, 2, 2), 77);
                    (0..flood.count).for_each(|at| assert_eq!(recv(&world, 0, 1), at));
                    must_be_bounded(engine.pml(), flood.memory());
                }
                _ => {
                    // Waits until the sender has sent no message for 200 ms: the flood is throttled or complete.
                    let mut before = u64::MAX;
                    while std::mem::replace(&mut before, sent.load(Ordering::Relaxed)) != before {
                        std::thread::sleep(Duration::from_millis(200));
                    }
                    let go = flood.message(77);
                    world
                        .p2p()
                        .send(go.all().as_send(), 1, 2, Mode::Standard)
                        .expect("sent");
                }
            }
        });
    }
}

#[test]
fn floods_that_cross_pass_each_other() {
    floods_cross(FLOOD);
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn floods_of_words_that_cross_pass_each_other() {
    floods_cross(OF_WORDS);
}

fn floods_cross(flood: Flood) {
    let count = flood.count / 8;
    assert!(flood.memory() / 8 > 2 * BOUND, "no flood");
    for way in WAYS {
        over(way, 2).run(|engine| {
            let world = engine.world().expect("a world");
            let other = 1 - engine.me() as i32;
            let pending: Vec<_> = (0..count)
                .filter_map(|at| isend(&world, flood, at, other))
                .collect();
            (0..count).for_each(|at| assert_eq!(recv(&world, other, 1), at));
            for (req, _data) in pending {
                engine.wait(&req).expect("sent");
            }
            assert_eq!(engine.pml().unexpected_bytes().0, 0);
            assert_eq!(engine.pml().protocol_errors(), 0);
        });
    }
}

#[test]
fn a_flood_to_the_own_process_needs_no_receiver() {
    bounded(Job::of(1)).run(|engine| {
        let world = engine.world().expect("a world");
        for at in 0..FLOOD.count / 4 {
            let data = FLOOD.message(at);
            world
                .p2p()
                .send(data.all().as_send(), 0, 1, Mode::Standard)
                .expect("sent");
        }
        (0..FLOOD.count / 4).for_each(|at| assert_eq!(recv(&world, 0, 1), at));
    });
}

#[test]
fn an_order_that_makes_no_sense_is_counted_and_not_obeyed() {
    Job::of(2).run(|engine| {
        let pml = engine.pml();
        let below = |proc| pml.eager_below(proc);
        let usual = below(1 - engine.me());
        for word in [2, 257, u64::MAX] {
            pml.deliver(1 - engine.me(), wire::THROTTLE, [word, 0], &[]);
        }
        assert_eq!((pml.protocol_errors(), below(1 - engine.me())), (3, usual));
    });
}
