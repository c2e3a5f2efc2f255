//! `mpirun`, and `mpiexec` under its other name.

use mpirun::cli::{self, CliError, Request};
use mpirun::launch;
use std::io::Write;

fn main() {
    let code = match cli::request(std::env::args_os()) {
        Ok(Request::Job(plan)) => launch::front::run(&plan),
        Ok(Request::Agent) => launch::outpost::run(),
        Err(CliError::Usage(error)) => error.exit(),
        Err(CliError::Answer(text)) => {
            // A reader that has gone, as `| head` does, is no error.
            let _ = std::io::stdout().write_all(text.as_bytes());
            0
        }
        Err(error) => {
            eprintln!("mpirun: {error}");
            2
        }
    };
    std::process::exit(code);
}
