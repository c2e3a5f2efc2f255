//! `shm` joins the claims of barriers, with both of its gates, and takes its memory back.

use super::Shm;
use super::gate::Kind;
use crate::coll::suite::barrier::{self, Form};
use crate::coll::{Brief, Call, CallId, CallSet, Component, Cx, Module, Refusal, Running};
use crate::comm::Comm;
use crate::datatype::{Datatype, Named, RecvBuf, RecvBytes, Scratch, SendBuf};
use crate::engine::testing::{Job, eventually};
use crate::op::{DenseOp, Op, Predefined};
use mpi_base::param::Source;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A job whose world passes this gate, whatever this machine has cores.
fn job(ranks: u32, kind: Kind) -> Job {
    let mut job = Job::of(ranks);
    let gate = match kind {
        Kind::Counter => "counter",
        Kind::Flags => "flags",
    };
    job.params.set("coll_shm_gate", gate, Source::Environment);
    job
}

/// The same where long data always go one way, if they can.
fn job_with(ranks: u32, kind: Kind, way: &str) -> Job {
    job(ranks, kind).with("coll_shm_long_way", way)
}

const GATES: [Kind; 2] = [Kind::Counter, Kind::Flags];
const FORMS: [Form; 3] = [Form::Blocking, Form::Nonblocking, Form::Mixed];

#[test]
fn nobody_leaves_before_all_have_entered() {
    for kind in GATES {
        for ranks in [2, 3, 5, 8, 17] {
            for form in FORMS {
                barrier::nobody_leaves_before_all_have_entered(&job(ranks, kind), "shm", form, 60);
            }
        }
    }
}

#[test]
fn a_late_rank_holds_everyone() {
    for kind in GATES {
        for form in FORMS {
            barrier::a_late_rank_holds_everyone(&job(4, kind), "shm", form);
        }
    }
}

#[test]
fn barriers_in_flight_end_in_order() {
    for kind in GATES {
        for ranks in [2, 7] {
            barrier::barriers_in_flight_end_in_order(&job(ranks, kind), "shm");
        }
    }
}

#[test]
fn a_barrier_does_not_stop_messages() {
    for kind in GATES {
        for ranks in [2, 5] {
            for form in FORMS {
                barrier::a_barrier_does_not_stop_messages(&job(ranks, kind), "shm", form);
            }
        }
    }
}

#[test]
fn communicators_come_and_go_and_do_not_meet() {
    for kind in GATES {
        barrier::communicators_do_not_meet(&job(5, kind), 40);
    }
}

