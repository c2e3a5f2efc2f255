//! Tests of an installation's manual pages: one page for each program and each MPI function.
//!
//! groff must format every page without a warning.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tests::{installation, needs};
use xtask::manual;
use xtask::packages::on_path;
use xtask::process;

/// The time limit for formatting all pages.
const LIMIT: Duration = Duration::from_secs(120);

/// Returns the file names in a folder of the installation.
fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(installation().join(folder));
    let entries = entries.unwrap_or_else(|e| panic!("{folder}: {e}"));
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn each_program_and_each_function_has_a_manual_page() {
    let pages = names("share/man/man1");
    for program in names("bin") {
        assert!(
            pages.contains(&format!("{program}.1")),
            "{program}: {pages:?}"
        );
    }
    let mut due: Vec<String> = manual::pages()
        .unwrap_or_else(|e| panic!("{e}"))
        .into_iter()
        .map(|page| page.file)
        .collect();
    due.sort();
    let found = names("share/man/man3");
    assert!(due.iter().all(|page| found.contains(page)), "{found:?}");
}

#[test]
fn the_page_of_each_tool_has_a_name_a_synopsis_and_its_options() {
    for program in names("bin") {
        let page = installation().join(format!("share/man/man1/{program}.1"));
        let text = fs::read_to_string(&page).unwrap_or_else(|e| panic!("{program}: {e}"));
        for section in [".SH NAME", ".SH SYNOPSIS", "\\-\\-"] {
            assert!(text.contains(section), "{program} has no {section}");
        }
        let of_command = format!("{program}\\-");
        let mut lines = text.lines();
        let none = lines.find(|line| line.starts_with(&of_command) && line.ends_with("(1)"));
        assert_eq!(none, None, "{program} refers to a page that does not exist");
    }
}

/// Returns all pages of a section.
fn pages(section: &str) -> Vec<PathBuf> {
    let folder = Path::new("share/man").join(section);
    let names = names(&folder.to_string_lossy());
    let folder = installation().join(folder);
    names.iter().map(|name| folder.join(name)).collect()
}

#[test]
fn groff_formats_all_pages_without_a_warning() {
    if !needs(on_path("groff"), "groff (Debian package groff-base)") {
        return;
    }
    let mut groff = Command::new("groff");
    groff
        .args(["-man", "-ww", "-z", "-K", "utf8", "-T", "utf8"])
        .args(pages("man1"))
        .args(pages("man3"));
    let outcome = process::output(&mut groff, LIMIT).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(outcome.stderr, "");
}
