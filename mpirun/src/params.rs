//! Parameters of the launcher.

use mpi_base::param::{About, Level, PREFIX, Param};
use std::ffi::OsString;
use std::time::Duration;

/// The time between SIGTERM and SIGKILL when a job is ended.
pub static GRACE: Param<Duration> = Param::new(
    "mpirun",
    "",
    "grace",
    "200ms",
    Level::USER,
    "Time between the signal that asks the processes of a job to end and SIGKILL.",
);

/// The time between a signal from the user and SIGKILL, for ranks that handle the signal.
pub static SIGNAL_GRACE: Param<Duration> = Param::new(
    "mpirun",
    "",
    "signal_grace",
    "5s",
    Level::USER,
    "The same time for processes that handle the signal, when a signal to mpirun ends a job.",
);

/// The command that reaches other hosts; Open MPI's parameter has the same name.
pub static RSH_AGENT: Param<String> = Param::new(
    "plm",
    "rsh",
    "agent",
    "ssh",
    Level::USER,
    "Command that reaches another host; it is called with the host's name and one shell command.",
);

/// The fan-out of the launch tree: the maximum number of hosts that a launcher reaches itself.
pub static FANOUT: Param<usize> = Param::new(
    "mpirun",
    "",
    "fanout",
    "16",
    Level::TUNER,
    "Number of hosts that mpirun reaches itself; each of them reaches the same number of further hosts.",
);

/// The time without a message after which a host counts as lost.
pub static SILENCE: Param<Duration> = Param::new(
    "mpirun",
    "",
    "silence",
    "30s",
    Level::TUNER,
    "A host that has sent nothing for this time counts as lost, and the job ends; 0 is no limit.",
);

/// The time without a greeting after which a host counts as lost.
pub static GREETING: Param<Duration> = Param::new(
    "mpirun",
    "",
    "greeting",
    "120s",
    Level::USER,
    "A host whose launcher has not answered within this time counts as lost, and the job ends; 0 is no limit.",
);

/// The parameters of the framework `mpirun`, which mpi-info lists.
pub static PARAMS: [&About; 5] = [
    GRACE.about(),
    SIGNAL_GRACE.about(),
    FANOUT.about(),
    GREETING.about(),
    SILENCE.about(),
];

/// The parameter that makes the library print its selections with reasons (`--explain`).
pub const EXPLAIN: &str = "mpi_base_explain";

/// Returns the name of the environment variable that `--explain` sets.
pub fn explain_variable() -> OsString {
    format!("{PREFIX}{EXPLAIN}").into()
}
