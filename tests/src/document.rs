//! Documents whose files a test writes and whose console sessions it runs.
//!
//! A code block with a language and a file name (`c hello.c`) is a file. A code block `console` is a session:
//! `sh` runs each line that begins with `$ `, in the folder of the files.
//! In `PATH`, the installation's `bin` comes first;
//! `PREFIX` is the path of the installation, `PORTCULLIS` that of the source tree.
//! The lines after a command are the expected text of standard output and standard error.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use xtask::process::{self, Running};
use xtask::{fences, workspace};

use crate::installation;

/// The time limit of one command.
const LIMIT: Duration = Duration::from_secs(120);

/// A document, and the folder in which its commands run.
#[derive(Debug)]
pub struct Document {
    text: String,
    folder: TempDir,
}

/// The numbers of files and commands of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Number of files written.
    pub files: usize,
    /// Number of commands run.
    pub commands: usize,
}

impl Document {
    /// Reads a document of the repository, such as `docs/tutorial.md`.
    pub fn of(path: &str) -> Document {
        let file = workspace::root().join(path);
        Document {
            text: fs::read_to_string(file).unwrap_or_else(|e| panic!("{path}: {e}")),
            folder: tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}")),
        }
    }

    /// Returns the folder in which the document's commands run.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the text of the document's file `name`.
    pub fn file(&self, name: &str) -> String {
        fences::file(&self.text, name).unwrap_or_else(|| panic!("the document has no file {name}"))
    }

    /// Writes the files and runs the commands in order;
    /// panics if an output differs from the document.
    pub fn holds(&self) -> Counts {
        let (mut files, mut commands) = (0, 0);
        for block in fences::blocks(&self.text) {
            match block.words.as_slice() {
                ["console"] => {
                    let session = block.lines.join("\n");
                    for step in session.split("$ ").filter(|step| !step.is_empty()) {
                        let (command, shown) = step.split_once('\n').unwrap_or((step, ""));
                        let real = self.printed(command);
                        assert_eq!(real.trim_end(), shown.trim_end(), "$ {command}");
                        commands += 1;
                    }
                }
                [_, name] => {
                    self.write(name, &block.lines);
                    files += 1;
                }
                _ => {}
            }
        }
        Counts { files, commands }
    }

    /// Writes the file of a code block, executable for all users.
    fn write(&self, name: &str, lines: &[&str]) {
        let path = self.folder().join(name);
        let folder = path.parent().unwrap_or(self.folder());
        fs::create_dir_all(folder).unwrap_or_else(|e| panic!("{name}: {e}"));
        let text = lines.join("\n") + "\n";
        process::write_program(&path, &text).unwrap_or_else(|e| panic!("{name}: {e}"));
    }

    /// Runs a command and returns its standard output and standard error, in the order of printing.
    fn printed(&self, command: &str) -> String {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut ours = OsString::from(installation().join("bin"));
        ours.push(":");
        ours.push(path);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(self.folder())
            .env("PREFIX", installation())
            .env("PORTCULLIS", workspace::root())
            .env("PATH", ours);
        let ended = Running::start(&mut shell).and_then(|running| running.wait(LIMIT));
        ended.unwrap_or_else(|e| panic!("{command}: {e}")).stdout
    }
}
