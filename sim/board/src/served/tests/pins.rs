//! Tests of a node's wires: the port suite, sixty nodes,
//! and withdrawals that must not become arrivals.

use super::*;
use barrier_driver::{Eureka, Found, ToggleBarrier};
use embedded_hal::digital::{InputPin, OutputPin};
use std::convert::Infallible;
use std::task::Poll;
use std::time::Duration;

fn silent() {}
type Silent = fn();

const LIMIT: Duration = Duration::from_secs(30);

/// A served board, and the number of nodes that every client requires.
struct Rig(Served, usize);

impl Rig {
    fn connect(&self, node: usize) -> Wires<Silent> {
        Wires::connect(&self.0.address, node, self.1, silent as Silent).expect("the node is free")
    }
}

impl barrier_driver::suite::Rig for Rig {
    type Error = LineError;
    type Out = OutWire<Silent>;
    type In = InWire<Silent>;

    fn build(nodes: usize) -> Self {
        Self(Served::new(nodes), nodes)
    }

    fn wires(&self, node: usize) -> (Self::Out, Self::In) {
        let Wires { out, input, .. } = self.connect(node);
        (out, input)
    }

    fn releases(&self) -> u64 {
        self.0.view().board.releases
    }
}

barrier_driver::port_suite!(Rig);

#[test]
fn sixty_nodes_share_one_server() {
    let rig = <Rig as barrier_driver::suite::Rig>::build(60);
    let nodes: Vec<_> = (0..60)
        .map(|node| {
            let Wires { out, input, .. } = rig.connect(node);
            ToggleBarrier::open(out, input, || Ok::<_, Infallible>(())).expect("idle wires")
        })
        .collect();
    assert_eq!(rig.0.view().connected, u64::MAX >> 4);
    std::thread::scope(|scope| {
        for mut node in nodes {
            scope.spawn(move || {
                for _ in 0..30 {
                    node.enter().expect("out of the barrier");
                    let nap = || std::thread::sleep(Duration::from_micros(200));
                    node.wait(nap, LIMIT).expect("all nodes enter");
                }
                node.close().expect("the wire is still");
            });
        }
    });
    let View { board, connected } = rig.0.view();
    assert_eq!((board.releases, connected), (30, 0));
    assert_eq!(board.inputs, board.outputs);
}

#[test]
fn giving_up_after_the_release_is_no_arrival_at_the_next_barrier() {
    let rig = <Rig as barrier_driver::suite::Rig>::build(2);
    let [mut first, mut second] = [0, 1].map(|node| rig.connect(node));
    first.out.set_high().expect("connected");
    assert_eq!(first.input.is_high(), Ok(false));
    second.out.set_high().expect("connected");
    // The first node has not received the release when it withdraws.
    first.out.set_low().expect("connected");
    assert_eq!(first.input.is_high(), Ok(true));
    assert_eq!(rig.0.view().board.inputs, 0b11, "the wire is idle as it is");
    // The same write by a node that has received the release is an arrival in the next barrier.
    first.out.set_low().expect("connected");
    assert_eq!(rig.0.view().board.inputs, 0b10);
}

#[test]
fn a_handle_that_receives_a_release_rings() {
    let rig = <Rig as barrier_driver::suite::Rig>::build(2);
    let rung = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let doorbell = rung.clone();
    let ring = move || {
        doorbell.fetch_add(1, Ordering::Relaxed);
    };
    let mut first = rig.connect(0);
    let mut second = Wires::connect(&rig.0.address, 1, 2, ring).expect("free");
    first.out.set_high().expect("connected");
    assert_eq!(second.input.is_high(), Ok(false));
    assert_eq!(rung.load(Ordering::Relaxed), 0);
    second.out.set_high().expect("connected");
    assert_eq!(second.input.is_high(), Ok(true));
    assert_eq!(rung.load(Ordering::Relaxed), 1);
    // The reply to `look` may report a release that no later read reports,
    // so `look` must call `ring`.
    assert_eq!(first.input.is_high(), Ok(true));
    second.out.set_low().expect("connected");
    first.out.set_low().expect("connected");
    assert_eq!(second.reader.look().expect("connected").board.releases, 2);
    assert_eq!(second.input.is_high(), Ok(false));
    assert_eq!(rung.load(Ordering::Relaxed), 2);
}

/// Polls a waiting node until its input wire is no longer low.
fn polled(input: &mut InWire<Silent>) -> Result<bool, LineError> {
    let begin = std::time::Instant::now();
    while begin.elapsed() < LIMIT {
        match input.is_high() {
            Ok(false) => std::thread::yield_now(),
            said => return said,
        }
    }
    panic!("nothing has changed for {LIMIT:?}")
}

