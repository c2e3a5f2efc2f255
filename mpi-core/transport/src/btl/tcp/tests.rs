//! Tests of the transport `tcp`: authentication of callers, the race of addresses, and the loss of a peer.

use super::address::Candidate;
use super::*;
use crate::btl::suite::{
    self, Expect, Keep, Net, Nothing, courses, cramped, endpoint, mixed, send_numbered,
};
use crate::rte::TestModex;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

/// Opens the transports of a job whose processes share no memory.
fn job(modex: &TestModex, size: u32, pairs: &[(&str, &str)]) -> Vec<Tcp> {
    let params = cramped(pairs);
    let settings = Settings::read(&params).unwrap();
    (0..size)
        .map(|me| {
            let around = OpenContext {
                me,
                size,
                node: None,
                params: &params,
                modex: Some(modex.of(me)),
            };
            Tcp::open(
                &around,
                &settings,
                0,
                Arc::new(JobNames { size: around.size }),
                addresses(&settings).unwrap(),
            )
            .unwrap()
        })
        .collect()
}

/// Opens a job in reverse order of ranks, so the higher rank is the sender and indices differ from ranks.
fn net(size: u32, pairs: &[(&str, &str)]) -> Net {
    let btls = job(&TestModex::default(), size, pairs);
    Net {
        btls: btls
            .into_iter()
            .rev()
            .map(|btl| Box::new(btl) as Transport)
            .collect(),
        procs: (0..size).rev().collect(),
        pair: (0, 1),
    }
}

mod over_loopback {
    crate::btl_suite!(|| super::net(3, &[]));
}

mod with_long_pieces {
    crate::btl_suite!(|| super::net(
        2,
        &[
            ("btl_tcp_max_send_size", "300k"),
            ("btl_tcp_eager_limit", "1k")
        ]
    ));
}

/// Calls `done` until it returns true. Fails the test after 20 seconds.
#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < limit, "{what} has not happened");
        std::thread::yield_now();
    }
}

/// Sends one message in each direction between two transports, which connect first if necessary.
fn talk(a: &Tcp, b: &Tcp) {
    for (from, to) in [(a, b), (b, a)] {
        let sink = Keep::default();
        send_numbered(from, endpoint(from, to.me), 3, 100).unwrap();
        until("a message", || {
            from.progress(&Nothing);
            to.progress(&sink);
            sink.len() == 1
        });
    }
}

#[test]
fn more_peers_than_are_read_directly_all_talk_at_once() {
    let all = job(&TestModex::default(), 2 * DIRECT as u32, &[]);
    std::thread::scope(|s| {
        for btl in all {
            s.spawn(move || {
                let peers: Vec<_> = (0..2 * DIRECT as u32).filter(|p| *p != btl.me).collect();
                let sinks: Vec<_> = (0..2 * DIRECT as u32)
                    .map(|from| Expect {
                        from,
                        next: Cell::new(0),
                        len: mixed(4000),
                    })
                    .collect();
                struct Each<'a, S>(&'a [S]);
                impl<S: Sink> Sink for Each<'_, S> {
                    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
                        self.0[from as usize].deliver(from, am, header, payload);
                    }
                }
                const COUNT: u64 = 200;
                let mut sent = vec![0; peers.len()];
                until("all messages", || {
                    for (peer, n) in peers.iter().zip(&mut sent) {
                        let to = endpoint(&btl, *peer);
                        while *n < COUNT && send_numbered(&btl, to, *n, mixed(4000)(*n)).is_ok() {
                            *n += 1;
                        }
                    }
                    btl.progress(&Each(&sinks));
                    let heard = |p: &u32| sinks[*p as usize].next.get() == COUNT;
                    sent.iter().all(|n| *n == COUNT) && peers.iter().all(heard)
                });
            });
        }
    });
}

