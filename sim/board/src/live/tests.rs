//! Tests of the live board in one process: its claims, the port suite, and its memory.

mod boards;
mod eureka;

use super::*;
use crate::event::{Event, What};
use barrier_driver::ToggleBarrier;
use embedded_hal::digital::{InputPin, OutputPin};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

fn silent(_: usize) {}
type Silent = fn(usize);

fn memory(nodes: usize, record: usize) -> Memory {
    Memory::create(Board::layout_size(nodes, record)).expect("memory for a small board")
}

/// A board whose memory lives as long as the test program, so that its wires may go to any thread.
struct Live(Board<'static>);

impl Live {
    fn new(nodes: usize, record: usize) -> Self {
        let memory: &'static Memory = Box::leak(Box::new(memory(nodes, record)));
        Self(
            memory
                .init(nodes, record)
                .expect("the memory has the right size"),
        )
    }

    fn wires(&self, node: usize) -> Wires<'static, Silent> {
        self.0
            .wires(node, silent as Silent)
            .expect("the wires are free")
    }
}

impl barrier_driver::suite::Rig for Live {
    type Error = Infallible;
    type Out = OutWire<'static, Silent>;
    type In = InWire<'static, Silent>;

    fn build(nodes: usize) -> Self {
        // The board has a record, so the tests of claims also cover recording.
        Self::new(nodes, 100_000)
    }

    fn wires(&self, node: usize) -> (Self::Out, Self::In) {
        let Wires { out, input, .. } = self.wires(node);
        (out, input)
    }

    fn releases(&self) -> u64 {
        self.0.releases()
    }
}

barrier_driver::port_suite!(Live);

#[test]
fn a_board_is_as_after_power_on_and_can_be_found_by_others() {
    let memory = memory(7, 0);
    assert_eq!(
        memory
            .attach()
            .err()
            .map(|e| e.to_string())
            .as_deref()
            .map(|m| m.starts_with("there is no board")),
        Some(true)
    );
    let made = memory.init(7, 0).expect("fits");
    let found = memory.attach().expect("it has just been made");
    assert_eq!(found.nodes(), 7);
    let Snapshot {
        inputs,
        outputs,
        releases,
        ..
    } = found.snapshot();
    assert_eq!((inputs, outputs, releases), (0, 0, 0));
    made.wires(6, silent)
        .expect("free")
        .out
        .set_high()
        .expect("infallible");
    assert_eq!(found.snapshot().arrived(), 1 << 6);
}

#[test]
fn a_board_that_cannot_be_made_says_why() {
    let memory = memory(7, 0);
    let text = |r: Result<Board<'_>, InitError>| r.err().map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(
        text(memory.init(65, 0)),
        "a barrier of 65 nodes cannot be built: it has 1 to 64 wire pairs"
    );
    assert!(matches!(
        memory.init(60, 0),
        Err(InitError::TooSmall { .. })
    ));
    assert!(matches!(
        memory.init(7, usize::MAX),
        Err(InitError::TooSmall { .. })
    ));
}

#[test]
fn a_second_process_finds_the_same_board_through_the_descriptor() {
    use std::os::fd::AsFd;
    let memory = memory(2, 0);
    let board = memory.init(2, 0).expect("fits");
    let other =
        Memory::map(memory.as_fd().try_clone_to_owned().expect("a descriptor")).expect("sealed");
    let seen = other.attach().expect("a board");
    board
        .wires(0, silent)
        .expect("free")
        .out
        .set_high()
        .expect("infallible");
    assert_eq!(seen.snapshot().inputs, 1);
    let file = tempfile::tempfile().expect("a file");
    assert_eq!(Memory::map(file.into()).err(), Some(MemoryError::NotSealed));
}

