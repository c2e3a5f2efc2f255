//! `mpi-info`: lists the components, parameters and functions of this installation.

use clap::Parser;
use mpi_base::environment;
use mpi_base::param::Params;
use mpirun::cli::usage;
use mpirun::{info, prefix};
use std::io::ErrorKind;
use std::process::ExitCode;

/// The exit status if the output is incomplete (EX_IOERR), as that of mpirun.
const OUTPUT_LOST: u8 = 74;

fn main() -> ExitCode {
    let options = match info::Options::try_parse() {
        Ok(options) => options,
        Err(error) => return answered(&error),
    };
    let params = Params::load(environment::all(), &prefix::parameter_files());
    match info::answer(&options, &params) {
        Ok(text) => match printable::to_stdout(&text) {
            // A closed stdout pipe, as with `| head`, is not an error.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                printable::eprintln!("mpi-info: the standard output cannot be written: {error}");
                ExitCode::from(OUTPUT_LOST)
            }
            _ => ExitCode::SUCCESS,
        },
        Err(error) => {
            printable::eprintln!("mpi-info: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints help, the version, or clap's error.
fn answered(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        printable::eprintln!("mpi-info: {}", usage::sentence(error));
        return ExitCode::from(2);
    }
    // A closed stdout pipe is not an error.
    let _ = printable::to_stdout(&error.render().to_string());
    ExitCode::SUCCESS
}
