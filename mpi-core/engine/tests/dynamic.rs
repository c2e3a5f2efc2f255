//! Tests of jobs that connect at a port: two jobs, whose ranks are threads of one process, with the same protocol as between processes.

use mpi_core::comm::{Comm, CommError, LeaderError};
use mpi_core::datatype::Scratch;
use mpi_core::dynamic::PortName;
use mpi_core::engine::testing::{Job, eventually};
use mpi_core::{Engine, Error};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const CODE: i32 = 7;

fn accept(engine: &Engine, port: Option<PortName>) -> Result<Comm, Error> {
    let world = engine.world().expect("a world");
    engine.block_on(world.ports().accept(0, port.map(Ok), CODE))
}

fn connect(
    engine: &Engine,
    port: Option<PortName>,
    patience: Option<Duration>,
) -> Result<Comm, Error> {
    let world = engine.world().expect("a world");
    engine.block_on(world.ports().connect(0, port.map(Ok), patience, CODE))
}

/// Returns the ranks of all members of a communicator, on every process.
fn ranks(engine: &Engine, comm: &Comm) -> Vec<u64> {
    let mine = u64::from(comm.rank());
    engine
        .block_on(comm.internal().share(&[mine]))
        .expect("shared")
}

/// Runs an accepting and a connecting job. A channel passes port names between their ranks 0.
fn meet<T: Send>(
    accepting: u32,
    connecting: u32,
    accepts: impl Fn(&Engine, &Sender<PortName>) + Sync,
    connects: impl Fn(&Engine, &Receiver<PortName>) -> T + Sync,
) -> Vec<T> {
    let (tell, hear) = channel();
    let (tell, hear) = (Mutex::new(tell), Mutex::new(hear));
    std::thread::scope(|scope| {
        let acceptors = scope.spawn(|| {
            Job::of(accepting).run(|engine| {
                let tell = tell.lock().expect("a sender").clone();
                accepts(engine, &tell);
            })
        });
        let results = Job::of(connecting).run(|engine| match engine.me() {
            0 => connects(engine, &hear.lock().expect("a receiver")),
            _ => connects(engine, &channel().1),
        });
        acceptors.join().expect("accepted");
        results
    })
}

/// Waits until the other side's disconnect messages have arrived.
fn forgets_the_others(engine: &Engine) {
    for _ in 0..10_000_000 {
        if engine.universe().foreign() == 0 {
            return;
        }
        engine.progress();
        std::thread::yield_now();
    }
    panic!("{} are still known", engine.universe().foreign());
}

#[test]
fn two_jobs_become_one_communicator_and_forget_each_other() {
    for (here, there) in [(1, 1), (2, 3), (4, 2)] {
        let all: Vec<u64> = (0..u64::from(here + there)).collect();
        let together = |engine: &Engine, inter: Comm, high: bool| {
            assert_eq!(inter.size() + inter.peers().size(), here + there);
            assert!(inter.is_inter() && inter.is_mixed());
            let merged = engine.block_on(inter.inter().merge(high)).expect("merged");
            assert_eq!(ranks(engine, &merged), all);
            // A duplicate of a communicator of several jobs has members of several jobs too, and its context id differs from all ids in a job.
            let twin = engine
                .block_on(merged.constructors().dup())
                .expect("a twin");
            assert!(twin.context().is_random() && twin.context() != merged.context());
            assert_eq!(ranks(engine, &twin), all);
            engine
                .block_on(inter.internal().farewell())
                .expect("farewell");
            let others = inter.peers().size() as usize;
            drop((twin, merged));
            assert_eq!(engine.universe().foreign(), others);
            drop(inter);
            forgets_the_others(engine);
        };
        meet(
            here,
            there,
            |engine, tell| {
                for _ in 0..3 {
                    let port = (engine.me() == 0).then(|| {
                        let port = engine.ports().open().expect("a port");
                        tell.send(port.clone()).expect("told");
                        port
                    });
                    let inter = accept(engine, port.clone()).expect("accepted");
                    together(engine, inter, false);
                    assert!(port.is_none_or(|port| engine.ports().close(&port)));
                }
            },
            |engine, hear| {
                for _ in 0..3 {
                    let port = (engine.me() == 0).then(|| hear.recv().expect("a port"));
                    let inter = connect(engine, port, None).expect("connected");
                    together(engine, inter, true);
                }
            },
        );
    }
}

