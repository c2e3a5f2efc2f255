//! The launcher's agreement with all ranks of a job on the point at which they take a checkpoint. A pure state machine.
//!
//! A rank must not be stopped anywhere, since others may need its next message to reach their points. So no rank stops before all agree:
//! 1. the launcher asks each rank how many points it has entered; ranks report that while they run or wait inside MPI;
//! 2. the target is one more than the maximum, and each rank agrees to stop there, or reports that it has passed it meanwhile;
//! 3. if a rank has passed it, the target is raised, by twice as much each time, and asked for again: ranks that wait at the earlier one go on;
//! 4. if all have agreed, all are told to take the checkpoint at the target, and rank 0 reports the outcome.
//!
//! This ends: a raise needs a rank that enters as many points as the distance of the target while its answer is on the way.
//! A checkpoint that is asked for meanwhile is the same one. A rank that leaves or dies before the outcome drops the round,
//! and the job goes on without a checkpoint.

use mpi_transport::rte::checkpoints::{Notice, Report};

/// What a round has led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The number of the checkpoint and its bytes; the job ends if `stop`.
    Taken { number: u64, bytes: u64, stop: bool },
    /// The sentence that says why.
    NotTaken { why: String },
}

/// What the launcher does next: notices for all ranks, and outcomes for the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    pub notice: Option<Notice>,
    pub outcome: Option<Outcome>,
}

/// The agreement of one job.
#[derive(Debug)]
pub struct Coordinator {
    /// Whether each rank is still there.
    present: Vec<bool>,
    round: u64,
    stage: Stage,
    /// Whether the job ends after the checkpoint of this round.
    stop: bool,
    raises: u32,
}

#[derive(Debug)]
enum Stage {
    Idle,
    /// The points that ranks have reported.
    Asked(Vec<Option<u64>>),
    /// Whether each rank has agreed to the target.
    Proposed {
        target: u64,
        agreed: Vec<bool>,
        passed: Option<u64>,
    },
    /// All ranks stop at the target.
    Writing {
        target: u64,
    },
}

/// The largest exponent of the distance of a raised target.
const FARTHEST: u32 = 20;

impl Coordinator {
    /// A job of `ranks` ranks, which takes no checkpoint yet.
    pub fn new(ranks: usize) -> Coordinator {
        Coordinator {
            present: vec![true; ranks],
            round: 0,
            stage: Stage::Idle,
            stop: false,
            raises: 0,
        }
    }

    /// Returns true while a checkpoint is asked for and not taken.
    pub fn is_busy(&self) -> bool {
        !matches!(self.stage, Stage::Idle)
    }

    /// Describes what the round waits for, for users.
    pub fn waits_for(&self) -> Option<String> {
        let missing = |has: &dyn Fn(usize) -> bool| {
            let ranks = (0..self.present.len()).filter(|rank| !has(*rank));
            let ranks: Vec<String> = ranks.map(|rank| rank.to_string()).collect();
            let plural = if ranks.len() == 1 { "" } else { "s" };
            format!("rank{plural} {}", ranks.join(", "))
        };
        match &self.stage {
            Stage::Idle => None,
            Stage::Asked(points) => {
                let has = |rank: usize| points.get(rank).is_some_and(Option::is_some);
                Some(format!("an answer of {}", missing(&has)))
            }
            Stage::Proposed { target, agreed, .. } => {
                let has = |rank: usize| agreed.get(rank).copied().unwrap_or(false);
                Some(format!("{} to agree to point {target}", missing(&has)))
            }
            Stage::Writing { target } => Some(format!("all ranks at point {target}")),
        }
    }

    /// A checkpoint is asked for; the job ends after it if `stop`.
    pub fn request(&mut self, stop: bool) -> Actions {
        if let Some(gone) = self.present.iter().position(|present| !present) {
            return Actions::not_taken(format!("rank {gone} has left the job"));
        }
        if self.is_busy() {
            // If the ranks have the last word already, a later request to stop is another round.
            self.stop |= stop && !matches!(self.stage, Stage::Writing { .. });
            return Actions::default();
        }
        self.round += 1;
        (self.stop, self.raises) = (stop, 0);
        self.stage = Stage::Asked(vec![None; self.present.len()]);
        Actions::notice(Notice::Ask { round: self.round })
    }

