//! What is to run: programs, how many of each, and the environment they get.

use crate::hosts::Host;
use crate::hosts::map::{self, MapError, Policy, Wish};
use crate::hosts::rankfile::Seat;
use crate::launch::binding::Binding;
use crate::launch::limits::Limits;
use mpi_base::environment;
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
    /// `None` is as many as there are slots.
    pub procs: Option<usize>,
    /// Where it may run, as indexes of the plan's hosts; empty is everywhere.
    pub hosts: Vec<usize>,
    /// Where each of its ranks is to run, if a rankfile says it.
    pub seats: Option<Vec<Seat>>,
    /// As the user wrote it; [`App::resolve`] makes a file of it.
    pub program: OsString,
    /// What it is given after its own name.
    pub args: Vec<OsString>,
    /// Its working directory, seen from the job's; `None` is the job's.
    pub dir: Option<PathBuf>,
    /// Searched before `PATH`.
    pub path: Option<OsString>,
    /// Set over the job's environment, for this program only.
    pub env: Vec<(OsString, OsString)>,
}

/// A job as the user asked for it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order of the command line, which is the order of their ranks.
    pub apps: Vec<App>,
    /// All that may be used, each once; others name them by their index.
    pub hosts: Vec<Host>,
    /// How ranks are dealt out to the hosts (`--map-by`).
    pub policy: Policy,
    /// Ranks of one program are numbered host by host in turn, not one host after the other (`--rank-by node`).
    pub rank_by_node: bool,
    /// More ranks than slots may run where slots are counted (`--oversubscribe`).
    pub oversubscribe: bool,
    /// Slots are a limit also on one host.
    pub strict: bool,
    /// What processors each rank may use.
    pub binding: Binding,
    /// Say the processors of each rank before the job runs.
    pub report_bindings: bool,
    /// Say the host of each rank before the job runs.
    pub display_map: bool,
    /// Say the hosts and their slots before the job runs.
    pub display_allocation: bool,
    /// Where the ranks' output goes and which ranks get the input.
    pub io: Io,
    /// The environment of every rank, without what the launcher adds.
    pub env: Vec<(OsString, OsString)>,
    /// After so long the job is ended with a report of which rank waits for which; `None` waits for ever.
    pub timeout: Option<Duration>,
    /// After so long without any movement there is such a report, and the job goes on.
    pub hang_after: Option<Duration>,
    /// Where reports of which rank waits for which are written for tools.
    pub hang_report: Option<PathBuf>,
    /// Where what all ranks did is written.
    pub trace: Option<PathBuf>,
    /// Where what all ranks did to files is written: `-` is standard error.
    pub io_report: Option<PathBuf>,
    /// The death of a rank does not end the job (`--with-ft`).
    pub tolerates_deaths: bool,
    /// Between the polite signal and SIGKILL.
    pub grace: Duration,
    /// The same for ranks that handle the signal which mpirun was sent.
    pub signal_grace: Duration,
    /// Nothing is said about failures; the exit status tells.
    pub quiet: bool,
    /// What is started is said.
    pub verbose: bool,
    /// How ranks on other hosts come to be.
    pub far: Far,
}

impl Plan {
    /// Whether the ranks' tapes are read when they have ended.
    pub fn needs_tapes(&self) -> bool {
        self.trace.is_some() || self.io_report.is_some()
    }
}

/// What becomes of the ranks' input and output.
#[derive(Clone, Debug, Default)]
pub struct Io {
    /// `[job,rank]<stdout>: ` stands before each line, the job counted from 1; stronger than `label`.
    pub tag: bool,
    /// The time stands before each line.
    pub timestamp: bool,
    /// `[rank] ` stands before each line.
    pub label: bool,
    /// Standard error is given out on standard output.
    pub merge: bool,
    /// Each rank's output is also written below this folder.
    pub folder: Option<PathBuf>,
    /// Whether it is given out by mpirun as well.
    pub echo: bool,
    /// Bytes are passed on as they come, without waiting for the ends of lines.
    pub unbuffered: bool,
    /// All other ranks have `/dev/null`.
    pub stdin: StdinTo,
}

/// Which ranks read our standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinTo {
    /// The rank with this number in the first job.
    Rank(u32),
    /// Each gets all of it.
    All,
    /// It is not read.
    NoRank,
}

impl Default for StdinTo {
    fn default() -> StdinTo {
        StdinTo::Rank(0)
    }
}

impl StdinTo {
    /// Whether this rank of the first job reads it; all others have `/dev/null`.
    pub fn goes_to(self, rank: u32) -> bool {
        match self {
            StdinTo::Rank(reader) => reader == rank,
            StdinTo::All => true,
            StdinTo::NoRank => false,
        }
    }
}

/// How other hosts are reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Far {
    /// A command and its first arguments; the host and a shell command follow.
    pub agent: Vec<OsString>,
    /// This program on the other hosts.
    pub mpirun: PathBuf,
    /// How many hosts one launcher reaches; each of those reaches as many again.
    pub fanout: usize,
    /// How long another host is waited for.
    pub limits: Limits,
}

