//! `mpirun`, and `mpiexec` under its other name.

use mpirun::{cli, launch};

fn main() {
    let code = match cli::plan(std::env::args_os()) {
        Ok(plan) => launch::front::run(&plan),
        Err(cli::CliError::Usage(error)) => error.exit(),
        Err(error) => {
            eprintln!("mpirun: {error}");
            2
        }
    };
    std::process::exit(code);
}
