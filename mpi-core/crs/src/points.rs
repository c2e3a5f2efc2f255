//! Counter of the points that a rank has entered, and the point at which the rank stops.
//!
//! A rank counts the points that it enters; between checkpoints it only counts.
//! The rank answers a request of the launcher with this count and continues.
//! When the launcher proposes a target that the rank has not passed, the rank agrees
//! and stops at the target without a further notice.
//! [`crate::coordinator`] is the launcher's part of the protocol.

use mpi_transport::rte::checkpoints::{Notice, Report};

/// The action of a rank at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Return to the program.
    Pass,
    /// Wait for the launcher's next notice.
    Hold,
    /// All ranks are at this point: take the checkpoint. If `stop`, the job then ends.
    Take { round: u64, stop: bool },
}

/// The points that one rank has entered, and its target.
#[derive(Clone, Copy, Debug, Default)]
pub struct Points {
    entered: u64,
    /// True while the program is inside the library call of its latest point.
    inside: bool,
    target: Option<Target>,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    round: u64,
    point: u64,
    /// Set by [`Notice::Go`]; true if the job ends after the checkpoint.
    go: Option<bool>,
}

impl Points {
    /// Returns the number of points that the program has entered.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// Returns true if this rank has agreed to stop at a point.
    pub fn has_target(&self) -> bool {
        self.target.is_some()
    }

    /// Returns true while the program is inside the library call of a point.
    pub fn is_inside(&self) -> bool {
        self.inside
    }

    /// Records that the program enters its next point.
    pub fn enter(&mut self) {
        self.entered += 1;
        self.inside = true;
    }

    /// Records that the program leaves the point.
    pub fn leave(&mut self) {
        self.inside = false;
    }

    /// Returns the action at the point that the program is in.
    pub fn step(&mut self) -> Step {
        match self.target {
            Some(Target { round, point, go }) if point == self.entered => match go {
                Some(stop) => {
                    self.target = None;
                    Step::Take { round, stop }
                }
                None => Step::Hold,
            },
            _ => Step::Pass,
        }
    }

    /// Processes a notice of the launcher. Returns the report to send, if any.
    pub fn note(&mut self, notice: Notice) -> Option<Report> {
        match notice {
            Notice::Ask { round } => Some(Report::Entered {
                round,
                point: self.entered,
            }),
            Notice::Target { round, point } => {
                // A rank inside a point has not passed it and can still stop there.
                let passed = self.entered > point || (self.entered == point && !self.inside);
                if passed {
                    let point = self.entered;
                    return Some(Report::Passed { round, point });
                }
                self.target = Some(Target {
                    round,
                    point,
                    go: None,
                });
                Some(Report::Agreed { round, point })
            }
            Notice::Go { round, point, stop } => {
                if let Some(target) = &mut self.target
                    && (target.round, target.point) == (round, point)
                {
                    target.go = Some(stop);
                }
                None
            }
            Notice::Drop { round } => {
                self.target = self.target.filter(|target| target.round != round);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(entered: u64) -> Points {
        let mut points = Points::default();
        for _ in 0..entered {
            points.enter();
            points.leave();
        }
        points
    }

    #[test]
    fn a_rank_stops_at_the_target_and_takes_the_checkpoint_when_all_have_agreed() {
        let (round, point) = (1, 5);
        let mut rank = at(3);
        let entered = Report::Entered { round, point: 3 };
        assert_eq!(rank.note(Notice::Ask { round }), Some(entered));
        let agreed = Report::Agreed { round, point };
        assert_eq!(rank.note(Notice::Target { round, point }), Some(agreed));
        rank.enter();
        assert_eq!(rank.step(), Step::Pass);
        rank.leave();
        rank.enter();
        assert_eq!(rank.step(), Step::Hold);
        let stop = false;
        assert_eq!(rank.note(Notice::Go { round, point, stop }), None);
        assert_eq!(rank.step(), Step::Take { round, stop });
        assert_eq!(rank.step(), Step::Pass);
    }

    #[test]
    fn a_rank_that_waits_at_a_target_goes_on_to_a_later_one() {
        let round = 1;
        let mut rank = at(4);
        rank.note(Notice::Target { round, point: 5 });
        rank.enter();
        assert_eq!(rank.step(), Step::Hold);
        rank.note(Notice::Target { round, point: 7 });
        assert_eq!(rank.step(), Step::Pass);
        // A notice about the earlier target arrives late and is ignored.
        let (point, stop) = (5, true);
        rank.note(Notice::Go { round, point, stop });
        assert_eq!(rank.step(), Step::Pass);
        rank.leave();
    }

    #[test]
    fn a_target_that_was_passed_is_reported_and_a_dropped_one_is_forgotten() {
        let round = 1;
        let mut rank = at(5);
        let passed = Report::Passed { round, point: 5 };
        let target = Notice::Target { round, point: 5 };
        assert_eq!(rank.note(target), Some(passed));
        rank.note(Notice::Target { round, point: 6 });
        rank.enter();
        assert_eq!(rank.step(), Step::Hold);
        rank.note(Notice::Drop { round: 0 });
        assert_eq!(rank.step(), Step::Hold);
        rank.note(Notice::Drop { round });
        assert_eq!(rank.step(), Step::Pass);
    }
}