impl Plan {
    /// What `--display-allocation` shows: a line for each host.
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

    /// How many processes there is room for on all hosts.
    pub fn slots(&self) -> usize {
        self.hosts.iter().map(|host| host.slots).sum()
    }

    /// The host of each rank, program by program.
    pub fn place(&self, apps: &[App]) -> Result<Vec<Vec<usize>>, MapError> {
        self.place_on(apps, &self.hosts)
    }

    /// The same where the hosts have other numbers of slots.
    pub fn place_on(&self, apps: &[App], hosts: &[Host]) -> Result<Vec<Vec<usize>>, MapError> {
        let everywhere: Vec<usize> = (0..hosts.len()).collect();
        let wishes: Vec<Wish> = apps
            .iter()
            .map(|app| Wish {
                procs: app.procs,
                hosts: match app.hosts.is_empty() {
                    true => everywhere.clone(),
                    false => app.hosts.clone(),
                },
                fixed: app
                    .seats
                    .as_ref()
                    .map(|seats| seats.iter().map(|seat| seat.host).collect()),
            })
            .collect();
        let limits = map::Limits {
            oversubscribe: self.oversubscribe,
            strict: self.strict,
        };
        let mut placed = map::place(&wishes, hosts, self.policy, limits)?;
        if self.rank_by_node {
            let dealt = apps.iter().zip(&mut placed);
            for (_, ranks) in dealt.filter(|(app, _)| app.seats.is_none()) {
                *ranks = map::rank_by_node(ranks);
            }
        }
        Ok(placed)
    }
}

/// Variables that belong to one process of one launch and must not leak into another launch.
pub fn is_of_a_launch(name: &OsStr) -> bool {
    const PREFIXES: [&str; 4] = ["PMI_", "PMIX_", "OMPI_COMM_WORLD_", "MPI_LOCAL"];
    const NAMES: [&str; 10] = [
        "PORTCULLIS_NODE_FD",
        "PORTCULLIS_LOCAL_RANKS",
        "PORTCULLIS_LOCAL_RANK",
        "PORTCULLIS_LOCAL_SIZE",
        mpi_base::cpu::SHARERS,
        "PORTCULLIS_JOB",
        "PORTCULLIS_APPNUM",
        "PORTCULLIS_UNIVERSE_SIZE",
        "OMPI_UNIVERSE_SIZE",
        mpi_core::rte::deaths::SERVED,
    ];
    let name = name.as_bytes();
    PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix.as_bytes()))
        || NAMES.iter().any(|own| name == own.as_bytes())
}

/// This process's environment without what an outer launcher told it about itself.
pub fn clean_env() -> Vec<(OsString, OsString)> {
    environment::for_children()
        .filter(|(name, _)| !is_of_a_launch(name))
        .collect()
}

/// Sets a variable, replacing an earlier one.
pub fn set_env(
    env: &mut Vec<(OsString, OsString)>,
    name: impl Into<OsString>,
    value: impl Into<OsString>,
) {
    let name = name.into();
    env.retain(|(present, _)| *present != name);
    env.push((name, value.into()));
}

/// Why a program cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// A name with a slash that names no file.
    NotFound {
        /// The name as it was written.
        program: String,
        /// The working directory it was seen from.
        dir: String,
    },
    /// Not in `PATH`, but the working directory has one.
    NotInPath {
        /// The name, which has no slash.
        program: String,
        /// Whether the working directory has one, which `./` would have found.
        here: bool,
    },
    /// There is something of this name, which cannot be executed.
    NotExecutable {
        /// The name as it was written.
        program: String,
        /// Whether that is because it is a folder; otherwise it lacks the permission.
        folder: bool,
    },
    /// The working directory that the user gave is not there, or is no folder.
    NoSuchDirectory {
        /// The directory, as [`App::dir_from`] makes it.
        dir: String,
    },
}

impl ProgramError {
    /// The exit code that a shell would give.
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
    /// The working directory; `here` is that of the job, `None` this process's own.
    pub fn dir_from(&self, here: Option<&Path>) -> Option<PathBuf> {
        match (&self.dir, here) {
            (Some(dir), Some(here)) => Some(here.join(dir)),
            (Some(dir), None) => Some(dir.clone()),
            (None, here) => here.map(Path::to_path_buf),
        }
    }

    /// The file to execute: a name with a slash is seen from the working directory, another is searched in `PATH`.
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
            seats: None,
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

    #[test]
    fn what_an_outer_launcher_said_does_not_leak() {
        for name in [
            "PMI_RANK",
            "PMIX_RANK",
            "OMPI_COMM_WORLD_SIZE",
            "PORTCULLIS_NODE_FD",
        ] {
            assert!(is_of_a_launch(OsStr::new(name)));
        }
        for name in ["PATH", "PORTCULLIS_MCA_btl", "PMI"] {
            assert!(!is_of_a_launch(OsStr::new(name)));
        }
    }
}
