//! The result counts of a suite, and their table.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::corpus::Case;
use super::ranks::Ranks;
use super::verdict::{Seen, Verdict};

/// The mistake in programs in which both ranks send before they receive.
const BUFFERING: &str = "ranks 0 and 1 both send to the other and wait for that before their receives, which relies on buffering (section 3.5); the suite calls the same code wrong in P2PBuffering_Send_Irecv_Send_Irecv_nok";

/// Programs that a suite calls correct although they are not, each with its mistake.
const WRONG_AFTER_ALL: &[(&str, &str)] = &[
    (
        "correct-coll-alltoallv0",
        "it frees none of its communicators",
    ),
    (
        "correct-rma-reqops",
        "the request of MPI_Rget_accumulate does not complete the access at the target (section 12.3.5), and no flush follows",
    ),
    ("P2PCallMatching_Isend_Irecv_Irecv_Isend_ok", BUFFERING),
    ("P2PCallMatching_Isend_Recv_Recv_Isend_ok", BUFFERING),
    ("P2PCallMatching_Send_Irecv_Irecv_Send_ok", BUFFERING),
    ("P2PCallMatching_Send_Recv_Recv_Send_ok", BUFFERING),
];

/// The counts of a suite, per kind of mistake.
pub(super) struct Tally {
    name: &'static str,
    kinds: BTreeMap<String, Kind>,
    correct: usize,
    false_alarms: Vec<String>,
    /// The number of reports about [`WRONG_AFTER_ALL`] programs, which the suite calls correct.
    true_alarms: usize,
    not_compiled: Vec<String>,
    /// The number of programs with a reported mistake whose description names MPI functions.
    /// `named` counts those of them whose messages name such a function.
    described: usize,
    named: usize,
    /// `marked`: the number of programs with a reported mistake in which the suite marks a wrong line
    /// (by the comment `MBIERROR`) that only some ranks execute.
    /// `accused`: the number of those programs whose messages name these ranks.
    marked: usize,
    accused: usize,
    /// Durations until mpirun ended a deadlocked job.
    deaths: Vec<Duration>,
    /// Durations of the correct programs' runs without checks, which show what starting and ending a job takes on this machine.
    lives: Vec<Duration>,
    lines: Vec<String>,
}

#[derive(Default)]
struct Kind {
    programs: usize,
    error: usize,
    dead: usize,
    warning: usize,
    with_checks: usize,
}

impl Tally {
    pub fn new(name: &'static str) -> Tally {
        Tally {
            name,
            kinds: BTreeMap::new(),
            correct: 0,
            false_alarms: Vec::new(),
            true_alarms: 0,
            not_compiled: Vec::new(),
            described: 0,
            named: 0,
            marked: 0,
            accused: 0,
            deaths: Vec::new(),
            lives: Vec::new(),
            lines: Vec::new(),
        }
    }

