//! Why a command line does not lead to a job.

use super::configfile::ConfigError;
use super::help;
use crate::hosts::HostError;
use crate::hosts::map::MapError;
use crate::hosts::rankfile::RankfileError;
use crate::recording::RecordingError;
use std::fmt;

/// Why a command line does not lead to a job.
#[derive(Debug)]
pub enum CliError {
    /// clap's own message, the version included.
    Usage(clap::Error),
    /// Not an error: this was asked for, and nothing else.
    Answer(String),
    NotYet {
        option: String,
        what: &'static str,
    },
    NoProgram {
        section: usize,
    },
    Topic {
        name: String,
    },
    Value {
        option: &'static str,
        value: String,
        wanted: &'static str,
    },
    Parameter(mpi_base::param::ParamError),
    Hosts(HostError),
    Map(MapError),
    Rankfile(RankfileError),
    Config(ConfigError),
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
                    help::topics()
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
            CliError::Parameter(error) => error.fmt(f),
            CliError::Hosts(error) => error.fmt(f),
            CliError::Map(error) => error.fmt(f),
            CliError::Rankfile(error) => error.fmt(f),
            CliError::Config(error) => error.fmt(f),
            CliError::Recording(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CliError {}
