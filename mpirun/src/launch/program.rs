//! Plan of a job: its programs with their numbers of processes, and all options of the launch.

use crate::hosts::Host;
use crate::hosts::map::{self, MapError, Policy, Wish};
use crate::hosts::rankfile::RankPlacement;
use crate::launch::binding::Binding;
use crate::launch::limits::Limits;
use crate::launch::sys::Signal;
use crate::launch::under::Under;
use crate::recording;
use mpi_core::crs::description::Description;
use printable::name;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One program of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct App {
    /// The number of processes; `None` means the number of slots.
    pub procs: Option<usize>,
    /// The indexes of the plan's hosts that the program may run on; empty means all hosts.
    pub hosts: Vec<usize>,
    /// The host and cores of each rank of the program, if a rankfile assigns them.
    pub placements: Option<Vec<RankPlacement>>,
    /// The program's name as the user wrote it; [`App::resolve`] finds the file.
    pub program: OsString,
    /// The arguments after the program's name.
    pub args: Vec<OsString>,
    /// The working directory, relative to the job's directory; `None` means the job's directory.
    pub dir: Option<PathBuf>,
    /// The folders that are searched before `PATH` (`--path`).
    pub path: Option<OsString>,
    /// Environment variables for this program only; they override those of the job.
    pub env: Vec<(OsString, OsString)>,
}

/// The checkpoint settings of a job.
#[derive(Clone, Debug)]
pub struct Checkpointing {
    /// The folder of the job's checkpoints.
    pub dir: PathBuf,
    /// The interval between the end of one checkpoint and the start of the next.
    pub every: Option<Duration>,
    /// The signal to mpirun that requests a checkpoint.
    pub signal: Option<Signal>,
    /// The number of restarts after deaths of ranks.
    pub restarts: u32,
    /// True if the job begins from a checkpoint.
    pub has_origin: bool,
    /// Messages for the user about the checkpoint from which the job restarts.
    pub notes: Vec<String>,
    /// The settings of images of all processes (`--mca crs criu`); `None` if the ranks save files.
    pub images: Option<Images>,
}

/// The settings for checkpoints that consist of images of all processes.
#[derive(Clone, Debug)]
pub struct Images {
    /// The CRIU program.
    pub program: PathBuf,
    /// The version of the CRIU program.
    pub version: String,
    /// The number of checkpoints that are kept.
    pub keep: usize,
    /// The programs of the job, for the manifest.
    pub job: Description,
    /// The time limit of each step of a checkpoint or a restart; zero is no limit.
    pub limit: Duration,
}

/// A job as the user has specified it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The programs in the order of the command line, which is the order of their ranks.
    pub apps: Vec<App>,
    /// All hosts that may be used, each once; other fields contain indexes into this list.
    pub hosts: Vec<Host>,
    /// The mapping of ranks to hosts (`--map-by`).
    pub policy: Policy,
    /// Whether a program's ranks are numbered round robin over the hosts (`--rank-by node`).
    pub rank_by_node: bool,
    /// Whether oversubscription is allowed on hosts with given slot counts (`--oversubscribe`).
    pub oversubscribe: bool,
    /// Whether slots are a limit also on a single host (`--no-oversubscribe`).
    pub strict: bool,
    /// The binding of ranks to processors (`--bind-to`).
    pub binding: Binding,
    /// Whether the processors of each rank are printed before the job starts.
    pub report_bindings: bool,
    /// Whether the host of each rank is printed before the job starts.
    pub display_map: bool,
    /// Whether the hosts and their slots are printed before the job starts.
    pub display_allocation: bool,
    /// The destinations of the ranks' output, and the ranks that read standard input.
    pub io: Io,
    /// The environment of every rank, without the launcher's own variables.
    pub env: Vec<(OsString, OsString)>,
    /// The time limit after which the job is ended with a hang report; `None` sets no limit.
    pub timeout: Option<Duration>,
    /// The time without progress after which a hang report is printed; the job continues.
    pub hang_after: Option<Duration>,
    /// Whether a job in which no rank can make progress is reported and ended (`--end-dead`).
    pub end_dead: EndDead,
    /// The ranks that run under a debugger (`--gdb`, `--rr`).
    pub under: Option<Under>,
    /// The file for machine-readable hang reports.
    pub hang_report: Option<PathBuf>,
    /// The file for the trace of all ranks.
    pub trace: Option<PathBuf>,
    /// The file for the communication matrix, without an extension.
    pub matrix: Option<PathBuf>,
    /// The file for the report of all ranks' file I/O: `-` is standard error.
    pub io_report: Option<PathBuf>,
    /// Whether the job survives the death of a rank (`--with-ft`).
    pub tolerates_deaths: bool,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// The time before SIGKILL for ranks that handle the signal that mpirun received.
    pub signal_grace: Duration,
    /// Warnings about the command line, which are printed before the job starts.
    pub warnings: Vec<String>,
    /// Whether failures are reported only by the exit status (`--quiet`).
    pub quiet: bool,
    /// Whether each start of a process is reported (`--verbose`).
    pub verbose: bool,
    /// The method of starting ranks on other hosts.
    pub remote: RemoteLaunch,
    /// The folder and times of checkpoints (`--checkpoint-dir`).
    pub checkpoints: Option<Checkpointing>,
}

