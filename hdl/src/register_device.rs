//! The Verilated register block as a device:
//! a process that simulates it and shares its registers in a file that other processes map.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::cache::Cache;
use crate::tool::{Tool, ToolError};
use crate::verilator::Verilated;

/// Addresses of the registers STATUS and RELEASES of group 0.
const STATUS: u64 = 0x130;
const RELEASES: u64 = 0x134;

/// The running device; dropping it ends its process and removes its file.
#[derive(Debug)]
pub struct Playing {
    child: Child,
    file: PathBuf,
    folder: PathBuf,
}

impl Playing {
    /// Builds the block with these values of the parameters `N`, `G` and `STRIDE` and starts it.
    pub fn start(parameters: &[(&'static str, usize)], cache: &Cache) -> Result<Self, ToolError> {
        let mut all = vec![("N", 4), ("G", 1), ("STRIDE", 6)];
        for (name, value) in &mut all {
            let given = parameters.iter().find(|(given, _)| given == name);
            *value = given.map_or(*value, |(_, value)| *value);
        }
        let verilated = Verilated::registers(&all, cache)?;
        let folder = new_folder()?;
        let file = folder.join("registers");
        let started = Command::new(verilated.program())
            .arg("serve")
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = started.map_err(|e| ToolError::Start(Tool::VERILATOR, e))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::new(output);
            // An error leaves the line empty, which the match below reports.
            let _ = output.read_line(&mut line);
            child.stdout = Some(output.into_inner());
        }
        let playing = Self {
            child,
            file,
            folder,
        };
        match line.as_str() {
            "ready\n" => Ok(playing),
            _ => Err(ToolError::Unreadable {
                tool: Tool::VERILATOR,
                what: "that the device is ready".to_owned(),
            }),
        }
    }

    /// Returns the path of the mapped file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the number of releases of group 0 so far.
    ///
    /// The device stores registers one after the other, so LEVEL may already show a release that RELEASES does not; the loop waits until both agree.
    pub fn releases(&self) -> u64 {
        loop {
            let releases = self.word(RELEASES);
            let level = self.word(STATUS) & 1;
            if let (true, again) = (releases & 1 == level, self.word(RELEASES))
                && again == releases
            {
                return u64::from(releases);
            }
            std::thread::yield_now();
        }
    }

    fn word(&self, address: u64) -> u32 {
        let read = || {
            let mut file = File::open(&self.file).ok()?;
            file.seek(SeekFrom::Start(address)).ok()?;
            let mut bytes = [0; 4];
            file.read_exact(&mut bytes).ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        read().unwrap_or(0)
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        // The device ends when its standard input ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Creates a folder with an unused name in the system's folder for temporary files.
fn new_folder() -> Result<PathBuf, ToolError> {
    let parent = std::env::temp_dir();
    let process = std::process::id();
    let mut number = 0_u32;
    loop {
        let folder = parent.join(format!("barrier-registers-{process}-{number}"));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(e) => return Err(ToolError::Folder(folder.display().to_string(), e)),
        }
    }
}
