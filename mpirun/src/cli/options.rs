//! The options, once; help, suggestions and checks follow from here.

use clap::{Args, Parser};
use std::ffi::OsString;
use std::path::PathBuf;

/// Start MPI programs on this host.
#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "mpirun",
    version,
    override_usage = "mpirun [OPTIONS] PROGRAM [ARGS]... [: [OPTIONS] PROGRAM [ARGS]...]",
    after_help = "Exit status: that of the first rank that failed, 128 + signal if it was killed, the code of MPI_Abort, 124 after a time-out, 127 if there is no such program."
)]
pub struct Options {
    #[command(flatten)]
    pub section: Section,

    /// Put "[job,rank]<stdout>: " before each line
    #[arg(long)]
    pub tag_output: bool,

    /// End the job after this time (seconds, or with a unit: 90s, 5min); also MPIEXEC_TIMEOUT
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,

    /// Print what was selected and why the rest was not
    #[arg(long)]
    pub explain: bool,

    /// Say nothing about failures; the exit status tells
    #[arg(short, long)]
    pub quiet: bool,

    /// Say what is started
    #[arg(short, long)]
    pub verbose: bool,

    /// Accepted: more ranks than cores are always allowed
    #[arg(long)]
    pub oversubscribe: bool,

    /// Accepted: root is always allowed
    #[arg(long)]
    pub allow_run_as_root: bool,
}

/// One part of the command line, between colons.
#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "mpirun",
    override_usage = "mpirun ... : [OPTIONS] PROGRAM [ARGS]..."
)]
pub struct Section {
    #[command(flatten)]
    pub app: AppOptions,

    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// What may differ between the programs of one job.
#[derive(Clone, Debug, Default, Args)]
pub struct AppOptions {
    /// Number of ranks [default: 1]
    #[arg(
        short = 'n',
        long = "np",
        visible_short_alias = 'c',
        visible_alias = "n",
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub procs: Option<u32>,

    /// Working directory of the ranks
    #[arg(long, visible_alias = "wd", value_name = "DIR")]
    pub wdir: Option<PathBuf>,

    /// Set (NAME=VALUE) or export (NAME) a variable for all ranks
    #[arg(short = 'x', long = "x", value_name = "NAME[=VALUE]")]
    pub export: Vec<OsString>,

    /// Set a parameter; see mpi-info
    #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], allow_hyphen_values = true)]
    pub mca: Vec<OsString>,

    /// Set a variable for all ranks
    #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], allow_hyphen_values = true)]
    pub genv: Vec<OsString>,

    /// Set a variable for the ranks of this program
    #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], allow_hyphen_values = true)]
    pub env: Vec<OsString>,

    /// Hosts to run on; this one only, so far
    #[arg(long, visible_aliases = ["hosts", "H"], value_name = "HOST,...")]
    pub host: Vec<String>,
}
