//! What the README shows is what the commands print.
//!
//! A fenced block marked `console` is a session in an empty folder: every line that begins with `$ hwbarr` is run, in order.
//! A command that ends with ` &` goes on until the end of its block; the README shows its first line.
//! The README's servers listen at port 25175, in whose place the test takes a free one.
//! `README_UPDATE=1 cargo test -p sim --test readme` writes the README anew.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const FENCE: &str = "```";
const MARKED: &str = "```console";
const PORT: &str = "127.0.0.1:25175";
const BACKGROUND: &str = " &";

fn readme() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")
}

/// The words of a command, of which some are quoted.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('"').enumerate();
    parts
        .flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

/// A session: one block of the README.
struct Session {
    folder: PathBuf,
    /// What stands for [`PORT`] here.
    port: String,
    background: Vec<Child>,
}

impl Drop for Session {
    fn drop(&mut self) {
        for child in &mut self.background {
            // Both fail only for a process that has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Session {
    fn new(folder: &Path) -> Self {
        // Free when it was asked for; the next to be handed out is another one.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        Self {
            folder: folder.to_owned(),
            port: port.expect("a free port").to_string(),
            background: Vec::new(),
        }
    }

    /// What the command prints, without spaces at the ends of lines.
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

/// The README with the real output in every marked block.
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
