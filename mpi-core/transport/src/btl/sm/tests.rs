//! Tests of the transport `sm`: marks, sleeping, full rings, caches, and the death of a process.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use mpi_base::caches::Caches;
use mpi_base::fdpass::{self, Giver, Key};
use mpi_base::node::{Node, Sizes};
use mpi_base::param::{Params, Source};
use mpi_base::wait::{WaitPolicy, Waiter};

use super::*;
use crate::btl::suite::{
    Claims, Expect, Keep, Net, Nothing, endpoint, mixed, pattern, send_numbered,
};
use crate::btl::{BUILT_IN, GetError, OpenContext, Region, open_all};

/// Opens the transports of a node of `nlocal` ranks. The job ranks are the local ranks plus ten.
fn net(nlocal: u32, sizes: Sizes, params: &Params) -> Net {
    let fd = Node::create_with(nlocal, sizes).unwrap();
    let procs: Vec<ProcId> = (10..10 + nlocal).collect();
    let btls = (0..nlocal)
        .map(|rank| {
            let node = Node::attach(&fd, rank).unwrap();
            let context = OpenContext {
                me: procs[rank as usize],
                size: 10 + nlocal,
                modex: None,
                node: Some((node, procs.clone())),
                params,
            };
            super::open(&context).unwrap().remove(0)
        })
        .collect();
    Net {
        btls,
        procs,
        pair: (0, 1),
    }
}

fn plain(nlocal: u32) -> Net {
    net(nlocal, Sizes::for_ranks(nlocal), &Params::default())
}

/// Returns small sizes, so rings often wrap around and become full.
fn tiny() -> Sizes {
    Sizes {
        ring_cells: 8,
        ring_bytes: 1024,
        ring_span: 1024,
        frags: 2,
        frag_len: 4096,
        arena_len: 4096,
    }
}

mod with_usual_sizes {
    crate::btl_suite!(|| super::plain(2));
}

mod with_tiny_rings {
    crate::btl_suite!(|| super::net(2, super::tiny(), &Default::default()));
}

mod with_shallow_rings_of_many_ranks {
    crate::btl_suite!(|| super::plain(40));
}

/// Runs each rank as a thread. All ranks except rank 0 send `count` numbered messages to rank 0 and sleep while the ring is full.
fn all_to_one(net: Net, fds: Vec<Node>, count: u64) {
    let max = net.btls[0].info().limits.max_send;
    let len = mixed(max);
    let procs = net.procs;
    let mut btls = net.btls.into_iter();
    let mut nodes = fds.into_iter();
    let (first, first_node) = (btls.next().unwrap(), nodes.next().unwrap());
    let senders = procs.len() - 1;
    let failed = AtomicBool::new(false);
    std::thread::scope(|s| {
        for (btl, node) in btls.zip(nodes) {
            let (to, claims) = (endpoint(&*btl, procs[0]), Claims(&failed));
            s.spawn(move || {
                let mut waiter = Waiter::new(WaitPolicy::OVERSUBSCRIBED);
                for n in 0..count {
                    while let Err(error) = send_numbered(&*btl, to, n, len(n)) {
                        assert_eq!(error, SendError::WouldBlock);
                        claims.hold();
                        waiter.pause(node.my_inbox().doorbell(), || btl.pending());
                    }
                    waiter.reset();
                }
            });
        }
        let sink = PerSender {
            expect: procs[1..]
                .iter()
                .map(|&from| Expect {
                    from,
                    next: Cell::new(0),
                    len,
                })
                .collect(),
        };
        let mut waiter = Waiter::new(WaitPolicy::OVERSUBSCRIBED);
        let _claims = Claims(&failed);
        let mut got = 0;
        let deadline = Instant::now() + Duration::from_secs(60);
        while got < senders as u64 * count {
            match first.progress(&sink) {
                0 => waiter.pause(first_node.my_inbox().doorbell(), || first.pending()),
                n => {
                    got += n as u64;
                    waiter.reset();
                }
            }
            assert!(Instant::now() < deadline, "only {got} messages came");
        }
        assert_eq!(first.progress(&Nothing), 0);
    });
}

struct PerSender<F: Fn(u64) -> usize> {
    expect: Vec<Expect<F>>,
}

