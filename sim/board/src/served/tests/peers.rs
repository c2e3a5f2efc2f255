//! Tests of clients and servers that violate the protocol, over real sockets.

use super::super::frame::{Greeting, REPLY, Reply, Request, VERSION};
use super::super::line::{Line, Wanted};
use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

fn silent() {}

fn refusal(address: &Address, node: usize, nodes: usize) -> String {
    match Wires::connect(address, node, nodes, silent) {
        Ok(_) => "it was taken".into(),
        Err(refusal) => refusal.to_string(),
    }
}

fn socket(address: &Address) -> TcpStream {
    let stream = TcpStream::connect(address.parts()).expect("the server listens");
    let limit = Some(Duration::from_secs(30));
    stream.set_read_timeout(limit).expect("a socket");
    stream
}

/// A hand-written client, which can violate the protocol.
fn by_hand(address: &Address, node: u8) -> TcpStream {
    let mut stream = socket(address);
    let hello = Greeting {
        version: VERSION,
        word: node,
    };
    stream.write_all(&hello.encode()).expect("it reads");
    stream.read_exact(&mut [0; 8]).expect("a greeting");
    assert!(matches!(reply(&mut stream), Reply::Welcome(_)));
    stream
}

fn reply(stream: &mut TcpStream) -> Reply {
    let mut bytes = [0; REPLY];
    stream.read_exact(&mut bytes).expect("a reply");
    Reply::decode(&bytes).expect("of this version")
}