#[test]
fn a_server_that_is_stopped_is_noticed_by_a_node_that_waits_and_by_one_that_enters() {
    let rig = <Rig as barrier_driver::suite::Rig>::build(2);
    let [mut waiting, mut entering] = [0, 1].map(|node| rig.connect(node));
    waiting.out.set_high().expect("connected");
    for wires in [&waiting, &entering] {
        wires.reader.detect_loss_within(Duration::from_millis(200));
    }
    rig.0.frozen.store(true, Ordering::Relaxed);
    let said = polled(&mut waiting.input).expect_err("the server says nothing");
    assert_eq!(
        said.to_string(),
        format!(
            "the board at {} has not answered node 0 for 100ms: its process or its host has stopped, or the network is cut",
            rig.0.address
        )
    );
    let said = entering
        .out
        .set_high()
        .expect_err("the server says nothing");
    assert!(
        said.to_string().contains("has not answered node 1"),
        "{said}"
    );
    rig.0.frozen.store(false, Ordering::Relaxed);
}

/// A client whose server is idle sends liveness checks and stays connected.
/// The server is written by hand and releases its one node after two checks.
#[test]
fn a_server_that_only_has_nothing_to_say_is_asked_and_stays() {
    use super::super::frame::{REQUEST, Reply, Request};
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = Address::from(listener.local_addr().expect("bound"));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut view = View::default();
        stream.write_all(b"HWBARR\x01\x01").expect("it reads");
        let welcome = Reply::Welcome(view).encode();
        stream.write_all(&welcome).expect("it reads");
        let mut hello = [0; 8];
        stream.read_exact(&mut hello).expect("a hello");
        let mut questions = 0;
        let mut request = [0; REQUEST];
        while stream.read_exact(&mut request).is_ok() {
            let answer = match Request::decode(&request).expect("of this version") {
                Request::Write { .. } => {
                    view.board.inputs = 1;
                    Reply::Answer(view)
                }
                Request::Look => {
                    questions += 1;
                    Reply::Answer(view)
                }
                _ => Reply::Disconnected,
            };
            stream.write_all(&answer.encode()).expect("it reads");
            if questions == 2 {
                view.board.outputs = 1;
                let released = Reply::Released(view);
                stream.write_all(&released.encode()).expect("it reads");
            }
        }
    });
    let mut node = Wires::connect(&address, 0, 1, silent as Silent).expect("welcome");
    node.reader.detect_loss_within(Duration::from_secs(2));
    node.out.set_high().expect("connected");
    assert_eq!(polled(&mut node.input), Ok(true));
    drop(node);
    server.join().expect("it has heard the end");
}

#[test]
fn a_node_is_free_when_its_last_handle_has_been_dropped() {
    let rig = <Rig as barrier_driver::suite::Rig>::build(1);
    for _ in 0..50 {
        let Wires {
            out, input, reader, ..
        } = rig.connect(0);
        drop((out, input));
        assert_eq!(reader.look().expect("connected").connected, 1);
    }
}

#[test]
fn one_client_finds_it_and_the_others_read_so_until_the_release() {
    let rig = <Rig as barrier_driver::suite::Rig>::build(3);
    let (mut lines, mut barriers) = (Vec::new(), Vec::new());
    for node in 0..3 {
        let Wires {
            out, input, eureka, ..
        } = rig.connect(node);
        let EurekaWires {
            out: says,
            found,
            first,
        } = eureka;
        let line = Eureka::open(says, found, first, || Ok::<_, Infallible>(()));
        lines.push(line.expect("a line that is low"));
        barriers
            .push(ToggleBarrier::open(out, input, || Ok::<_, Infallible>(())).expect("idle wires"));
    }
    for finder in [2, 0, 1] {
        for line in &mut lines {
            assert_eq!(line.poll(), Ok(Poll::Pending));
        }
        // A node that raises the line later is not first, even if it has a lower number.
        for announcing in [finder, (finder + 1) % 3] {
            lines[announcing].announce().expect("connected");
        }
        for (node, line) in lines.iter_mut().enumerate() {
            let first = node == finder;
            assert_eq!(line.poll(), Ok(Poll::Ready(Found { first })));
            line.rest().expect("connected");
        }
        for barrier in &mut barriers {
            barrier.enter().expect("connected");
        }
        for barrier in &mut barriers {
            assert_eq!(barrier.poll(), Ok(Poll::Ready(())));
        }
    }
}

#[test]
fn a_node_whose_server_goes_says_so_at_every_access() {
    let mut rig = <Rig as barrier_driver::suite::Rig>::build(2);
    let mut wires = rig.connect(1);
    let address = rig.0.address.to_string();
    wires.out.set_high().expect("connected");
    rig.0.end();
    for _ in 0..2 {
        for refused in [wires.input.is_high().map(drop), wires.out.set_low()] {
            let refused = refused.expect_err("no server").to_string();
            let expected = format!("node 1 has lost its connection to {address}: ");
            assert!(refused.starts_with(&expected), "{refused}");
        }
    }
}