impl<F: Fn(u64) -> usize> Sink for PerSender<F> {
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        self.expect[from as usize - 11].deliver(from, am, header, payload);
    }
}

fn net_and_nodes(nlocal: u32, sizes: Sizes) -> (Net, Vec<Node>) {
    net_in(&Node::create_with(nlocal, sizes).unwrap(), nlocal)
}

/// Opens the transports of the `nlocal` ranks of a node with the memory `fd`.
fn net_in(fd: &OwnedFd, nlocal: u32) -> (Net, Vec<Node>) {
    let procs: Vec<ProcId> = (10..10 + nlocal).collect();
    let nodes: Vec<_> = (0..nlocal).map(|r| Node::attach(fd, r).unwrap()).collect();
    let params = Params::default();
    let btls = nodes
        .iter()
        .zip(&procs)
        .map(|(node, &me)| {
            super::open(&OpenContext {
                me,
                size: procs.len() as u32,
                node: Some((node.clone(), procs.clone())),
                params: &params,
                modex: None,
            })
            .unwrap()
            .remove(0)
        })
        .collect();
    let net = Net {
        btls,
        procs,
        pair: (1, 0),
    };
    (net, nodes)
}

#[test]
fn a_receiver_has_work_until_it_has_released_the_space_of_what_it_received() {
    let net = plain(2);
    let (from, to, sink) = (&*net.btls[0], &*net.btls[1], Keep::default());
    assert!(!to.has_work(), "nothing was sent");
    send_numbered(from, endpoint(from, net.procs[1]), 0, 300).unwrap();
    assert!(to.has_work(), "a message has arrived");
    assert_eq!(to.progress(&sink), 1);
    assert!(to.has_work(), "the sender cannot use the space again yet");
    assert_eq!(to.progress(&sink), 0);
    assert!(!to.has_work(), "nothing is left to do");
}

#[test]
fn few_senders_to_one_receiver_all_arrive() {
    let (net, nodes) = net_and_nodes(5, Sizes::for_ranks(5));
    all_to_one(net, nodes, 2000);
}

#[test]
fn more_senders_than_are_scanned_all_arrive() {
    let (net, nodes) = net_and_nodes(50, Sizes::for_ranks(50));
    all_to_one(net, nodes, 200);
}

#[test]
fn sixty_ranks_beyond_one_word_of_marks_all_arrive_through_tiny_rings() {
    let (net, nodes) = net_and_nodes(70, tiny());
    all_to_one(net, nodes, 60);
}

#[test]
fn whoever_waits_looks_whether_he_has_it_after_so_many_bytes() {
    let net = plain(2);
    let (sender, receiver) = (&net.btls[1], &net.btls[0]);
    let to = endpoint(&**sender, net.procs[0]);
    let long = super::incoming::TURN_BYTES / 8;
    for n in 0..17 {
        assert_eq!(send_numbered(&**sender, to, n, long), Ok(()));
    }
    let sink = Expect {
        from: net.procs[1],
        next: Cell::new(0),
        len: |_| long,
    };
    let rounds = [0; 4].map(|_| receiver.progress(&sink));
    assert_eq!(rounds, [8, 8, 1, 0]);
}

#[test]
fn what_is_alone_follows_in_four_parts_and_a_stream_in_two() {
    let net = plain(2);
    let sender = &net.btls[0];
    let to = endpoint(&**sender, net.procs[1]);
    let pieces = |packed| {
        sender
            .capabilities()
            .eager_fragment(&sender.info().limits, to, 64 << 10, packed)
            .unwrap()
            >> 10
    };
    // In a ping-pong, a poll is between two sends.
    sender.progress(&Nothing);
    assert_eq!((pieces(false), pieces(true)), (16, 16));
    assert_eq!(send_numbered(&**sender, to, 0, 8), Ok(()));
    assert_eq!((pieces(false), pieces(true)), (32, 16));
    sender.progress(&Nothing);
    assert_eq!(pieces(false), 16);
    assert_eq!(
        sender
            .capabilities()
            .eager_fragment(&sender.info().limits, to, 1 << 20, false),
        None
    );
}

