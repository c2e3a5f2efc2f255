//! Definition of all options; help, topics, manual page, completions and checks derive from it.
//!
//! An option's heading is also its help topic ([`super::help`]).
//! Options hidden from the short help appear in the help of their topic.
//! [`super::translated`] has the spellings of other launchers, which no help shows;
//! [`super::refused`] has the unsupported options.

use super::bind_to::BindTo;
use super::choices::{
    Compat, FaultTolerance, Generated, RankBy, Shown, TimeLimit, end_dead, error_handler, stdin,
};
use super::map_by::MapBy;
use super::numbers::{buffering, count, ranks};
use super::output_to::{OutputFolder, OutputTo};
use super::soft::Soft;
use super::value_error::ValueError;
use crate::checkpoint;
use crate::launch::again::Restarted;
use crate::launch::program::{EndDead, StdinTo};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Args, Parser};
use mpi_abi::initial_handler::InitialHandler;
use mpi_base::text;
use std::ffi::OsString;
use std::path::PathBuf;

/// Returns a parser of values with file names of any bytes, as lossless text ([`mpi_base::text`]).
fn text_of_bytes() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(text::from_os)
}

/// Returns a parser of values that may contain any bytes.
fn bytes<T: Clone + Send + Sync + 'static>(
    parse: fn(OsString) -> Result<T, ValueError>,
) -> impl TypedValueParser<Value = T> {
    OsStringValueParser::new().try_map(parse)
}

pub const RANKS: &str = "Ranks and programs";
pub const HOSTS: &str = "Hosts";
pub const BINDING: &str = "Binding";
pub const OUTPUT: &str = "Input and output";
pub const ENDING: &str = "Ending and hangs";
pub const CHECKPOINTS: &str = "Checkpoints";
pub const DIAGNOSTICS: &str = "Diagnostics";

/// Start MPI programs, here or on other hosts.
#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "mpirun",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    allow_negative_numbers = true,
    override_usage = "mpirun [OPTIONS] PROGRAM [ARGS]... [: [OPTIONS] PROGRAM [ARGS]...]"
)]
pub struct Options {
    #[command(flatten)]
    pub section: Section,

    /// "slot" fills hosts; "node", "package", "numa" deal out; "ppr:N:node"
    #[arg(long, value_name = "HOW", help_heading = HOSTS, value_parser = MapBy::parse)]
    pub map_by: Option<MapBy>,

    /// Number ranks by "slot" or by "node" [default: slot]
    #[arg(long, value_name = "HOW", help_heading = HOSTS, hide_short_help = true, ignore_case = true, hide_possible_values = true)]
    pub rank_by: Option<RankBy>,

    /// N ranks on each host
    #[arg(short = 'N', long = "ppn", aliases = ["npernode", "perhost"], value_name = "N", value_parser = count, allow_hyphen_values = true, help_heading = HOSTS, hide_short_help = true)]
    pub per_node: Option<usize>,

    /// N cores for each rank; as --map-by slot:PE=N
    #[arg(long = "cpus-per-rank", alias = "cpus-per-proc", value_name = "N", value_parser = count, allow_hyphen_values = true, help_heading = BINDING, hide_short_help = true)]
    pub cpus_per_rank: Option<usize>,

    /// A file with the host, and the cores, of each rank: "rank N=HOST slot=PACKAGE:CORES"
    #[arg(long, alias = "rf", value_name = "FILE", help_heading = HOSTS, hide_short_help = true)]
    pub rankfile: Option<PathBuf>,

    /// Allow more ranks than slots (on one host they always are)
    #[arg(long, help_heading = HOSTS, hide_short_help = true)]
    pub oversubscribe: bool,

    /// Refuse more ranks than slots, also on one host
    #[arg(long, aliases = ["nooversubscribe"], help_heading = HOSTS, hide_short_help = true)]
    pub no_oversubscribe: bool,

    /// Where this installation is on the other hosts [default: as here]
    #[arg(long, value_name = "DIR", help_heading = HOSTS, hide_short_help = true)]
    pub prefix: Option<PathBuf>,

    /// The command that reaches other hosts [default: ssh]; as --mca plm_rsh_agent
    #[arg(long, aliases = ["launcher-exec", "bootstrap-exec", "rsh-agent"], value_name = "COMMAND", help_heading = HOSTS, hide_short_help = true)]
    pub launch_agent: Option<OsString>,

