//! Agreement: what one member refuses nobody uses, and everybody knows why.

use super::*;
use crate::coll::Call;
use crate::engine::testing::Job;
use mpi_base::param::Source;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;

/// A component with a fault at one rank.
struct Faulty {
    name: &'static str,
    /// Refuses when asked.
    query_at: Option<u32>,
    /// Fails when enabled.
    enable_at: Option<u32>,
}

struct FaultyModule {
    fails: bool,
    disabled: Cell<u32>,
}

impl Component for Faulty {
    fn name(&self) -> &str {
        self.name
    }
    fn priority(&self) -> i32 {
        90
    }
    fn query(&self, comm: &Comm) -> Result<Rc<dyn Module>, Refusal> {
        let at = |rank: Option<u32>| rank.is_some() && rank == Some(comm.engine().me());
        if at(self.query_at) {
            return Err(Refusal("there is no wire".into()));
        }
        Ok(Rc::new(FaultyModule {
            fails: at(self.enable_at),
            disabled: Cell::new(0),
        }))
    }
}

impl Module for FaultyModule {
    fn serves(&self) -> CallSet {
        CallSet::NONE.with(CallId::Barrier)
    }
    fn enable<'a>(
        &'a self,
        _: &'a Comm,
    ) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + 'a>> {
        let outcome = if self.fails {
            Err(Refusal("the wire is stuck".into()))
        } else {
            Ok(())
        };
        Box::pin(std::future::ready(outcome))
    }
    fn start(&self, cx: Cx, call: Call) -> Running {
        Box::pin(async move { Table::next(&cx, call).await })
    }
    fn disable(&self) {
        self.disabled.set(self.disabled.get() + 1);
    }
}

fn with_faulty(query_at: Option<u32>, enable_at: Option<u32>) -> Vec<Box<dyn Component>> {
    let mut all = crate::coll::built_in();
    all.push(Box::new(Faulty {
        name: "faulty",
        query_at,
        enable_at,
    }));
    all
}

fn with_priority(value: &str) -> Params {
    let mut params = Params::default();
    params.set("coll_faulty_priority", value, Source::Environment);
    params
}

fn barrier_chains(job: &Job) -> Vec<(Vec<String>, Vec<String>)> {
    job.run(|engine| {
        let world = engine.world().expect("a world");
        world.collective(Call::Barrier).expect("a barrier");
        let table = world.coll().expect("a table");
        let chain = table.chain(CallId::Barrier).map(str::to_owned).collect();
        (chain, table.explain("WORLD"))
    })
}

#[test]
fn what_all_are_willing_to_use_is_used_and_may_hand_down() {
    let job = Job {
        coll: Box::new(|| with_faulty(None, None)),
        ..Job::of(5)
    };
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
    let job = Job {
        coll: Box::new(|| with_faulty(Some(3), None)),
        ..Job::of(5)
    };
    for (chain, explained) in barrier_chains(&job) {
        assert!(!chain.contains(&"faulty".to_string()));
        assert!(
            explained
                .iter()
                .any(|l| l.ends_with("not faulty: rank 3: there is no wire"))
        );
    }
}

#[test]
fn what_rank_0_refuses_the_others_do_not_use_either() {
    let job = Job {
        coll: Box::new(|| with_faulty(Some(0), None)),
        ..Job::of(5)
    };
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
    let job = Job {
        coll: Box::new(|| with_faulty(None, Some(2))),
        ..Job::of(4)
    };
    for (chain, explained) in barrier_chains(&job) {
        assert!(!chain.contains(&"faulty".to_string()));
        assert!(
            explained
                .iter()
                .any(|l| l.ends_with("not faulty: rank 2: the wire is stuck"))
        );
    }
}

#[test]
fn a_component_left_out_by_parameter_is_not_asked() {
    let mut params = Params::default();
    params.set("coll", "^faulty", Source::Environment);
    let job = Job {
        params,
        coll: Box::new(|| with_faulty(None, None)),
        ..Job::of(3)
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
        coll: Box::new(|| with_faulty(None, None)),
        ..Job::of(3)
    };
    for (chain, _) in barrier_chains(&low) {
        assert_eq!(chain.last().map(String::as_str), Some("faulty"));
    }
    let none = Job {
        params: with_priority("-1"),
        coll: Box::new(|| with_faulty(None, None)),
        ..Job::of(3)
    };
    for (chain, _) in barrier_chains(&none) {
        assert!(!chain.contains(&"faulty".to_string()));
    }
}

#[test]
fn long_texts_reach_everybody_whole() {
    let long = "the reason goes on and on; ".repeat(60);
    let job = Job::of(6);
    let heard = job.run(|engine| {
        let world = engine.world().expect("a world");
        let mine = if world.rank() == 4 { long.as_str() } else { "" };
        engine
            .block_on(tell(&world.hidden(), mine, 4))
            .expect("a broadcast")
    });
    assert!(heard.iter().all(|h| *h == long));
}
