//! Test that the README's sessions match the output of the commands.
//!
//! A fenced block marked `console` is a session in an empty folder: every line that begins with
//! `$ hwbarr` is run, in order.
//! A command that ends with ` &` runs until the end of its block;
//! the README has its first output line.
//! The README's servers listen at port 25175; the test replaces it by a free port.
//! `README_UPDATE=1 cargo test -p hwbarr --test readme` rewrites the README.

use barrier_simulator::virtual_time::{Parameters, Time};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const FENCE: &str = "```";
const MARKED: &str = "```console";
const PORT: &str = "127.0.0.1:25175";
const BACKGROUND: &str = " &";

fn readme() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")
}

/// Splits a command into words, some of which are quoted.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('"').enumerate();
    parts
        .flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

/// A session: one `console` block of the README.
struct Session {
    folder: PathBuf,
    /// The free port that replaces [`PORT`].
    port: String,
    background: Vec<Child>,
}

impl Drop for Session {
    fn drop(&mut self) {
        for child in &mut self.background {
            // Both calls fail only for a process that has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Session {
    fn new(folder: &Path) -> Self {
        // The port is free at the time of the query; a second query returns another port.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        Self {
            folder: folder.to_owned(),
            port: port.expect("a free port").to_string(),
            background: Vec::new(),
        }
    }

    /// Runs a command; returns its output without spaces at the ends of lines.
    fn printed(&mut self, command: &str) -> String {
        let foreground = command.strip_suffix(BACKGROUND);
        let mut words = words(foreground.unwrap_or(command)).into_iter();
        assert_eq!(words.next().as_deref(), Some("hwbarr"), "{command}");
        let mut process = Command::new(env!("CARGO_BIN_EXE_hwbarr"));
        process
            .args(words.map(|word| word.replace(PORT, &self.port)))
            .env("COLUMNS", "100")
            .current_dir(&self.folder);
        let text = match foreground {
            Some(_) => {
                let mut child = process
                    .stdout(Stdio::piped())
                    .spawn()
                    .expect("hwbarr starts");
                let mut line = String::new();
                let output = child.stdout.take().expect("a pipe");
                self.background.push(child);
                let read = BufReader::new(output).read_line(&mut line);
                read.expect("UTF-8");
                line
            }
            None => {
                let output = process.output().expect("hwbarr starts");
                String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8")
            }
        };
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        lines.join("\n").replace(&self.port, PORT)
    }
}

/// Returns the README with the actual output in every `console` block.
fn with_real_output(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut lines = text.lines();
    let mut real = Vec::new();
    while let Some(line) = lines.next() {
        real.push(line.to_owned());
        if line != MARKED {
            continue;
        }
        let mut session = Session::new(folder.path());
        let shown: Vec<_> = lines.by_ref().take_while(|line| *line != FENCE).collect();
        let commands = shown.iter().filter_map(|line| line.strip_prefix("$ "));
        assert!(
            shown.first().is_some_and(|line| line.starts_with("$ ")),
            "a block begins with $"
        );
        for command in commands {
            real.push(format!("$ {command}"));
            real.push(session.printed(command));
        }
        real.push(FENCE.to_owned());
    }
    real.join("\n") + "\n"
}

/// The start of the table row with the hardware's times in the output of `hwbarr scale`.
const HARDWARE: &str = "this hardware ";

/// Returns the hardware's barrier latencies on 60, 1,024 and 65,536 ranks, as `hwbarr scale`
/// prints them.
fn scaled() -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let printed = Session::new(folder.path()).printed("hwbarr scale");
    let row = printed.lines().find_map(|line| line.strip_prefix(HARDWARE));
    let row = row.expect("a row of the hardware").split_whitespace();
    row.map(str::to_owned).collect()
}

