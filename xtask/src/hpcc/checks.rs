//! Parser of hpcc's output: its self-checks, and the results in its summary.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitStatus;

/// The reason why a run is invalid.
#[derive(Debug)]
pub enum Unfit {
    Ended {
        status: ExitStatus,
        stderr: String,
    },
    /// The summary is missing or does not report success.
    NoSuccess,
    /// Self-checks failed; their lines are quoted.
    Failed {
        lines: Vec<String>,
    },
    /// Self-checks are missing.
    Unchecked {
        test: &'static str,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { status, stderr } => {
                write!(f, "it ended with {status}; {}", stderr.trim_end())
            }
            Self::NoSuccess => write!(f, "its summary does not say Success=1"),
            Self::Failed { lines } => write!(f, "checks failed:\n  {}", lines.join("\n  ")),
            Self::Unchecked { test } => write!(f, "{test} has checked nothing"),
        }
    }
}

/// The results of one run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The number of self-checks that passed.
    pub passed: usize,
    summary: BTreeMap<String, f64>,
}

/// A row of the result table: name, key in hpcc's summary, unit, and whether smaller values are better.
struct Row {
    name: &'static str,
    key: &'static str,
    unit: &'static str,
    less_is_better: bool,
}

const fn latency(name: &'static str, key: &'static str) -> Row {
    Row {
        name,
        key,
        unit: "us",
        less_is_better: true,
    }
}

const fn rate(name: &'static str, key: &'static str, unit: &'static str) -> Row {
    Row {
        name,
        key,
        unit,
        less_is_better: false,
    }
}

/// The table: hpcc's latency (8 bytes) and bandwidth (2,000,000 bytes), then its communication-bound tests.
const ROWS: &[Row] = &[
    latency("ping-pong latency, best pair", "MinPingPongLatency_usec"),
    latency("ping-pong latency, mean", "AvgPingPongLatency_usec"),
    latency("ping-pong latency, worst pair", "MaxPingPongLatency_usec"),
    latency(
        "ring latency, natural order",
        "NaturallyOrderedRingLatency_usec",
    ),
    latency(
        "ring latency, random order",
        "RandomlyOrderedRingLatency_usec",
    ),
    rate(
        "ping-pong bandwidth, worst pair",
        "MinPingPongBandwidth_GBytes",
        "GB/s",
    ),
    rate(
        "ping-pong bandwidth, mean",
        "AvgPingPongBandwidth_GBytes",
        "GB/s",
    ),
    rate(
        "ping-pong bandwidth, best pair",
        "MaxPingPongBandwidth_GBytes",
        "GB/s",
    ),
    rate(
        "ring bandwidth, natural order",
        "NaturallyOrderedRingBandwidth_GBytes",
        "GB/s",
    ),
    rate(
        "ring bandwidth, random order",
        "RandomlyOrderedRingBandwidth_GBytes",
        "GB/s",
    ),
    rate("PTRANS", "PTRANS_GBs", "GB/s"),
    rate("MPI RandomAccess", "MPIRandomAccess_GUPs", "GUP/s"),
    rate("MPI FFT", "MPIFFT_Gflops", "GFlop/s"),
    rate("HPL", "HPL_Tflops", "TFlop/s"),
];

impl Report {
    /// Returns a report that has, for each row, the better of the values of both reports.
    pub fn best(mut self, other: Report) -> Report {
        for row in ROWS {
            if let (Some(here), Some(there)) =
                (self.summary.get_mut(row.key), other.summary.get(row.key))
            {
                *here = match row.less_is_better {
                    true => here.min(*there),
                    false => here.max(*there),
                };
            }
        }
        self
    }
}

/// Parses the file `hpccoutf.txt`.
pub fn read(text: &str) -> Result<Report, Unfit> {
    let failed: Vec<String> = text
        .lines()
        .filter(|l| has_failed(l))
        .map(str::to_owned)
        .collect();
    if !failed.is_empty() {
        return Err(Unfit::Failed { lines: failed });
    }
    let signs: [(&str, Count); 4] = [
        ("HPL", |line| {
            usize::from(line.starts_with("||Ax-b||") && line.ends_with("PASSED"))
        }),
        ("PTRANS", |line| {
            number_before(line, "tests completed and passed residual checks.")
        }),
        ("RandomAccess", |line| {
            usize::from(line.ends_with("(passed)."))
        }),
        // DGEMM and STREAM print how many nodes had an error: it must be 0.
        ("DGEMM", |line| usize::from(line == "Node(s) with error 0")),
    ];
    let mut passed = 0;
    for (test, sign) in signs {
        match text.lines().map(sign).sum() {
            0 => return Err(Unfit::Unchecked { test }),
            here => passed += here,
        }
    }
    let pair = |line: &str| {
        let (key, value) = line.split_once('=')?;
        Some((key.to_owned(), value.parse().ok()?))
    };
    let summary: BTreeMap<String, f64> = text.lines().filter_map(pair).collect();
    if summary.get("Success") != Some(&1.0) {
        return Err(Unfit::NoSuccess);
    }
    Ok(Report { passed, summary })
}

