//! Checks that the tutorial's commands print what it shows.
//!
//! A fence with a language and a name (`c hello.c`) is a file. A fence marked `console` is a session: each line that begins with `$ ` is run by `sh`
//! in the folder of the files, with our programs first in the path, and the lines after it are what it must print on both outputs.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tests::installation;
use xtask::process::Running;

/// The time limit of one command.
const LIMIT: Duration = Duration::from_secs(120);

/// A fenced block: the words after the fence, and the lines inside.
struct Block<'a> {
    words: Vec<&'a str>,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix("```") {
            let inside = lines.by_ref().take_while(|line| *line != "```");
            found.push(Block {
                words: words.split_whitespace().collect(),
                lines: inside.collect(),
            });
        }
    }
    found
}

/// Writes the file of a block, executable for all users.
fn write(folder: &Path, name: &str, lines: &[&str]) {
    let path = folder.join(name);
    fs::write(&path, lines.join("\n") + "\n").unwrap_or_else(|e| panic!("{name}: {e}"));
    let all = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&path, all).unwrap_or_else(|e| panic!("{name}: {e}"));
}

/// The output of a command, standard error after standard output.
fn printed(folder: &Path, command: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut ours = OsString::from(installation().join("bin"));
    ours.push(":");
    ours.push(path);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(folder)
        .env("PATH", ours);
    let ended = Running::start(&mut shell).and_then(|running| running.wait(LIMIT));
    ended.unwrap_or_else(|e| panic!("{command}: {e}")).stdout
}

#[test]
fn each_command_of_the_tutorial_prints_what_the_tutorial_shows() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tutorial.md");
    let text = fs::read_to_string(&document).expect("the tutorial");
    let folder = tempfile::tempdir().expect("a folder");
    let (mut files, mut commands) = (0, 0);
    for block in blocks(&text) {
        match block.words.as_slice() {
            ["console"] => {
                let session = block.lines.join("\n");
                for step in session.split("$ ").filter(|step| !step.is_empty()) {
                    let (command, shown) = step.split_once('\n').unwrap_or((step, ""));
                    let real = printed(folder.path(), command);
                    assert_eq!(real.trim_end(), shown.trim_end(), "$ {command}");
                    commands += 1;
                }
            }
            [_, name] => {
                write(folder.path(), name, &block.lines);
                files += 1;
            }
            _ => {}
        }
    }
    assert!(
        files >= 4 && commands >= 8,
        "{files} files, {commands} commands"
    );
}
