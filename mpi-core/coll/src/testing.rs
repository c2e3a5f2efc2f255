//! Test jobs with ranks as threads: a whole job in one process, with the real transports.

use crate::btl::{OpenContext, Transport};
use crate::engine::{Engine, Parts};
use crate::pml::Config;
use crate::{Call, Coll, Component};
use mpi_base::node::Node;
use mpi_base::param::{Params, Source};
use mpi_transport::rte::TestModex;
use std::any::Any;
use std::cell::Cell;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

thread_local! {
    /// True when a rank of this thread's job has panicked.
    static FAILED: Cell<Option<Arc<AtomicBool>>> = const { Cell::new(None) };
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Maximum run time of a test job; a longer job is considered to hang, and fails.
const LONGEST: Duration = Duration::from_secs(600);

/// Panic message of a rank that panics only because another rank has panicked.
const STOPPED: &str = "another rank of this job has panicked";

fn stop_if_a_peer_failed() {
    let failed = FAILED.take();
    let stop = failed.as_ref().is_some_and(|f| f.load(Ordering::Relaxed));
    FAILED.set(failed);
    assert!(!stop, "{STOPPED}");
    let hangs = BEGAN.get().is_some_and(|began| began.elapsed() > LONGEST);
    assert!(
        !hangs,
        "this rank still waits {LONGEST:?} after its job began"
    );
}

/// Creates the collective components of one rank.
pub type MakeColl = Box<dyn Fn() -> Vec<Box<dyn Component>> + Send + Sync>;

/// Wraps a transport of the rank with this number, for tests of a transport's optional interfaces.
pub type Wrap = Box<dyn Fn(u32, Transport) -> Transport + Send + Sync>;

/// What the ranks of a job share to connect to each other.
struct Meeting {
    job: String,
    modex: TestModex,
    fence: Barrier,
}

/// Configuration of a test job.
pub struct Job {
    pub ranks: u32,
    /// Number of nodes; ranks are assigned to them round robin, and each node has its own memory segment.
    pub nodes: u32,
    pub params: Params,
    pub pml: Config,
    /// Creates the collective components of each rank.
    pub coll: MakeColl,
    /// Wraps each transport of each rank.
    pub wrap: Wrap,
}

impl Job {
    pub fn of(ranks: u32) -> Job {
        Job {
            ranks,
            nodes: 1,
            params: Params::default(),
            pml: Config::default(),
            coll: Box::new(crate::built_in),
            wrap: Box::new(|_, transport| transport),
        }
    }

    /// Returns the job with a parameter set, as on the command line.
    pub fn with(mut self, name: &str, value: &str) -> Job {
        self.params.set(name, value, Source::CommandLine);
        self
    }

    /// Calls `rank` on every rank and returns the results in the order of ranks.
    /// If a rank panics, the others panic too instead of waiting for it, so a failed assertion fails the test and does not hang it.
    pub fn run<T: Send>(&self, rank: impl Fn(&Engine) -> T + Sync) -> Vec<T> {
        let results: Vec<_> = (0..self.ranks).map(|_| Mutex::new(None)).collect();
        self.run_threads(&|me, engine| {
            let result = rank(engine);
            *results[me as usize].lock().expect("no panic with the lock") = Some(result);
        });
        let result = |of: Mutex<Option<T>>| of.into_inner().ok().flatten();
        results
            .into_iter()
            .map(|of| result(of).expect("each rank that ends has a result"))
            .collect()
    }

    /// Runs a thread for each rank, which calls `rank` with its number.
    /// The many tests share this function, because it takes long to compile.
    fn run_threads(&self, rank: &(dyn Fn(u32, &Engine) + Sync)) {
        let ranks_on = |node: u32| (node..self.ranks).step_by(self.nodes as usize);
        let create = |node| Node::create(ranks_on(node).count() as u32).expect("a node segment");
        let nodes: Vec<std::os::fd::OwnedFd> = (0..self.nodes).map(create).collect();
        let failed = Arc::new(AtomicBool::new(false));
        static JOBS: AtomicU32 = AtomicU32::new(0);
        let number = JOBS.fetch_add(1, Ordering::Relaxed);
        let meeting = Meeting {
            job: format!("test {} {number}", std::process::id()),
            modex: TestModex::default(),
            fence: Barrier::new(self.ranks as usize),
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.ranks)
                .map(|me| {
                    let at = me % self.nodes;
                    let neighbours: Vec<u32> = ranks_on(at).collect();
                    let (node, failed) = (&nodes[at as usize], failed.clone());
                    let meeting = &meeting;
                    scope.spawn(move || {
                        FAILED.set(Some(failed.clone()));
                        BEGAN.set(Some(Instant::now()));
                        let result = catch_unwind(AssertUnwindSafe(|| {
                            let fd = node.as_fd();
                            let node = Node::attach(fd, me / self.nodes).expect("attaching");
                            let engine = self.engine(me, node, neighbours, meeting);
                            engine.waiting().set_relax(Some(stop_if_a_peer_failed));
                            engine.process().start().expect("starting");
                            engine.process().join_world().expect("joining");
                            rank(me, &engine);
                            let world = engine.world().expect("a world");
                            world
                                .collectives()
                                .carry_out(Call::Barrier)
                                .expect("leaving");
                            drop(world);
                            engine.process().stop();
                        }));
                        result.unwrap_or_else(|panic| {
                            failed.store(true, Ordering::Relaxed);
                            resume_unwind(panic)
                        })
                    })
                })
                .collect();
            let results: Vec<_> = threads.into_iter().map(|t| t.join()).collect();
            let mut panics: Vec<_> = results.into_iter().filter_map(Result::err).collect();
            // Report the panic of the failed assertion, not that of a rank that stopped because of it.
            let is_cause = |panic: &Box<dyn Any + Send>| {
                panic.downcast_ref::<&str>() != Some(&STOPPED)
                    && panic.downcast_ref::<String>().is_none_or(|s| s != STOPPED)
            };
            if !panics.is_empty() {
                let at = panics.iter().position(is_cause).unwrap_or(0);
                resume_unwind(panics.swap_remove(at));
            }
        });
    }

    fn engine(&self, me: u32, node: Node, neighbours: Vec<u32>, meeting: &Meeting) -> Engine {
        let params = self.params.clone();
        let around = OpenContext {
            me,
            size: self.ranks,
            node: Some((node.clone(), neighbours.clone())),
            params: &params,
            modex: Some(meeting.modex.of(me)),
        };
        let opened = crate::btl::open_all(&around).expect("transports");
        if opened.fence {
            meeting.fence.wait();
        }
        let engine = Engine::new(Parts {
            me,
            size: self.ranks,
            job: meeting.job.clone(),
            params,
            node,
            neighbours,
            cores: mpi_base::cpu::Cores::of_this_process(),
            confinement: mpi_base::hardware::Confinement::FREE,
            btls: opened
                .btls
                .into_iter()
                .map(|btl| (self.wrap)(me, btl))
                .collect(),
            pml: self.pml,
        })
        .expect("an engine");
        engine
            .process()
            .serve_collectives_by(Box::new(Coll::of((self.coll)())));
        engine
    }
}

/// Runs `rank` on `ranks` ranks with the default configuration.
pub fn run<T: Send>(ranks: u32, rank: impl Fn(&Engine) -> T + Sync) -> Vec<T> {
    Job::of(ranks).run(rank)
}

/// Waits without progress of the engine until another rank has set `flag`; panics if another rank of the job has panicked.
pub fn until_set(flag: &AtomicBool) {
    while !flag.load(Ordering::Acquire) {
        stop_if_a_peer_failed();
        std::thread::yield_now();
    }
}

/// Makes progress until `done` returns true; fails the test after ten seconds.
pub fn eventually(engine: &Engine, what: &str, mut done: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(10);
    let mut waiter = engine.waiter();
    while !engine.turn(&mut waiter, &mut done) {
        assert!(
            Instant::now() < limit,
            "{what} did not happen within ten seconds"
        );
    }
}