#[test]
fn wires_belong_to_one_owner_at_a_time() {
    let board = Live::new(2, 0).0;
    let pid = std::process::id();
    let first = board.wires(0, silent).expect("free");
    assert_eq!(
        board.wires(0, silent).err(),
        Some(WiresError::Taken { node: 0, pid })
    );
    assert_eq!(
        board.wires(2, silent).err(),
        Some(WiresError::NoSuchNode { node: 2, nodes: 2 })
    );
    let Wires { out, input, marks } = first;
    drop((out, marks));
    assert!(board.wires(0, silent).is_err(), "one handle is still there");
    drop(input);
    assert!(board.wires(0, silent).is_ok());
}

#[test]
fn the_wires_of_a_dead_process_can_be_taken_over() {
    let board = Live::new(1, 0).0;
    let mut child = std::process::Command::new("true")
        .spawn()
        .expect("a process");
    let dead = child.id();
    child.wait().expect("it ends");
    board.core().slots().claim(0).store(dead, Ordering::SeqCst);
    assert!(board.wires(0, silent).is_ok());
}

#[test]
fn a_release_rings_every_other_node_exactly_once() {
    let board = Live::new(3, 0).0;
    let rung: Arc<[AtomicU64]> = (0..3).map(|_| AtomicU64::new(0)).collect();
    let mut wires: Vec<_> = (0..3)
        .map(|node| {
            let rung = rung.clone();
            board
                .wires(node, move |other| {
                    rung[other].fetch_add(1, Ordering::SeqCst);
                })
                .expect("free")
        })
        .collect();
    let counts = |rung: &[AtomicU64]| {
        rung.iter()
            .map(|n| n.load(Ordering::SeqCst))
            .collect::<Vec<_>>()
    };
    wires[0].out.set_high().expect("infallible");
    wires[2].out.set_high().expect("infallible");
    assert_eq!(counts(&rung), [0, 0, 0], "node 1 is missing");
    // The last arrival makes the release inevitable, so `set_high` commits the release and wakes
    // the other nodes before it returns.
    wires[1].out.set_high().expect("infallible");
    assert_eq!(counts(&rung), [1, 0, 1]);
    for wire in &mut wires {
        assert_eq!(wire.input.is_high(), Ok(true));
    }
    assert_eq!(
        counts(&rung),
        [1, 0, 1],
        "reading a released barrier rings no node"
    );
}

#[test]
fn sleeping_nodes_are_woken_by_their_ring() {
    let nodes = 4;
    let board = Live::new(nodes, 0).0;
    let sleepers: Arc<std::sync::OnceLock<Vec<thread::Thread>>> = Arc::default();
    let threads: Vec<_> = (0..nodes)
        .map(|node| {
            let at_hand = sleepers.clone();
            thread::spawn(move || {
                while at_hand.get().is_none() {
                    thread::yield_now();
                }
                let ring = move |other: usize| {
                    at_hand
                        .get()
                        .into_iter()
                        .for_each(|all| all[other].unpark())
                };
                let Wires { out, input, .. } = board.wires(node, ring).expect("free");
                let mut barrier =
                    ToggleBarrier::open(out, input, || Ok::<_, Infallible>(())).expect("idle");
                for _ in 0..50 {
                    barrier.enter().expect("out of the barrier");
                    // Without the wake-up each wait would last until the test's time limit.
                    barrier
                        .wait(
                            || thread::park_timeout(Duration::from_secs(20)),
                            Duration::from_secs(15),
                        )
                        .expect("rung");
                }
            })
        })
        .collect();
    sleepers
        .set(threads.iter().map(|t| t.thread().clone()).collect())
        .expect("set once");
    threads
        .into_iter()
        .for_each(|t| t.join().expect("no panic"));
    assert_eq!(board.releases(), 50);
}

