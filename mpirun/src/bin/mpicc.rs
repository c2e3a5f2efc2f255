//! `mpicc`: compiles C programs against this installation.

use mpirun::wrapper::{Action, Wrapper};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let wrapper = match Wrapper::of_this_process() {
        Ok(wrapper) => wrapper,
        Err(reason) => {
            eprintln!("mpicc: {reason}");
            return ExitCode::FAILURE;
        }
    };
    match wrapper.answer(std::env::args_os().skip(1)) {
        Action::Print(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Action::Run(command) => {
            let Some((program, args)) = command.split_first() else {
                eprintln!("mpicc: no compiler is named");
                return ExitCode::FAILURE;
            };
            let error = Command::new(program).args(args).exec();
            eprintln!(
                "mpicc: the compiler {} cannot be run: {error}",
                program.to_string_lossy()
            );
            ExitCode::from(127)
        }
    }
}