/// Checks that the call failed on this member with the error of its root, which contains `says`.
#[track_caller]
fn refused(outcome: Result<Comm, Error>, says: &str) {
    let error = outcome
        .map(|comm| comm.size())
        .expect_err("no process has this port");
    let Some(CommError::LeaderError {
        error: LeaderError { code, .. },
        ..
    }) = error.find()
    else {
        panic!("{error}");
    };
    assert_eq!(*code, CODE);
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn a_port_that_nobody_answers_at_ends_the_call_at_all_members() {
    meet(
        1,
        3,
        |engine, tell| {
            let port = engine.ports().open().expect("a port");
            tell.send(port.clone()).expect("told");
            // The caller cancels its call; the port is closed later, while this process is in another call.
            let go = engine.ports().open().expect("a port");
            tell.send(go.clone()).expect("told");
            accept(engine, Some(go.clone())).expect("accepted");
            assert!(engine.ports().close(&port));
            let again = go.clone();
            accept(engine, Some(go)).expect("accepted");
            refused(accept(engine, Some(port)), "is not open");
            // The caller must still be notified that the port has been closed.
            accept(engine, Some(again)).expect("accepted");
        },
        |engine, hear| {
            let next = || (engine.me() == 0).then(|| hear.recv().expect("a port"));
            let (port, go) = (next(), next());
            let soon = Some(Duration::from_millis(50));
            refused(connect(engine, port.clone(), soon), "within 0.05 seconds");
            connect(engine, go.clone(), None).expect("connected");
            connect(engine, go.clone(), None).expect("connected");
            refused(connect(engine, port, None), "no such port is open");
            connect(engine, go, None).expect("connected");
        },
    );
}

#[test]
fn an_accept_goes_on_to_the_next_caller_when_one_has_given_up() {
    meet(
        1,
        1,
        |engine, tell| {
            let port = engine.ports().open().expect("a port");
            tell.send(port.clone()).expect("told");
            std::thread::sleep(Duration::from_millis(200));
            accept(engine, Some(port)).expect("accepted");
        },
        |engine, hear| {
            let port = hear.recv().expect("a port");
            let soon = Some(Duration::from_millis(20));
            refused(connect(engine, Some(port.clone()), soon), "seconds");
            connect(engine, Some(port), None).expect("connected");
        },
    );
}

/// Rank 0 is notified of the death while it is the only rank that has a communicator with the other job.
/// Ranks 1 and 2 get the announcement before or after they know the dead process.
#[test]
fn all_members_of_a_new_communicator_learn_of_a_death_that_is_older_than_it() {
    let informed = AtomicU32::new(0);
    meet(
        3,
        1,
        |engine, tell| {
            let bridge = (engine.me() == 0).then(|| {
                let port = engine.ports().open().expect("a port");
                tell.send(port.clone()).expect("told");
                let alone = engine.process().myself().expect("a communicator");
                let accepted = alone.ports().accept(0, Some(Ok(port)), CODE);
                let bridge = engine.block_on(accepted).expect("accepted");
                engine
                    .peers()
                    .announce_death_of(bridge.peers().proc(0).expect("a process"));
                bridge
            });
            if engine.me() == 2 {
                std::thread::sleep(Duration::from_millis(50));
            }
            let world = engine.world().expect("a world");
            let leads = bridge.as_ref().map(|bridge| Ok((bridge, 0)));
            let created = world.inter().create(0, leads, 5);
            let inter = engine.block_on(created).expect("created");
            if engine.me() > 0 {
                let word = Scratch::bytes(8).expect("memory");
                let received = inter.p2p().irecv(word.all(), 0, 7).expect("posted");
                eventually(engine, "the end of the receive", || received.is_complete());
                let error = engine.wait(&received).expect_err("no process sends");
                let text = error.to_string();
                assert!(text.contains("has found"), "{text}");
                informed.fetch_add(1, Ordering::Relaxed);
            }
        },
        |engine, hear| {
            let bridge = connect(engine, Some(hear.recv().expect("a port")), None);
            let bridge = bridge.expect("connected");
            let world = engine.world().expect("a world");
            let created = world.inter().create(0, Some(Ok((&bridge, 0))), 5);
            let _inter = engine.block_on(created).expect("created");
            // The intercommunicator is kept until ranks 1 and 2 have their errors,
            // because dropping it ends its connections.
            eventually(engine, "the errors of ranks 1 and 2", || {
                informed.load(Ordering::Relaxed) == 2
            });
        },
    );
}
