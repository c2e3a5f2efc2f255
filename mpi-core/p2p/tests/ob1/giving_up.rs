//! Tests of abandoned receives, cancelled sends, and receives with too short buffers.

use super::{content, recv_bytes, scratch};
use mpi_core::pml::Mode;
use mpi_core::pml::{Config, Sent};
use mpi_core::testing::{Job, eventually, until_set};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_message_that_is_too_long_says_so_and_fills_the_buffer() {
    for (btl, len) in [
        ("", 12),
        ("", 100_000),
        ("self,tcp", 12),
        ("self,tcp", 40_000),
    ] {
        Job::of(2).with("btl", btl).run(|engine| {
            let world = engine.world().expect("a world");
            if engine.me() == 0 {
                let data = scratch(len);
                data.all().unpack_at(0, &content(3, len));
                world
                    .p2p()
                    .send(data.all().as_send(), 1, 4, Mode::Standard)
                    .expect("sent");
                return;
            }
            let mut target = [0; 5];
            let error = recv_bytes(&world, &mut target, 0, 4).expect_err("no room");
            let text = error.to_string();
            let said = format!(
                "the message from rank 0 to rank 1 with tag 4 has {len} bytes, but the receive buffer has 5"
            );
            assert_eq!(text, said);
            assert_eq!(target, content(3, 5)[..]);
        });
    }
}

#[test]
fn a_receive_that_is_given_up_while_the_sender_copies_is_not_written_to_afterwards() {
    const LEN: usize = 4 << 20;
    let pml = Config {
        assist_min: 0,
        ..Config::default()
    };
    let job = Job { pml, ..Job::of(2) };
    job.run(|engine| {
        let world = engine.world().expect("a world");
        for round in 0..20 {
            let buffer = scratch(LEN);
            if engine.me() == 0 {
                buffer.all().unpack_at(0, &vec![1; LEN]);
                let sent = world
                    .p2p()
                    .send(buffer.all().as_send(), 1, round, Mode::Standard);
                sent.expect("sent");
                continue;
            }
            let req = world.p2p().irecv(buffer.all(), 0, round).expect("posted");
            eventually(engine, "the message", || {
                engine.pml().incoming_from(&req).is_some() || req.is_complete()
            });
            if req.is_complete() {
                engine.wait(&req).expect("received");
                continue;
            }
            engine.pml().termination().abandon(&req);
            buffer.all().unpack_at(0, &vec![2; LEN]);
            std::thread::yield_now();
            assert!(buffer.all().as_send().to_vec().iter().all(|&b| b == 2));
        }
    });
}

/// An abandoned receive whose sender handles ASSIST only afterwards: the sender copies nothing and completes.
#[test]
fn a_sender_that_comes_after_its_receive_was_given_up_is_released() {
    const LEN: usize = 4 << 20;
    let pml = Config {
        assist_min: 0,
        ..Config::default()
    };
    let (posted, given_up) = (AtomicBool::new(false), AtomicBool::new(false));
    Job { pml, ..Job::of(2) }.run(|engine| {
        let world = engine.world().expect("a world");
        let buffer = scratch(LEN);
        if engine.me() == 0 {
            // Sends only after the receive is posted: a receive that matches an unexpected message may complete immediately,
            // and this test abandons a receive whose message is still being copied.
            until_set(&posted);
            let sent = world
                .p2p()
                .isend(buffer.all().as_send(), 1, 5, Mode::Standard);
            let Ok(Sent::Pending(sent)) = sent else {
                panic!("4 MiB were sent at once");
            };
            until_set(&given_up);
            eventually(engine, "the end of the send", || sent.is_complete());
            engine.wait(&sent).expect("sent");
            return;
        }
        let req = world.p2p().irecv(buffer.all(), 0, 5).expect("posted");
        posted.store(true, Ordering::Release);
        let mut begun = false;
        while !begun {
            // Polls one time only: a receiver that waits would copy the rest of the message itself.
            engine.progress();
            begun = engine.pml().incoming_from(&req).is_some();
            assert!(
                !req.is_complete(),
                "the receiver has copied all of it alone"
            );
        }
        engine.pml().termination().abandon(&req);
        given_up.store(true, Ordering::Release);
    });
}

/// Of two messages with the same envelope the first is cancelled, and the second is received.
///
/// No rank posts a receive before the reply to the cancellation: a posted receive would have matched the first message.
#[test]
fn a_send_without_a_matching_receive_can_be_cancelled() {
    let cases = [
        (Mode::Synchronous, 0),
        (Mode::Synchronous, 40),
        (Mode::Synchronous, 100_000),
        (Mode::Standard, 4 << 20),
    ];
    for (btl, (mode, len)) in ["", "self,tcp"]
        .into_iter()
        .flat_map(|btl| cases.map(|c| (btl, c)))
    {
        let cancelled = AtomicBool::new(false);
        Job::of(2).with("btl", btl).run(|engine| {
            let world = engine.world().expect("a world");
            let receive_the_second = || {
                let mut target = vec![0; len];
                let status = recv_bytes(&world, &mut target, 0, 4).expect("received");
                assert_eq!((status.bytes as usize, target), (len, content(2, len)));
            };
            if engine.me() == 1 {
                eventually(engine, "the cancellation", || {
                    cancelled.load(Ordering::Acquire)
                });
                receive_the_second();
                return;
            }
            let data = scratch(len);
            for to in [0, 1] {
                data.all().unpack_at(0, &content(1, len));
                let sent = world.p2p().isend(data.all().as_send(), to, 4, mode);
                let Sent::Pending(first) = sent.expect("sent") else {
                    panic!("{len} bytes went without a receive");
                };
                assert!(engine.pml().cancel_send(&first));
                assert!(engine.wait(&first).expect("an end").cancelled);
                cancelled.store(to == 1, Ordering::Release);
                data.all().unpack_at(0, &content(2, len));
                let second = world
                    .p2p()
                    .isend(data.all().as_send(), to, 4, mode)
                    .expect("sent");
                if to == 0 {
                    receive_the_second();
                }
                if let Sent::Pending(second) = second {
                    assert!(!engine.wait(&second).expect("an end").cancelled);
                }
            }
        });
    }
}

