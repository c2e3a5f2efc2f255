//! The list of tests known to fail, each with the chapter of MPI that the library lacks; lines may only be removed.
//!
//! A line is `TEST PROCESSES CHAPTER`. A test is `module.Class.method`;
//! a class or module whose setup fails is listed as a whole.
//! Numbers of processes are separated by commas, and the chapter may have several words.
//! `#` begins a comment.
//! If a line ends in `, hangs`, the test runs until its time limit, so only a complete run includes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::record::Verdict;

#[derive(Debug, PartialEq, Eq)]
struct Line {
    number: usize,
    test: String,
    ranks: BTreeSet<u32>,
    hangs: bool,
}

/// The parsed list.
#[derive(Debug, Default)]
pub struct Known {
    lines: Vec<Line>,
}

/// A malformed line.
#[derive(Debug, PartialEq, Eq)]
pub struct BadLine {
    number: usize,
    line: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {} is {:?}, and should be a test, numbers of processes, and the missing chapter",
            self.number, self.line
        )
    }
}

/// The verdict of each test on each number of processes.
#[derive(Debug, Default)]
pub struct Results(BTreeMap<(String, u32), Verdict>);

impl Results {
    pub fn add(&mut self, test: &str, ranks: u32, verdict: Verdict) {
        // The verdict of another run of a test replaces the earlier one only if it is a failure.
        let known = self.0.entry((test.to_owned(), ranks)).or_insert(verdict);
        if verdict.is_bad() {
            *known = verdict;
        }
    }

    pub fn merge(&mut self, others: Results) {
        self.0.extend(others.0);
    }

    pub fn count(&self, wanted: impl Fn(Verdict) -> bool) -> usize {
        self.0.values().filter(|verdict| wanted(**verdict)).count()
    }
}

/// A difference between the results and the list.
#[derive(Debug, PartialEq, Eq)]
pub enum Difference {
    /// The test fails and is not in the list.
    New {
        test: String,
        verdict: Verdict,
        ranks: Vec<u32>,
    },
    /// The test is in the list but does not fail.
    Gone {
        number: usize,
        test: String,
        /// The test's verdict; `None` if there is no test, class or module of this name.
        verdict: Option<Verdict>,
        ranks: Vec<u32>,
        /// Numbers of processes on which the test still fails or was not run.
        rest: Vec<u32>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New {
                test,
                verdict,
                ranks,
            } => write!(
                f,
                "{test} {verdict} on {}, and is not in the list",
                processes(ranks)
            ),
            Self::Gone {
                number,
                test,
                verdict,
                ranks,
                rest,
            } => {
                let on = processes(ranks);
                match verdict {
                    Some(verdict) => write!(f, "line {number}: {test} {verdict} on {on}")?,
                    None => write!(f, "line {number}: nothing named {test} fails on {on}")?,
                }
                if rest.is_empty() {
                    f.write_str("; remove the line")
                } else {
                    write!(f, "; remove the line for {}", numbers(ranks))
                }
            }
        }
    }
}

fn numbers(ranks: &[u32]) -> String {
    let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
    ranks.join(",")
}

fn processes(ranks: &[u32]) -> String {
    match ranks {
        [1] => "1 process".to_owned(),
        _ => format!("{} processes", numbers(ranks)),
    }
}

