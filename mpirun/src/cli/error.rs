//! Error type of the command line.

use super::configfile::ConfigError;
use super::value_error::unsupported;
use super::{topics, usage};
use crate::checkpoint::CheckpointError;
use crate::foreign::on::OnError;
use crate::hosts::HostError;
use crate::hosts::map::MapError;
use crate::hosts::rankfile::RankfileError;
use crate::recording::RecordingError;
use printable::name;
use std::fmt;
use std::path::PathBuf;

/// The reason why a command line cannot be turned into a job.
#[derive(Debug)]
pub enum CliError {
    /// An error that clap reports.
    Usage(clap::Error),
    /// Not an error: text such as help, which the user requested instead of a job.
    Answer(String),
    /// An unsupported option of another launcher; such an option is never silently ignored.
    Refused {
        /// The option as the user wrote it.
        option: String,
        /// The option's effect in the other launcher, in a few words.
        what: &'static str,
        /// A replacement that the user can type for this launcher.
        instead: &'static str,
    },
    /// The option does not exist in this launcher.
    NoOption {
        /// The option as the user wrote it.
        option: String,
        /// The existing option with the closest name.
        nearest: Option<String>,
    },
    /// An option of the whole job occurs after a colon, or in a configuration file.
    WholeJob {
        /// The option as the user wrote it.
        option: String,
    },
    /// An option at the end of a section lacks its value.
    NoValue {
        /// The option as the user wrote it.
        option: String,
    },
    /// A section of the command line has options but no program.
    NoProgram {
        /// The index of the section, from 0.
        section: usize,
        /// The number of sections.
        of: usize,
    },
    /// The rank that `--stdin` names does not exist in the job.
    StdinRank {
        /// The rank that the user wrote.
        rank: u32,
        /// The number of ranks of the job.
        ranks: usize,
    },
    /// The argument of `--help` is not a topic.
    Topic {
        /// The topic as the user wrote it.
        name: String,
    },
    /// An option does not accept the given value.
    Value {
        /// The option with its dashes, such as `--soft`.
        option: &'static str,
        /// The value that the user wrote.
        value: String,
        /// The accepted values, as the object of the phrase "it takes".
        wanted: &'static str,
    },
    /// A program that `--gdb` or `--rr` needs is missing.
    NoDebugger {
        /// The option with its dashes, `--gdb` or `--rr`.
        option: &'static str,
        /// The missing program.
        program: &'static str,
    },
    /// A report file cannot be written, since its folder does not exist.
    NoFolder {
        /// The option with its dashes, such as `--trace`.
        option: &'static str,
        /// The path of the report file.
        file: PathBuf,
    },
    /// A parameter on the command line, in the environment or in a file has an invalid value.
    Parameter(mpi_base::param::ParamError),
    /// A hostfile, `--host` or the allocation cannot be read or names no host.
    Hosts(HostError),
    /// The library that `--on` names is missing or is not an MPI library.
    On(OnError),
    /// The ranks do not fit on the hosts.
    Map(MapError),
    /// Checkpoints cannot be taken, or the job cannot restart from one.
    Checkpoint(CheckpointError),
    /// The rankfile cannot be read or does not match the job.
    Rankfile(RankfileError),
    /// A `--configfile` cannot be read.
    Config(ConfigError),
    /// The folder of `--record` or `--replay` cannot be used.
    Recording(RecordingError),
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Usage(error) => f.write_str(&usage::sentence(error)),
            CliError::Answer(text) => f.write_str(text),
            CliError::Refused {
                option,
                what,
                instead,
            } => f.write_str(&unsupported(option, what, instead)),
            CliError::NoOption { option, nearest } => {
                write!(f, "there is no option {}", name(option))?;
                match nearest {
                    Some(near) => write!(f, "; the nearest name is {near}"),
                    None => write!(f, "; mpirun --help all lists those there are"),
                }
            }
            CliError::WholeJob { option } => write!(
                f,
                "{} is an option of the whole job; write it before the first program, not behind a colon",
                name(option)
            ),
            CliError::NoDebugger { option, program } => write!(
                f,
                "{option} needs the program {program}, which no folder of PATH contains; install it, or start a debugger as docs/debuggers.md shows"
            ),
            CliError::NoValue { option } => write!(f, "{} needs a value", name(option)),
            CliError::NoProgram { of: 1, .. } => {
                write!(f, "no program was given; try: mpirun -n 4 ./program")
            }
            CliError::NoProgram { section, .. } => {
                write!(
                    f,
                    "no program was given in part {} of the command line (parts are separated by \":\")",
                    section + 1
                )
            }
            CliError::StdinRank { rank, ranks: 1 } => {
                write!(f, "--stdin {rank}: the job has no rank {rank}, only rank 0")
            }
            CliError::StdinRank { rank, ranks } => write!(
                f,
                "--stdin {rank}: the job has no rank {rank}, only ranks 0 to {}",
                ranks.saturating_sub(1)
            ),
            CliError::Topic { name: topic } => {
                write!(
                    f,
                    "there is no help about \"{}\"; topics are {}, and each option is one",
                    name(topic),
                    topics::topics()
                )
            }
            CliError::Value {
                option,
                value,
                wanted,
            } => f.write_str(&usage::not_understood(option, value, wanted)),
            CliError::NoFolder { option, file } => write!(
                f,
                "{option} {}: its folder does not exist, so the file could not be written",
                name(file)
            ),
            CliError::Parameter(error) => error.fmt(f),
            CliError::Hosts(error) => error.fmt(f),
            CliError::On(error) => error.fmt(f),
            CliError::Map(error) => error.fmt(f),
            CliError::Checkpoint(error) => error.fmt(f),
            CliError::Rankfile(error) => error.fmt(f),
            CliError::Config(error) => error.fmt(f),
            CliError::Recording(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CliError {}