/// A hand-written server that sends these bytes to every client and reads until the client leaves.
fn says(bytes: &'static [u8]) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").into();
    std::thread::spawn(move || {
        if let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(bytes);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    address
}

#[test]
fn a_client_that_cannot_be_served_gets_the_reason_with_both_sides_named() {
    let served = Served::new(4);
    let (address, at) = (&served.address, &served.address);
    let _first = Wires::connect(address, 2, 4, silent).expect("free");
    let said = refusal(address, 2, 4);
    let expected =
        format!("the board at {at} does not take node 2: that node is connected from 127.0.0.1:");
    assert!(said.starts_with(&expected), "{said}");
    assert_eq!(
        refusal(address, 0, 60),
        format!("the board at {at} has 4 nodes, and 60 are needed: hwbarr serve --nodes 60")
    );
    assert_eq!(
        refusal(address, 4, 4),
        format!(
            "the board at {at} does not take node 4: its 4 nodes count from 0, and this is none of them"
        )
    );
}

#[test]
fn a_peer_that_is_no_server_of_this_version_is_named() {
    let address = says(b"HWBARR\x07\x3c");
    assert_eq!(
        refusal(&address, 0, 60),
        format!("the server at {address} speaks version 7 and this program version 1")
    );
    let address = says(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(
        refusal(&address, 0, 60),
        format!("the program that listens at {address} serves no board")
    );
    let address = says(b"");
    let limit = Duration::from_millis(50);
    let silent = Line::connect_within(&address, Role::BoardObserver, Wanted::default(), limit);
    assert_eq!(
        silent.err(),
        Some(ConnectError::TimedOut {
            server: address,
            limit
        })
    );
    // The listener has been dropped, so no process listens at its port.
    let address = Address::from(
        TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port"),
    );
    let said = refusal(&address, 0, 60);
    assert!(
        said.starts_with(&format!("no board can be reached at {address}: ")),
        "{said}"
    );
}

#[test]
fn a_server_that_stops_making_sense_is_named() {
    // The server sends a welcome to a board of one node, and then garbage.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = Address::from(listener.local_addr().expect("bound"));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        stream.write_all(b"HWBARR\x01\x01").expect("it reads");
        stream
            .write_all(&Reply::Welcome(View::default()).encode())
            .expect("it reads");
        stream.write_all(&[9; REPLY]).expect("it reads");
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let mut observer = BoardObserver::connect(&address).expect("welcome");
    let said = observer.look().expect_err("rubbish").to_string();
    assert_eq!(
        said,
        format!("an observer has been sent bytes by {address} that mean nothing in version 1")
    );
    drop(observer);
    server.join().expect("it has heard the end");
}

#[test]
fn the_wire_of_a_node_that_dies_returns_to_idle_and_its_arrival_with_it() {
    let served = Served::new(2);
    let mut dying = by_hand(&served.address, 0);
    let request = Request::Write { high: true }.encode();
    dying.write_all(&request).expect("it reads");
    assert!(matches!(reply(&mut dying), Reply::Answer(view) if view.board.inputs == 0b01));
    drop(dying);
    let died = served.noted(|notice| matches!(notice, Notice::Died { node: 0, .. }));
    let said = died.to_string();
    assert!(
        said.starts_with("node 0 has died, from 127.0.0.1:")
            && said.ends_with(
                ": it closed its connection without a disconnect message; \
                 its arrival is withdrawn and its wire is low, idle"
            ),
        "{said}"
    );
    // The other node waits in the barrier until another process connects as node 0,
    // as if the dead node had never connected.
    let mut waiting = by_hand(&served.address, 1);
    waiting.write_all(&request).expect("it reads");
    assert!(matches!(reply(&mut waiting), Reply::Answer(view) if view.board.outputs == 0));
    let mut again = by_hand(&served.address, 0);
    again.write_all(&request).expect("it reads");
    assert!(matches!(reply(&mut again), Reply::Answer(view) if view.board.releases == 1));
    assert!(matches!(reply(&mut waiting), Reply::Released(view) if view.board.releases == 1));
}

#[test]
fn many_silent_clients_keep_no_node_out() {
    let served = Served::new(1);
    let crowd: Vec<_> = (0..200).map(|_| socket(&served.address)).collect();
    for _ in 0..3 {
        let node = Wires::connect(&served.address, 0, 1, silent).expect("it said hello");
        assert_eq!(node.reader.look().expect("connected").connected, 1);
    }
    // The server has replaced the first of these clients by a later one.
    let mut first = &crowd[0];
    let mut heard = Vec::new();
    let _ = first.read_to_end(&mut heard);
    assert_eq!(heard, b"HWBARR\x01\x01");
}

#[test]
fn rubbish_and_floods_leave_the_nodes_alone() {
    use barrier_driver::ToggleBarrier;
    let served = Served::new(2);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Ends the flood also if a node fails; otherwise the scope would wait for it indefinitely.
        let _over = SetAtEnd(&stop);
        for kind in 0..3u8 {
            let (address, stop) = (&served.address, &stop);
            scope.spawn(move || {
                let rubbish: Vec<u8> = (0..4096u32).map(|n| (n * 167 + 13) as u8).collect();
                while !stop.load(Ordering::Relaxed) {
                    let mut stream = socket(address);
                    let _ = match kind {
                        // The client does not even send a valid greeting.
                        0 => stream.write_all(&rubbish),
                        // The client is an observer that sends requests without reading,
                        // until it is disconnected.
                        1 => {
                            let mut bytes = b"HWBARR\x01\xff".to_vec();
                            bytes.extend(Request::Look.encode().repeat(2000));
                            stream.write_all(&bytes)
                        }
                        // The client is an observer that sends writes.
                        _ => {
                            let mut bytes = b"HWBARR\x01\xff".to_vec();
                            bytes.extend(Request::Write { high: true }.encode());
                            stream.write_all(&bytes)
                        }
                    };
                }
            });
        }
        let mut nodes = [0, 1].map(|node| {
            let Wires { out, input, .. } =
                Wires::connect(&served.address, node, 2, silent).expect("free");
            ToggleBarrier::open(out, input, || Ok::<_, std::convert::Infallible>(()))
                .expect("no other client drives a wire")
        });
        for _ in 0..200 {
            for node in &mut nodes {
                node.enter().expect("connected");
            }
            for node in &mut nodes {
                node.wait(std::thread::yield_now, Duration::from_secs(30))
                    .expect("both have entered");
            }
        }
    });
    assert_eq!(served.view().board.releases, 200);
    let noted = |what: fn(&Notice) -> bool| served.notices().iter().any(what);
    assert!(noted(|n| matches!(
        n,
        Notice::Foreign { version: None, .. }
    )));
    assert!(noted(|n| matches!(
        n,
        Notice::Refused {
            why: Refusal::OnlyLooks,
            ..
        }
    )));
    assert!(!noted(|n| matches!(n, Notice::Died { .. })));
}
