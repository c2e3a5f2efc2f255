//! Tests of selection: a component that one member refuses is used by no member, and every member receives the reason.

use super::*;
use crate::Call;
use crate::testing::Job;
use mpi_base::param::Source;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The ranks on which the steps of the selection fail.
#[derive(Clone, Copy, Default)]
struct Faults {
    query_at: Option<u32>,
    /// The rank on which the component refuses rank 0's config blob.
    take_at: Option<u32>,
    enable_at: Option<u32>,
    /// The rank on which [`Module::sets_up`] returns true.
    set_up_at: Option<u32>,
}

/// How often each function of the component was called, on all ranks together.
#[derive(Default)]
struct Calls {
    taken: AtomicU32,
    enabled: AtomicU32,
    withdrawn: AtomicU32,
    disabled: AtomicU32,
}

struct Faulty {
    name: &'static str,
    faults: Faults,
    calls: Arc<Calls>,
}

struct FaultyModule {
    me: u32,
    faults: Faults,
    calls: Arc<Calls>,
}

const CONFIG: &[u8] = b"the wire is the seventh";

impl Component for Faulty {
    fn name(&self) -> &str {
        self.name
    }
    fn priority(&self) -> i32 {
        90
    }
    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        let me = comm.engine().me();
        if !comm.is_world() {
            return Err(Refusal("the wire is the world's".into()));
        }
        if self.faults.query_at == Some(me) {
            return Err(Refusal("there is no wire".into()));
        }
        Ok(Rc::new(FaultyModule {
            me,
            faults: self.faults,
            calls: self.calls.clone(),
        }))
    }
}

impl Module for FaultyModule {
    fn serves(&self) -> CallSet {
        CallSet::NONE.with(CallId::Barrier)
    }
    fn export_config(&self, _: &Comm, config: &mut Vec<u8>) {
        assert_eq!(self.me, 0, "only rank 0 exports a config");
        config.extend(CONFIG);
    }
    fn import_config(&self, _: &Comm, config: &[u8]) -> Result<(), Refusal> {
        self.calls.taken.fetch_add(1, Relaxed);
        assert_eq!(config, CONFIG);
        match self.faults.take_at == Some(self.me) {
            true => Err(Refusal("the wire is too short".into())),
            false => Ok(()),
        }
    }
    fn withdraw(&self) {
        self.calls.withdrawn.fetch_add(1, Relaxed);
    }
    fn sets_up(&self) -> bool {
        self.faults.set_up_at == Some(self.me)
    }
    fn enable<'a>(
        &'a self,
        _: &'a Comm,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + 'a>> {
        self.calls.enabled.fetch_add(1, Relaxed);
        let outcome = match self.faults.enable_at == Some(self.me) {
            true => Err(Refusal("the wire is stuck".into())),
            false => Ok(()),
        };
        Box::pin(std::future::ready(outcome))
    }
    fn start(&self, invocation: Invocation, call: Call) -> Running {
        Box::pin(async move { Table::next(&invocation, call).await })
    }
    fn disable(&self) {
        self.calls.disabled.fetch_add(1, Relaxed);
    }
}

/// Returns a job whose component has these faults, and the counters of the calls of its functions.
fn faulty(ranks: u32, faults: Faults) -> (Job, Arc<Calls>) {
    let calls: Arc<Calls> = Arc::default();
    let told = calls.clone();
    let coll = move || {
        let mut all = crate::built_in();
        all.push(Box::new(Faulty {
            name: "faulty",
            faults,
            calls: told.clone(),
        }));
        all
    };
    let job = Job {
        coll: Box::new(coll),
        ..Job::of(ranks)
    };
    (job, calls)
}

/// Returns the same faults for a component that has a collective set-up on every rank.
fn all_set_up(faults: Faults) -> Faults {
    Faults {
        set_up_at: Some(0),
        ..faults
    }
}

fn with_priority(value: &str) -> Params {
    let mut params = Params::default();
    params.set("coll_faulty_priority", value, Source::Environment);
    params
}

fn barrier_chains(job: &Job) -> Vec<(Vec<String>, Vec<String>)> {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        world
            .collectives()
            .carry_out(Call::Barrier)
            .expect("a barrier");
        let table = Table::chosen(&world).expect("a table");
        let chain = table.chain(CallId::Barrier).map(str::to_owned).collect();
        (chain, table.explain("WORLD"))
    })
}

