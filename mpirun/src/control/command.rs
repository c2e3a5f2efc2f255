//! Requests of the control protocol, as words on the socket and as subcommands of `mpi-ctl`.

use clap::{Parser, Subcommand};

/// Control a running job of this user.
#[derive(Debug, Parser)]
#[command(name = "mpi-ctl", version)]
pub struct Options {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Words,
}

/// Parses the pid of an mpirun.
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
    /// Print the ranks of the job and its checkpoints.
    Status,
    /// Take a checkpoint of the job.
    Checkpoint {
        /// End the job after the checkpoint.
        stop: bool,
    },
    /// Print a hang report.
    Hang,
    /// End the job.
    Stop,
}

impl Command {
    /// Returns the word that represents this request on the socket.
    pub fn word(self) -> &'static str {
        match self {
            Command::Status => "status",
            Command::Checkpoint { stop: false } => "checkpoint",
            Command::Checkpoint { stop: true } => "checkpoint-stop",
            Command::Hang => "hang",
            Command::Stop => "stop",
        }
    }

    /// Parses the word of a request; returns `None` if the word is unknown.
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
    /// Returns the request and the pid of the mpirun, if the user named one.
    pub fn request(&self) -> (Command, Option<i32>) {
        match *self {
            Words::Status { job } => (Command::Status, job),
            Words::Checkpoint { stop, job } => (Command::Checkpoint { stop }, job),
            Words::Hang { job } => (Command::Hang, job),
            Words::Stop { job } => (Command::Stop, job),
        }
    }
}
