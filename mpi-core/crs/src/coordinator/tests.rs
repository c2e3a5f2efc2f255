//! Simulated jobs: ranks enter points and poll for notices in random order.
//! Notices and reports wait in queues for a random number of steps.

use super::*;
use crate::points::{Points, Step};
use proptest::prelude::*;
use std::collections::VecDeque;

/// A job whose ranks are neighbours in a ring: no rank is more than one iteration ahead of its neighbours.
struct Model {
    coordinator: Coordinator,
    ranks: Vec<Points>,
    /// The number of iterations that each rank has begun.
    begun: Vec<u64>,
    to_rank: Vec<VecDeque<Notice>>,
    to_launcher: VecDeque<(usize, Report)>,
    taken: Vec<Option<u64>>,
}

impl Model {
    fn new(ranks: usize) -> Model {
        Model {
            coordinator: Coordinator::new(ranks),
            ranks: vec![Points::default(); ranks],
            begun: vec![0; ranks],
            to_rank: vec![VecDeque::new(); ranks],
            to_launcher: VecDeque::new(),
            taken: vec![None; ranks],
        }
    }

    fn apply(&mut self, actions: Actions) {
        assert_eq!(actions.outcome, None);
        if let Some(notice) = actions.notice {
            self.to_rank
                .iter_mut()
                .for_each(|queue| queue.push_back(notice));
        }
    }

    /// The rank enters its next point if no neighbour is an iteration behind.
    fn run(&mut self, rank: usize) {
        let points = &mut self.ranks[rank];
        if points.is_inside() {
            return;
        }
        let (n, now) = (self.begun.len(), self.begun[rank]);
        let neighbours = [(rank + 1) % n, (rank + n - 1) % n];
        if neighbours.iter().all(|other| self.begun[*other] >= now) {
            self.begun[rank] += 1;
            points.enter();
        }
    }

    /// The rank leaves the point unless it must wait there for the launcher.
    fn leave(&mut self, rank: usize) {
        let points = &mut self.ranks[rank];
        match points.step() {
            Step::Pass => points.leave(),
            Step::Hold => {}
            Step::Take { .. } => {
                self.taken[rank] = Some(points.entered());
                points.leave();
            }
        }
    }

    fn poll(&mut self, rank: usize) {
        if let Some(notice) = self.to_rank[rank].pop_front()
            && let Some(report) = self.ranks[rank].note(notice)
        {
            self.to_launcher.push_back((rank, report));
        }
    }

    fn serve(&mut self) {
        if let Some((rank, report)) = self.to_launcher.pop_front() {
            let actions = self.coordinator.report(rank, report);
            self.apply(actions);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn all_ranks_stop_at_one_point_in_any_order_of_steps(
        ranks in 1..5usize,
        asked in 0..40usize,
        mut seed in any::<u64>(),
    ) {
        let mut model = Model::new(ranks);
        // The minimum of two random ranks makes lower ranks run more often.
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for step in 0..20_000 {
            if step == asked {
                let actions = model.coordinator.request(false);
                model.apply(actions);
            }
            let rank = next(ranks).min(next(ranks));
            match next(6) {
                0 => model.poll(next(ranks)),
                1 => model.serve(),
                2 => model.leave(rank),
                _ => {
                    model.run(rank);
                    model.leave(rank);
                }
            }
            if model.taken.iter().all(Option::is_some) {
                break;
            }
        }
        let points: Vec<_> = model.taken.to_vec();
        prop_assert!(points[0].is_some(), "{points:?} {:?}", model.coordinator);
        prop_assert!(points.iter().all(|point| *point == points[0]), "{points:?}");
    }
}

fn notice(actions: &Actions) -> Notice {
    actions.notice.expect("a notice")
}

#[test]
fn a_passed_target_is_raised_farther_each_time() {
    let mut job = Coordinator::new(2);
    assert_eq!(notice(&job.request(false)), Notice::Ask { round: 1 });
    // A second request during a round joins that round.
    assert_eq!(job.request(true), Actions::default());
    let round = 1;
    job.report(0, Report::Entered { round, point: 4 });
    let actions = job.report(1, Report::Entered { round, point: 9 });
    assert_eq!(notice(&actions), Notice::Target { round, point: 10 });
    job.report(0, Report::Agreed { round, point: 10 });
    let actions = job.report(1, Report::Passed { round, point: 12 });
    assert_eq!(notice(&actions), Notice::Target { round, point: 14 });
    // An answer to the earlier target arrives late and is ignored.
    assert_eq!(
        job.report(0, Report::Agreed { round, point: 10 }),
        Actions::default()
    );
    job.report(0, Report::Agreed { round, point: 14 });
    let actions = job.report(1, Report::Agreed { round, point: 14 });
    let go = Notice::Go {
        round,
        point: 14,
        stop: true,
    };
    assert_eq!(notice(&actions), go);
    let (number, bytes, stop) = (7, 80, true);
    let taken = Report::Taken {
        round,
        number,
        bytes,
    };
    let outcome = job.report(0, taken).outcome;
    assert_eq!(
        outcome,
        Some(Outcome::Taken {
            number,
            bytes,
            stop
        })
    );
    assert!(!job.is_busy());
    assert_eq!(notice(&job.request(false)), Notice::Ask { round: 2 });
}

#[test]
fn a_rank_that_ends_drops_the_round_and_later_requests_are_refused() {
    let mut job = Coordinator::new(2);
    job.request(false);
    job.report(0, Report::Entered { round: 1, point: 0 });
    let actions = job.left(0);
    assert_eq!(notice(&actions), Notice::Drop { round: 1 });
    let why = "rank 0 ended while the checkpoint waited for an answer of rank 1".to_owned();
    assert_eq!(actions.outcome, Some(Outcome::NotTaken { why }));
    let why = "rank 0 has left the job".to_owned();
    let refused = Some(Outcome::NotTaken { why });
    assert_eq!(job.request(false).outcome, refused);
    assert_eq!(job.left(1), Actions::default());
}

/// A program without calls of the function is named as the cause, also if only the timer has requested the checkpoint.
#[test]
fn a_program_without_points_is_the_reason_that_no_checkpoint_is_taken() {
    let reason = |points: u64| {
        let mut job = Coordinator::new(2);
        job.request(false);
        for rank in 0..2 {
            let point = points * rank as u64;
            job.report(rank, Report::Entered { round: 1, point });
        }
        let Some(Outcome::NotTaken { why }) = job.left(0).outcome else {
            panic!("a checkpoint of ranks that have ended");
        };
        assert_eq!(job.is_without_points(), points == 0);
        why
    };
    let waits = "rank 0 ended while the checkpoint waited for ranks 0, 1 to agree to point ";
    assert_eq!(
        reason(0),
        format!("{waits}1; no rank has called MPIX_Checkpoint_point")
    );
    assert_eq!(reason(3), format!("{waits}4"));
    // As long as a rank has not answered, nothing is known about its calls.
    let mut job = Coordinator::new(2);
    job.request(false);
    job.report(0, Report::Entered { round: 1, point: 0 });
    assert!(!job.is_without_points());
}
