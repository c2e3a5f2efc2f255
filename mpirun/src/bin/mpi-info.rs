//! `mpi-info`: what this installation has.

use clap::Parser;
use mpi_base::environment;
use mpi_base::param::Params;
use mpirun::{info, prefix};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = info::Options::parse();
    let params = Params::load(environment::all(), &prefix::parameter_files());
    match info::answer(&options, &params) {
        Ok(text) => {
            // A reader that has gone, as `| head` does, is no error.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("mpi-info: {error}");
            ExitCode::FAILURE
        }
    }
}
