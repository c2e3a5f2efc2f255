//! The program `hwbarr`, a workbench for barrier hardware:
//! each subcommand has a line in a table and its own module.
//! [`page`] is the HTML page of `hwbarr report`.

mod channel;
mod command_failed;
mod cures;
mod emulate;
mod faults;
mod live;
mod log;
mod manual;
mod measured;
mod node;
mod options;
mod page;
mod port;
mod pulse;
mod report;
mod run;
mod scale;
mod serve;
mod tables;
mod together;
mod watch;
mod wave;

use clap::{Parser, Subcommand};
use std::io::ErrorKind;
use std::process::ExitCode;

use command_failed::CommandFailed;

/// The error of a subcommand: a message for the user.
type Failure = Box<dyn std::error::Error>;

/// Declares the subcommands. Each line has the subcommand's help and its type;
/// the type's name is the subcommand's name, and its method `execute` runs the subcommand.
macro_rules! commands {
    ($($(#[$attribute:meta])* $module:ident :: $name:ident,)*) => {
        #[derive(Subcommand)]
        enum Command {
            $($(#[$attribute])* $name($module::$name),)*
        }

        impl Command {
            fn execute(self) -> Result<(), Failure> {
                match self {
                    $(Self::$name(command) => command.execute(),)*
                }
            }
        }
    };
}

commands! {
    /// Run in virtual time, print latencies, and compare with software barriers.
    run::Run,
    /// Predict collectives on many ranks: software under LogGP, and the hardware barrier.
    scale::Scale,
    /// Inject a fault into each wire, node and clock at each moment, and report the driver's reaction.
    faults::Faults,
    /// Run in virtual time and write one HTML page: waveforms, latencies, comparison.
    report::Report,
    /// Run in virtual time and write a waveform, and beside it files for GTKWave and Surfer.
    wave::Wave,
    /// Run real processes on a live board and print how fast they pass barriers.
    live::Live,
    /// Serve a board over TCP, for ranks on several hosts.
    serve::Serve,
    /// Watch a live board: its nodes, their wires, late nodes, barriers per second.
    watch::Watch,
    /// Bring a real port up: find it, read and write it, test it with a plug, measure it, let two nodes meet.
    port::Port,
    /// The channels of a version 2 board: list them, free one of a node that has died, and a heartbeat of nodes.
    channel::Channel,
    /// Start commands in several processes, or on several machines, at one edge of a barrier.
    together::Together,
    /// Show or set the start pulse of a register block, a line for instruments that is active after a release.
    pulse::Pulse,
    /// Play the ports mem, uio, ppdev or gpio with a barrier behind them, so that they can be tried on any machine.
    emulate::Emulate,
    /// One process of `together`.
    #[command(hide = true)]
    together::Starter,
    /// One process of `live`.
    #[command(hide = true)]
    node::Node,
    /// Print the manual page, for packagers.
    #[command(hide = true)]
    manual::Manual,
}

/// A workbench for barrier hardware: simulate the toggle barrier, measure it, see its wires.
#[derive(Parser)]
#[command(name = "hwbarr", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Prints a text to standard output; a closed pipe (such as to `head`) is not an error.
fn say(text: &str) -> Result<(), Failure> {
    match printable::to_stdout(text) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return answered(&error),
    };
    match command.execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            printable::eprintln!("hwbarr: {failure}");
            let command = failure.downcast_ref::<CommandFailed>();
            command.map_or(ExitCode::FAILURE, CommandFailed::exit_code)
        }
    }
}

/// Prints clap's answer (help, version or error); returns the exit code.
fn answered(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    if error.use_stderr() {
        printable::to_stderr(&text);
        return ExitCode::from(2);
    }
    // A closed pipe is not an error.
    let _ = printable::to_stdout(&text);
    ExitCode::SUCCESS
}
