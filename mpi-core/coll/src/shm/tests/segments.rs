//! Tests of shared segments: each communicator allocates one and frees it.

use super::super::Shm;
use super::{OCCUPANCIES, job};
use crate::comm::{Comm, SplitKey};
use crate::datatype::{Named, RecvBuf, Scratch};
use crate::engine::Engine;
use crate::op::Predefined;
use crate::suite::barrier::{self, Form};
use crate::testing::Job;
use crate::{Call, CallSet, Component, Invocation, Module, Refusal, Running, Table};
use mpi_base::occupancy::Occupancy;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A communicator gets the memory of the previous one, and works whatever calls the previous one has made.
#[test]
fn what_one_communicator_left_does_not_reach_the_next() {
    const RANKS: u32 = 3;
    for occupancy in OCCUPANCIES {
        for form in [None, Some(Form::Blocking), Some(Form::Nonblocking)] {
            let entered = AtomicUsize::new(0);
            job(RANKS, occupancy).run(|engine| {
                let world = engine.world().expect("a world");
                for round in 0..6 {
                    let twin = engine
                        .block_on(world.constructors().dup())
                        .expect("a duplicate");
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
                    engine.block_on(world.internal().fence()).expect("a fence");
                }
            });
        }
    }
}

/// The component `shm` with a segment that one rank refuses; records the segment's config blob.
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
    fn export_config(&self, comm: &Comm, config: &mut Vec<u8>) {
        self.shm.export_config(comm, config);
    }
    fn import_config(&self, comm: &Comm, config: &[u8]) -> Result<(), Refusal> {
        self.places.borrow_mut().push(config.to_vec());
        match comm.rank() {
            1 => Err(Refusal("there is no room".into())),
            _ => self.shm.import_config(comm, config),
        }
    }
    fn withdraw(&self) {
        self.shm.withdraw();
    }
    fn start(&self, invocation: Invocation, call: Call) -> Running {
        self.shm.start(invocation, call)
    }
}

thread_local! {
    /// The config blobs that rank 0 of a job has exported; one list per thread.
    static PLACES: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
}

/// If the block were not freed, the next block would have another offset.
#[test]
fn a_place_that_some_member_does_not_take_is_free_again() {
    for occupancy in OCCUPANCIES {
        let coll = || -> Vec<Box<dyn Component>> {
            let mut all = crate::built_in();
            all.retain(|component| component.name() != "shm");
            all.push(Box::new(Homeless {
                shm: Shm::default(),
                places: PLACES.with(Rc::clone),
            }));
            all
        };
        let job = Job {
            coll: Box::new(coll),
            ..job(3, occupancy)
        };
        let told = job.run(|engine| {
            let world = engine.world().expect("a world");
            for _ in 0..5 {
                let twin = engine
                    .block_on(world.constructors().dup())
                    .expect("a duplicate");
                twin.collectives()
                    .carry_out(Call::Barrier)
                    .expect("a barrier");
                let refused = Table::chosen(&twin).expect("a table").refused();
                let why = refused.iter().find(|(name, _)| **name == *"shm");
                assert_eq!(why.expect("a refusal").1.0, "rank 1: there is no room");
            }
            PLACES.with(Rc::clone).take()
        });
        for told in told {
            assert_eq!(told.len(), 6);
            assert!(!told[0].is_empty() && told.iter().all(|config| *config == told[0]));
        }
    }
}

/// Sums the number of the round over all ranks, and checks the result.
pub(super) fn sum_round(comm: &Comm, form: Form, round: u32) {
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
            let request = comm.collectives().begin(call).expect("a sum");
            comm.engine().wait(&request).expect("the end of a sum");
        }
        _ => comm.collectives().carry_out(call).expect("a sum"),
    }
    let sum = number * u64::from(comm.size());
    assert_eq!(data.as_send().to_vec(), sum.to_ne_bytes());
}

/// A component that serves no communicator, and counts the communicators for which it was queried.
struct Queried(Rc<Cell<u32>>);

impl Component for Queried {
    fn name(&self) -> &str {
        "queried"
    }
    fn priority(&self) -> i32 {
        1
    }
    fn query(&self, _: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        self.0.set(self.0.get() + 1);
        Err(Refusal("it only counts".into()))
    }
}

thread_local! {
    /// The number of communicators of a rank for which components were selected.
    static QUERIED: Rc<Cell<u32>> = Rc::default();
}

