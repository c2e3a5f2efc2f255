//! Text table of the I/O report: one block of lines for each file.

use super::{FileReport, IoReport};
use printable::name;
use std::fmt::Write as _;

/// Formats a size in bytes, in the largest unit that is not larger than the size.
fn bytes(count: u64) -> String {
    let units = [
        (1u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    match units.iter().find(|(unit, _)| count >= *unit) {
        Some((unit, name)) if count.is_multiple_of(*unit) => format!("{} {name}", count / unit),
        Some((unit, name)) => format!("{:.1} {name}", count as f64 / *unit as f64),
        None => format!("{count} B"),
    }
}

fn calls(count: u64) -> String {
    match count {
        1 => "1 call".into(),
        more => format!("{more} calls"),
    }
}

impl IoReport {
    /// Returns the table, with one block of lines for each file.
    pub fn table(&self) -> String {
        let mut text = String::new();
        if self.files.is_empty() {
            text.push_str("files: no rank opened one with MPI_File_open and closed it\n");
        }
        for file in &self.files {
            self.block(&mut text, file);
        }
        text
    }

    fn block(&self, text: &mut String, file: &FileReport) {
        let ranks = match file.ranks {
            1 => "1 rank".to_owned(),
            more => format!("{more} ranks"),
        };
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "{}: opened {} times by {ranks}",
            name(&file.name),
            file.opens
        );
        let mut line = |label: &str, what: String| {
            let _ = writeln!(text, "  {label:<18}{what}");
        };
        line(
            "written",
            format!("{} in {}", bytes(file.bytes_written), calls(file.writes)),
        );
        line(
            "read",
            format!("{} in {}", bytes(file.bytes_read), calls(file.reads)),
        );
        line(
            "collective",
            format!(
                "{}, of which {} aggregated",
                calls(file.collective),
                file.aggregated
            ),
        );
        line(
            "system",
            format!(
                "{} pwrite, {} pread, {} others",
                file.system_writes, file.system_reads, file.system_other
            ),
        );
        line(
            "time",
            format!(
                "{:.3} s in calls of MPI, {:.3} s in the system, all ranks together",
                file.seconds_in_calls, file.seconds_in_system
            ),
        );
        let ends = self.size_columns.iter().map(|end| match end {
            Some(end) => format!("<={}", bytes(*end)),
            None => "larger".to_owned(),
        });
        let cells = |cells: Vec<String>| -> String {
            cells.iter().map(|cell| format!("{cell:>10}")).collect()
        };
        let counts = |counts: &[u64]| cells(counts.iter().map(u64::to_string).collect());
        line("sizes", cells(ends.collect()));
        line("  calls of MPI", counts(&file.call_sizes));
        line("  of the system", counts(&file.system_sizes));
        if let Some(slowest) = &file.slowest {
            line(
                "slowest",
                format!(
                    "rank {} on {}, {:.3} s in calls of MPI",
                    slowest.rank,
                    name(&slowest.host),
                    slowest.seconds_in_calls
                ),
            );
        }
    }
}
