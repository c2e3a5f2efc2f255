//! The table of the report's groups of runs: it defines the commands, the tables and the plots.

/// Runs of `mpi-bench` whose results are in one table of the report.
#[derive(Debug)]
pub struct Group {
    /// The prefix of the names of the group's plot files.
    pub name: &'static str,
    /// The heading of the group's section.
    pub title: &'static str,
    /// A sentence that describes the measured quantity.
    pub words: &'static str,
    /// The variable that distinguishes the rows; in plots it is the horizontal axis.
    pub over: Over,
    /// The runs of the group, in order.
    pub runs: &'static [Run],
}

/// The variable that distinguishes the rows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Message size in bytes.
    Sizes,
    /// Number of ranks of a job; one plot per size.
    Ranks,
    /// Operation; a group of operations has no plots.
    Operations,
}

/// One run of `mpi-bench`, which prints a row for each size.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The name of the operation, in a group that compares several operations.
    pub what: &'static str,
    benchmark: &'static str,
    /// The number of ranks.
    pub ranks: u32,
    sizes: Sizes,
    arguments: &'static [&'static str],
    is_long: bool,
}

/// The message sizes in bytes, in the long and in the quick report;
/// empty if the benchmark has no sizes.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    long: &'static [u64],
    quick: &'static [u64],
}

/// The length of a report, and the time limits of its measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// True for the quick report, which has fewer rows and takes a minute or two.
    pub is_quick: bool,
    /// The number of rounds; each round runs every library once.
    pub rounds: u32,
    max_seconds: f64,
    settle: f64,
}

impl Effort {
    /// Returns the settings of the long or the quick report; `rounds` is the user's value.
    pub fn new(is_quick: bool, rounds: Option<u32>) -> Self {
        if is_quick {
            Self {
                is_quick,
                rounds: rounds.unwrap_or(1),
                max_seconds: 0.05,
                settle: 0.1,
            }
        } else {
            Self {
                is_quick,
                rounds: rounds.unwrap_or(5),
                max_seconds: 0.5,
                settle: 0.3,
            }
        }
    }
}

const fn run(benchmark: &'static str, ranks: u32) -> Run {
    Run {
        what: "",
        benchmark,
        ranks,
        sizes: Sizes {
            long: &[],
            quick: &[],
        },
        arguments: &[],
        is_long: false,
    }
}

impl Run {
    const fn sized(mut self, sizes: Sizes) -> Self {
        self.sizes = sizes;
        self
    }

    const fn with(mut self, arguments: &'static [&'static str]) -> Self {
        self.arguments = arguments;
        self
    }

    const fn called(mut self, what: &'static str) -> Self {
        self.what = what;
        self
    }

    /// Returns the run, excluded from the quick report.
    const fn long(mut self) -> Self {
        self.is_long = true;
        self
    }

    /// Returns true if the run belongs to the report of this length.
    pub fn is_in(&self, effort: &Effort) -> bool {
        !(self.is_long && effort.is_quick)
    }

    fn sizes(&self, effort: &Effort) -> &'static [u64] {
        if effort.is_quick {
            self.sizes.quick
        } else {
            self.sizes.long
        }
    }

    /// Returns true if the sizes of the run's rows are bytes.
    pub fn has_sizes(&self) -> bool {
        !self.sizes.long.is_empty()
    }

    /// Returns the run's arguments of `mpi-bench`.
    /// `peers` are the folders of the compared libraries, or placeholders for them.
    pub fn arguments(&self, effort: &Effort, peers: &[String]) -> Vec<String> {
        let mut all = vec![
            self.benchmark.to_owned(),
            "-n".into(),
            self.ranks.to_string(),
        ];
        all.extend(self.arguments.iter().map(|&word| word.to_owned()));
        let sizes: Vec<String> = self
            .sizes(effort)
            .iter()
            .map(|&size| spelled(size))
            .collect();
        if !sizes.is_empty() {
            all.extend(["--sizes".to_owned(), sizes.join(",")]);
        }
        let options = [
            ("--rounds", effort.rounds.to_string()),
            ("--max-seconds", effort.max_seconds.to_string()),
            ("--settle", effort.settle.to_string()),
        ];
        for (name, value) in options {
            all.extend([name.to_owned(), value]);
        }
        for peer in peers {
            all.extend(["--vs".to_owned(), peer.clone()]);
        }
        all
    }

    /// Estimates the duration of the run in seconds; each library starts one job per setting.
    fn seconds(&self, effort: &Effort, peers: usize, cores: usize) -> f64 {
        // If each rank has its own core, `mpi-bench` tries more settings.
        let settings = if self.ranks as usize <= cores {
            2.5
        } else {
            1.0
        };
        let jobs = 1.0 + settings * peers as f64;
        let start = 0.7 + 0.03 * f64::from(self.ranks);
        // Benchmarks of short messages complete their iterations before the time limit.
        let measuring = self.sizes(effort).len().max(1) as f64 * effort.max_seconds / 2.0;
        f64::from(effort.rounds) * jobs * (start + effort.settle + measuring)
    }
}

