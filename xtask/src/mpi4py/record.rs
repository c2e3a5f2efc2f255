//! Parser of the ranks' records of mpi4py's tests; returns the verdict of each test.
//!
//! `tests/mpi4py/record.py` writes one file per rank. It writes each line before the action that the line records.
//! A test has passed if it passed on every rank, and has failed if it failed on any rank.
//! If a job hung or died, the verdict belongs to the first test that did not end on every rank:
//! faster ranks wait at that test for slower ones.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// The verdict of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// mpi4py skipped the test.
    Skipped,
    /// mpi4py skipped the test because the library lacks a feature.
    Lacking,
    Failed,
    /// No rank made progress, so the job was stopped.
    Hung,
    /// The job died during the test.
    Died,
}

impl Verdict {
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Lacking | Self::Failed | Self::Hung | Self::Died)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passes",
            Self::Skipped => "is skipped",
            Self::Lacking => "finds something missing",
            Self::Failed => "fails",
            Self::Hung => "hangs",
            Self::Died => "ends the job",
        })
    }
}

#[derive(Debug, Default)]
struct Record {
    /// Tests in starting order; the verdict is `None` until a test ends.
    tests: Vec<(String, Option<Verdict>)>,
    complete: bool,
}

impl Record {
    fn parse(text: &str) -> Self {
        let mut record = Self::default();
        // The last line of a killed rank may be incomplete.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines() {
            let (word, test) = line.split_once(' ').unwrap_or((line, ""));
            let verdict = match word {
                "begin" => None,
                "pass" => Some(Verdict::Passed),
                "skip" => Some(Verdict::Skipped),
                "lack" => Some(Verdict::Lacking),
                "fail" => Some(Verdict::Failed),
                "end" => {
                    record.complete = true;
                    continue;
                }
                _ => continue,
            };
            match record.tests.iter_mut().rev().find(|(name, _)| name == test) {
                // A failed test stays failed, even if the record reports another verdict later.
                Some((_, end)) if *end != Some(Verdict::Failed) => *end = verdict,
                Some(_) => {}
                None => record.tests.push((test.to_owned(), verdict)),
            }
        }
        record
    }
}

/// The records of a job.
#[derive(Debug, Default)]
pub struct Report {
    /// Tests that ended on every rank, in the order in which they started.
    pub ended: Vec<(String, Verdict)>,
    /// True if every rank has completed its tests.
    pub complete: bool,
    /// The first test that did not end on every rank; `None` if the ranks were between tests.
    pub stuck: Option<String>,
}

impl Report {
    /// Reads the records of a job's ranks from a folder.
    pub fn read(folder: &Path, ranks: u32) -> io::Result<Self> {
        let text = |rank: u32| match fs::read_to_string(folder.join(rank.to_string())) {
            // A rank that died early has no record; it counts as empty.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => text,
        };
        let texts = (0..ranks).map(text).collect::<io::Result<Vec<_>>>()?;
        Ok(Self::of(&texts))
    }

    fn of(texts: &[String]) -> Self {
        let records: Vec<Record> = texts.iter().map(|text| Record::parse(text)).collect();
        let complete = records.iter().all(|record| record.complete);
        // The rank with the longest record has all tests in order,
        // except those that started on other ranks only because their setup failed there.
        let mut order: Vec<&str> = Vec::new();
        let mut ends: HashMap<&str, Vec<Option<Verdict>>> = HashMap::new();
        let mut by_length: Vec<&Record> = records.iter().collect();
        by_length.sort_by_key(|record| std::cmp::Reverse(record.tests.len()));
        for (test, end) in by_length.into_iter().flat_map(|record| &record.tests) {
            let seen = ends.entry(test).or_default();
            if seen.is_empty() {
                order.push(test);
            }
            seen.push(*end);
        }
        let mut report = Self {
            complete,
            ..Self::default()
        };
        for test in order {
            let ends = &ends[test];
            let verdict = if ends.contains(&Some(Verdict::Failed)) {
                Some(Verdict::Failed)
            } else if ends.contains(&None) || (!complete && ends.len() < records.len()) {
                None
            } else {
                let order = [Verdict::Lacking, Verdict::Passed, Verdict::Skipped];
                order
                    .into_iter()
                    .find(|verdict| ends.contains(&Some(*verdict)))
            };
            match verdict {
                Some(verdict) => report.ended.push((test.to_owned(), verdict)),
                None if report.stuck.is_none() => report.stuck = Some(test.to_owned()),
                None => {}
            }
        }
        report
    }
}

/// Returns the number of bytes in the records; a growing number shows progress.
pub fn written(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.len())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(texts: &[&str]) -> Report {
        Report::of(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_test_that_fails_on_one_rank_has_failed() {
        let report = report(&[
            "begin m.A.a\npass m.A.a\nbegin m.A.b\nskip m.A.b\nend\n",
            "begin m.A.a\nfail m.A.a\nbegin m.A.b\nskip m.A.b\nend\n",
        ]);
        assert!(report.complete);
        assert_eq!(
            report.ended,
            [
                ("m.A.a".to_owned(), Verdict::Failed),
                ("m.A.b".to_owned(), Verdict::Skipped)
            ]
        );
    }

    #[test]
    fn the_rank_that_is_behind_is_in_the_test_that_hangs() {
        let report = report(&[
            "begin m.A.a\npass m.A.a\nbegin m.A.b\npass m.A.b\nbegin m.A.c\n",
            "begin m.A.a\npass m.A.a\nbegin m.A.b\n",
        ]);
        assert!(!report.complete);
        assert_eq!(report.stuck.as_deref(), Some("m.A.b"));
        assert_eq!(report.ended, [("m.A.a".to_owned(), Verdict::Passed)]);
    }

    #[test]
    fn a_rank_that_has_ended_early_leaves_the_others_test_to_blame() {
        let report = report(&[
            "begin m.A.a\npass m.A.a\n",
            "begin m.A.a\npass m.A.a\nbegin m.A.b\n",
        ]);
        assert_eq!(report.stuck.as_deref(), Some("m.A.b"));
    }

    #[test]
    fn ranks_between_tests_blame_none_and_half_a_line_is_ignored() {
        let report = report(&["begin m.A.a\npass m.A.a\nbeg", ""]);
        assert_eq!(report.stuck.as_deref(), Some("m.A.a"));
        let report = self::report(&["begin m.A.a\npass m.A.a\npas", "begin m.A.a\npass m.A.a\n"]);
        assert!(!report.complete && report.stuck.is_none());
    }

    #[test]
    fn a_class_that_could_not_be_set_up_has_failed_as_a_whole() {
        let report = report(&["fail m.A\nend\n", "fail m.A\nend\n"]);
        assert_eq!(report.ended, [("m.A".to_owned(), Verdict::Failed)]);
    }
}