/// The hardware rows of the README's predictions are up to date. Software rows that are fitted to a
/// measurement cannot be checked here.
#[test]
fn every_prediction_in_the_readme_has_the_hardwares_figures_of_now() {
    let shown = std::fs::read_to_string(readme()).expect("a README");
    let rows = shown.lines().filter_map(|line| line.strip_prefix(HARDWARE));
    let rows: Vec<Vec<_>> = rows.map(|row| row.split_whitespace().collect()).collect();
    // Only the rows with three times are predictions.
    let rows: Vec<_> = rows.iter().filter(|row| row.len() == 3).collect();
    assert!(rows.len() >= 3, "{rows:?}");
    let now = scaled();
    for row in rows {
        assert_eq!(row, &now);
    }
}

/// The default delays of `hwbarr run` match the circuit of `hdl/boards/WIRING.md`.
#[test]
fn the_delays_of_the_wiring_notes_are_the_defaults() {
    let notes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hdl/boards/WIRING.md");
    let notes = std::fs::read_to_string(notes).expect("notes");
    let buffers = Parameters::BUFFER + Parameters::CABLE_BUFFER;
    let ns = |time: Time| format!("{} ns", time.to_string().trim_end_matches("ns"));
    for words in [
        format!("the two inverters ({})", ns(Parameters::SCHMITT_INVERTERS)),
        format!(
            "the two buffers add at most {} and {}",
            ns(Parameters::BUFFER),
            ns(Parameters::CABLE_BUFFER)
        ),
        format!("the two buffers ({})", ns(buffers)),
        format!("2.2 nF = {}", ns(Parameters::PORT_EDGE)),
    ] {
        assert!(notes.contains(&words), "{words}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let printed = Session::new(folder.path()).printed("hwbarr run -k 1");
    let circuit = format!(
        "receivers {}, buffers {buffers}, edges {} to the threshold each way",
        Parameters::SCHMITT_INVERTERS,
        Parameters::PORT_EDGE
    );
    assert!(printed.contains(&circuit), "{printed}");
    // The desk kit has different resistors at the two ends of a cable.
    let kit = "hwbarr run -k 1 --buffers 22ns --edge 76ns --edge-back 334ns";
    assert!(notes.contains(kit), "{kit}");
    let printed = Session::new(folder.path()).printed(kit);
    let circuit = "buffers 22ns, edges 76ns to the threshold of the board and 334ns to a node's";
    assert!(printed.contains(circuit), "{printed}");
}

/// A release takes two edges of the synchroniser and one of the machine.
/// The first of these three edges follows the arrival after up to one period.
#[test]
fn the_projects_readme_has_the_fastest_and_the_slowest_release() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let period = 1e9 / fpga_model::CLOCK_HZ as f64;
    let words = format!(
        "releases {:.0} to {:.0} ns after",
        2.0 * period,
        3.0 * period
    );
    assert!(page.contains(&words), "{words}");
}

#[test]
fn the_page_of_performance_has_the_hardwares_figures_of_now() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measured/notes/model.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let row = page
        .lines()
        .find_map(|line| line.strip_prefix("| hardware ("));
    let cells = row.expect("a row of the hardware").split('|').skip(1);
    let shown: Vec<_> = cells
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect();
    let now = scaled();
    let now: Vec<_> = now
        .iter()
        .map(|time| {
            let us = time
                .strip_suffix("us")
                .and_then(|us| us.parse::<f64>().ok());
            format!("{:.2} us", us.expect("microseconds"))
        })
        .collect();
    assert_eq!(shown, now);
}

#[test]
fn the_readme_shows_what_the_commands_print() {
    let shown = std::fs::read_to_string(readme()).expect("a README");
    assert!(shown.matches(MARKED).count() > 5, "blocks are marked");
    let real = with_real_output(&shown);
    if std::env::var_os("README_UPDATE").is_some() {
        std::fs::write(readme(), real).expect("written");
        return;
    }
    for (shown, real) in shown.lines().zip(real.lines()) {
        assert_eq!(shown, real, "rewrite the README with README_UPDATE=1");
    }
    assert_eq!(shown.lines().count(), real.lines().count());
}