    /// Show which rank runs where
    #[arg(long, alias = "display-devel-map", help_heading = HOSTS)]
    pub display_map: bool,

    /// Show the hosts of the job and their slots
    #[arg(long, help_heading = HOSTS, hide_short_help = true)]
    pub display_allocation: bool,

    /// Show "map", "bind", "allocation", or several, separated by commas
    #[arg(long, value_name = "WHAT,...", help_heading = HOSTS, hide_short_help = true, value_parser = Shown::parse)]
    pub display: Option<Shown>,

    /// Bind each rank to a "core", "hwthread", "l3cache", "numa" node or "package"
    #[arg(long, value_name = "UNIT", help_heading = BINDING, value_parser = BindTo::parse)]
    pub bind_to: Option<BindTo>,

    /// Show which processors each rank may use
    #[arg(long, help_heading = BINDING, hide_short_help = true)]
    pub report_bindings: bool,

    /// Put "[job,rank]<stdout>: " before each line
    #[arg(long, help_heading = OUTPUT)]
    pub tag_output: bool,

    /// Put the time before each line
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub timestamp_output: bool,

    /// Put "[rank] " before each line
    #[arg(long, alias = "prepend-rank", short_alias = 'l', help_heading = OUTPUT, hide_short_help = true)]
    pub label: bool,

    /// Print standard error on standard output
    #[arg(long, alias = "merge-stderr", help_heading = OUTPUT, hide_short_help = true)]
    pub merge_stderr_to_stdout: bool,

    /// Also write output to DIR/JOB/rank.N/stdout; "DIR:nocopy": only there
    #[arg(long, value_name = "DIR", help_heading = OUTPUT, value_parser = bytes(OutputTo::parse))]
    pub output: Option<OutputTo>,

    /// As --output, where the folder may have any name: --output tag is --tag-output
    #[arg(long, alias = "output-directory", value_name = "DIR", help_heading = OUTPUT, hide_short_help = true, conflicts_with = "output", value_parser = bytes(OutputFolder::parse))]
    pub output_filename: Option<OutputFolder>,

    /// Buffering of ranks' stdout and stderr: 0 none (mpirun also prints bytes as they arrive); 1 by lines; 2 full
    #[arg(long, value_name = "MODE", help_heading = OUTPUT, hide_short_help = true, value_parser = buffering, allow_hyphen_values = true)]
    pub stream_buffering: Option<u8>,

    /// Run on another MPI library: openmpi, mpich, intel or its path
    #[arg(long, value_name = "LIBRARY", help_heading = RANKS, hide_short_help = true, value_parser = text_of_bytes())]
    pub on: Option<String>,

    /// "no": programs of MPICH and Open MPI keep the library that they are linked to
    #[arg(long, value_name = "WORD", help_heading = RANKS, hide_short_help = true)]
    pub compat: Option<Compat>,

    /// The rank that reads standard input, or "all" or "none" [default: 0]
    #[arg(long, value_name = "RANK", help_heading = OUTPUT, value_parser = stdin)]
    pub stdin: Option<StdinTo>,

    /// After this time (90s, 5min) print which rank waits for which, and end
    #[arg(long, value_name = "TIME", help_heading = ENDING, value_parser = TimeLimit::parse)]
    pub timeout: Option<TimeLimit>,

    /// Print which rank waits for which after this time without progress
    #[arg(long, value_name = "TIME", help_heading = ENDING, value_parser = TimeLimit::parse)]
    pub hang_after: Option<TimeLimit>,

    /// A job whose ranks all wait for each other: "no", "report" or "yes", which also ends it [default: report at a terminal, else yes]
    #[arg(long, value_name = "WHAT", help_heading = ENDING, hide_short_help = true, value_parser = end_dead)]
    pub end_dead: Option<EndDead>,

    /// A gdb at main in a pane of tmux for these ranks ("0,2-3") [default: all]
    #[arg(long, value_name = "RANKS", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = DIAGNOSTICS, hide_short_help = true, conflicts_with = "rr")]
    pub gdb: Option<String>,

    /// Record these ranks by rr [default: all]
    #[arg(long, value_name = "RANKS", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = DIAGNOSTICS, hide_short_help = true)]
    pub rr: Option<String>,

    /// Write such reports to a file as well, as JSON for tools
    #[arg(long, value_name = "FILE", help_heading = ENDING, hide_short_help = true)]
    pub hang_report: Option<PathBuf>,

