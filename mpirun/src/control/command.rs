//! The requests, as words on the socket and as subcommands of `mpi-ctl`.

use clap::{Parser, Subcommand};

/// Control a running job of this user.
#[derive(Debug, Parser)]
#[command(name = "mpi-ctl", version)]
pub struct Options {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Words,
}

/// Parses a process number.
fn process(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "the process number of mpirun".to_owned())
}

/// The subcommands.
#[derive(Clone, Debug, Subcommand)]
pub enum Words {
    /// Print the ranks of the job and its checkpoints
    Status {
        /// The process number of mpirun [default: the only one of this user]
        #[arg(value_parser = process)]
        job: Option<i32>,
    },
    /// Take a checkpoint, and wait until it is complete
    Checkpoint {
        /// End the job after the checkpoint, with exit status 85
        #[arg(long)]
        stop: bool,
        /// The process number of mpirun [default: the only one of this user]
        #[arg(value_parser = process)]
        job: Option<i32>,
    },
    /// Let mpirun print which rank waits for which
    Hang {
        /// The process number of mpirun [default: the only one of this user]
        #[arg(value_parser = process)]
        job: Option<i32>,
    },
    /// End the job, as SIGTERM to mpirun does
    Stop {
        /// The process number of mpirun [default: the only one of this user]
        #[arg(value_parser = process)]
        job: Option<i32>,
    },
}

/// A request to a running mpirun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Describe the job.
    Status,
    /// Take a checkpoint.
    Checkpoint {
        /// End the job after it.
        stop: bool,
    },
    /// Print a hang report.
    Hang,
    /// End the job.
    Stop,
}

impl Command {
    /// The word on the socket.
    pub fn word(self) -> &'static str {
        match self {
            Command::Status => "status",
            Command::Checkpoint { stop: false } => "checkpoint",
            Command::Checkpoint { stop: true } => "checkpoint-stop",
            Command::Hang => "hang",
            Command::Stop => "stop",
        }
    }

    /// Reads a word.
    pub fn read(word: &str) -> Option<Command> {
        let all = [
            Command::Status,
            Command::Checkpoint { stop: false },
            Command::Checkpoint { stop: true },
            Command::Hang,
            Command::Stop,
        ];
        all.into_iter().find(|command| command.word() == word)
    }
}

impl Words {
    /// Returns the request, and the job that it is for.
    pub fn request(&self) -> (Command, Option<i32>) {
        match *self {
            Words::Status { job } => (Command::Status, job),
            Words::Checkpoint { stop, job } => (Command::Checkpoint { stop }, job),
            Words::Hang { job } => (Command::Hang, job),
            Words::Stop { job } => (Command::Stop, job),
        }
    }
}