#[test]
fn the_record_has_every_change_in_order() {
    let board = Live::new(2, 100).0;
    let mut a = board.wires(0, silent).expect("free");
    let mut b = board.wires(1, silent).expect("free");
    a.marks.enter();
    a.out.set_high().expect("infallible");
    a.out.set_high().expect("infallible"); // no change, no event
    b.out.set_high().expect("infallible");
    a.marks.leave();
    let record = board.record();
    let what: Vec<What> = record.events.iter().map(|e| e.what).collect();
    assert_eq!(
        what,
        [
            What::Enter { node: 0 },
            What::Wire {
                node: 0,
                high: true
            },
            What::Wire {
                node: 1,
                high: true
            },
            What::Release { high: true },
            What::Leave { node: 0 },
        ]
    );
    assert_eq!(record.dropped, 0);
    let at: Vec<u64> = record.events.iter().map(|e| e.at_ns).collect();
    assert!(at.is_sorted(), "{at:?}");
    // The last arrival is followed by two whole clock
    // periods and a part of a third, then by the release.
    let latency = at[3] - at[2];
    assert!(
        (79..=120).contains(&latency),
        "{latency} ns of the board's own clock"
    );
}

#[test]
fn a_full_record_counts_what_it_drops() {
    let board = Live::new(1, 3).0;
    let mut wires = board.wires(0, silent).expect("free");
    for _ in 0..2 {
        wires.marks.enter();
        wires.marks.leave();
    }
    wires.marks.enter();
    let record = board.record();
    let what: Vec<What> = record.events.iter().map(|e| e.what).collect();
    assert_eq!(
        what,
        [
            What::Enter { node: 0 },
            What::Leave { node: 0 },
            What::Enter { node: 0 }
        ]
    );
    assert_eq!(record.dropped, 2);
}

#[test]
fn a_board_without_a_record_keeps_none_and_drops_none() {
    let board = Live::new(1, 0).0;
    let mut wires = board.wires(0, silent).expect("free");
    wires.marks.enter();
    wires.out.set_high().expect("infallible");
    assert_eq!(
        board.record(),
        crate::event::Record {
            nodes: 1,
            events: Vec::<Event>::new(),
            dropped: 0
        }
    );
}

#[test]
fn a_node_writing_while_others_read_and_write_never_shows_a_torn_board() {
    let nodes = 4;
    let live = Live::new(nodes, 200_000);
    let board = live.0;
    let threads: Vec<_> = (0..nodes)
        .map(|node| {
            let mut wires = live.wires(node);
            thread::spawn(move || {
                for turn in 0..3000 {
                    wires
                        .out
                        .set_state((turn % 2 == 0).into())
                        .expect("infallible");
                    wires.input.is_high().expect("infallible");
                }
            })
        })
        .collect();
    while threads.iter().any(|t| !t.is_finished()) {
        let seen = board.snapshot();
        assert!(
            seen.outputs == 0 || seen.outputs == (1 << nodes) - 1,
            "{seen:?}"
        );
        assert_eq!(seen.releases % 2 == 1, seen.outputs != 0, "{seen:?}");
    }
    threads
        .into_iter()
        .for_each(|t| t.join().expect("no panic"));
    check_alternation(&board.record());
    assert_eq!(
        board
            .record()
            .events
            .iter()
            .filter(|e| matches!(e.what, What::Wire { .. }))
            .count(),
        nodes * 3000
    );
}

/// Checks that every wire changes to the opposite level, and that times never decrease.
fn check_alternation(record: &crate::event::Record) {
    let (mut levels, mut released) = (vec![false; record.nodes], false);
    let mut last = 0;
    for event in &record.events {
        assert!(event.at_ns >= last, "{event:?} after {last}");
        last = event.at_ns;
        match event.what {
            What::Wire { node, high } => assert_ne!(
                std::mem::replace(&mut levels[node], high),
                high,
                "{event:?}"
            ),
            What::Release { high } => {
                assert_ne!(std::mem::replace(&mut released, high), high, "{event:?}")
            }
            What::Enter { .. } | What::Leave { .. } | What::Down { .. } | What::Say { .. } => {}
        }
    }
}
