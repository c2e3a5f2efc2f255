//! Why a command line does not lead to a job.

use super::configfile::ConfigError;
use super::topics;
use crate::foreign::on::OnError;
use crate::hosts::HostError;
use crate::hosts::map::MapError;
use crate::hosts::rankfile::RankfileError;
use crate::recording::RecordingError;
use std::fmt;
use std::path::PathBuf;

/// Why a command line does not lead to a job.
#[derive(Debug)]
pub enum CliError {
    /// clap's own message, the version included.
    Usage(clap::Error),
    /// Not an error: this was asked for, and nothing else.
    Answer(String),
    /// An option that users know from elsewhere and that we do not have; it is never ignored in silence.
    NotYet {
        /// The option as it was written.
        option: String,
        /// What it does elsewhere, in a few words.
        what: &'static str,
    },
    /// A part of the command line has options only.
    NoProgram {
        /// Which part, from 0.
        section: usize,
    },
    /// `--help` was asked about something that has no page.
    Topic {
        /// The topic as it was written.
        name: String,
    },
    /// An option's value is not one that it takes.
    Value {
        /// With its dashes.
        option: &'static str,
        /// What the user wrote.
        value: String,
        /// What would be right, as the object of "it takes".
        wanted: &'static str,
    },
    /// A file that would be written at the end lies in a folder that does not exist.
    NoFolder {
        /// With its dashes.
        option: &'static str,
        /// The file.
        file: PathBuf,
    },
    /// A parameter, from the command line, the environment or a file, has no usable value.
    Parameter(mpi_base::param::ParamError),
    /// A hostfile, `--host` or the allocation cannot be read, or names no host.
    Hosts(HostError),
    /// The library of `--on` is not there or is none.
    On(OnError),
    /// The ranks do not fit on the hosts.
    Map(MapError),
    /// The rankfile cannot be read, or does not fit the job.
    Rankfile(RankfileError),
    /// A `--configfile` cannot be read.
    Config(ConfigError),
    /// The folder of `--record` or `--replay` cannot be used.
    Recording(RecordingError),
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Usage(error) => error.fmt(f),
            CliError::Answer(text) => f.write_str(text),
            CliError::NotYet { option, what } => {
                write!(
                    f,
                    "{option} ({what}) is not there yet in this version of mpirun"
                )
            }
            CliError::NoProgram { section: 0 } => {
                write!(f, "no program was given; try: mpirun -n 4 ./program")
            }
            CliError::NoProgram { section } => {
                write!(
                    f,
                    "no program was given in part {} of the command line (parts are separated by \":\")",
                    section + 1
                )
            }
            CliError::Topic { name } => {
                write!(
                    f,
                    "there is no help about \"{name}\"; topics are {}",
                    topics::topics()
                )
            }
            CliError::Value {
                option,
                value,
                wanted,
            } => write!(
                f,
                "{option} \"{value}\" is not understood; it takes {wanted}"
            ),
            CliError::NoFolder { option, file } => write!(
                f,
                "{option} {}: its folder does not exist, so nothing could be written there at the end of the job",
                file.display()
            ),
            CliError::Parameter(error) => error.fmt(f),
            CliError::Hosts(error) => error.fmt(f),
            CliError::On(error) => error.fmt(f),
            CliError::Map(error) => error.fmt(f),
            CliError::Rankfile(error) => error.fmt(f),
            CliError::Config(error) => error.fmt(f),
            CliError::Recording(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CliError {}
