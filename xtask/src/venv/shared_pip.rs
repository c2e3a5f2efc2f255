//! The pip that installs into all environments.
//!
//! Creating an environment with pip takes 5 s of processor time, and one without it 0.2 s.
//! So one environment has pip, which works on the others by its option `--python`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::process;
use crate::workspace;

/// Returns the interpreter of the environment with pip, which is created if it is missing;
/// `None` if it cannot be created, or if its pip is older than 22.3 and lacks the option.
pub fn interpreter() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let folder = workspace::target().join("venvs/pip");
        let python = folder.join("bin/python");
        if !is_able(&python) {
            let mut make = Command::new("python3");
            make.args(["-m", "venv", "--clear"]).arg(&folder);
            process::run(&mut make).ok()?;
        }
        is_able(&python).then_some(python)
    });
    found.as_deref()
}

/// Returns true if this interpreter has a pip that can work on another environment.
fn is_able(python: &Path) -> bool {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "--python"])
        .arg(python)
        .arg("--version");
    pip.stdout(Stdio::null()).stderr(Stdio::null());
    pip.status().is_ok_and(|status| status.success())
}