/// A communicator gets the memory of the one before it, whatever that one was used for.
#[test]
fn what_one_communicator_left_does_not_reach_the_next() {
    const RANKS: u32 = 3;
    for kind in GATES {
        for form in [None, Some(Form::Blocking), Some(Form::Nonblocking)] {
            let entered = AtomicUsize::new(0);
            job(RANKS, kind).run(|engine| {
                let world = engine.world().expect("a world");
                for round in 0..6 {
                    let twin = engine.block_on(world.dup()).expect("a duplicate");
                    if world.rank() == round % RANKS {
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                    entered.fetch_add(1, Ordering::SeqCst);
                    match form {
                        None => barrier::pass(&twin, Form::Blocking, round),
                        Some(form) => sum_round(&twin, form, round),
                    }
                    let all = (round + 1) * RANKS;
                    assert!(entered.load(Ordering::SeqCst) >= all as usize);
                    drop(twin);
                    engine.block_on(world.fence()).expect("a fence");
                }
            });
        }
    }
}

/// The component, whose place one rank does not take; it tells where that was.
struct Homeless {
    shm: Shm,
    places: Rc<RefCell<Vec<Vec<u8>>>>,
}

struct HomelessModule {
    shm: Rc<dyn Module>,
    places: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl Component for Homeless {
    fn name(&self) -> &str {
        self.shm.name()
    }
    fn priority(&self) -> i32 {
        self.shm.priority()
    }
    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        Ok(Rc::new(HomelessModule {
            shm: self.shm.query(comm)?,
            places: self.places.clone(),
        }))
    }
}

impl Module for HomelessModule {
    fn serves(&self) -> CallSet {
        self.shm.serves()
    }
    fn give(&self, comm: &Comm, letter: &mut Vec<u8>) {
        self.shm.give(comm, letter);
    }
    fn take(&self, comm: &Comm, letter: &[u8]) -> Result<(), Refusal> {
        self.places.borrow_mut().push(letter.to_vec());
        match comm.rank() {
            1 => Err(Refusal("there is no room".into())),
            _ => self.shm.take(comm, letter),
        }
    }
    fn withdraw(&self) {
        self.shm.withdraw();
    }
    fn start(&self, cx: Cx, call: Call) -> Running {
        self.shm.start(cx, call)
    }
}

thread_local! {
    /// What rank 0 of a thread's job has told of places.
    static PLACES: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
}

/// A block that was not given back would make the next one lie elsewhere.
#[test]
fn a_place_that_some_member_does_not_take_is_free_again() {
    for kind in GATES {
        let coll = || -> Vec<Box<dyn Component>> {
            let mut all = crate::coll::built_in();
            all.retain(|component| component.name() != "shm");
            all.push(Box::new(Homeless {
                shm: Shm::default(),
                places: PLACES.with(Rc::clone),
            }));
            all
        };
        let job = Job {
            coll: Box::new(coll),
            ..job(3, kind)
        };
        let told = job.run(|engine| {
            let world = engine.world().expect("a world");
            for _ in 0..5 {
                let twin = engine.block_on(world.dup()).expect("a duplicate");
                twin.collective(Call::Barrier).expect("a barrier");
                let refused = twin.coll().expect("a table").refused();
                let why = refused.iter().find(|(name, _)| **name == *"shm");
                assert_eq!(why.expect("a refusal").1.0, "rank 1: there is no room");
            }
            PLACES.with(Rc::clone).take()
        });
        for told in told {
            assert_eq!(told.len(), 6);
            assert!(!told[0].is_empty() && told.iter().all(|letter| *letter == told[0]));
        }
    }
}

/// Adds the number of the round over all ranks.
fn sum_round(comm: &Comm, form: Form, round: u32) {
    let data = Scratch::new(1, &Named::UINT64.into()).expect("room").all();
    let number = u64::from(round) + 1;
    data.clone().unpack_at(0, &number.to_ne_bytes());
    let call = Call::Allreduce {
        send: None,
        recv: data.clone(),
        op: Predefined::Sum.into(),
    };
    match form {
        Form::Nonblocking => {
            let request = comm.icollective(call).expect("a sum");
            comm.engine().wait(&request).expect("the end of a sum");
        }
        _ => comm.collective(call).expect("a sum"),
    }
    let sum = number * u64::from(comm.size());
    assert_eq!(data.as_send().to_vec(), sum.to_ne_bytes());
}

#[test]
fn sixty_ranks_pass_on_few_cores() {
    barrier::nobody_leaves_before_all_have_entered(&Job::of(60), "shm", Form::Blocking, 30);
}

/// Where data go one way, the giver is through with its call before the taker has begun his: nobody waits for an answer.
#[test]
fn who_only_gives_does_not_wait_for_who_takes() {
    let reductions = [CallId::Reduce, CallId::Scan, CallId::Exscan];
    let calls = [&[CallId::Gather][..], &reductions].concat();
    // One cell, and as many pieces as there are cells. Where ranks share cores as well, though there who comes last works for all who wait.
    let lengths = [
        (Kind::Flags, 8),
        (Kind::Flags, 128 << 10),
        (Kind::Counter, 8),
    ];
    for (kind, bytes) in lengths {
        for &call in &calls {
            let given = AtomicUsize::new(0);
            job_with(2, kind, "pieces").run(|engine| {
                let world = engine.world().expect("a world");
                // Scans go from the first to the last, the others to the root, which is the last here.
                let (taker, root) = (world.rank() == 1, 1);
                if taker {
                    let what = format!("the giver's return from {call} of {bytes} bytes");
                    eventually(engine, &what, || given.load(Ordering::SeqCst) > 0);
                }
                let count = bytes / 8;
                let own = Scratch::new(count, &Named::UINT64.into()).expect("room");
                let to = Scratch::new(2 * count, &Named::UINT64.into()).expect("room");
                let words = |word: u64| word.to_ne_bytes().repeat(count as usize);
                own.all().unpack_at(0, &words(u64::from(world.rank()) + 1));
                let (send, recv) = (Some(own.all().as_send()), to.recv(0..count));
                let at_root = taker.then(|| recv.clone());
                let op = Predefined::Sum.into();
                let made = match call {
                    CallId::Gather => Call::Gather {
                        send,
                        recv: at_root,
                        root,
                    },
                    CallId::Reduce => Call::Reduce {
                        send,
                        recv: at_root,
                        op,
                        root,
                    },
                    CallId::Scan => Call::Scan { send, recv, op },
                    _ => Call::Exscan { send, recv, op },
                };
                world.collective(made).expect("a collective");
                given.fetch_add(1, Ordering::SeqCst);
                if taker {
                    let sum = match call {
                        CallId::Gather | CallId::Exscan => 1,
                        _ => 3,
                    };
                    let first = to.send(0..count).to_vec();
                    assert!(first == words(sum), "{call} of {bytes} bytes");
                }
            });
        }
    }
}

/// Two words in an element: side by side, side by side behind the address that is given, or with holes.
fn pairs() -> [Datatype; 3] {
    let word: Datatype = Named::UINT64.into();
    let made = |counts: &[i64], offsets: &[i64], lb: i64, extent: i64| {
        let made = Datatype::hindexed(counts, offsets, &word).expect("a type");
        let made = Datatype::resized(lb, extent, &made).expect("a type");
        made.commit().expect("a normal form");
        made
    };
    [
        made(&[2], &[0], 0, 16),
        made(&[2], &[4096], 4096, 16),
        made(&[1, 1], &[-16, 8], -24, 48),
    ]
}

/// Long blocks are written by those who have them or read by the root, as its buffer allows, whatever each has them in.
#[test]
fn long_blocks_come_to_the_root_from_any_type_to_any_other() {
    const COUNT: i64 = 5000;
    for (kind, ranks, way) in [
        (Kind::Flags, 2, "copies"),
        (Kind::Flags, 2, "pieces"),
        (Kind::Flags, 3, "pieces"),
        (Kind::Counter, 4, "copies"),
        (Kind::Counter, 4, "pieces"),
    ] {
        job_with(ranks, kind, way).run(|engine| {
            let world = engine.world().expect("a world");
            let (me, root) = (world.rank(), ranks - 1);
            let words = |rank: u32| -> Vec<u8> {
                let word = |i| u64::from(rank) << 32 | i;
                let words = (0..2 * COUNT as u64).map(word);
                words.flat_map(u64::to_ne_bytes).collect()
            };
            let all: Vec<u8> = (0..ranks).flat_map(words).collect();
            for to in pairs() {
                for from in pairs() {
                    let own = Scratch::new(COUNT, &from).expect("room");
                    own.all().unpack_at(0, &words(me));
                    let room = Scratch::new(COUNT * i64::from(ranks), &to).expect("room");
                    let recv = (me == root).then(|| room.recv(0..COUNT));
                    let send = Some(own.all().as_send());
                    let gather = Call::Gather { send, recv, root };
                    world.collective(gather).expect("a gather");
                    let got = room.all().as_send().to_vec();
                    assert!(me != root || got == all, "{from:?} to {to:?}");

                    own.all().unpack_at(0, &vec![0; 16 * COUNT as usize]);
                    let send = (me == root).then(|| room.send(0..COUNT));
                    let recv = Some(own.all());
                    let scatter = Call::Scatter { send, recv, root };
                    world.collective(scatter).expect("a scatter");
                    let got = own.all().as_send().to_vec();
                    assert!(got == words(me), "{to:?} to {from:?}");
                }
            }
        });
    }
}

/// Several ranks work on one rank's result, whose operand may lie where that goes.
#[test]
fn long_operands_are_combined_by_all_for_any_root() {
    for (kind, ranks, way) in [
        (Kind::Flags, 2, "copies"),
        (Kind::Flags, 3, "copies"),
        (Kind::Flags, 3, "pieces"),
        (Kind::Counter, 5, "copies"),
        (Kind::Counter, 5, "pieces"),
    ] {
        job_with(ranks, kind, way).run(|engine| {
            let world = engine.world().expect("a world");
            // The last does not divide by anything.
            for count in [60_000, 300_000, 131_101] {
                for root in 0..ranks {
                    let me = world.rank();
                    let operand = |rank: u32| {
                        let word = move |i| i * 1000 + u64::from(rank);
                        (0..count as u64).map(word)
                    };
                    let bytes = |words: &mut dyn Iterator<Item = u64>| -> Vec<u8> {
                        words.flat_map(u64::to_ne_bytes).collect()
                    };
                    let scratch = || Scratch::new(count, &Named::UINT64.into()).expect("room");
                    let (own, room) = (scratch(), scratch());
                    own.all().unpack_at(0, &bytes(&mut operand(me)));
                    let in_place = me == root && root % 2 == 0;
                    let recv = if in_place { own.all() } else { room.all() };
                    let reduce = Call::Reduce {
                        send: (!in_place).then(|| own.all().as_send()),
                        recv: (me == root).then(|| recv.clone()),
                        op: Predefined::Sum.into(),
                        root,
                    };
                    world.collective(reduce).expect("a reduction");
                    if me == root {
                        let sum = (1..ranks).map(u64::from).sum::<u64>();
                        let ranks = u64::from(ranks);
                        let expected = &mut (0..count as u64).map(|i| i * 1000 * ranks + sum);
                        let got = recv.as_send().to_vec();
                        assert!(got == bytes(expected), "{count} to {root}");
                    }
                }
            }
        });
    }
}

#[test]
fn all_reductions_of_a_node_are_served_here() {
    job(3, Kind::Counter).run(|engine| {
        let world = engine.world().expect("a world");
        let table = world.coll().expect("a table");
        for call in [
            CallId::Reduce,
            CallId::Allreduce,
            CallId::ReduceScatter,
            CallId::ReduceScatterBlock,
            CallId::Scan,
            CallId::Exscan,
        ] {
            assert_eq!(table.chain(call).next(), Some("shm"), "{call}");
        }
    });
}

/// A call in brief and the same call as a value of its own.
struct Both<'a> {
    brief: Brief<'a>,
    call: Call,
}

