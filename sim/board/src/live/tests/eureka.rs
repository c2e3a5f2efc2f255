//! Tests of the eureka line of a live board:
//! in each round, one node's result is reported to all nodes.

use super::*;
use barrier_driver::{Eureka, EurekaError, Found};
use std::task::Poll;

type Line = Eureka<RaiseWire<'static, fn(usize)>, EurekaInput<'static>>;

/// A `ring` that does nothing, because no node sleeps in these tests.
fn quiet(_: usize) {}

fn wires(
    board: &Board<'static>,
    node: usize,
) -> Result<EurekaWires<'static, fn(usize)>, WiresError> {
    board.eureka(node, quiet as fn(usize))
}

fn open(board: &Board<'static>, node: usize) -> Result<Line, EurekaError<Infallible, Infallible>> {
    let EurekaWires { out, found, first } = wires(board, node).expect("the wires are free");
    Eureka::open(out, found, first, || Ok(()))
}

fn line(board: &Board<'static>, node: usize) -> Line {
    open(board, node).expect("a line that is low")
}

#[test]
fn all_nodes_read_what_one_has_found_until_the_barrier_releases() {
    let live = Live::new(3, 0);
    let mut lines = [0, 1, 2].map(|node| line(&live.0, node));
    let mut wires = [0, 1, 2].map(|node| live.wires(node));
    let mut level = false;
    for finder in [1, 0, 2, 2] {
        for line in &mut lines {
            assert_eq!(line.poll(), Ok(Poll::Pending));
        }
        lines[finder].announce().expect("infallible");
        for (node, line) in lines.iter_mut().enumerate() {
            let first = node == finder;
            assert_eq!(line.poll(), Ok(Poll::Ready(Found { first })));
            line.rest().expect("infallible");
        }
        level = !level;
        for (entered, wires) in wires.iter_mut().enumerate() {
            // A node that polls the line only after it has
            // entered the barrier also reads it as high.
            assert!(lines[2].poll().expect("infallible").is_ready(), "{entered}");
            wires.out.set_state(level.into()).expect("infallible");
        }
        assert_eq!(wires[0].input.is_high(), Ok(level));
    }
}

#[test]
fn a_node_that_comes_later_is_not_first_and_a_wire_that_stays_high_speaks_again() {
    let live = Live::new(2, 0);
    let [mut a, mut b] = [0, 1].map(|node| line(&live.0, node));
    b.announce().expect("infallible");
    a.announce().expect("infallible");
    assert_eq!(a.poll(), Ok(Poll::Ready(Found { first: false })));
    assert_eq!(b.poll(), Ok(Poll::Ready(Found { first: true })));
    b.rest().expect("infallible");
    for node in [0, 1] {
        live.wires(node).out.set_high().expect("infallible");
    }
    // The first node has entered the barrier without lowering its wire to the line.
    while b.poll() == Ok(Poll::Pending) {}
    assert_eq!(a.poll(), Ok(Poll::Ready(Found { first: true })));
}

#[test]
fn the_wires_of_the_line_belong_to_one_owner_at_a_time() {
    let board = Live::new(2, 0).0;
    let pid = std::process::id();
    let held = wires(&board, 1).expect("free");
    assert_eq!(
        wires(&board, 1).err(),
        Some(WiresError::Taken { node: 1, pid })
    );
    assert_eq!(
        wires(&board, 2).err(),
        Some(WiresError::NoSuchNode { node: 2, nodes: 2 })
    );
    drop(held);
    assert!(wires(&board, 1).is_ok());
    // The other nodes report the level that a killed node has left on its wire as an error.
    let mut killed = wires(&board, 0).expect("free");
    killed.out.set_high().expect("infallible");
    drop(killed);
    assert_eq!(open(&board, 1).err(), Some(EurekaError::NotLow));
}

#[test]
fn exactly_one_of_many_threads_is_first_in_each_round() {
    let (nodes, rounds) = (4, 300);
    let board = Live::new(nodes, 0).0;
    // No node raises its wire before all nodes have found the line low.
    let lines: Vec<_> = (0..nodes).map(|node| line(&board, node)).collect();
    let threads: Vec<_> = (0..)
        .zip(lines)
        .map(|(node, mut line)| {
            let wires = board.wires(node, silent);
            let Wires { out, input, .. } = wires.expect("free");
            let barrier = ToggleBarrier::open(out, input, || Ok::<_, Infallible>(()));
            let mut barrier = barrier.expect("idle");
            thread::spawn(move || {
                let mut first_in = Vec::new();
                for round in 0..rounds {
                    // Up to three nodes raise the line at about the same time.
                    if (node + round) % 4 < 1 + round % 3 {
                        line.announce().expect("infallible");
                    }
                    let found = loop {
                        match line.poll().expect("infallible") {
                            Poll::Ready(found) => break found,
                            Poll::Pending => thread::yield_now(),
                        }
                    };
                    first_in.extend(found.first.then_some(round));
                    line.rest().expect("infallible");
                    barrier.enter().expect("out of the barrier");
                    let limit = Duration::from_secs(60);
                    barrier.wait(thread::yield_now, limit).expect("all enter");
                }
                first_in
            })
        })
        .collect();
    let all = threads.into_iter();
    let mut first_in: Vec<_> = all.flat_map(|t| t.join().expect("no panic")).collect();
    first_in.sort_unstable();
    assert_eq!(first_in, (0..rounds).collect::<Vec<_>>());
}