/// Estimates the duration of all runs of a report of this length, in seconds.
pub fn seconds(effort: &Effort, peers: usize, cores: usize) -> f64 {
    let runs = GROUPS.iter().flat_map(|group| group.runs);
    runs.filter(|run| run.is_in(effort))
        .map(|run| run.seconds(effort, peers, cores))
        .sum()
}

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// Formats a size in the syntax of `mpi-bench`.
pub fn spelled(size: u64) -> String {
    match size {
        s if s >= M && s % M == 0 => format!("{}M", s / M),
        s if s >= K && s % K == 0 => format!("{}K", s / K),
        s => s.to_string(),
    }
}

const SWEEP: Sizes = Sizes {
    long: &[
        8,
        64,
        256,
        K,
        4 * K,
        8 * K,
        16 * K,
        32 * K,
        64 * K,
        256 * K,
        M,
        4 * M,
    ],
    quick: &[8, 256, 4 * K, 32 * K, 256 * K, 2 * M],
};
const SHORT: Sizes = Sizes {
    long: &[8, 64, 256, K, 4 * K],
    quick: &[8, K],
};
const TWO: Sizes = Sizes {
    long: &[8, 64 * K],
    quick: &[8, 64 * K],
};
const MEBIBYTE: Sizes = Sizes {
    long: &[M],
    quick: &[M],
};
const PIECES: Sizes = Sizes {
    long: &[47_008],
    quick: &[47_008],
};

const TCP: &[&str] = &["--settings", "tcp"];

