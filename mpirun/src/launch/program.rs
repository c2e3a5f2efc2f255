//! What is to run: programs, how many of each, and the environment they get.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One program of a job.
#[derive(Clone, Debug)]
pub struct App {
    pub procs: usize,
    pub program: OsString,
    pub args: Vec<OsString>,
    pub dir: Option<PathBuf>,
    /// Set over the job's environment, for this program only.
    pub env: Vec<(OsString, OsString)>,
}

/// A job as the user asked for it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub apps: Vec<App>,
    /// The environment of every rank, without what the launcher adds.
    pub env: Vec<(OsString, OsString)>,
    pub tag_output: bool,
    pub timeout: Option<Duration>,
    /// Between the polite signal and SIGKILL.
    pub grace: Duration,
    pub quiet: bool,
    pub verbose: bool,
}

/// Variables that belong to one process of one launch and must not leak into another launch.
fn is_of_a_launch(name: &OsStr) -> bool {
    const PREFIXES: [&str; 4] = ["PMI_", "PMIX_", "OMPI_COMM_WORLD_", "MPI_LOCAL"];
    const NAMES: [&str; 7] = [
        "PORTCULLIS_NODE_FD",
        "PORTCULLIS_LOCAL_RANK",
        "PORTCULLIS_LOCAL_SIZE",
        "PORTCULLIS_JOB",
        "PORTCULLIS_APPNUM",
        "PORTCULLIS_UNIVERSE_SIZE",
        "OMPI_UNIVERSE_SIZE",
    ];
    let name = name.as_bytes();
    PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix.as_bytes()))
        || NAMES.iter().any(|own| name == own.as_bytes())
}

/// This process's environment without what an outer launcher told it about itself.
pub fn clean_env() -> Vec<(OsString, OsString)> {
    std::env::vars_os()
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
    NotFound {
        program: String,
        dir: String,
    },
    /// Not in `PATH`, but the working directory has one.
    NotInPath {
        program: String,
        here: bool,
    },
    NotExecutable {
        path: String,
    },
    NoSuchDirectory {
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
                write!(f, "there is no program {program} (seen from {dir})")
            }
            ProgramError::NotInPath { program, here } => {
                write!(f, "there is no program {program} in PATH")?;
                if *here {
                    write!(
                        f,
                        "; to run the one in the working directory, write ./{program}"
                    )?;
                }
                Ok(())
            }
            ProgramError::NotExecutable { path } => {
                write!(f, "{path} is not an executable file")
            }
            ProgramError::NoSuchDirectory { dir } => {
                write!(f, "there is no working directory {dir}")
            }
        }
    }
}

impl std::error::Error for ProgramError {}

impl App {
    /// The file to execute: a name with a slash is seen from the working directory, another is searched in `PATH`.
    pub fn resolve(&self, env: &[(OsString, OsString)]) -> Result<PathBuf, ProgramError> {
        let dir = match &self.dir {
            Some(dir) if !dir.is_dir() => {
                let dir = dir.display().to_string();
                return Err(ProgramError::NoSuchDirectory { dir });
            }
            Some(dir) => dir.clone(),
            None => PathBuf::from("."),
        };
        let program = self.program.to_string_lossy().into_owned();
        if self.program.as_bytes().contains(&b'/') {
            let path = dir.join(&self.program);
            return match kind_of(&path) {
                Kind::Executable => Ok(std::path::absolute(&path).unwrap_or(path)),
                Kind::Other => Err(ProgramError::NotExecutable {
                    path: path.display().to_string(),
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
        std::env::split_paths(path)
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
            procs: 1,
            program: program.into(),
            args: Vec::new(),
            dir: dir.map(Path::to_path_buf),
            env: Vec::new(),
        }
    }

    #[test]
    fn a_plain_name_is_found_in_path_only() {
        let env = [("PATH".into(), "/nowhere:/bin".into())];
        assert_eq!(app("sh", None).resolve(&env).unwrap(), Path::new("/bin/sh"));
        let missing =
            app("sh", Some(Path::new("/bin"))).resolve(&[("PATH".into(), "/nowhere".into())]);
        let sentence = missing.unwrap_err().to_string();
        assert!(sentence.ends_with("write ./sh"), "{sentence}");
    }

    #[test]
    fn a_name_with_a_slash_is_seen_from_the_working_directory() {
        let found = app("./sh", Some(Path::new("/bin"))).resolve(&[]);
        assert!(found.unwrap().starts_with("/bin"));
        let error = app("./nothing-here", None).resolve(&[]).unwrap_err();
        assert_eq!(error.code(), 127);
        assert_eq!(
            app("/etc/passwd", None).resolve(&[]).unwrap_err().code(),
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
