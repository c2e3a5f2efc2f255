//! The barrier workbench on the command line: runs in virtual time, waveforms, and real processes on a live board.

mod live;
mod node;
mod virtual_run;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A workbench for barrier hardware: simulate the toggle barrier, measure it, see its wires.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run in virtual time and print latency statistics.
    Run(virtual_run::Run),
    /// Run in virtual time and write a waveform (.vcd) with a GTKWave save file (.gtkw).
    Wave(virtual_run::Wave),
    /// Run real processes on a live board and print how fast they pass barriers.
    Live(live::Live),
    /// One process of `live`.
    #[command(hide = true)]
    Node(node::Node),
}

/// What a subcommand fails with: a sentence for the user.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(run) => run.execute(),
        Command::Wave(wave) => wave.execute(),
        Command::Live(live) => live.execute(),
        Command::Node(node) => node.execute(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("hwbarr: {failure}");
            ExitCode::FAILURE
        }
    }
}