/// All groups of the report.
pub const GROUPS: &[Group] = &[
    Group {
        name: "latency",
        title: "Latency, shared memory",
        words: "The table has half the round-trip time between two ranks.",
        over: Over::Sizes,
        runs: &[run("latency", 2).sized(SWEEP)],
    },
    Group {
        name: "bandwidth",
        title: "Bandwidth, shared memory",
        words: "Messages are sent one way, with 64 messages in flight.",
        over: Over::Sizes,
        runs: &[run("bw", 2).sized(SWEEP)],
    },
    Group {
        name: "rate",
        title: "Message rate, shared memory",
        words: "One pair of ranks has 64 messages in flight.",
        over: Over::Sizes,
        runs: &[run("rate", 2).sized(SHORT)],
    },
    Group {
        name: "latency-tcp",
        title: "Latency, TCP",
        words: "The table has half the round-trip time between two ranks, through the loopback interface.",
        over: Over::Sizes,
        runs: &[run("latency", 2).with(TCP).sized(SWEEP)],
    },
    Group {
        name: "bandwidth-tcp",
        title: "Bandwidth, TCP",
        words: "Messages are sent one way, with 64 messages in flight, through the loopback interface.",
        over: Over::Sizes,
        runs: &[run("bw", 2).with(TCP).sized(SWEEP)],
    },
    Group {
        name: "barrier",
        title: "Barrier",
        words: "The table has the time of `MPI_Barrier` of all ranks.",
        over: Over::Ranks,
        runs: &[
            run("barrier", 2),
            run("barrier", 4).long(),
            run("barrier", 16),
            run("barrier", 60),
        ],
    },
    Group {
        name: "allreduce",
        title: "Allreduce",
        words: "The table has the time of `MPI_Allreduce` of all ranks, with sums of `MPI_FLOAT`.",
        over: Over::Ranks,
        runs: &[
            run("allreduce", 2).sized(TWO),
            run("allreduce", 4).sized(TWO).long(),
            run("allreduce", 16).sized(TWO),
            run("allreduce", 60).sized(TWO),
        ],
    },
    Group {
        name: "bcast",
        title: "Broadcast",
        words: "The table has the time of `MPI_Bcast` from rank 0 to all ranks.",
        over: Over::Ranks,
        runs: &[
            run("bcast", 2).sized(TWO),
            run("bcast", 4).sized(TWO).long(),
            run("bcast", 16).sized(TWO),
            run("bcast", 60).sized(TWO),
        ],
    },
    Group {
        name: "put",
        title: "Put",
        words: "The table has the time of `MPI_Put` of rank 0 to rank 1 and `MPI_Win_flush`.",
        over: Over::Sizes,
        runs: &[run("put", 2).sized(SWEEP)],
    },
    Group {
        name: "get",
        title: "Get",
        words: "The table has the time of `MPI_Get` of rank 0 from rank 1 and `MPI_Win_flush`.",
        over: Over::Sizes,
        runs: &[run("get", 2).sized(SWEEP)],
    },
    Group {
        name: "windows",
        title: "Atomic operations and synchronisation of windows",
        words: "The table has the time of one call of each operation, including the call that completes it.",
        over: Over::Operations,
        runs: &[
            run("fop", 2).called("`MPI_Fetch_and_op`"),
            run("pscw", 2).called("post, start, complete, wait"),
            run("fence", 2).called("`MPI_Win_fence`"),
        ],
    },
    Group {
        name: "init",
        title: "Start of a job",
        words: "The table has the time of each rank in `MPI_Init`, the time from the command until all ranks have returned from `MPI_Init`, and the time of the whole command.",
        over: Over::Operations,
        runs: &[run("init", 2), run("init", 16).long(), run("init", 60)],
    },
    Group {
        name: "io",
        title: "Files",
        words: "The table has the total bandwidth of all ranks, which write to one file or read from it.",
        over: Over::Operations,
        runs: &[
            run("io", 4)
                .called("a contiguous part of each rank, written")
                .sized(MEBIBYTE),
            run("io", 4)
                .called("the same, read")
                .with(&["--read"])
                .sized(MEBIBYTE),
            run("io", 4)
                .called("64 interleaved pieces of each rank, written collectively")
                .with(&["--pattern", "hard"])
                .sized(PIECES),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_command_that_is_shown_is_the_one_that_runs_but_for_the_folders() {
        let run = &GROUPS[3].runs[0];
        let effort = Effort::new(true, None);
        let [shown, runs] = ["OPENMPI", "/opt/openmpi"].map(|peer| {
            let words = run.arguments(&effort, &[peer.to_owned()]);
            words.join(" ")
        });
        assert_eq!(
            shown,
            "latency -n 2 --settings tcp --sizes 8,256,4K,32K,256K,2M --rounds 1 --max-seconds 0.05 --settle 0.1 --vs OPENMPI"
        );
        assert_eq!(shown.replace("OPENMPI", "/opt/openmpi"), runs);
    }

    #[test]
    fn the_quick_form_is_quicker_and_has_rows_of_every_group() {
        let [quick, long] = [true, false].map(|is_quick| Effort::new(is_quick, None));
        assert!(seconds(&quick, 2, 2) * 5.0 < seconds(&long, 2, 2));
        assert!(seconds(&quick, 2, 2) < 180.0, "{}", seconds(&quick, 2, 2));
        assert!(seconds(&long, 1, 2) < seconds(&long, 2, 2));
        for group in GROUPS {
            let is_there = group.runs.iter().any(|run| run.is_in(&quick));
            assert!(is_there, "{} has no quick row", group.title);
        }
    }

    #[test]
    fn groups_have_files_of_their_own_and_operations_have_names() {
        let names: BTreeSet<&str> = GROUPS.iter().map(|group| group.name).collect();
        assert_eq!(names.len(), GROUPS.len());
        for run in GROUPS.iter().flat_map(|group| group.runs) {
            let (long, quick) = (run.sizes.long, run.sizes.quick);
            assert_eq!(long.is_empty(), quick.is_empty(), "{}", run.benchmark);
        }
    }
}
