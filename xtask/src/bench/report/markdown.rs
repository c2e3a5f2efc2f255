//! Writer of the report as a Markdown page: the machine, a summary, and a section for each group.

use std::fmt::Write as _;

use super::groups::{Effort, Over};
use super::machine::Machine;
use super::plot::{bytes, plots};
use super::results::{Measured, Row};

/// The contents of the report.
#[derive(Debug)]
pub struct Report {
    /// The date, such as 2026-11-26.
    pub date: String,
    /// The machine of the measurements.
    pub machine: Machine,
    /// Name and version of each library, Portcullis first.
    pub versions: Vec<(String, String)>,
    /// The names of the compared libraries that have results, in column order.
    pub peers: Vec<&'static str>,
    /// One sentence for each compared library without results.
    pub absent: Vec<String>,
    /// The length of the report.
    pub effort: Effort,
    /// The groups with their results.
    pub groups: Vec<Measured>,
}

impl Report {
    /// Returns the report as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = self.head();
        text += &self.summary();
        for group in &self.groups {
            text += &self.section(group);
        }
        text
    }

    fn head(&self) -> String {
        let Self {
            date,
            machine,
            effort,
            ..
        } = self;
        let form = if effort.is_quick { " --quick" } else { "" };
        let rounds = match effort.rounds {
            1 => "of one round".to_owned(),
            n => format!("the median of {n} rounds, in which the libraries take turns"),
        };
        let is_virtual = if machine.is_virtual {
            " (a virtual machine)"
        } else {
            ""
        };
        let mut text = format!(
            "# Measured performance\n\n\
             This page and its pictures are written by `cargo xtask bench --report{form}`; `docs/performance.md` has the conclusions.\n\n\
             | | |\n|---|---|\n\
             | date | {date} |\n\
             | processor | {}{is_virtual} |\n\
             | cores | {} |\n\
             | kernel | {} |\n\
             | load before the first run | {} |\n",
            machine.cpu, machine.cores, machine.kernel, machine.load
        );
        for (library, version) in &self.versions {
            let _ = writeln!(text, "| {library} | {version} |");
        }
        let _ = writeln!(
            text,
            "\nEach figure is {rounds}; each peer is at the best of its settings for each row.\n\
             A ratio above 1 means that Portcullis is better; ratios below 1 are bold.\n\
             On other machines only the ratios are meaningful, and single rows vary from run to run.\n\
             In the commands `OPENMPI` and `MPICH` are the folders of the two libraries; the report also passes `--json` and `--timeout 60`, which change the output and the time limit."
        );
        if effort.is_quick {
            text += "This is the quick form of the report, with few and short rows.\n";
        }
        if machine.was_busy() {
            text += "The machine had other work when the first run began, so single rows may be inaccurate.\n";
        }
        for sentence in &self.absent {
            let _ = writeln!(text, "{sentence}");
        }
        text
    }

    /// Returns the summary: for each group and compared library, the mean ratio
    /// and the number of rows in which Portcullis is slower.
    fn summary(&self) -> String {
        if self.peers.is_empty() {
            return String::new();
        }
        let mut text = String::from(
            "\n## Summary\n\nThe table has the geometric mean of each group's ratios, and the number of its rows that are below 1.\n\n| |",
        );
        for peer in &self.peers {
            let _ = write!(text, " to {peer} | below 1 |");
        }
        let _ = writeln!(text, "\n|---|{}", "---|---|".repeat(self.peers.len()));
        for measured in &self.groups {
            let _ = write!(text, "| {} |", measured.group.title);
            for peer in &self.peers {
                let ratios: Vec<f64> = ratios(&measured.rows, peer).collect();
                if ratios.is_empty() {
                    text += " - | - |";
                    continue;
                }
                let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
                let mean = (logarithms / ratios.len() as f64).exp();
                let behind = ratios.iter().filter(|&&ratio| is_behind(ratio)).count();
                let _ = write!(
                    text,
                    " {} | {behind} of {} |",
                    spell_ratio(mean),
                    ratios.len()
                );
            }
            text.push('\n');
        }
        text
    }

    fn section(&self, measured: &Measured) -> String {
        let group = measured.group;
        let mut text = format!("\n## {}\n\n{}\n\n```\n", group.title, group.words);
        for command in &measured.commands {
            let _ = writeln!(text, "{command}");
        }
        text += "```\n";
        if !measured.rows.is_empty() {
            text += &self.table(measured);
            text += &self.settings(&measured.rows);
        }
        if !measured.failures.is_empty() {
            text += "\nNot measured:\n\n";
        }
        for sentence in &measured.failures {
            let _ = writeln!(text, "* {sentence}");
        }
        for plot in plots(measured, &self.peers) {
            let _ = writeln!(text, "\n![{}]({})", plot.title, plot.file);
        }
        text
    }

    fn table(&self, measured: &Measured) -> String {
        let over = measured.group.over;
        let has_sizes = measured.rows.iter().any(|row| row.size.is_some());
        let labels: Vec<&str> = [
            (over == Over::Operations, "operation"),
            (over != Over::Sizes, "ranks"),
            (has_sizes, "bytes"),
        ]
        .iter()
        .filter_map(|&(is_there, label)| is_there.then_some(label))
        .collect();
        // In a group of operations, rows may have different units.
        let unit = &measured.rows[0].figures.unit;
        let is_of_one_unit = measured.rows.iter().all(|row| row.figures.unit == *unit);
        let ours = if is_of_one_unit {
            format!("ours, {unit}")
        } else {
            "ours".to_owned()
        };
        let mut text = format!("\n| {} | {ours} |", labels.join(" | "));
        for peer in &self.peers {
            let _ = write!(text, " {peer} | ratio |");
        }
        let columns = labels.len() + 1 + 2 * self.peers.len();
        let _ = writeln!(text, "\n|{}", "---|".repeat(columns));
        for row in &measured.rows {
            let mut cells: Vec<String> = Vec::new();
            for &label in &labels {
                cells.push(match label {
                    "operation" => row.what.clone(),
                    "ranks" => row.ranks.to_string(),
                    _ => row.size.map_or_else(|| "-".into(), bytes),
                });
            }
            let unit_here = if is_of_one_unit {
                String::new()
            } else {
                format!(" {}", row.figures.unit)
            };
            cells.push(format!("{}{unit_here}", number(row.figures.ours)));
            for peer in &self.peers {
                let figure = row.figures.peers.iter().find(|p| p.library == *peer);
                cells.extend(match figure {
                    Some(p) => [number(p.median), spell_ratio(p.ours_is_better_by)],
                    None => ["-".to_owned(), "-".to_owned()],
                });
            }
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }

    /// Returns a text with the best settings of each compared library.
    fn settings(&self, rows: &[Row]) -> String {
        let mut text = String::new();
        for peer in &self.peers {
            let mut counts: Vec<(&str, usize)> = Vec::new();
            for figure in rows.iter().flat_map(|row| &row.figures.peers) {
                if figure.library != *peer {
                    continue;
                }
                match counts.iter_mut().find(|(name, _)| *name == figure.setting) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((&figure.setting, 1)),
                }
            }
            let words: Vec<String> = match &counts[..] {
                [] => continue,
                [(name, _)] => vec![format!("`{name}`")],
                several => several
                    .iter()
                    .map(|(name, count)| match count {
                        1 => format!("`{name}` (1 row)"),
                        _ => format!("`{name}` ({count} rows)"),
                    })
                    .collect(),
            };
            let _ = writeln!(text, "Best settings of {peer}: {}.", words.join(", "));
        }
        if text.is_empty() {
            text
        } else {
            format!("\n{text}")
        }
    }
}

