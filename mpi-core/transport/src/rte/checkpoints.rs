//! Messages between a launcher and its processes about checkpoints, as lines of PMI-1.
//!
//! Only Portcullis's mpirun sends notices, and only
//! if it was started with a folder for checkpoints;
//! mpirun announces this in the environment of the processes ([`SERVED`]).
//! A process receives notices only
//! if it has announced in its greeting that it understands them ([`super::wire::HEARS_CHECKPOINTS`]).
//! The protocol is described in `mpi_crs::coordinator`.

use super::wire::{CHECKPOINT, Line, Message, hex, unhex};

/// The environment variable that is `1` in the ranks of a launcher that takes checkpoints.
pub const SERVED: &str = "PORTCULLIS_CHECKPOINTS";

/// A notice from the launcher to all processes of a job. `round` is the number of the agreement to which the notice belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A checkpoint is requested. Each process must report the number of points (possible places for a checkpoint) that it has entered.
    Ask { round: u64 },
    /// Each process that has not passed the point `point` must stop at this point.
    Target { round: u64, point: u64 },
    /// All processes stop at this point, and the checkpoint is taken there.
    /// If `stop` is true, the job ends after the checkpoint.
    Go { round: u64, point: u64, stop: bool },
    /// The round is abandoned without a checkpoint.
    Drop { round: u64 },
}

/// A report from a process to the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The program requests a checkpoint.
    Request,
    /// The number of points that the process has entered so far, in reply to `Ask`.
    Entered { round: u64, point: u64 },
    /// The process will stop at the point `point`.
    Agreed { round: u64, point: u64 },
    /// The process has already passed the target. `point` is the number of points that it has entered so far.
    Passed { round: u64, point: u64 },
    /// Sent by rank 0: the checkpoint of this round has been written.
    Taken { round: u64, number: u64, bytes: u64 },
    /// Sent by rank 0: the checkpoint was not taken; `why` is a sentence.
    NotTaken { round: u64, why: String },
}

/// Maximum length in bytes of a sentence (`why`) in a line.
const SENTENCE: usize = 400;

impl Notice {
    /// Returns the notice as a line of PMI-1.
    pub fn line(self) -> Line {
        let line = |what: &str, round: u64| {
            Line::cmd(CHECKPOINT)
                .with("what", what)
                .with("round", round)
        };
        match self {
            Notice::Ask { round } => line("ask", round),
            Notice::Target { round, point } => line("target", round).with("point", point),
            Notice::Go { round, point, stop } => line("go", round)
                .with("point", point)
                .with("stop", u8::from(stop)),
            Notice::Drop { round } => line("drop", round),
        }
    }

    /// Parses a notice; returns `None` if the message is not a notice.
    pub fn read(message: &Message) -> Option<Notice> {
        let round = number(message, "round")?;
        let point = || number(message, "point");
        Some(match message.get("what")? {
            "ask" => Notice::Ask { round },
            "target" => Notice::Target {
                round,
                point: point()?,
            },
            "go" => Notice::Go {
                round,
                point: point()?,
                stop: message.get("stop") == Some("1"),
            },
            "drop" => Notice::Drop { round },
            _ => return None,
        })
    }
}

impl Report {
    /// Returns the report as a line of PMI-1.
    pub fn line(&self) -> Line {
        let line = |what: &str| Line::cmd(CHECKPOINT).with("what", what);
        let at = |what: &str, round: &u64, point: &u64| {
            line(what).with("round", round).with("point", point)
        };
        match self {
            Report::Request => line("request"),
            Report::Entered { round, point } => at("entered", round, point),
            Report::Agreed { round, point } => at("agreed", round, point),
            Report::Passed { round, point } => at("passed", round, point),
            Report::Taken {
                round,
                number,
                bytes,
            } => (line("taken").with("round", round))
                .with("number", number)
                .with("bytes", bytes),
            Report::NotTaken { round, why } => {
                let mut end = why.len().min(SENTENCE);
                while !why.is_char_boundary(end) {
                    end -= 1;
                }
                let why = match &why[..end] {
                    "" => "?",
                    why => why,
                };
                line("not_taken")
                    .with("round", round)
                    .with("why", hex(why.as_bytes()))
            }
        }
    }

    /// Parses a report; returns `None` if the message is not a report.
    pub fn read(message: &Message) -> Option<Report> {
        let what = message.get("what")?;
        if what == "request" {
            return Some(Report::Request);
        }
        let round = number(message, "round")?;
        let point = || number(message, "point");
        Some(match what {
            "entered" => Report::Entered {
                round,
                point: point()?,
            },
            "agreed" => Report::Agreed {
                round,
                point: point()?,
            },
            "passed" => Report::Passed {
                round,
                point: point()?,
            },
            "taken" => Report::Taken {
                round,
                number: number(message, "number")?,
                bytes: number(message, "bytes")?,
            },
            "not_taken" => {
                let why = unhex(message.get("why")?)?;
                let why = String::from_utf8_lossy(&why).into_owned();
                Report::NotTaken { round, why }
            }
            _ => return None,
        })
    }
}

fn number(message: &Message, key: &str) -> Option<u64> {
    message.get(key)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(line: Line) -> Message {
        let bytes = line.finish_short().unwrap();
        Message::parse(bytes.strip_suffix(b"\n").unwrap()).unwrap()
    }

    #[test]
    fn notices_and_reports_come_back_from_their_lines() {
        let (round, point) = (3, u64::MAX);
        for notice in [
            Notice::Ask { round },
            Notice::Target { round, point },
            Notice::Go {
                round,
                point,
                stop: true,
            },
            Notice::Drop { round },
        ] {
            assert_eq!(Notice::read(&message(notice.line())), Some(notice));
        }
        for report in [
            Report::Request,
            Report::Entered { round, point: 0 },
            Report::Agreed { round, point },
            Report::Passed { round, point },
            Report::Taken {
                round,
                number: 7,
                bytes: 1 << 40,
            },
            Report::NotTaken {
                round,
                why: "rank 3 has an active receive".into(),
            },
        ] {
            assert_eq!(Report::read(&message(report.line())), Some(report));
        }
        let long = Report::NotTaken {
            round,
            why: "ä".repeat(1000),
        };
        assert!(Report::read(&message(long.line())).is_some());
        for line in [
            "what=go round=1",
            "what=x round=1",
            "round=1",
            "what=ask round=-1",
        ] {
            let line = format!("cmd=checkpoint {line}");
            let message = Message::parse(line.as_bytes()).unwrap();
            assert_eq!(
                (Notice::read(&message), Report::read(&message)),
                (None, None)
            );
        }
    }
}
