//! The results of the runs of a group: rows, and a sentence for each failure.

use super::groups::{Group, Run};
use crate::bench::compared::{self, Compared};

/// A group with its results.
#[derive(Debug)]
pub struct Measured {
    /// The description of the group.
    pub group: &'static Group,
    /// The commands of the runs, as a user would type them.
    pub commands: Vec<String>,
    /// The rows of all runs, in the order of the runs.
    pub rows: Vec<Row>,
    /// A sentence for each failure.
    pub failures: Vec<String>,
}

/// One row of a table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the operation, in a group that compares several operations.
    pub what: String,
    /// The number of ranks.
    pub ranks: u32,
    /// The message size in bytes, if the benchmark has sizes.
    pub size: Option<u64>,
    /// The medians of all libraries.
    pub figures: Compared,
}

impl Measured {
    /// Returns a group without results yet.
    pub fn new(group: &'static Group) -> Self {
        Self {
            group,
            commands: Vec::new(),
            rows: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Adds the rows and the failures in the output of one run.
    pub fn add(&mut self, run: &Run, stdout: &str, stderr: &str) {
        let rows = compared::rows(stdout).into_iter().map(|figures| Row {
            what: part_of_a_start(&figures.benchmark)
                .unwrap_or(run.what)
                .to_owned(),
            ranks: run.ranks,
            size: run.has_sizes().then_some(figures.size),
            figures,
        });
        self.rows.extend(rows);
        for said in failures(stderr) {
            let sentence = format!("{} ranks: {said}", run.ranks);
            // Several operations may fail for the same reason; it is listed once.
            if !self.failures.contains(&sentence) {
                self.failures.push(sentence);
            }
        }
    }
}

/// Returns the name of the phase of start-up that a row of `init` measures; there are three.
fn part_of_a_start(benchmark: &str) -> Option<&'static str> {
    match benchmark {
        "init" => Some("`MPI_Init`"),
        "start" => Some("command to past `MPI_Init`"),
        "launch" => Some("whole command"),
        _ => None,
    }
}

/// Returns `mpi-bench`'s messages about missing results, without the paths of this machine.
pub fn failures(stderr: &str) -> Vec<String> {
    let lines = stderr.lines();
    let ours = lines.filter_map(|line| line.trim_start().strip_prefix("mpi-bench: "));
    let without = ours.map(|line| line.trim_start_matches("not measured: "));
    without.map(|line| short(&without_folders(line))).collect()
}

/// Replaces each absolute path in a text by its last component.
pub fn without_folders(text: &str) -> String {
    let is_mark = |c: char| c.is_whitespace() || "\"'`(),;:=".contains(c);
    let words = text.split_inclusive(is_mark);
    words
        .map(|word| {
            let path = word.trim_end_matches(is_mark);
            if !path.starts_with('/') {
                return word.to_owned();
            }
            let last = path.rsplit('/').find(|part| !part.is_empty());
            format!("{}{}", last.unwrap_or_default(), &word[path.len()..])
        })
        .collect()
}

/// Truncates a long message that comes from another program.
fn short(text: &str) -> String {
    const LENGTH: usize = 240;
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::groups::GROUPS;
    use super::*;

    fn group(name: &str) -> &'static Group {
        let group = GROUPS.iter().find(|group| group.name == name);
        group.expect("a group of this name")
    }

    #[test]
    fn the_lines_of_a_run_become_rows_and_its_complaints_sentences() {
        let mut measured = Measured::new(group("init"));
        let line = |benchmark| {
            format!(
                r#"{{"benchmark":"{benchmark}","ranks":2,"size":2,"unit":"ms","ours":4.0,"peers":[{{"library":"MPICH","setting":"ucx shm","median":8.0,"ours_is_better_by":2.0}}]}}"#
            )
        };
        let stdout = format!("{}\nno row\n{}\n", line("init"), line("launch"));
        let stderr = "warning: x\nmpi-bench: not measured: Open MPI (ucx): exec of /opt/peer/bin/mpirun: /none\n";
        measured.add(&measured.group.runs[0], &stdout, stderr);
        let rows: Vec<_> = measured.rows.iter().map(|row| row.what.as_str()).collect();
        assert_eq!(rows, ["`MPI_Init`", "whole command"]);
        assert_eq!(measured.rows[0].size, None);
        assert_eq!(
            measured.failures,
            ["2 ranks: Open MPI (ucx): exec of mpirun: none"]
        );
    }

    #[test]
    fn sizes_are_bytes_only_where_the_benchmark_has_sizes() {
        let stdout =
            r#"{"benchmark":"latency","ranks":2,"size":8,"unit":"us","ours":0.3,"peers":[]}"#;
        let mut measured = Measured::new(group("latency"));
        measured.add(&measured.group.runs[0], stdout, "");
        assert_eq!(measured.rows[0].size, Some(8));
        assert!(measured.failures.is_empty());
    }

    #[test]
    fn no_folder_of_the_machine_is_left_in_a_text() {
        for (text, without) in [
            (
                "cannot start \"/opt/mpi/bin/mpirun\"",
                "cannot start \"mpirun\"",
            ),
            ("UCX_TLS=sm,self and/or 1/2", "UCX_TLS=sm,self and/or 1/2"),
            ("file:/tmp/a/b/ (x)", "file:b (x)"),
        ] {
            let got = without_folders(text);
            assert_eq!(got, without);
        }
    }
}