#[test]
fn where_only_the_last_cache_is_shared_a_lone_message_follows_in_short_parts() {
    let net = net(2, Sizes::for_caches(2, Some(APART)), &Params::default());
    let sender = &net.btls[0];
    let to = endpoint(&**sender, net.procs[1]);
    let pieces = |bytes: u64| {
        sender
            .capabilities()
            .eager_fragment(&sender.info().limits, to, bytes << 10, false)
            .unwrap()
            >> 10
    };
    sender.progress(&Nothing);
    assert_eq!([16, 64, 128].map(pieces), [8, 8, 16]);
    // In a stream the fragments are longer, because each fragment needs a notification.
    assert_eq!(send_numbered(&**sender, to, 0, 8), Ok(()));
    assert_eq!(pieces(64), 32);
}

#[test]
fn a_refused_sender_is_rung_when_there_is_room() {
    let (net, nodes) = net_and_nodes(2, tiny());
    let (from, to) = (&net.btls[1], &net.btls[0]);
    let end = endpoint(&**from, net.procs[0]);
    for len in [8, 200, 4000] {
        let mut sent = 0;
        while send_numbered(&**from, end, sent, len).is_ok() {
            sent += 1;
        }
        let sink = Keep::default();
        let deadline = Instant::now() + Duration::from_secs(20);
        // `pending` finds nothing, so the sender will sleep, and it has requested a doorbell.
        let doorbell = nodes[1].my_inbox().doorbell();
        assert!(!from.pending());
        doorbell.sleep(Duration::from_micros(1), || {
            to.progress(&sink);
            to.progress(&sink);
            // The receiver has rung the doorbell, so the flag for a sleeping process is cleared.
            assert_eq!(doorbell.wishes(), 0);
            from.pending()
        });
        while send_numbered(&**from, end, sent, len).is_err() {
            to.progress(&sink);
            assert!(Instant::now() < deadline);
        }
        while to.progress(&sink) > 0 {}
    }
}

#[test]
fn sending_to_a_rank_that_left_says_so() {
    let (mut net, mut nodes) = net_and_nodes(2, Sizes::for_ranks(2));
    net.btls.remove(0);
    nodes.remove(0);
    let from = &net.btls[0];
    let result = send_numbered(&**from, endpoint(&**from, 10), 0, 8);
    assert_eq!(result, Err(SendError::PeerGone));
}

#[test]
fn parameters_set_the_limits_but_not_beyond_what_a_ring_or_a_fragment_takes() {
    let mut params = Params::default();
    params.set("btl_sm_eager_limit", "100", Source::Environment);
    params.set("btl_sm_max_send_size", "1G", Source::Environment);
    params.set("btl_sm_single_copy", "no", Source::Environment);
    for (ranks, longest) in [(2, 64 << 10), (40, 32 << 10)] {
        let net = net(ranks, Sizes::for_ranks(ranks), &params);
        let limits = net.btls[0].info().limits;
        assert_eq!((limits.eager, limits.max_send), (100, longest));
        assert!(net.btls[0].capabilities().single_copy.is_none());
    }
}

#[test]
fn fragments_of_streams_and_of_long_messages_are_the_longest() {
    let net = plain(2);
    let kib = |bytes: u64, packed, alone| {
        let (limits, able) = (net.btls[0].info().limits, net.btls[0].capabilities());
        able.fragment(&limits, bytes << 10, packed, alone) >> 10
    };
    let lone = [32, 64, 512, 1 << 10, 4 << 10].map(|bytes| kib(bytes, false, true));
    assert_eq!(lone, [16, 32, 32, 64, 64]);
    let stream = [32, 64, 128, 4 << 10].map(|bytes| kib(bytes, false, false));
    assert_eq!(stream, [16, 32, 64, 64]);
    let packed = [16, 64, 4 << 10].map(|bytes| kib(bytes, true, false));
    assert_eq!(packed, [8, 16, 16]);
}

/// A sink that accepts all messages without checks.
struct Anything;

impl Sink for Anything {
    fn deliver(&self, _: ProcId, _: Am, _: Header, _: &[u8]) {}
}

