//! The launcher's agreement with all ranks of a job on the point at which they take a checkpoint.
//!
//! This module is a state machine without I/O.
//! A rank that stopped at any point could block other ranks that need its next message.
//! So no rank stops before all ranks have agreed on one point:
//! 1. The launcher requests from each rank the number of points that the rank has entered.
//!    Ranks answer during MPI calls.
//! 2. The target is the maximum plus 1. Each rank agrees to stop there, or reports that it has
//!    passed the target.
//! 3. If a rank has passed the target, the launcher proposes a new one: the highest number
//!    of points that a rank has reported, plus 2, then plus 4, 8, ...
//!    Ranks that wait at the earlier target continue.
//! 4. If all ranks have agreed, the launcher notifies all to take the checkpoint at the target.
//!    Rank 0 reports the outcome.
//!
//! The protocol terminates: the target is raised only if a rank enters all points up to the target
//! while its answer is in flight. A checkpoint request during a round joins the round.
//! If a rank leaves MPI or dies before the outcome, the launcher
//! drops the round and the job continues without a checkpoint.

use mpi_transport::rte::checkpoints::{Notice, Report};

/// The outcome of a round, that is of one attempt to take a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The checkpoint was taken: its number and size in bytes. The job ends if `stop`.
    Taken { number: u64, bytes: u64, stop: bool },
    /// The checkpoint was not taken; `why` is the reason as a sentence.
    NotTaken { why: String },
}

/// The launcher's next actions: a notice for all ranks, and an outcome for the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    pub notice: Option<Notice>,
    pub outcome: Option<Outcome>,
}

/// The state of the checkpoint agreement of one job.
#[derive(Debug)]
pub struct Coordinator {
    /// For each rank: false after it has left MPI or died.
    present: Vec<bool>,
    round: u64,
    stage: Stage,
    /// True if the job must end after the checkpoint of this round.
    stop: bool,
    raises: u32,
    /// The highest number of points that a rank has entered; `None` until all ranks have reported theirs once.
    entered: Option<u64>,
}

#[derive(Debug)]
enum Stage {
    Idle,
    /// The number of points that each rank has entered; `None` until the rank has reported it.
    Asked(Vec<Option<u64>>),
    /// A target is proposed. `agreed[rank]` is true if the rank has answered;
    /// `passed` is the highest number of points reported by ranks that have passed the target.
    Proposed {
        target: u64,
        agreed: Vec<bool>,
        passed: Option<u64>,
    },
    /// All ranks stop at the target and write the checkpoint.
    Writing {
        target: u64,
    },
}

/// The maximum exponent: a target exceeds the highest reported number of points by at most 2^20.
const FARTHEST: u32 = 20;

impl Coordinator {
    /// Creates the state of a job of `ranks` ranks, without a checkpoint in progress.
    pub fn new(ranks: usize) -> Coordinator {
        Coordinator {
            present: vec![true; ranks],
            round: 0,
            stage: Stage::Idle,
            stop: false,
            raises: 0,
            entered: None,
        }
    }

    /// Returns true if all ranks have reported that they have entered no point:
    /// the program probably does not call the function.
    pub fn is_without_points(&self) -> bool {
        self.entered == Some(0)
    }

    /// Returns true while a checkpoint is requested and has no outcome yet.
    pub fn is_busy(&self) -> bool {
        !matches!(self.stage, Stage::Idle)
    }

    /// Describes, as text for users, the ranks or the point that the round waits for.
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

    /// Starts a round for a requested checkpoint. If `stop`, the job ends after the checkpoint.
    pub fn request(&mut self, stop: bool) -> Actions {
        if let Some(gone) = self.present.iter().position(|present| !present) {
            return Actions::not_taken(format!("rank {gone} has left the job"));
        }
        if self.is_busy() {
            // A round whose final notice is sent cannot be changed to stop the job.
            self.stop |= stop && !matches!(self.stage, Stage::Writing { .. });
            return Actions::default();
        }
        self.round += 1;
        (self.stop, self.raises) = (stop, 0);
        self.stage = Stage::Asked(vec![None; self.present.len()]);
        Actions::notice(Notice::Ask { round: self.round })
    }

    /// Processes a report of a rank.
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
                self.entered = self.entered.max(Some(1));
                self.end(Outcome::Taken {
                    number,
                    bytes,
                    stop,
                })
            }
            Report::NotTaken { round, why } if round == self.round && rank == 0 => {
                self.end(Outcome::NotTaken { why })
            }
            // The report belongs to an earlier round.
            _ => Actions::default(),
        }
    }

    /// Drops the round because a rank has left MPI or has died.
    pub fn left(&mut self, rank: usize) -> Actions {
        if let Some(present) = self.present.get_mut(rank) {
            *present = false;
        }
        let Some(waits) = self.waits_for() else {
            return Actions::default();
        };
        let mut why = format!("rank {rank} ended while the checkpoint waited for {waits}");
        if self.is_without_points() {
            why += "; no rank has called MPIX_Checkpoint_point";
        }
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
        self.entered = self.entered.max(Some(highest));
        self.propose(highest)
    }

    /// Proposes a target after `highest`, the largest number of points that a rank has entered.
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
            // In an answer to an earlier target, `point` is smaller than the present target.
            Stage::Proposed {
                target,
                agreed,
                passed,
            } if point >= *target => {
                agreed[rank] = true;
                *passed = (*passed).max(Some(point));
                self.entered = self.entered.max(Some(point));
            }
            _ => return Actions::default(),
        }
        self.settle()
    }

    /// When all ranks have answered, raises the target or notifies all ranks to write.
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