impl Plan {
    /// Returns true if the event rings must be read after the ranks have ended.
    pub fn needs_event_rings(&self) -> bool {
        self.trace.is_some() || self.io_report.is_some() || self.matrix.is_some()
    }

    /// Returns the option that permits only one program for each rank, if one is set.
    pub fn needs_one_program(&self) -> Option<&'static str> {
        let options = [
            (self.tolerates_deaths, "--with-ft"),
            (self.checkpoints.is_some(), "--checkpoint-dir"),
            (self.trace.is_some(), "--trace"),
            (self.io_report.is_some(), "--io-report"),
            (self.matrix.is_some(), "--matrix"),
            (recording::is_asked_for(&self.env), "--record or --replay"),
        ];
        options
            .into_iter()
            .find_map(|(is_set, option)| is_set.then_some(option))
    }
}

/// The routing of the ranks' input and output.
#[derive(Clone, Debug, Default)]
pub struct Io {
    /// Whether `[job,rank]<stdout>: ` precedes each line, with jobs counted from 1;
    /// overrides `label`.
    pub tag: bool,
    /// Whether the time precedes each line.
    pub timestamp: bool,
    /// Whether `[rank] ` precedes each line.
    pub label: bool,
    /// Whether standard error is printed on standard output.
    pub merge: bool,
    /// The folder below which each rank's output is also written.
    pub folder: Option<PathBuf>,
    /// Whether mpirun prints the ranks' output.
    pub echo: bool,
    /// Whether bytes are forwarded immediately, without waiting for the ends of lines.
    pub unbuffered: bool,
    /// The ranks that read standard input; all other ranks read `/dev/null`.
    pub stdin: StdinTo,
}

/// The reaction to a job in which all ranks wait inside MPI for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndDead {
    /// The job is neither reported nor ended.
    No,
    /// The job is reported but not ended.
    Report,
    /// The job is reported and ended.
    Yes,
}

/// The ranks that read mpirun's standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinTo {
    /// Only the rank with this number in the first job reads the input.
    Rank(u32),
    /// Each rank gets the whole input.
    All,
    /// No rank reads the input.
    NoRank,
}

impl Default for StdinTo {
    fn default() -> StdinTo {
        StdinTo::Rank(0)
    }
}

impl StdinTo {
    /// Returns true if this rank of the first job reads standard input.
    pub fn goes_to(self, rank: u32) -> bool {
        match self {
            StdinTo::Rank(reader) => reader == rank,
            StdinTo::All => true,
            StdinTo::NoRank => false,
        }
    }
}

/// The command and the parameters by which daemons on other hosts are started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoteLaunch {
    /// The command with its first arguments; the host and a shell command are appended.
    pub agent: Vec<OsString>,
    /// The path of this program on the other hosts.
    pub mpirun: PathBuf,
    /// The fan-out of the launch tree: the maximum number of hosts that a launcher starts itself.
    pub fanout: usize,
    /// The time limits for messages of other hosts.
    pub limits: Limits,
}