    pub fn add(&mut self, case: &Case, seen: Option<[Seen; 2]>) {
        let Some([plain, checked]) = seen else {
            self.not_compiled.push(case.name.clone());
            return;
        };
        let mistake = case.mistake.as_deref().unwrap_or("correct");
        self.lines.push(format!(
            "{mistake}\t{}\t{:?}\t{:?}\t{:.1}\t{}\t{}",
            case.name,
            plain.verdict,
            checked.verdict,
            plain.took.as_secs_f64(),
            plain.sentence,
            checked.sentence
        ));
        for seen in [&plain, &checked] {
            if seen.verdict == Verdict::DeadJob {
                self.deaths.push(seen.took);
            }
        }
        if case.mistake.is_none() {
            self.correct += 1;
            self.lives.push(plain.took);
            let is_reported = |seen: &&Seen| seen.verdict != Verdict::Nothing;
            if [&plain, &checked].iter().any(is_reported) {
                // The name of a program's second run ends in "-1".
                let program = case.name.trim_end_matches("-1");
                match WRONG_AFTER_ALL.iter().any(|(name, _)| *name == program) {
                    true => self.true_alarms += 1,
                    false => self.false_alarms.push(case.name.clone()),
                }
            }
            return;
        }
        let kind = self.kinds.entry(mistake.to_owned()).or_default();
        kind.programs += 1;
        match plain.verdict {
            Verdict::Error => kind.error += 1,
            Verdict::DeadJob => kind.dead += 1,
            Verdict::Warning => kind.warning += 1,
            _ => {}
        }
        let is_found = plain.verdict.is_found() || checked.verdict.is_found();
        kind.with_checks += usize::from(is_found);
        if is_found && !case.culprits.is_empty() {
            // A failed call is the mistake of one rank, although the lines of both ranks of a message are marked.
            let is_right = |seen: &&Seen| {
                let mut culprits = case.culprits.iter();
                let is_named = |ranks: &Ranks| !seen.ranks.is_disjoint(ranks);
                match seen.verdict {
                    Verdict::Error => culprits.any(is_named),
                    _ => culprits.all(is_named),
                }
            };
            let is_accused = [&plain, &checked].iter().any(is_right);
            self.marked += 1;
            self.accused += usize::from(is_accused);
            if !is_accused {
                self.lines.push(format!(
                    "other ranks named\t{}\texpected {:?}",
                    case.name, case.culprits
                ));
            }
        }
        if is_found && !case.functions.is_empty() {
            let is_named = [&plain, &checked]
                .iter()
                .any(|seen| !seen.functions.is_disjoint(&case.functions));
            self.described += 1;
            self.named += usize::from(is_named);
            if !is_named {
                let expected: Vec<&str> = case.functions.iter().map(String::as_str).collect();
                self.lines.push(format!(
                    "no function named\t{}\texpected {}",
                    case.name,
                    expected.join(" or ")
                ));
            }
        }
    }

    pub fn false_alarms(&self) -> Vec<String> {
        self.false_alarms.clone()
    }

    /// Returns a text with one line for each program.
    pub fn list(&self) -> String {
        let mut lines = self.lines.clone();
        lines.sort();
        lines.extend(
            self.not_compiled
                .iter()
                .map(|name| format!("does not compile\t{name}")),
        );
        lines.join("\n") + "\n"
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n**{}**\n", self.name)?;
        writeln!(
            f,
            "| mistake | programs | error of a call | dead job ended | warning | found by the default | found with the checks |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        let mut all = Kind::default();
        let row = |f: &mut fmt::Formatter<'_>, name: &str, kind: &Kind| {
            let found = kind.error + kind.dead + kind.warning;
            writeln!(
                f,
                "| {name} | {} | {} | {} | {} | {found} | {} |",
                kind.programs, kind.error, kind.dead, kind.warning, kind.with_checks
            )
        };
        for (name, kind) in &self.kinds {
            row(f, name, kind)?;
            all.programs += kind.programs;
            all.error += kind.error;
            all.dead += kind.dead;
            all.warning += kind.warning;
            all.with_checks += kind.with_checks;
        }
        row(f, "all", &all)?;
        writeln!(
            f,
            "\nPrograms that the suite calls correct: {}, reported as wrong: {}, of which {} contain a mistake. Not compiled: {}. Dead jobs: {}, ended after {}.",
            self.correct,
            self.false_alarms.len() + self.true_alarms,
            self.true_alarms,
            self.not_compiled.len(),
            self.deaths.len(),
            Spread(&self.deaths)
        )?;
        writeln!(
            f,
            "The correct programs took {} with the defaults.",
            Spread(&self.lives)
        )?;
        if self.described > 0 {
            writeln!(
                f,
                "Found mistakes whose messages name a function of the suite's description: {} of {}.",
                self.named, self.described
            )?;
        }
        if self.marked > 0 {
            writeln!(
                f,
                "Found mistakes in lines that only some ranks execute, whose messages name these ranks: {} of {}.",
                self.accused, self.marked
            )?;
        }
        Ok(())
    }
}

/// Formats the median, the 95th percentile and the maximum of durations.
struct Spread<'a>(&'a [Duration]);

impl fmt::Display for Spread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = self.0.to_vec();
        all.sort();
        let at = |part: usize| {
            let index = (all.len() * part / 100).min(all.len().saturating_sub(1));
            all.get(index).map_or(0.0, Duration::as_secs_f64)
        };
        let (median, most, longest) = (at(50), at(95), at(100));
        write!(
            f,
            "{median:.1} s (median), {most:.1} s (95 %), {longest:.1} s (maximum)"
        )
    }
}
