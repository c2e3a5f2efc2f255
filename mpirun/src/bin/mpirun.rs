//! `mpirun`, and `mpiexec` under its other name.

use mpirun::cli::{self, CliError, Request};
use mpirun::launch::program::Plan;
use mpirun::launch::srun::{self, Launcher};
use mpirun::launch::{self, daemon, frontend, theirs};
use std::io::Write;

fn main() {
    if let Some(left) = launch::stack_left().filter(|&left| left < launch::STACK_MIN) {
        eprintln!(
            "mpirun: beside the environment and the arguments the stack may have {} KiB more (ulimit -s), and mpirun needs {} KiB; raise the limit",
            left >> 10,
            launch::STACK_MIN >> 10
        );
        std::process::exit(2);
    }
    launch::survive_file_limit();
    let code = match launch::on_a_long_stack(|| cli::request(std::env::args_os())) {
        Ok(Request::Job(mut plan)) => {
            theirs::hand_watching_over(&mut plan);
            run(&plan)
        }
        Ok(Request::Adoption { plan, job }) => frontend::adopt(&plan, job),
        Ok(Request::Daemon) => daemon::run(),
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

/// Runs a job, or gives it to the program that it belongs to.
fn run(plan: &Plan) -> i32 {
    if let Err(error) = cli::check_values(plan) {
        eprintln!("mpirun: {error}");
        return 2;
    }
    if !plan.quiet {
        for sentence in cli::unknown_params(plan) {
            // No process reads it when standard error is closed.
            let _ = writeln!(std::io::stderr(), "mpirun: {sentence}");
        }
    }
    match theirs::launcher(plan) {
        Ok(None) => {}
        Ok(Some(command)) => {
            let name = command.get_program().to_string_lossy().into_owned();
            let error = srun::become_command(command, plan.verbose);
            eprintln!("mpirun: {name} cannot be started: {error}");
            return 1;
        }
        Err(error) => {
            eprintln!("mpirun: {error}");
            return 2;
        }
    }
    match srun::launcher(plan, |name| std::env::var(name).ok()) {
        Ok(Launcher::Ourselves) => frontend::run(plan),
        Ok(Launcher::OurselvesBecause(why)) => {
            if !plan.quiet {
                eprintln!("mpirun: {why}, so the allocation's hosts are reached without srun");
            }
            frontend::run(plan)
        }
        Ok(Launcher::Srun(command)) => {
            let error = srun::become_command(*command, plan.verbose);
            eprintln!("mpirun: srun cannot be started: {error}");
            1
        }
        Err(error) => {
            eprintln!("mpirun: {error}");
            2
        }
    }
}
