//! Output of results: columns as in the OSU benchmarks, or one line of JSON.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::benchmark::Benchmark;
use crate::measure::{beside, exits, first};
use crate::mpi::World;
use crate::row::Row;

/// The result of one run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    pub benchmark: String,
    /// The version text that the library returns.
    pub library: String,
    pub ranks: i32,
    pub rows: Vec<Row>,
    /// The time at which all ranks had returned from `MPI_Init`, only for `init`.
    /// The clock is that of [`crate::clock`], in milliseconds.
    #[serde(default)]
    pub started: Option<f64>,
}

/// The headings and the unit of a benchmark's figures.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    pub size: &'static str,
    pub figure: &'static str,
    pub unit: &'static str,
    /// Whether larger figures are better, as for bandwidths.
    pub larger_is_better: bool,
}

/// Returns the headings and the unit of a benchmark.
pub fn meaning(benchmark: Benchmark) -> Meaning {
    let time = Meaning {
        size: "Size",
        figure: "Latency",
        unit: "us",
        larger_is_better: false,
    };
    let rate = Meaning {
        size: "Size",
        figure: "Bandwidth",
        unit: "MB/s",
        larger_is_better: true,
    };
    let messages = Meaning {
        size: "Size",
        figure: "Rate",
        unit: "k/s",
        larger_is_better: true,
    };
    match benchmark {
        Benchmark::Bw
        | Benchmark::Bibw
        | Benchmark::PutBw
        | Benchmark::GetBw
        | Benchmark::PutBibw
        | Benchmark::Io => rate,
        Benchmark::Lock
        | Benchmark::LockAll
        | Benchmark::Flush
        | Benchmark::Fence
        | Benchmark::Pscw
        | Benchmark::Counter => Meaning {
            size: "Ranks",
            ..time
        },
        Benchmark::Rate => messages,
        Benchmark::Threads => Meaning {
            size: "Threads",
            ..messages
        },
        Benchmark::Posted | Benchmark::Unexpected => Meaning {
            size: "Depth",
            ..time
        },
        Benchmark::Overlap => Meaning {
            figure: "Overlap",
            unit: "%",
            larger_is_better: true,
            ..time
        },
        Benchmark::Barrier | Benchmark::Ibarrier | Benchmark::Dup | Benchmark::Open => Meaning {
            size: "Ranks",
            ..time
        },
        Benchmark::First | Benchmark::Beside => Meaning {
            size: "Operation",
            figure: "Time",
            ..time
        },
        Benchmark::ExitSkew => Meaning {
            size: "Exits",
            figure: "Skew",
            ..time
        },
        Benchmark::Farm => Meaning {
            size: "Task (us)",
            figure: "Cores in tasks",
            unit: "%",
            larger_is_better: true,
        },
        Benchmark::Init | Benchmark::Launch => Meaning {
            size: "Ranks",
            figure: "Init",
            unit: "ms",
            ..time
        },
        Benchmark::Memory | Benchmark::LauncherMemory => Meaning {
            size: "Ranks",
            figure: "Memory",
            unit: "KiB",
            ..time
        },
        _ => time,
    }
}

/// The width of all columns except the first in characters, as in OSU's tables.
const COLUMN: usize = 18;

/// Returns the text in a row's first column: the size, or the name of an operation.
pub fn label(benchmark: Benchmark, size: usize) -> String {
    let name = match benchmark {
        Benchmark::First => first::ROWS.get(size),
        Benchmark::Beside => beside::ROWS.get(size),
        Benchmark::ExitSkew => exits::ROWS.get(size),
        _ => None,
    };
    name.map_or_else(|| size.to_string(), ToString::to_string)
}

/// Returns the width of the first column.
pub fn width(benchmark: Benchmark) -> usize {
    match benchmark {
        Benchmark::First | Benchmark::Beside => 38,
        _ => 12,
    }
}

impl Report {
    pub fn new(benchmark: Benchmark, world: &World<'_>, rows: Vec<Row>) -> Self {
        Self {
            benchmark: benchmark.name(),
            library: world.version(),
            ranks: world.size(),
            rows,
            started: None,
        }
    }