/// Checks that no member has chosen the component, and that each gives the reason `why`.
fn no_member_uses_it(job: &Job, why: &str) {
    for (chain, explained) in barrier_chains(job) {
        assert!(!chain.contains(&"faulty".to_string()));
        let line = format!("not faulty: {why}");
        assert!(
            explained.iter().any(|l| l.ends_with(&line)),
            "{explained:?}"
        );
    }
}

#[test]
fn what_all_are_willing_to_use_is_used_and_may_hand_down() {
    let (job, _) = faulty(5, Faults::default());
    for (chain, explained) in barrier_chains(&job) {
        assert_eq!(chain[0], "faulty");
        assert!(
            explained
                .iter()
                .any(|l| l.contains("faulty, then") && l.contains("barrier"))
        );
    }
}

#[test]
fn what_one_member_refuses_nobody_uses_and_all_know_who_and_why() {
    let (job, calls) = faulty(
        5,
        Faults {
            query_at: Some(3),
            ..Faults::default()
        },
    );
    no_member_uses_it(&job, "rank 3: there is no wire");
    assert_eq!(calls.withdrawn.load(Relaxed), 4);
}

#[test]
fn what_rank_0_refuses_the_others_do_not_use_either() {
    let (job, _) = faulty(
        5,
        Faults {
            query_at: Some(0),
            ..Faults::default()
        },
    );
    for (rank, (chain, explained)) in (0..).zip(barrier_chains(&job)) {
        assert!(!chain.contains(&"faulty".to_string()));
        let why = if rank == 0 {
            "there is no wire"
        } else {
            "rank 0 does not have it or is not willing to use it"
        };
        assert!(
            explained
                .iter()
                .any(|l| l.contains("not faulty: ") && l.ends_with(why)),
            "{explained:?}"
        );
    }
}

#[test]
fn what_fails_to_start_at_one_member_is_taken_down_at_all() {
    let (job, calls) = faulty(
        4,
        all_set_up(Faults {
            enable_at: Some(2),
            ..Faults::default()
        }),
    );
    no_member_uses_it(&job, "rank 2: the wire is stuck");
    assert_eq!(calls.enabled.load(Relaxed), 4);
    assert_eq!(calls.disabled.load(Relaxed), 4);
}

#[test]
fn what_one_member_cannot_take_is_withdrawn_at_all_and_all_know_why() {
    let (job, calls) = faulty(
        5,
        all_set_up(Faults {
            take_at: Some(4),
            ..Faults::default()
        }),
    );
    no_member_uses_it(&job, "rank 4: the wire is too short");
    assert_eq!(calls.taken.load(Relaxed), 5);
    assert_eq!(calls.withdrawn.load(Relaxed), 5);
    assert_eq!(calls.enabled.load(Relaxed), 0);
    assert_eq!(calls.disabled.load(Relaxed), 0);
}

#[test]
fn whether_something_is_set_up_together_is_rank_0_s_answer() {
    for (set_up_at, enabled) in [(None, 0), (Some(0), 4), (Some(2), 0)] {
        let (job, calls) = faulty(
            4,
            Faults {
                set_up_at,
                ..Faults::default()
            },
        );
        for (chain, _) in barrier_chains(&job) {
            assert_eq!(chain[0], "faulty");
        }
        assert_eq!(calls.enabled.load(Relaxed), enabled);
    }
}

#[test]
fn a_component_left_out_by_parameter_is_not_asked() {
    let mut params = Params::default();
    params.set("coll", "^faulty", Source::Environment);
    let job = Job {
        params,
        ..faulty(3, Faults::default()).0
    };
    for (chain, explained) in barrier_chains(&job) {
        assert!(!chain.contains(&"faulty".to_string()));
        assert!(
            explained
                .iter()
                .any(|l| l.contains("not faulty: the parameter coll"))
        );
    }
}

#[test]
fn a_priority_parameter_reorders_and_a_negative_one_leaves_out() {
    let low = Job {
        params: with_priority("1"),
        ..faulty(3, Faults::default()).0
    };
    for (chain, _) in barrier_chains(&low) {
        assert_eq!(chain.last().map(String::as_str), Some("faulty"));
    }
    let none = Job {
        params: with_priority("-1"),
        ..faulty(3, Faults::default()).0
    };
    for (chain, _) in barrier_chains(&none) {
        assert!(!chain.contains(&"faulty".to_string()));
    }
}