    /// "ulfm": the job goes on when ranks die, and the other ranks get errors; "no": it ends [default: no]
    #[arg(long, value_name = "HOW", help_heading = ENDING, hide_short_help = true)]
    pub with_ft: Option<FaultTolerance>,

    /// The error handler that programs begin with: mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return
    #[arg(long, value_name = "NAME", help_heading = ENDING, hide_short_help = true, value_parser = error_handler)]
    pub initial_errhandler: Option<InitialHandler>,

    /// As --with-ft ulfm
    #[arg(long, alias = "disable-auto-cleanup", help_heading = ENDING, hide_short_help = true, conflicts_with = "with_ft")]
    pub enable_recovery: bool,

    /// The folder that checkpoints are written to; all hosts must share it
    #[arg(long, value_name = "DIR", help_heading = CHECKPOINTS, hide_short_help = true)]
    pub checkpoint_dir: Option<PathBuf>,

    /// Take a checkpoint this time (30min, 2h) after the one before
    #[arg(long, value_name = "TIME", help_heading = CHECKPOINTS, hide_short_help = true, value_parser = TimeLimit::parse)]
    pub checkpoint_every: Option<TimeLimit>,

    /// The signal to mpirun that asks for a checkpoint: USR1, USR2 or HUP
    #[arg(long, value_name = "SIGNAL", help_heading = CHECKPOINTS, hide_short_help = true, value_parser = checkpoint::signal)]
    pub checkpoint_signal: Option<i32>,

    /// The number of checkpoints that are kept [default: 2]
    #[arg(long, value_name = "N", help_heading = CHECKPOINTS, hide_short_help = true, value_parser = count, allow_hyphen_values = true)]
    pub checkpoint_keep: Option<usize>,

    /// Cut files that have grown since a checkpoint of processes (--mca crs criu) to their length of then
    #[arg(long, requires = "restart", help_heading = CHECKPOINTS, hide_short_help = true)]
    pub checkpoint_truncate: bool,

    /// Restart the job up to N times from its newest checkpoint if a rank is killed by a signal or its host is lost
    #[arg(long, value_name = "N", conflicts_with_all = ["with_ft", "enable_recovery"], help_heading = CHECKPOINTS, hide_short_help = true)]
    pub restart_on_death: Option<u32>,

    /// The number of restarts so far, and the number of the newest checkpoint before the first start
    #[arg(long, value_name = "N:NUMBER", hide = true)]
    pub restarted: Option<Restarted>,

    /// Begin from the newest complete checkpoint in DIR, or from checkpoint N there; without a program, with the one of then
    #[arg(long, value_name = "DIR[@N]", help_heading = CHECKPOINTS, hide_short_help = true)]
    pub restart: Option<PathBuf>,

    /// Write a trace for ui.perfetto.dev, or a waveform if FILE ends in .vcd
    #[arg(long, value_name = "FILE", help_heading = DIAGNOSTICS)]
    pub trace: Option<PathBuf>,

    /// Count messages and bytes from rank to rank: a table FILE.csv and a heat map FILE.svg
    #[arg(long, value_name = "FILE", help_heading = DIAGNOSTICS, hide_short_help = true)]
    pub matrix: Option<PathBuf>,

    /// Report the file I/O of all ranks: a table, or JSON if FILE ends in .json [default FILE: standard error]
    #[arg(long, hide_short_help = true, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = DIAGNOSTICS)]
    pub io_report: Option<PathBuf>,

    /// Record nondeterministic decisions (matching, order of completion) for --replay, into a folder
    #[arg(long, value_name = "DIR", help_heading = DIAGNOSTICS, hide_short_help = true, conflicts_with = "replay")]
    pub record: Option<PathBuf>,

    /// Repeat a recorded run
    #[arg(long, value_name = "DIR", help_heading = DIAGNOSTICS, hide_short_help = true)]
    pub replay: Option<PathBuf>,

    /// Print which components serve, and why the others do not
    #[arg(long, help_heading = DIAGNOSTICS)]
    pub explain: bool,

    /// Print nothing about failures; the exit status reports them
    #[arg(short, long, alias = "silent-abort", help_heading = DIAGNOSTICS, hide_short_help = true)]
    pub quiet: bool,

    /// Print the processes that are started
    #[arg(short, long, help_heading = DIAGNOSTICS)]
    pub verbose: bool,