/// One of several messages with the same envelope is cancelled. The others arrive in the order in which they were sent.
#[test]
fn of_several_sends_under_one_name_the_cancelled_one_is_taken_back() {
    const COUNT: usize = 4;
    for (btl, len, gone) in ["", "self,tcp"]
        .into_iter()
        .flat_map(|btl| [40, 100_000].map(|len| (btl, len)))
        .flat_map(|(btl, len)| (0..COUNT).map(move |gone| (btl, len, gone)))
    {
        let cancelled = AtomicBool::new(false);
        Job::of(2).with("btl", btl).run(|engine| {
            let world = engine.world().expect("a world");
            if engine.me() == 1 {
                eventually(engine, "the cancellation", || {
                    cancelled.load(Ordering::Acquire)
                });
                for left in (0..COUNT).filter(|which| *which != gone) {
                    let mut target = vec![0; len];
                    recv_bytes(&world, &mut target, 0, 4).expect("received");
                    assert_eq!(target, content(left, len), "without {gone}");
                }
                return;
            }
            let data = [(); COUNT].map(|()| scratch(len));
            let reqs: Vec<_> = data
                .iter()
                .zip(0..)
                .map(|(data, which)| {
                    data.all().unpack_at(0, &content(which, len));
                    let sent = world
                        .p2p()
                        .isend(data.all().as_send(), 1, 4, Mode::Synchronous);
                    match sent.expect("sent") {
                        Sent::Pending(req) => req,
                        Sent::Done => panic!("{len} bytes went without a receive"),
                    }
                })
                .collect();
            assert!(engine.pml().cancel_send(&reqs[gone]));
            assert!(engine.wait(&reqs[gone]).expect("an end").cancelled);
            cancelled.store(true, Ordering::Release);
            for (which, req) in reqs.iter().enumerate().filter(|(which, _)| *which != gone) {
                let status = engine.wait(req).expect("an end");
                assert!(!status.cancelled, "{which} for {gone}");
            }
        });
    }
}

#[test]
fn a_send_that_a_receive_has_met_is_not_taken_back() {
    let received = AtomicBool::new(false);
    Job::of(2).run(|engine| {
        let world = engine.world().expect("a world");
        if engine.me() == 1 {
            let mut target = [0; 40];
            recv_bytes(&world, &mut target, 0, 4).expect("received");
            assert_eq!(target, content(1, 40)[..]);
            received.store(true, Ordering::Release);
            return;
        }
        let data = scratch(40);
        data.all().unpack_at(0, &content(1, 40));
        let sent = world
            .p2p()
            .isend(data.all().as_send(), 1, 4, Mode::Synchronous)
            .expect("sent");
        let Sent::Pending(req) = sent else {
            panic!("it went without a receive");
        };
        until_set(&received);
        assert!(engine.pml().cancel_send(&req));
        assert!(!engine.wait(&req).expect("an end").cancelled);
    });
}

#[test]
fn a_send_that_has_not_even_been_announced_is_taken_out_of_the_queue() {
    let cancelled = AtomicBool::new(false);
    Job::of(2).run(|engine| {
        let world = engine.world().expect("a world");
        let data = scratch(4000);
        if engine.me() == 1 {
            until_set(&cancelled);
            let mut seen = 0;
            loop {
                let mut target = [0; 4000];
                match recv_bytes(&world, &mut target, 0, 4)
                    .expect("received")
                    .bytes
                {
                    0 => break,
                    _ => seen += 1,
                }
            }
            let mut target = [0; 8];
            recv_bytes(&world, &mut target, 0, 5).expect("received");
            assert_eq!(u64::from_ne_bytes(target), seen);
            return;
        }
        let mut pending = Vec::new();
        let mut count = 0_u64;
        // No rank receives, so the transport becomes full.
        while pending.is_empty() {
            count += 1;
            match world
                .p2p()
                .isend(data.all().as_send(), 1, 4, Mode::Standard)
                .expect("sent")
            {
                Sent::Done => {}
                Sent::Pending(req) => {
                    // If the credit is spent, the next poll passes a message to the transport.
                    // A message that is still pending after the poll waits for space.
                    engine.progress();
                    pending.extend(Some(req).filter(|req| !req.is_complete()));
                }
            }
        }
        let sent = world
            .p2p()
            .isend(data.all().as_send(), 1, 4, Mode::Standard)
            .expect("sent");
        let Sent::Pending(req) = sent else {
            panic!("it overtook one that waits");
        };
        assert!(engine.pml().cancel_send(&req));
        assert!(req.is_complete(), "it was not in the queue");
        assert!(engine.wait(&req).expect("an end").cancelled);
        cancelled.store(true, Ordering::Release);
        for req in pending {
            assert!(!engine.wait(&req).expect("an end").cancelled);
        }
        let last = scratch(0);
        world
            .p2p()
            .send(last.all().as_send(), 1, 4, Mode::Standard)
            .expect("sent");
        let told = scratch(8);
        told.all().unpack_at(0, &count.to_ne_bytes());
        world
            .p2p()
            .send(told.all().as_send(), 1, 5, Mode::Standard)
            .expect("sent");
    });
}
