//! What the README shows is what the commands print.
//!
//! A fenced block marked `console` whose first line is `$ hwbarr ...` is run in an empty folder.
//! `README_UPDATE=1 cargo test -p sim --test readme` writes the README anew.

use std::path::{Path, PathBuf};
use std::process::Command;

const FENCE: &str = "```";
const MARKED: &str = "```console";

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

/// What the command prints, without spaces at the ends of lines.
fn printed(command: &str, folder: &Path) -> String {
    let mut words = words(command).into_iter();
    assert_eq!(words.next().as_deref(), Some("hwbarr"), "{command}");
    let output = Command::new(env!("CARGO_BIN_EXE_hwbarr"))
        .args(words)
        .env("COLUMNS", "100")
        .current_dir(folder)
        .output()
        .expect("hwbarr starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("UTF-8");
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
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
        let first = lines.next().unwrap_or_default();
        let command = first.strip_prefix("$ ").expect("a block begins with $");
        real.push(first.to_owned());
        real.push(printed(command, folder.path()));
        for line in lines.by_ref() {
            if line == FENCE {
                break;
            }
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
