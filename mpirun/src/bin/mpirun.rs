//! The program `mpirun`, also installed as `mpiexec`.

use mpi_base::environment;
use mpirun::cli::{self, CliError, Request};
use mpirun::launch::again::{Again, unless_restarted};
use mpirun::launch::images::{front, guard, restored, serve_as_script};
use mpirun::launch::program::Plan;
use mpirun::launch::srun::{self, Launcher};
use mpirun::launch::{self, daemon, foreign_launcher, frontend};

fn main() {
    launch::wait_for_children();
    if let Some(code) = serve_as_script() {
        std::process::exit(code);
    }
    if let Some(left) = launch::stack_left().filter(|&left| left < launch::STACK_MIN) {
        printable::eprintln!(
            "mpirun: beside the environment and the arguments the stack may have {} KiB more (ulimit -s), and mpirun needs {} KiB; raise the limit",
            left >> 10,
            launch::STACK_MIN >> 10
        );
        std::process::exit(2);
    }
    launch::survive_file_limit();
    let code = match launch::on_a_long_stack(|| cli::request(std::env::args_os())) {
        Ok(Request::Job(mut plan)) => {
            foreign_launcher::pass_watch_options(&mut plan);
            run(&plan)
        }
        Ok(Request::Restart(restart)) => {
            let again = Again::of_restart(&restart);
            unless_restarted(restored::run(&restart), Some(again))
        }
        Ok(Request::Adoption { plan, job }) => frontend::adopt(&plan, job),
        Ok(Request::Daemon) => daemon::run(),
        Ok(Request::DaemonWithImages) => guard::run(),
        Err(CliError::Answer(text)) => {
            // A closed stdout pipe, as with `| head`, is not an error.
            let _ = printable::to_stdout(&text);
            0
        }
        Err(error) => {
            printable::eprintln!("mpirun: {error}");
            2
        }
    };
    std::process::exit(code);
}

/// Runs a job with the front end that its kind of checkpoints needs.
fn start(plan: &Plan) -> i32 {
    let again = Again::of_plan(plan);
    let done = front::run(plan).unwrap_or_else(|| frontend::run(plan));
    unless_restarted(done, again)
}

/// Runs a job, or replaces this process by the launcher that must start the job.
fn run(plan: &Plan) -> i32 {
    if let Err(error) = cli::check_values(plan) {
        printable::eprintln!("mpirun: {error}");
        return 2;
    }
    if !plan.quiet {
        for sentence in plan.warnings.iter().chain(&cli::unknown_params(plan)) {
            printable::eprintln!("mpirun: {sentence}");
        }
    }
    if plan.display_allocation {
        printable::to_stderr(&format!("mpirun: {}\n", plan.allocation()));
    }
    match foreign_launcher::launcher(plan) {
        Ok(None) => {}
        Ok(Some(command)) => {
            let name = printable::name(command.get_program()).to_string();
            let error = srun::become_command(command, plan.verbose);
            printable::eprintln!("mpirun: {name} cannot be started: {error}");
            return 1;
        }
        Err(error) => {
            printable::eprintln!("mpirun: {error}");
            return 2;
        }
    }
    match srun::launcher(plan, |name| environment::text(name)) {
        Ok(Launcher::Ourselves) => start(plan),
        Ok(Launcher::OurselvesBecause(why)) => {
            if !plan.quiet {
                printable::eprintln!(
                    "mpirun: {why}, so the allocation's hosts are reached without srun"
                );
            }
            start(plan)
        }
        Ok(Launcher::Srun(command)) => {
            let error = srun::become_command(*command, plan.verbose);
            printable::eprintln!("mpirun: srun cannot be started: {error}");
            1
        }
        Err(error) => {
            printable::eprintln!("mpirun: {error}");
            2
        }
    }
}
