//! Variables that pass `--trace`, `--matrix`, `--io-report`, `--record`, `--replay` to the ranks.

use super::CliError;
use super::options::Options;
use super::values::absolute;
use crate::rank_environment::set_env;
use crate::recording;
use mpi_base::param::{About, PREFIX};
use mpi_core::io::report::REPORT;
use mpi_core::matrix::MATRIX;
use mpi_core::record::{RECORD, REPLAY};
use mpi_core::trace::TRACE;
use std::ffi::OsString;

/// Sets the variables that make the ranks trace, count file accesses, record or replay.
pub fn observation(
    options: &Options,
    env: &mut Vec<(OsString, OsString)>,
    from_command_line: &mut Vec<String>,
) -> Result<(), CliError> {
    let events = TRACE.about();
    let name = OsString::from(format!("{PREFIX}{}", events.full_name()));
    let chosen = env.iter().any(|(known, _)| *known == name);
    let mut set = |about: &About, value: OsString| {
        set_env(env, format!("{PREFIX}{}", about.full_name()), value);
        from_command_line.push(about.full_name());
    };
    if options.trace.is_some() && !chosen {
        set(events, crate::trace::EVENTS.to_string().into());
    }
    if options.io_report.is_some() {
        set(REPORT.about(), "true".into());
    }
    if options.matrix.is_some() {
        set(MATRIX.about(), "true".into());
    }
    if let Some(folder) = &options.record {
        let folder = absolute(folder);
        recording::make_room(&folder).map_err(CliError::Recording)?;
        set(RECORD.about(), folder.into());
    }
    if let Some(folder) = &options.replay {
        let folder = absolute(folder);
        recording::is_there(&folder).map_err(CliError::Recording)?;
        set(REPLAY.about(), folder.into());
    }
    Ok(())
}