/// Reads until the listener closes the connection. Returns the bytes that it has sent.
fn all_that_is_said(mut stream: TcpStream, listener: &Tcp) -> Vec<u8> {
    stream.set_nonblocking(true).unwrap();
    let mut said = Vec::new();
    until("the end of an unknown client", || {
        listener.progress(&Nothing);
        let mut bytes = [0; 64];
        match stream.read(&mut bytes) {
            Ok(0) => true,
            Ok(read) => {
                said.extend_from_slice(&bytes[..read]);
                false
            }
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    });
    said
}

fn dial(btl: &Tcp) -> TcpStream {
    TcpStream::connect(("127.0.0.1", btl.ours.port)).unwrap()
}

#[test]
fn a_stranger_is_told_nothing() {
    let all = job(&TestModex::default(), 2, &[]);
    let hello = hello::Hello {
        from: 0,
        to: 1,
        link: 0,
        nonce: [7; 16],
    };
    let wrong_key = hello.encode(&Key::random().unwrap());
    let key = all[1].ours.key;
    let wrong = |change: fn(&mut hello::Hello)| {
        let mut hello = hello;
        change(&mut hello);
        hello.encode(&key)
    };
    let speeches = [
        b"GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: an unknown client with a long request\r\n\r\n"
            .to_vec(),
        vec![0xff; 1000],
        wrong_key.to_vec(),
        // These hellos have a valid MAC, but another addressee, a rank that does not exist, another link, or the listener itself as the sender.
        wrong(|h| h.to = 0).to_vec(),
        wrong(|h| h.from = 2).to_vec(),
        wrong(|h| h.link = 1).to_vec(),
        wrong(|h| h.from = 1).to_vec(),
    ];
    for speech in speeches {
        let mut stranger = dial(&all[1]);
        stranger.write_all(&speech).unwrap();
        assert_eq!(all_that_is_said(stranger, &all[1]), b"");
    }
    talk(&all[0], &all[1]);
}

#[test]
fn a_recorded_handshake_gets_nowhere() {
    let all = job(&TestModex::default(), 2, &[]);
    let key = all[1].ours.key;
    let hello = hello::Hello {
        from: 0,
        to: 1,
        link: 0,
        nonce: [7; 16],
    };
    let mut stranger = dial(&all[1]);
    stranger.write_all(&hello.encode(&key)).unwrap();
    stranger.write_all(&hello.proof(&key, &[9; 16])).unwrap();
    let said = all_that_is_said(stranger, &all[1]);
    assert_eq!(said.len(), hello::CHALLENGE);
    talk(&all[0], &all[1]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn unauthenticated_processes_get_no_answer(
        speeches in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..3 * hello::HELLO), 0..=8usize),
            1..5,
        ),
    ) {
        let all = job(&TestModex::default(), 2, &[]);
        for (mut speech, true_bytes) in speeches {
            // Input that begins like a hello covers more of the code.
            let like_ours = speech.iter_mut().zip(b"PORTCLS1").take(true_bytes);
            like_ours.for_each(|(byte, ours)| *byte = *ours);
            let mut stranger = dial(&all[1]);
            stranger.write_all(&speech).unwrap();
            stranger.shutdown(std::net::Shutdown::Write).unwrap();
            prop_assert_eq!(all_that_is_said(stranger, &all[1]), b"");
        }
        talk(&all[0], &all[1]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn every_encounter_has_its_own_messages_and_its_own_end(course in courses()) {
        let params = cramped(&[]);
        let open = |universe: &Arc<Universe>| -> Box<dyn Btl> {
            super::open_to_other_jobs(&params, universe).unwrap()
        };
        suite::every_encounter_has_its_own_messages_and_its_own_end(open, course);
    }
}

#[test]
fn a_flood_of_replayed_hellos_keeps_no_peer_out() {
    let all = job(&TestModex::default(), 2, &[]);
    let recorded = hello::Hello {
        from: 0,
        to: 1,
        link: 0,
        nonce: [7; 16],
    };
    let recorded = recorded.encode(&all[1].ours.key);
    let mut strangers = Vec::new();
    for _ in 0..300 {
        let mut stranger = dial(&all[1]);
        stranger.write_all(&recorded).unwrap();
        strangers.push(stranger);
        all[1].progress(&Nothing);
    }
    talk(&all[0], &all[1]);
    drop(strangers);
    talk(&all[1], &all[0]);
}

#[test]
fn a_flood_of_silent_connections_keeps_no_peer_out() {
    let all = job(&TestModex::default(), 2, &[]);
    let mut strangers: Vec<_> = (0..300).map(|_| dial(&all[1])).collect();
    // Every third connection sends a part of a hello.
    for stranger in strangers.iter_mut().step_by(3) {
        stranger.write_all(b"PORTCLS1").unwrap();
    }
    talk(&all[0], &all[1]);
    drop(strangers);
    talk(&all[1], &all[0]);
}

#[test]
fn addresses_that_lead_nowhere_or_to_somebody_else_lose_the_race() {
    let modex = TestModex::default();
    let all = job(&modex, 2, &[]);
    let real = SocketAddr::from(([127, 0, 0, 1], all[1].ours.port));
    // One address accepts and sends nothing, one accepts and sends garbage, one refuses, and one drops packets (TEST-NET-1, RFC 5737).
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let loud = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let addresses = [
        silent.local_addr().unwrap(),
        "192.0.2.1:9".parse().unwrap(),
        loud.local_addr().unwrap(),
        closed,
        real,
    ];
    let candidates = addresses.map(|to| Candidate { to, megabits: 1 }).to_vec();
    let loud = std::thread::spawn(move || {
        let (mut stream, _) = loud.accept().unwrap();
        let _ = stream.write_all(&[1; hello::CHALLENGE]);
    });
    let caller = all[0].peer(1).unwrap();
    let key = all[1].ours.key;
    let mut connector = all[0].connector.borrow_mut();
    connector.call(1, key, candidates, None).unwrap();
    drop(connector);
    caller.fate.set(Fate::Calling);
    until("the right address", || {
        all.iter().for_each(|btl| {
            btl.progress(&Nothing);
        });
        caller.fate.get() == Fate::Up
    });
    assert_eq!(caller.socket.borrow().as_ref().unwrap().remote, Some(real));
    loud.join().unwrap();
    talk(&all[0], &all[1]);
}

#[test]
fn what_does_not_leave_the_machine_is_not_paced() {
    let all = job(&TestModex::default(), 2, &[]);
    talk(&all[0], &all[1]);
    for (btl, peer) in [(&all[0], 1), (&all[1], 0)] {
        let met = btl.peer(peer).unwrap().socket.borrow();
        let rule = rustix::net::sockopt::tcp_congestion(&met.as_ref().unwrap().socket);
        assert_eq!(rule.as_deref(), Ok("reno"));
    }
}

/// A sink that records the error texts about lost peers.
#[derive(Default)]
struct Obituaries(RefCell<Vec<(ProcId, String)>>);

impl Sink for Obituaries {
    fn deliver(&self, _: ProcId, _: Am, _: Header, _: &[u8]) {}

    fn lost(&self, peer: ProcId, why: &str) {
        self.0.borrow_mut().push((peer, why.into()));
    }
}

fn sentence(of: &Tcp) -> String {
    let sink = Obituaries::default();
    until("a loss", || {
        of.progress(&sink);
        !sink.0.borrow().is_empty()
    });
    of.progress(&sink);
    let told = sink.0.into_inner();
    assert_eq!(told.len(), 1, "a loss is told once: {told:?}");
    told[0].1.clone()
}

#[test]
fn a_peer_that_dies_is_named_with_both_ends() {
    let all = job(&TestModex::default(), 2, &[]);
    talk(&all[0], &all[1]);
    // `cut` has the same effect on the sockets as killing the process.
    let ends = |of: &Tcp, peer| {
        of.peer(peer)
            .unwrap()
            .socket
            .borrow()
            .as_ref()
            .unwrap()
            .ends
            .clone()
    };
    let ends = &ends(&all[1], 0);
    all[0].cut(Endpoint(1));
    let said = sentence(&all[1]);
    assert_eq!(
        said,
        format!(
            "the connection between job ranks 1 and 0 ({ends}) was lost: the other end was closed without a disconnect message: its process has died, or has given up the connection"
        )
    );
    assert!(ends.contains("127.0.0.1:"), "{ends}");
    let again = send_numbered(&all[1], Endpoint(0), 0, 8);
    assert_eq!(again, Err(SendError::PeerGone));
}

#[test]
fn a_peer_that_says_what_nobody_of_ours_says_is_lost() {
    let all = job(&TestModex::default(), 2, &[]);
    talk(&all[0], &all[1]);
    let met = all[0].peer(1).unwrap().socket.borrow();
    rustix::io::write(&met.as_ref().unwrap().socket, &[9; frame::HEADER]).unwrap();
    drop(met);
    let said = sentence(&all[1]);
    assert!(
        said.ends_with("was lost: a frame of the unknown kind 9 came"),
        "{said}"
    );
}

#[test]
fn a_peer_that_never_listened_is_lost_with_what_each_address_said() {
    let modex = TestModex::default();
    let set = [
        ("btl_tcp_if_include", "127.0.0.0/8"),
        ("btl_tcp_refused_for", "0"),
    ];
    let mut all = job(&modex, 2, &set);
    let port = all[1].ours.port;
    drop(all.pop());
    send_numbered(&all[0], endpoint(&all[0], 1), 0, 8).unwrap();
    let said = sentence(&all[0]);
    assert_eq!(
        said,
        format!(
            "the connection between job ranks 0 and 1 could not be made: 127.0.0.1:{port}: Connection refused (os error 111)"
        )
    );
}

#[test]
fn a_peer_that_has_left_is_called_until_it_comes_back() {
    let set = [("btl_tcp_refused_for", "0")];
    let mut all = job(&TestModex::default(), 2, &set);
    talk(&all[0], &all[1]);
    let (late, early) = (all.pop().unwrap(), all.pop().unwrap());
    let late = std::thread::scope(|s| {
        let leaves = s.spawn(move || {
            late.shutdown();
            late
        });
        early.shutdown();
        leaves.join().unwrap()
    });
    send_numbered(&early, endpoint(&early, 1), 0, 8).unwrap();
    let fate = || early.peer(1).unwrap().fate.get();
    let end = Instant::now() + Duration::from_millis(100);
    while Instant::now() < end {
        early.progress(&Nothing);
        assert_eq!(fate(), Fate::Calling);
    }
    let came = Keep::default();
    until("the late peer", || {
        early.progress(&Nothing);
        late.progress(&came);
        came.len() == 1
    });
}

#[test]
fn a_peer_that_leaves_in_order_loses_nothing_and_is_not_lost() {
    let mut all = job(&TestModex::default(), 2, &[]);
    let sink = Expect {
        from: 1,
        next: Cell::new(0),
        len: |_| 100_000,
    };
    let leaver = all.pop().unwrap();
    let stayer = all.pop().unwrap();
    std::thread::scope(|s| {
        s.spawn(move || {
            // More data than the socket buffers can hold, so some are still queued at the end.
            let to = endpoint(&leaver, 0);
            let mut sent = 0;
            until("room", || {
                leaver.progress(&Nothing);
                while sent < 10 && send_numbered(&leaver, to, sent, 100_000).is_ok() {
                    sent += 1;
                }
                sent == 10
            });
        });
        until("all messages", || {
            stayer.progress(&sink);
            sink.next.get() == 10
        });
    });
    until("the disconnect message", || {
        stayer.progress(&sink);
        stayer.peer(1).unwrap().fate.get() == Fate::Fresh
    });
}

#[test]
fn links_that_are_counted_differently_are_refused_with_both_numbers() {
    let modex = TestModex::default();
    let all = job(&modex, 2, &[]);
    let mut card = all[1].ours.clone();
    card.links = 3;
    modex.put(1, &modex_key(0), &card.encode());
    let Reach::No(why) = all[0].reach(1) else {
        panic!("a peer with other links is reached");
    };
    assert_eq!(
        why,
        "its parameter btl_tcp_links is 3 and that of this process 0; it must be the same everywhere"
    );
}

#[test]
fn a_peer_whose_transport_is_not_open_publishes_the_reason() {
    let modex = TestModex::default();
    let all = job(&modex, 2, &[]);
    modex.put(1, &modex_key(0), &connect::not_open("the port is in use"));
    let Reach::No(why) = all[0].reach(1) else {
        panic!("a peer without transport is reached");
    };
    assert_eq!(why, "its transport tcp is not open: the port is in use");
    let long = connect::not_open(&"x".repeat(10_000));
    assert!(long.len() < 500, "{}", long.len());
}

#[test]
fn a_process_that_has_left_can_be_met_again() {
    let all = job(&TestModex::default(), 2, &[]);
    talk(&all[0], &all[1]);
    std::thread::scope(|s| {
        let mut both = all.into_iter();
        let (one, other) = (both.next().unwrap(), both.next().unwrap());
        let leave = |btl: Tcp| {
            btl.shutdown();
            btl
        };
        let (one, other) = (s.spawn(move || leave(one)), s.spawn(move || leave(other)));
        let (one, other) = (one.join().unwrap(), other.join().unwrap());
        let listens = |btl: &Tcp| TcpStream::connect(("127.0.0.1", btl.ours.port)).is_ok();
        assert!(!listens(&one) && !listens(&other), "they have left");
        talk(&one, &other);
        assert!(listens(&one) && listens(&other), "they are back");
    });
}

#[test]
fn the_disconnect_message_of_an_abandoned_peer_is_not_awaited() {
    let all = job(&TestModex::default(), 3, &[]);
    let [a, dead, alive] = &all[..] else {
        unreachable!()
    };
    talk(a, dead);
    talk(a, alive);
    a.abandon(dead.me);
    a.send_goodbye();
    assert!(a.awaits_disconnect(), "rank 2 is alive");
    alive.send_goodbye();
    until("the message of rank 2", || {
        a.progress(&Nothing);
        alive.progress(&Nothing);
        !a.awaits_disconnect()
    });
    assert_eq!(a.parting.borrow().len(), 1, "the connection to rank 1");
}