impl Plan {
    /// Returns the text of `--display-allocation`: one line for each host.
    pub fn allocation(&self) -> String {
        let mut text = String::from("hosts of this job:");
        for host in &self.hosts {
            let plural = if host.slots == 1 { "" } else { "s" };
            text += &format!("\n  {}: {} slot{plural}", name(&host.name), host.slots);
            if !host.counted {
                text += ", which is no limit";
            }
        }
        text
    }

    /// Returns the total number of slots of all hosts.
    pub fn slots(&self) -> usize {
        self.hosts.iter().map(|host| host.slots).sum()
    }

    /// Returns the host index of each rank: one list for each program.
    pub fn place(&self, apps: &[App]) -> Result<Vec<Vec<usize>>, MapError> {
        self.place_on(apps, &self.hosts)
    }

    /// Places ranks as [`Plan::place`] does, but with the slot counts of the given hosts.
    pub fn place_on(&self, apps: &[App], hosts: &[Host]) -> Result<Vec<Vec<usize>>, MapError> {
        let everywhere: Vec<usize> = (0..hosts.len()).collect();
        let hosts_of = |placements: &Vec<RankPlacement>| {
            let placements = placements.iter();
            placements.map(|placement| placement.host).collect()
        };
        let wishes: Vec<Wish> = apps
            .iter()
            .map(|app| Wish {
                procs: app.procs,
                hosts: match app.hosts.is_empty() {
                    true => everywhere.clone(),
                    false => app.hosts.clone(),
                },
                fixed: app.placements.as_ref().map(hosts_of),
            })
            .collect();
        let limits = map::Limits {
            oversubscribe: self.oversubscribe,
            strict: self.strict,
        };
        let mut placed = map::place(&wishes, hosts, self.policy, limits)?;
        if self.rank_by_node {
            let dealt = apps.iter().zip(&mut placed);
            for (_, ranks) in dealt.filter(|(app, _)| app.placements.is_none()) {
                *ranks = map::rank_by_node(ranks);
            }
        }
        Ok(placed)
    }
}

/// The reason why a program cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// The program's name contains a slash, but no such file exists.
    NotFound {
        /// The name as the user wrote it.
        program: String,
        /// The working directory that the name was resolved against.
        dir: String,
    },
    /// No folder in `PATH` contains the program.
    NotInPath {
        /// The name, which contains no slash.
        program: String,
        /// Whether the working directory contains the program, so that `./NAME` would find it.
        here: bool,
    },
    /// The file exists but cannot be executed.
    NotExecutable {
        /// The name as the user wrote it.
        program: String,
        /// Whether the file is a folder; otherwise it lacks execute permission.
        folder: bool,
    },
    /// The working directory that the user named does not exist or is not a folder.
    NoSuchDirectory {
        /// The directory, as returned by [`App::dir_from`].
        dir: String,
    },
}

impl ProgramError {
    /// Returns the exit code that a shell would return.
    pub fn code(&self) -> i32 {
        match self {
            ProgramError::NotExecutable { .. } => 126,
            _ => 127,
        }
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramError::NotFound { program, dir } => {
                let (program, dir) = (name(program), name(dir));
                write!(f, "there is no program {program} (seen from {dir})")
            }
            ProgramError::NotInPath { program, here } => {
                let program = name(program);
                write!(f, "there is no program {program} in PATH")?;
                if *here {
                    write!(
                        f,
                        "; to run the one in the working directory, write ./{program}"
                    )?;
                }
                Ok(())
            }
            ProgramError::NotExecutable {
                program,
                folder: true,
            } => {
                write!(f, "{} is a folder, not a program", name(program))
            }
            ProgramError::NotExecutable { program, .. } => {
                write!(
                    f,
                    "{} is not an executable file (chmod +x makes it one)",
                    name(program)
                )
            }
            ProgramError::NoSuchDirectory { dir } => {
                write!(f, "there is no working directory {}", name(dir))
            }
        }
    }
}