#[test]
fn a_receiver_of_very_much_has_the_long_part_of_the_ring_tried() {
    let net = plain(2);
    let (sender, receiver) = (&net.btls[1], &net.btls[0]);
    let to = endpoint(&**sender, net.procs[0]);
    let data = [7; super::incoming::LONG];
    let ring = Sizes::for_ranks(2).ring_bytes as usize;
    // Returns the number of bytes that fit into the ring before any are consumed.
    let fit = || {
        let fits = |_: &usize| sender.send(to, 1, [0; 2], Payload::Bytes(&data)).is_ok();
        let fitted = (0..).take_while(fits).count();
        while receiver.progress(&Anything) > 0 {}
        fitted * data.len()
    };
    let mut most = 0;
    for round in 0..5_000 {
        let fitted = fit();
        most = most.max(fitted);
        match round {
            0..100 => assert_eq!(fitted, super::span::SHORT),
            _ if most > super::span::SHORT => return assert_eq!(most, ring),
            _ => {}
        }
    }
    panic!("nothing but {most} bytes was ever tried");
}

/// The caches of two cores that share only their last-level cache.
const APART: Caches = Caches {
    level_2: 1 << 20,
    level_2_is_private: true,
    level_3: Some(32 << 20),
};

#[test]
fn a_span_that_is_cycled_through_is_populated_in_steps_and_the_rest_by_a_waiting_rank() {
    let sizes = Sizes::for_caches(2, Some(APART));
    let fd = Node::create_with(2, sizes).unwrap();
    let (net, _nodes) = net_in(&fd, 2);
    let kib = || usize::try_from(rustix::fs::fstat(&fd).unwrap().st_blocks / 2).unwrap();
    let populated = super::FIRST_PAGES >> 10;
    let (sender, receiver) = (&net.btls[1], &net.btls[0]);
    let to = endpoint(&**sender, net.procs[0]);
    let idle = |polls: u32| {
        for _ in 0..polls {
            assert_eq!(sender.progress(&Nothing), 0);
        }
    };
    // A ring that carries no message takes no memory, no matter how long its ranks wait.
    let before = kib();
    idle(1_000 * super::IDLE);
    assert_eq!(kib(), before);
    assert_eq!(send_numbered(&**sender, to, 0, 8 << 10), Ok(()));
    while receiver.progress(&Anything) > 0 {}
    let first = kib() - before;
    assert!(first <= 16, "the first message took {first} KiB");
    idle(super::IDLE);
    let step = kib() - before - first;
    assert!((1..=32).contains(&step), "one step took {step} KiB");
    idle(1_000 * super::IDLE);
    let all = kib() - before;
    let span = (sizes.ring_span as usize >> 10) - populated;
    assert!(
        (span..span + 64).contains(&all),
        "{all} KiB for a span of {span}"
    );
}

#[test]
fn the_selection_decides_and_says_why_the_rest_is_missing() {
    let names = |context: &OpenContext<'_>| {
        let opened = open_all(context).unwrap();
        let names: Vec<_> = opened.btls.iter().map(|btl| btl.info().name).collect();
        (names, opened.refused)
    };
    let mut params = Params::default();
    let (open, refused) = names(&OpenContext {
        me: 0,
        size: 1,
        node: None,
        params: &params,
        modex: None,
    });
    assert_eq!(open, ["self"]);
    assert_eq!(
        refused,
        [
            ("sm", OpenError::Alone),
            ("ucx", OpenError::NotNeeded),
            ("ofi", OpenError::NotNeeded),
            ("tcp", OpenError::NotNeeded)
        ]
    );
    params.set("btl", "sm", Source::Environment);
    let fd = Node::create(1).unwrap();
    let context = OpenContext {
        me: 0,
        size: 1,
        node: Some((Node::attach(&fd, 0).unwrap(), vec![0])),
        params: &params,
        modex: None,
    };
    let (open, refused) = names(&context);
    assert_eq!(open, ["sm"]);
    let deselected = OpenError::Deselected;
    let others = ["self", "ucx", "ofi", "tcp"];
    assert_eq!(refused, others.map(|name| (name, deselected.clone())));
    params.set("btl", "sm,smoke", Source::Environment);
    let error = open_all(&OpenContext {
        me: 0,
        size: 1,
        node: None,
        params: &params,
        modex: None,
    })
    .err()
    .unwrap();
    assert!(error.to_string().contains("smoke"));
    assert_eq!(BUILT_IN.len(), 5);
}

const CHILD: &str = "PORTCULLIS_TEST_SM_CHILD";