fn counting_job(ranks: u32, occupancy: Occupancy) -> Job {
    let coll = || -> Vec<Box<dyn Component>> {
        let mut all = crate::built_in();
        all.push(Box::new(Queried(QUERIED.with(Rc::clone))));
        all
    };
    Job {
        coll: Box::new(coll),
        ..job(ranks, occupancy)
    }
}

/// Some ranks are late, and the ranks free two duplicates in different orders.
#[test]
fn duplicates_of_the_world_use_freed_ones_again_whatever_these_have_done() {
    const RANKS: u32 = 3;
    const ROUNDS: u32 = 12;
    for occupancy in OCCUPANCIES {
        for form in [Form::Blocking, Form::Nonblocking] {
            let queried = counting_job(RANKS, occupancy).run(|engine| {
                let world = engine.world().expect("a world");
                let twin = || world.constructors().dup_now().expect("a duplicate");
                for round in 0..ROUNDS {
                    let (first, second) = (twin(), twin());
                    assert_ne!(first.context(), second.context());
                    if world.rank() == round % RANKS {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    for _ in 0..round {
                        sum_round(&first, form, round);
                    }
                    barrier::pass(&first, form, round);
                    sum_round(&second, form, round + 1);
                    match (world.rank() + round) % 2 {
                        0 => drop((first, second)),
                        _ => drop((second, first)),
                    }
                    engine.block_on(world.internal().fence()).expect("a fence");
                }
                QUERIED.with(|queried| queried.get())
            });
            // MPI_COMM_SELF, MPI_COMM_WORLD, and the first two duplicates.
            assert_eq!(queried, [4; RANKS as usize]);
        }
    }
}

thread_local! {
    /// The engine with which [`draw`] creates a communicator, and that communicator.
    static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
    static DRAWN: RefCell<Option<Comm>> = const { RefCell::new(None) };
}

/// True when [`draw`] has created a communicator.
static HAS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Creates a communicator inside a wait, as another thread can with `MPI_THREAD_MULTIPLE`.
fn draw() {
    if let Some(engine) = ENGINE.take() {
        let myself = engine
            .process()
            .myself()
            .expect("a communicator of this process");
        let twin = myself.constructors().dup_now().expect("a duplicate");
        DRAWN.set(Some(twin));
        HAS_DRAWN.store(true, Ordering::SeqCst);
    }
}

/// Rank 1 enters the duplication after another communicator of rank 0 was created.
#[test]
fn a_communicator_that_is_created_during_a_duplication_has_another_context() {
    for occupancy in OCCUPANCIES {
        HAS_DRAWN.store(false, Ordering::SeqCst);
        job(2, occupancy).run(|engine| {
            let world = engine.world().expect("a world");
            let twin = || world.constructors().dup_now().expect("a duplicate");
            drop(twin());
            engine.block_on(world.internal().fence()).expect("a fence");
            if world.rank() == 0 {
                ENGINE.set(Some(engine.clone()));
                engine.waiting().set_relax(Some(draw));
            } else {
                while !HAS_DRAWN.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            }
            let twin = twin();
            if let Some(drawn) = DRAWN.take() {
                assert_ne!(drawn.context(), twin.context());
            }
            sum_round(&twin, Form::Blocking, 1);
        });
    }
}

/// The other ranks call the same number of collectives, but one of them another one.
#[test]
fn a_duplication_does_not_match_another_collective() {
    for occupancy in OCCUPANCIES {
        let failed = job(2, occupancy).run(|engine| {
            let world = engine.world().expect("a world");
            let twin = || world.constructors().dup_now();
            for _ in 0..6 {
                drop(twin().expect("a duplicate"));
                engine.block_on(world.internal().fence()).expect("a fence");
            }
            match world.rank() {
                0 => twin().is_err(),
                _ => {
                    let data = Scratch::new(4, &Named::UINT64.into()).expect("room").all();
                    let sum = Call::Allreduce {
                        send: None,
                        recv: data.clone(),
                        op: Predefined::Sum.into(),
                    };
                    world.collectives().carry_out(sum).is_err()
                }
            }
        });
        assert_eq!(failed, [true, false]);
    }
}

/// Without fences, a rank may create duplicates before another has freed the previous ones.
/// After three duplicates no more are kept.
#[test]
fn more_duplicates_than_are_kept_and_late_frees_need_an_agreement() {
    const RANKS: u32 = 3;
    for occupancy in OCCUPANCIES {
        let queried = counting_job(RANKS, occupancy).run(|engine| {
            let world = engine.world().expect("a world");
            for round in 0..20 {
                let all: Vec<Comm> = (0..5)
                    .map(|_| world.constructors().dup_now().expect("a duplicate"))
                    .collect();
                if world.rank() == round % RANKS {
                    std::thread::yield_now();
                }
                for twin in &all {
                    sum_round(twin, Form::Blocking, round);
                }
            }
            QUERIED.with(|queried| queried.get())
        });
        assert!(queried.iter().all(|count| *count == queried[0]));
        assert!(queried[0] >= 2 + 5 + 19 * 2, "{queried:?}");
    }
}

/// The members have executed the same operations when one of them revokes a duplicate, so only the revocation distinguishes it from one that is used again.
/// In every second job, members may free a duplicate before they are notified of its revocation.
#[test]
fn revoked_duplicates_are_not_used_again() {
    const RANKS: u32 = 3;
    for occupancy in OCCUPANCIES {
        for all_are_notified in [true, false] {
            let queried = counting_job(RANKS, occupancy).run(|engine| {
                let world = engine.world().expect("a world");
                let fence = || engine.block_on(world.internal().fence()).expect("a fence");
                let mut queried = Vec::new();
                for round in 0..5 {
                    let twin = world.constructors().dup_now().expect("a duplicate");
                    barrier::pass(&twin, Form::Blocking, round);
                    sum_round(&twin, Form::Blocking, round);
                    fence();
                    if world.rank() == round % RANKS {
                        twin.failures().revoke();
                    } else if all_are_notified {
                        // No message is sent: the receive waits for the revocation.
                        let (empty, me) = (RecvBuf::empty(), world.rank() as i32);
                        assert!(twin.p2p().recv(empty, me, 0).is_err());
                    }
                    drop(twin);
                    fence();
                    queried.push(QUERIED.with(|queried| queried.get()));
                }
                queried
            });
            // MPI_COMM_SELF, MPI_COMM_WORLD, and each duplicate.
            assert_eq!(queried, vec![vec![3, 4, 5, 6, 7]; RANKS as usize]);
        }
    }
}

/// A communicator of more members than [`FEW`](super::super::layout::FEW) is created by an agreement.
#[test]
fn only_duplicates_of_a_small_world_are_kept() {
    let queried = counting_job(5, Occupancy::Oversubscribed).run(|engine| {
        let world = engine.world().expect("a world");
        for round in 0..4 {
            let twin = world.constructors().dup_now().expect("a duplicate");
            sum_round(&twin, Form::Blocking, round);
        }
        QUERIED.with(|queried| queried.get())
    });
    assert_eq!(queried, [6; 5]);
}

/// A duplicate of a duplicate uses a spare of `MPI_COMM_WORLD`, and becomes a spare again only if it used one.
#[test]
fn duplicates_of_duplicates_use_spares() {
    let queried = counting_job(2, Occupancy::Dedicated).run(|engine| {
        let world = engine.world().expect("a world");
        let queried = || QUERIED.with(|queried| queried.get());
        let first = world.constructors().dup_now().expect("a duplicate");
        let mut counts = vec![queried()];
        for round in 0..4 {
            let twin = first.constructors().dup_now().expect("a duplicate");
            sum_round(&twin, Form::Blocking, round);
            counts.push(queried());
        }
        drop(world.constructors().dup_now().expect("a duplicate"));
        engine.block_on(world.internal().fence()).expect("a fence");
        counts.push(queried());
        for round in 0..4 {
            let twin = first.constructors().dup_now().expect("a duplicate");
            sum_round(&twin, Form::Blocking, round);
            drop(twin);
            engine.block_on(first.internal().fence()).expect("a fence");
            counts.push(queried());
        }
        counts
    });
    let kept = vec![3, 4, 5, 6, 7, 8, 8, 8, 8, 8];
    assert_eq!(queried, [kept.clone(), kept]);
}

/// The members of the parent are those of `MPI_COMM_WORLD` in another order, so the parent's duplicate has other cells.
#[test]
fn a_communicator_with_another_rank_order_uses_no_spares() {
    let queried = counting_job(2, Occupancy::Dedicated).run(|engine| {
        let world = engine.world().expect("a world");
        drop(world.constructors().dup_now().expect("a duplicate"));
        engine.block_on(world.internal().fence()).expect("a fence");
        let key = SplitKey {
            color: Some(0),
            key: -(world.rank() as i32),
        };
        let turned = engine.block_on(world.constructors().split(key));
        let turned = turned.expect("a split").expect("a communicator");
        let before = QUERIED.with(|queried| queried.get());
        let twin = turned.constructors().dup_now().expect("a duplicate");
        sum_round(&twin, Form::Blocking, 1);
        QUERIED.with(|queried| queried.get()) - before
    });
    assert_eq!(queried, [1, 1]);
}