const BLOCK: i64 = 3;

/// Calls of three words for each rank, on `sent`, which has a block for each rank, and `got`.
fn both_forms<'a>(
    world: &Comm,
    sent: &'a [u8],
    send: &SendBuf,
    room: RecvBytes,
    recv: &RecvBuf,
    root: u32,
) -> Vec<Both<'a>> {
    let (op, here) = (Op::from(Predefined::Sum), world.rank() == root);
    let dense = DenseOp::new(&op, &Named::UINT64.into()).expect("a loop");
    let len = BLOCK as usize * 8;
    let (one, all) = (&sent[..len], sent);
    let (one_room, all_room) = (room.part(0, len), room);
    let (send_one, recv_one) = (Some(send.slice(0..BLOCK)), recv.slice(0..BLOCK));
    let both = |brief, call| Both { brief, call };
    let reduction = |of: fn(&'a [u8], RecvBytes, DenseOp) -> Brief<'a>,
                     as_call: fn(Option<SendBuf>, RecvBuf, Op) -> Call| {
        let call = as_call(send_one.clone(), recv_one.clone(), op.clone());
        both(of(one, one_room, dense), call)
    };
    vec![
        both(
            Brief::Bcast {
                data: one_room,
                root,
            },
            Call::Bcast {
                buf: recv_one.clone(),
                root,
            },
        ),
        both(
            Brief::Gather {
                send: one,
                recv: here.then_some(all_room),
                root,
            },
            Call::Gather {
                send: send_one.clone(),
                recv: here.then(|| recv_one.clone()),
                root,
            },
        ),
        both(
            Brief::Scatter {
                send: here.then_some(all),
                recv: one_room,
                root,
            },
            Call::Scatter {
                send: send_one.clone().filter(|_| here),
                recv: Some(recv_one.clone()),
                root,
            },
        ),
        both(
            Brief::Allgather {
                send: one,
                recv: all_room,
            },
            Call::Allgather {
                send: send_one.clone(),
                recv: recv_one.clone(),
            },
        ),
        both(
            Brief::Alltoall {
                send: all,
                recv: all_room,
                block: len,
            },
            Call::Alltoall {
                send: send_one.clone(),
                recv: recv_one.clone(),
            },
        ),
        both(
            Brief::Reduce {
                send: one,
                recv: here.then_some(one_room),
                op: dense,
                root,
            },
            Call::Reduce {
                send: send_one.clone(),
                recv: here.then(|| recv_one.clone()),
                op: op.clone(),
                root,
            },
        ),
        both(
            Brief::ReduceScatterBlock {
                send: all,
                recv: one_room,
                op: dense,
            },
            Call::ReduceScatterBlock {
                send: Some(send.clone()),
                recv: recv_one.clone(),
                op: op.clone(),
            },
        ),
        reduction(
            |send, recv, op| Brief::Allreduce { send, recv, op },
            |send, recv, op| Call::Allreduce { send, recv, op },
        ),
        reduction(
            |send, recv, op| Brief::Scan { send, recv, op },
            |send, recv, op| Call::Scan { send, recv, op },
        ),
        reduction(
            |send, recv, op| Brief::Exscan { send, recv, op },
            |send, recv, op| Call::Exscan { send, recv, op },
        ),
    ]
}