/// A function that returns the number of passed self-checks in a line.
type Count = fn(&str) -> usize;

/// Returns the number at the start of a line `NUMBER words`; zero for any other line.
fn number_before(line: &str, words: &str) -> usize {
    let number = line.trim().strip_suffix(words);
    number
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

fn has_failed(line: &str) -> bool {
    line.contains("FAILED")
        || line.contains("(failed)")
        || ["checks.", "checks,"].iter().any(|end| {
            number_before(line, &format!("tests completed and failed residual {end}")) > 0
        })
        || line
            .strip_prefix("Node(s) with error ")
            .is_some_and(|nodes| nodes != "0")
}

pub fn heading(ranks: u32, libraries: &[&str]) -> String {
    let mut line = format!("{:<34}{:>8}", format!("{ranks} processes"), "");
    for name in libraries {
        line += &format!("{name:>22}");
    }
    line
}

/// Returns a line of text for each result.
/// Results of MPICH and Open MPI are followed by a ratio; above 1, Portcullis is better.
pub fn table(reports: &[Report]) -> Vec<String> {
    let line = |row: &Row| {
        let mut line = format!("{:<34}{:>8}", row.name, row.unit);
        let ours = reports.first().and_then(|r| r.summary.get(row.key));
        for (i, report) in reports.iter().enumerate() {
            let Some(value) = report.summary.get(row.key) else {
                line += &format!("{:>22}", "-");
                continue;
            };
            let ratio = ours.filter(|_| i > 0).map(|ours| match row.less_is_better {
                true => value / ours,
                false => ours / value,
            });
            let ratio = ratio.map_or_else(String::new, |ratio| format!(" ({ratio:.2}x)"));
            line += &format!("{:>22}", format!("{value:.4}{ratio}"));
        }
        line
    };
    ROWS.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "||Ax-b||_oo/(eps*(||A||_oo)*N)=  0.0051412 ...... PASSED\n\
         1 tests completed and passed residual checks.\n\
         0 tests completed and failed residual checks.\n\
         Found 0 errors in 131072 locations (passed).\n\
         Node(s) with error 0\n\
         Begin of Summary section.\nSuccess=1\nMaxPingPongLatency_usec=0.5\nHPL_Tflops=0.01\n";

    #[test]
    fn a_run_whose_checks_passed_is_read() {
        let report = read(GOOD).unwrap();
        assert_eq!(report.summary["MaxPingPongLatency_usec"], 0.5);
        assert_eq!(report.passed, 4);
    }

    #[test]
    fn a_check_that_failed_is_quoted() {
        for (good, bad) in [
            ("(passed)", "(failed)"),
            ("0.0051412 ...... PASSED", "99.5 ...... FAILED"),
            ("with error 0", "with error 1"),
            (
                "0 tests completed and failed",
                "2 tests completed and failed",
            ),
        ] {
            let sentence = read(&GOOD.replace(good, bad)).unwrap_err().to_string();
            assert!(sentence.contains(bad), "{sentence}");
        }
        assert!(matches!(
            read(&GOOD.replace("Success=1", "Success=0")),
            Err(Unfit::NoSuccess)
        ));
        assert!(matches!(read("Success=1\n"), Err(Unfit::Unchecked { .. })));
    }

    #[test]
    fn of_two_runs_the_better_figures_count() {
        let slow = GOOD
            .replace("usec=0.5", "usec=0.9")
            .replace("Tflops=0.01", "Tflops=0.02");
        let best = read(GOOD).unwrap().best(read(&slow).unwrap());
        assert_eq!(best.summary["MaxPingPongLatency_usec"], 0.5);
        assert_eq!(best.summary["HPL_Tflops"], 0.02);
    }
}