    /// Returns the report as one line.
    pub fn json(&self) -> String {
        // The conversion of strings and numbers to JSON cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        let mut text = format!(
            "# mpi-bench {}, {} ranks, {}\n",
            self.benchmark, self.ranks, self.library
        );
        let benchmark = <Benchmark as clap::ValueEnum>::from_str(&self.benchmark, true)
            .unwrap_or(Benchmark::Latency);
        let Meaning {
            size, figure, unit, ..
        } = meaning(benchmark);
        let width = width(benchmark);
        // The column exists only if the benchmark has figures without MPI.
        let has_bare = self.rows.iter().any(|row| row.bare.is_some());
        let bare = |cell: String| match has_bare {
            true => format!("{cell:>COLUMN$}"),
            false => String::new(),
        };
        let without_mpi = match benchmark {
            Benchmark::Io => format!("Plain ({unit})"),
            _ => "Bare barrier(us)".to_owned(),
        };
        let spread = self.rows.iter().any(|row| row.min.is_some());
        let _ = if spread {
            let [avg, min, max] =
                ["Avg", "Min", "Max"].map(|which| format!("{which} {figure}({unit})"));
            writeln!(
                text,
                "{:<width$}{avg:>COLUMN$}{min:>COLUMN$}{max:>COLUMN$}{:>COLUMN$}{}",
                format!("# {size}"),
                "Iterations",
                bare(without_mpi.clone())
            )
        } else {
            writeln!(
                text,
                "{:<width$}{:>COLUMN$}{}",
                format!("# {size}"),
                format!("{figure} ({unit})"),
                bare(without_mpi.clone())
            )
        };
        for row in &self.rows {
            let _ = write!(
                text,
                "{:<width$}{:>COLUMN$}",
                label(benchmark, row.size),
                number(row.avg)
            );
            if let (Some(min), Some(max)) = (row.min, row.max) {
                let _ = write!(
                    text,
                    "{:>COLUMN$}{:>COLUMN$}{:>COLUMN$}{}",
                    number(min),
                    number(max),
                    row.iterations,
                    bare(row.bare.map_or("-".into(), number))
                );
            } else {
                text.push_str(&bare(row.bare.map_or("-".into(), number)));
            }
            text.push('\n');
        }
        text
    }
}

/// Formats a figure with two decimals as in OSU's tables, or with three if it is below 10.
pub fn number(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.3}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(benchmark: Benchmark, spread: bool) -> Report {
        let row = Row {
            size: 8,
            avg: 0.1714,
            min: spread.then_some(0.1),
            max: spread.then_some(12.345),
            iterations: 100,
            ..Row::default()
        };
        Report {
            benchmark: benchmark.name(),
            library: "X".into(),
            ranks: 2,
            rows: vec![row],
            started: None,
        }
    }

    #[test]
    fn latency_has_two_columns() {
        let text = report(Benchmark::Latency, false).text();
        assert_eq!(
            text,
            "# mpi-bench latency, 2 ranks, X\n# Size            Latency (us)\n8                        0.171\n"
        );
    }

    #[test]
    fn operations_beside_load_have_their_names() {
        let mut report = report(Benchmark::Beside, false);
        report.rows[0].size = 2;
        let text = report.text();
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last, ["barrier", "0.171"]);
    }

    #[test]
    fn first_uses_have_their_names() {
        let text = report(Benchmark::First, false).text();
        let last = text.lines().last().unwrap();
        assert!(
            last.starts_with("first allreduce 1 MiB ") && last.ends_with(" 0.171"),
            "{text}"
        );
    }

    #[test]
    fn collectives_show_the_ranks_that_differ() {
        let text = report(Benchmark::Barrier, true).text();
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last, ["8", "0.171", "0.100", "12.35", "100"]);
    }

    #[test]
    fn a_bare_barrier_has_a_column_where_there_is_one() {
        let mut report = report(Benchmark::Barrier, true);
        assert!(!report.text().contains("Bare"));
        report.rows[0].bare = Some(0.15);
        let text = report.text();
        assert!(text.contains("Bare barrier(us)"));
        assert!(text.trim_end().ends_with(" 0.150"), "{text}");
    }

    #[test]
    fn json_is_read_back_as_it_was() {
        let written = report(Benchmark::Bw, false);
        let read: Report = serde_json::from_str(&written.json()).unwrap();
        assert_eq!(read.rows, written.rows);
    }
}