/// Members whose buffers are not runs of bytes make the same call in the other form.
#[test]
#[allow(unsafe_code)]
fn a_call_in_brief_meets_the_same_call_and_gives_the_same() {
    for (kind, ranks) in [(Kind::Flags, 2), (Kind::Flags, 3), (Kind::Counter, 4)] {
        job(ranks, kind).run(|engine| {
            let world = engine.world().expect("a world");
            let (me, count) = (u64::from(world.rank()), i64::from(ranks) * BLOCK);
            let scratch = || Scratch::new(count, &Named::UINT64.into()).expect("room");
            let (from, to) = (scratch(), scratch());
            let words = |word: &dyn Fn(u64) -> u64| -> Vec<u8> {
                (0..count as u64)
                    .flat_map(|i| word(i).to_ne_bytes())
                    .collect()
            };
            let sent = words(&|i| 100 * me + i);
            from.all().unpack_at(0, &sent);
            // SAFETY: all bytes of the scratch, which outlives the calls; both forms write it one after the other.
            let room = unsafe { RecvBytes::new(to.all().ptr(), count as usize * 8) };
            let send = from.all().as_send();
            for round in 0..12 {
                let root = round % ranks;
                let forms = || both_forms(&world, &sent, &send, room, &to.all(), root);
                for (i, asked) in forms().into_iter().enumerate() {
                    let call = asked.call.id();
                    let fresh = words(&|i| 7000 + 100 * me + i);
                    to.all().unpack_at(0, &fresh);
                    world.collective(asked.call).expect("a collective");
                    let expected = to.all().as_send().to_vec();
                    to.all().unpack_at(0, &fresh);
                    match (world.rank() + round + i as u32) % 2 {
                        0 => {
                            let taken = world.try_brief(&asked.brief);
                            taken.expect("a call in brief").expect("a collective");
                        }
                        _ => {
                            let again = forms().swap_remove(i).call;
                            world.collective(again).expect("a collective");
                        }
                    }
                    assert!(to.all().as_send().to_vec() == expected, "{call}");
                }
            }
        });
    }
}