impl std::error::Error for ProgramError {}

impl App {
    /// Returns the working directory. `here` is the job's directory; `None` means this process's.
    pub fn dir_from(&self, here: Option<&Path>) -> Option<PathBuf> {
        match (&self.dir, here) {
            (Some(dir), Some(here)) => Some(here.join(dir)),
            (Some(dir), None) => Some(dir.clone()),
            (None, here) => here.map(Path::to_path_buf),
        }
    }

    /// Returns the file to execute. A name with a slash is relative to the working directory.
    /// Any other name is searched in `PATH`.
    pub fn resolve(
        &self,
        env: &[(OsString, OsString)],
        here: Option<&Path>,
    ) -> Result<PathBuf, ProgramError> {
        let dir = match self.dir_from(here) {
            Some(dir) if !dir.is_dir() => {
                let dir = dir.display().to_string();
                return Err(ProgramError::NoSuchDirectory { dir });
            }
            Some(dir) => dir,
            None => PathBuf::from("."),
        };
        let program = self.program.to_string_lossy().into_owned();
        if self.program.as_bytes().contains(&b'/') {
            let path = dir.join(&self.program);
            return match kind_of(&path) {
                Kind::Executable => Ok(std::path::absolute(&path).unwrap_or(path)),
                Kind::Other => Err(ProgramError::NotExecutable {
                    program,
                    folder: path.is_dir(),
                }),
                Kind::Absent => Err(ProgramError::NotFound {
                    program,
                    dir: std::path::absolute(&dir)
                        .unwrap_or(dir)
                        .display()
                        .to_string(),
                }),
            };
        }
        let path = env
            .iter()
            .find(|(name, _)| name == "PATH")
            .map_or(OsStr::new("/usr/bin:/bin"), |(_, value)| value);
        let first = self.path.as_deref().unwrap_or_default();
        std::env::split_paths(first)
            .filter(|place| !place.as_os_str().is_empty())
            .chain(std::env::split_paths(path))
            .map(|place| dir.join(place).join(&self.program))
            .find(|path| kind_of(path) == Kind::Executable)
            .ok_or_else(|| ProgramError::NotInPath {
                here: kind_of(&dir.join(&self.program)) == Kind::Executable,
                program,
            })
    }
}

#[derive(PartialEq, Eq)]
enum Kind {
    Executable,
    Other,
    Absent,
}

fn kind_of(path: &Path) -> Kind {
    match path.metadata() {
        Ok(meta) if meta.is_file() && meta.permissions().mode() & 0o111 != 0 => Kind::Executable,
        Ok(_) => Kind::Other,
        Err(_) => Kind::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(program: &str, dir: Option<&Path>) -> App {
        App {
            procs: Some(1),
            hosts: Vec::new(),
            placements: None,
            program: program.into(),
            args: Vec::new(),
            dir: dir.map(Path::to_path_buf),
            path: None,
            env: Vec::new(),
        }
    }

    #[test]
    fn a_plain_name_is_found_in_path_only() {
        let env = [("PATH".into(), "/nowhere:/bin".into())];
        assert_eq!(
            app("sh", None).resolve(&env, None).unwrap(),
            Path::new("/bin/sh")
        );
        let missing =
            app("sh", Some(Path::new("/bin"))).resolve(&[("PATH".into(), "/nowhere".into())], None);
        let sentence = missing.unwrap_err().to_string();
        assert!(sentence.ends_with("write ./sh"), "{sentence}");
    }

    #[test]
    fn a_name_with_a_slash_is_seen_from_the_working_directory() {
        let found = app("./sh", Some(Path::new("/bin"))).resolve(&[], None);
        assert!(found.unwrap().starts_with("/bin"));
        let error = app("./nothing-here", None).resolve(&[], None).unwrap_err();
        assert_eq!(error.code(), 127);
        assert_eq!(
            app("/etc/passwd", None)
                .resolve(&[], None)
                .unwrap_err()
                .code(),
            126
        );
    }
}