impl Known {
    pub fn parse(text: &str) -> Result<Self, BadLine> {
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let number = at + 1;
            let content = line.split('#').next().unwrap_or("").trim();
            if content.is_empty() {
                continue;
            }
            let bad = || BadLine {
                number,
                line: line.to_owned(),
            };
            let mut words = content.split_whitespace();
            let (Some(test), Some(ranks), Some(chapter)) =
                (words.next(), words.next(), words.next_back())
            else {
                return Err(bad());
            };
            let ranks: Result<_, _> = ranks.split(',').map(str::parse).collect();
            lines.push(Line {
                number,
                test: test.to_owned(),
                ranks: ranks.map_err(|_| bad())?,
                hangs: chapter == "hangs",
            });
        }
        Ok(Self { lines })
    }

    fn has(&self, test: &str, ranks: u32) -> bool {
        self.lines
            .iter()
            .any(|line| line.test == test && line.ranks.contains(&ranks))
    }

    /// Returns the tests, classes and modules that are known to hang on `ranks` processes.
    pub fn hanging(&self, ranks: u32) -> impl Iterator<Item = &str> {
        let lines = self.lines.iter();
        lines
            .filter(move |line| line.hangs && line.ranks.contains(&ranks))
            .map(|line| line.test.as_str())
    }

    /// Compares the results with the list; `asked` returns true if a test was requested.
    pub fn compare(&self, results: &Results, asked: impl Fn(&str, u32) -> bool) -> Vec<Difference> {
        let mut new: Vec<(&str, Verdict, Vec<u32>)> = Vec::new();
        for ((test, ranks), verdict) in &results.0 {
            if !verdict.is_bad() || self.has(test, *ranks) {
                continue;
            }
            match new.last_mut() {
                Some((t, v, all)) if t == test && v == verdict => all.push(*ranks),
                _ => new.push((test, *verdict, vec![*ranks])),
            }
        }
        let new = new
            .into_iter()
            .map(|(test, verdict, ranks)| Difference::New {
                test: test.to_owned(),
                verdict,
                ranks,
            });
        let gone = self.lines.iter().filter_map(|line| {
            let end = |ranks: u32| results.0.get(&(line.test.clone(), ranks)).copied();
            let (gone, rest): (Vec<u32>, Vec<u32>) = line.ranks.iter().partition(|ranks| {
                asked(&line.test, **ranks) && !end(**ranks).is_some_and(Verdict::is_bad)
            });
            (!gone.is_empty()).then(|| Difference::Gone {
                number: line.number,
                test: line.test.clone(),
                verdict: gone.iter().find_map(|ranks| end(*ranks)),
                ranks: gone,
                rest,
            })
        });
        new.chain(gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(all: &[(&str, u32, Verdict)]) -> Results {
        let mut results = Results::default();
        for (test, ranks, verdict) in all {
            results.add(test, *ranks, *verdict);
        }
        results
    }

    fn sentences(list: &str, all: &[(&str, u32, Verdict)]) -> Vec<String> {
        let known = Known::parse(list).unwrap();
        let differences = known.compare(&results(all), |_, ranks| ranks < 5);
        differences.iter().map(Difference::to_string).collect()
    }

    #[test]
    fn a_listed_failure_is_no_difference_and_others_are() {
        let list = "# a comment\nm.A.a 1,2 one-sided\n";
        let failing = [
            ("m.A.a", 1, Verdict::Failed),
            ("m.A.a", 2, Verdict::Died),
            ("m.A.b", 1, Verdict::Passed),
            ("m.A.b", 2, Verdict::Hung),
            ("m.A.b", 3, Verdict::Hung),
        ];
        assert_eq!(
            sentences(list, &failing),
            ["m.A.b hangs on 2,3 processes, and is not in the list"]
        );
    }

    #[test]
    fn a_listed_test_that_passes_is_to_be_removed() {
        let list = "m.A.a 1 io\nm.A.b 1,2 io\nm.A.c 1 io\nm.A.d 5 io";
        let results = [
            ("m.A.a", 1, Verdict::Passed),
            ("m.A.b", 1, Verdict::Skipped),
            ("m.A.b", 2, Verdict::Failed),
        ];
        assert_eq!(
            sentences(list, &results),
            [
                "line 1: m.A.a passes on 1 process; remove the line",
                "line 2: m.A.b is skipped on 1 process; remove the line for 1",
                "line 3: nothing named m.A.c fails on 1 process; remove the line",
            ]
        );
    }

    #[test]
    fn a_line_without_its_chapter_is_named() {
        let sentence = Known::parse("\nm.A.a 1,2").unwrap_err().to_string();
        assert!(
            sentence.starts_with("line 2 is \"m.A.a 1,2\""),
            "{sentence}"
        );
        assert!(Known::parse("m.A.a one io").is_err());
    }

    #[test]
    fn what_hangs_is_known_by_its_line() {
        let list = "m.A.a 1,2 one-sided\nm.A.b 1,3 dynamic processes, hangs";
        let known = Known::parse(list).unwrap();
        assert_eq!(known.hanging(3).collect::<Vec<_>>(), ["m.A.b"]);
        assert_eq!(known.hanging(2).count(), 0);
    }

    #[test]
    fn a_test_that_was_begun_twice_keeps_its_failure() {
        let twice = [("m.A", 1, Verdict::Failed), ("m.A", 1, Verdict::Passed)];
        assert_eq!(results(&twice).count(Verdict::is_bad), 1);
    }
}