    /// A rank has sent a report.
    pub fn report(&mut self, rank: usize, report: Report) -> Actions {
        if rank >= self.present.len() {
            return Actions::default();
        }
        match report {
            Report::Request => self.request(false),
            Report::Entered { round, point } if round == self.round => self.entered(rank, point),
            Report::Agreed { round, point } if round == self.round => self.agreed(rank, point),
            Report::Passed { round, point } if round == self.round => self.passed(rank, point),
            Report::Taken {
                round,
                number,
                bytes,
            } if round == self.round && rank == 0 => {
                let stop = self.stop;
                self.end(Outcome::Taken {
                    number,
                    bytes,
                    stop,
                })
            }
            Report::NotTaken { round, why } if round == self.round && rank == 0 => {
                self.end(Outcome::NotTaken { why })
            }
            // Of an earlier round.
            _ => Actions::default(),
        }
    }

    /// A rank has left MPI or has died, after this number of points if that is known.
    pub fn left(&mut self, rank: usize) -> Actions {
        if let Some(present) = self.present.get_mut(rank) {
            *present = false;
        }
        let Some(waits) = self.waits_for() else {
            return Actions::default();
        };
        let why = format!("rank {rank} ended while the checkpoint waited for {waits}");
        let mut actions = self.end(Outcome::NotTaken { why });
        actions.notice = Some(Notice::Drop { round: self.round });
        actions
    }

    fn end(&mut self, outcome: Outcome) -> Actions {
        if !self.is_busy() {
            return Actions::default();
        }
        self.stage = Stage::Idle;
        Actions {
            notice: None,
            outcome: Some(outcome),
        }
    }

    fn entered(&mut self, rank: usize, point: u64) -> Actions {
        let Stage::Asked(points) = &mut self.stage else {
            return Actions::default();
        };
        points[rank] = Some(point);
        if !points.iter().all(Option::is_some) {
            return Actions::default();
        }
        let highest = points.iter().flatten().copied().max().unwrap_or(0);
        self.propose(highest)
    }

    /// Proposes a point behind the highest one that a rank has entered.
    fn propose(&mut self, highest: u64) -> Actions {
        let target = highest.saturating_add(1 << self.raises.min(FARTHEST));
        self.raises += 1;
        self.stage = Stage::Proposed {
            target,
            agreed: vec![false; self.present.len()],
            passed: None,
        };
        Actions::notice(Notice::Target {
            round: self.round,
            point: target,
        })
    }

    fn agreed(&mut self, rank: usize, point: u64) -> Actions {
        match &mut self.stage {
            Stage::Proposed { target, agreed, .. } if *target == point => agreed[rank] = true,
            _ => return Actions::default(),
        }
        self.settle()
    }

    fn passed(&mut self, rank: usize, point: u64) -> Actions {
        match &mut self.stage {
            // An answer to an earlier target names a point below this one.
            Stage::Proposed {
                target,
                agreed,
                passed,
            } if point >= *target => {
                agreed[rank] = true;
                *passed = (*passed).max(Some(point));
            }
            _ => return Actions::default(),
        }
        self.settle()
    }

    /// Goes on when all ranks have answered.
    fn settle(&mut self) -> Actions {
        let Stage::Proposed {
            target,
            agreed,
            passed,
        } = &self.stage
        else {
            return Actions::default();
        };
        if !agreed.iter().all(|answered| *answered) {
            return Actions::default();
        }
        match *passed {
            Some(point) => self.propose(point),
            None => {
                let point = *target;
                self.stage = Stage::Writing { target: point };
                Actions::notice(Notice::Go {
                    round: self.round,
                    point,
                    stop: self.stop,
                })
            }
        }
    }
}

impl Actions {
    fn notice(notice: Notice) -> Actions {
        Actions {
            notice: Some(notice),
            outcome: None,
        }
    }

    fn not_taken(why: String) -> Actions {
        Actions {
            notice: None,
            outcome: Some(Outcome::NotTaken { why }),
        }
    }
}

#[cfg(test)]
mod tests;