fn ratios<'a>(rows: &'a [Row], peer: &'a str) -> impl Iterator<Item = f64> + 'a {
    let figures = rows.iter().flat_map(|row| &row.figures.peers);
    let of_peer = figures.filter(move |figure| figure.library == peer);
    of_peer.map(|figure| figure.ours_is_better_by)
}

/// Returns true if the ratio as printed (two decimals) is below 1, so that 1.00 is never bold.
fn is_behind(ratio: f64) -> bool {
    (ratio * 100.0).round() < 100.0
}

fn spell_ratio(ratio: f64) -> String {
    if is_behind(ratio) {
        format!("**{ratio:.2}**")
    } else {
        format!("{ratio:.2}")
    }
}

/// Formats a number with three significant digits and thousands separators.
fn number(value: f64) -> String {
    match value {
        v if v < 1.0 => format!("{v:.3}"),
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => {
            let digits = format!("{v:.0}");
            let mut text = String::new();
            for (place, digit) in digits.chars().enumerate() {
                if place > 0 && (digits.len() - place).is_multiple_of(3) {
                    text.push(',');
                }
                text.push(digit);
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_thousands_apart() {
        for (value, text) in [
            (0.2974, "0.297"),
            (1.026, "1.03"),
            (45.04, "45.0"),
            (269.3, "269"),
            (31_006.2, "31,006"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn what_is_shown_as_one_is_not_bold() {
        assert_eq!(spell_ratio(0.996), "1.00");
        assert_eq!(spell_ratio(0.994), "**0.99**");
        assert_eq!(spell_ratio(2.0), "2.00");
    }
}