/// The other rank is a separate process: this test binary, started again. It receives the memory's descriptor through an abstract socket.
#[test]
fn two_processes_share_rings_and_read_each_others_memory() {
    let name = |key: &Key| format!("portcullis-test-{}", &key.to_hex()[..16]);
    let deadline = Instant::now() + Duration::from_secs(30);
    let child_key = std::env::var(CHILD)
        .ok()
        .and_then(|hex| Key::from_hex(&hex));
    let me = u32::from(child_key.is_some());
    let mut child = None;
    let fd = match child_key {
        Some(key) => fdpass::take(&name(&key), &key, deadline).unwrap(),
        None => {
            let key = Key::random().unwrap();
            let giver = Giver::bind(&name(&key)).unwrap();
            let test = "btl::sm::tests::two_processes_share_rings_and_read_each_others_memory";
            child = Some(
                Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", test])
                    .env(CHILD, key.to_hex())
                    .stdout(Stdio::null())
                    .spawn()
                    .unwrap(),
            );
            let fd = Node::create(2).unwrap();
            giver.give(fd.as_fd(), &key, 1, deadline).unwrap();
            fd
        }
    };
    let node = Node::attach(&fd, me).unwrap();
    let params = Params::default();
    let btl = super::open(&OpenContext {
        me,
        size: 2,
        node: Some((node.clone(), vec![0, 1])),
        params: &params,
        modex: None,
    })
    .unwrap()
    .remove(0);
    let peer = endpoint(&*btl, 1 - me);
    let mut waiter = Waiter::new(WaitPolicy::DEDICATED);
    let mut wait = |sink: &dyn Sink, done: &dyn Fn() -> bool| {
        loop {
            let delivered = btl.progress(sink);
            if done() {
                return;
            }
            match delivered {
                0 => waiter.pause(node.my_inbox().doorbell(), || btl.pending()),
                _ => waiter.reset(),
            }
            assert!(Instant::now() < deadline, "the other process is silent");
        }
    };
    let len = mixed(btl.info().limits.max_send);
    // One poll may deliver the last message of the stream together with the next message of the other process.
    let sink = ThenKeep {
        count: 3000,
        stream: Expect {
            from: 1 - me,
            next: Cell::new(0),
            len,
        },
        after: Keep::default(),
    };
    for n in 0..sink.count {
        while send_numbered(&*btl, peer, n, len(n)).is_err() {
            // Space can become free without an event, so every second poll tries to send again.
            let looks = Cell::new(0);
            wait(&sink, &|| looks.replace(looks.get() + 1) > 0);
        }
    }
    wait(&sink, &|| sink.stream.next.get() == sink.count);

    // Each process sends the address of a pattern, reads the other process's pattern, and confirms the read.
    let told = &sink.after;
    let mine = pattern(me.into(), 100_000);
    let at = mine.as_ptr().expose_provenance() as u64;
    btl.send(peer, 1, [at, 0], Payload::Bytes(&[])).unwrap();
    wait(&sink, &|| told.len() >= 1);
    let theirs = told.0.borrow()[0].0[0];
    let mut got = vec![0; 100_000];
    let copy = btl.capabilities().single_copy.unwrap();
    let region = Region {
        address: theirs,
        len: got.len() as u64,
    };
    let target = Cell::from_mut(&mut got[..]).as_slice_of_cells();
    match copy.get(peer, &[region], &[target]) {
        Ok(()) => assert!(got == pattern(u64::from(1 - me), 100_000)),
        Err(error) => assert_eq!(error, GetError::Forbidden),
    }
    btl.send(peer, 2, [0, 0], Payload::Bytes(&[])).unwrap();
    wait(&sink, &|| told.len() >= 2);
    drop(mine);
    if let Some(mut child) = child {
        assert!(child.wait().unwrap().success());
    }
}

/// A sink that expects a stream of `count` messages and records the messages after it.
struct ThenKeep<F: Fn(u64) -> usize> {
    count: u64,
    stream: Expect<F>,
    after: Keep,
}

impl<F: Fn(u64) -> usize> Sink for ThenKeep<F> {
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        if self.stream.next.get() < self.count {
            self.stream.deliver(from, am, header, payload);
        } else {
            self.after.deliver(from, am, header, payload);
        }
    }
}