    /// This screen, or a topic: --help all prints every option
    #[arg(short, long, value_name = "TOPIC", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = DIAGNOSTICS)]
    pub help: Option<String>,

    /// The version
    #[arg(short = 'V', long, help_heading = DIAGNOSTICS)]
    pub version: bool,

    /// Accepted: root is always allowed
    #[arg(long, help_heading = DIAGNOSTICS, hide_short_help = true)]
    pub allow_run_as_root: bool,

    /// The manual page or a shell's completions, for packagers
    #[arg(long, value_name = "WHAT", hide = true, value_parser = Generated::parse)]
    pub generate: Option<Generated>,

    /// Serves a launcher elsewhere over standard input and output
    #[arg(long, hide = true)]
    pub daemon: bool,

    /// Serves a launcher elsewhere that takes images of processes
    #[arg(long, hide = true)]
    pub daemon_with_images: bool,

    /// Serves the process at the other end of standard input, which is rank 0 of a job of this name
    #[arg(long, value_name = "NAME", hide = true)]
    pub adopt: Option<String>,

    /// Read the programs from a file: one part to a line, # begins a comment
    #[arg(long, alias = "app", value_name = "FILE", action = ArgAction::Append, help_heading = RANKS, hide_short_help = true)]
    pub configfile: Vec<PathBuf>,
}

/// One part of the command line, between colons.
#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "mpirun",
    allow_negative_numbers = true,
    override_usage = "mpirun ... : [OPTIONS] PROGRAM [ARGS]..."
)]
pub struct Section {
    #[command(flatten)]
    pub app: AppOptions,

    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM", hide = true)]
    pub command: Vec<OsString>,
}

/// What may differ between the programs of one job.
#[derive(Clone, Debug, Default, Args)]
pub struct AppOptions {
    /// Number of ranks [default: the slots of the named hosts, else 1]
    #[arg(
        short = 'n',
        long = "np",
        short_alias = 'c',
        alias = "n",
        value_name = "N",
        value_parser = ranks,
        // Allows hyphens so that `-n -1` reports a bad number of ranks and not an unknown option.
        allow_hyphen_values = true,
        help_heading = RANKS
    )]
    pub procs: Option<u32>,

    /// Acceptable numbers of ranks if not all fit: 4, 2:8 or 2:8:2
    #[arg(long, value_name = "NUMBERS", allow_hyphen_values = true, help_heading = RANKS, hide_short_help = true, value_parser = Soft::parse)]
    pub soft: Option<Soft>,

    /// Hosts to run on, each with its slots after a colon
    #[arg(long, short = 'H', aliases = ["hosts", "hostlist", "machine", "machines", "machinelist"], value_name = "HOST[:SLOTS],...", help_heading = HOSTS)]
    pub host: Vec<String>,

    /// A file of hosts, "NAME slots=N" on each line
    #[arg(long, short = 'f', alias = "machinefile", value_name = "FILE", help_heading = HOSTS)]
    pub hostfile: Vec<PathBuf>,

    /// Working directory of the ranks [default: this one]
    #[arg(long, alias = "wd", value_name = "DIR", help_heading = RANKS, hide_short_help = true)]
    pub wdir: Option<PathBuf>,

    /// Folders searched for the program before PATH
    #[arg(long, value_name = "DIR:...", help_heading = RANKS, hide_short_help = true)]
    pub path: Option<OsString>,

    /// Set (NAME=VALUE) or export (NAME) a variable for this program's ranks
    #[arg(short = 'x', long = "x", value_name = "NAME[=VALUE]", help_heading = RANKS)]
    pub export: Vec<OsString>,

    /// Set a parameter; see mpi-info
    #[arg(long, aliases = ["gmca", "omca", "gomca"], num_args = 2, value_names = ["NAME", "VALUE"], allow_hyphen_values = true, help_heading = RANKS)]
    pub mca: Vec<OsString>,

    /// Set a variable for the ranks of all programs
    #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], allow_hyphen_values = true, help_heading = RANKS, hide_short_help = true)]
    pub genv: Vec<OsString>,

    /// As -x NAME=VALUE
    #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], allow_hyphen_values = true, help_heading = RANKS, hide_short_help = true)]
    pub env: Vec<OsString>,

    /// Accepted: ranks get the whole environment, on every host
    #[arg(long, alias = "envall", help_heading = RANKS, hide_short_help = true)]
    pub genvall: bool,
}
