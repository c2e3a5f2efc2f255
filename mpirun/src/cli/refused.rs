//! Unsupported options of other launchers, each with its effect and this launcher's replacement.
//!
//! Each of these options is an error with its own message, since ignoring it would mislead users.
//! A value that requests the default behaviour is accepted.

/// A known but unsupported option.
#[derive(Debug)]
pub struct Refused {
    pub name: &'static str,
    /// The number of values that follow the option.
    pub values: usize,
    /// Values that request the default behaviour and are accepted.
    pub harmless: &'static [&'static str],
    /// The option's effect in other launchers.
    pub what: &'static str,
    /// A replacement that the user can type for this launcher.
    pub instead: &'static str,
}

const fn refused(
    name: &'static str,
    values: usize,
    what: &'static str,
    instead: &'static str,
) -> Refused {
    Refused {
        name,
        values,
        harmless: &[],
        what,
        instead,
    }
}

const WHOLE_ENVIRONMENT: &str =
    "ranks get mpirun's whole environment; start mpirun by \"env -i NAME=VALUE ... mpirun\"";
const DEBUGGER: &str = "--gdb opens a gdb for each rank in a pane of tmux, and TotalView and DDT can start mpirun or attach to it";
const PROCESSORS: &str =
    "a line of --rankfile FILE for each rank, such as \"rank 0=HOST slot=0-1\", names its cores";
const PARAMETERS: &str =
    "--mca NAME VALUE sets parameters of this library, which mpi-info --all lists";
const COPIED: &str = "copy it to the other hosts beforehand, or name a folder that all hosts have";
const OUTPUT: &str = "--output DIR writes DIR/JOB/rank.N/stdout and stderr";
const LABEL: &str = "--label puts the rank and --tag-output job, rank and stream before each line";
const SERVER: &str = "jobs of one mpirun find each other by MPI_Publish_name without a server";
const CHATTER: &str = "--verbose prints the commands that are started";
const SURVIVORS: &str = "--with-ft ulfm lets the other ranks continue after a death";
const STOPPED: &str = "--gdb stops each rank at main in a gdb";
const INSTALLATION: &str = "--prefix DIR names this installation's folder on the other hosts";
const NODES: &str = "--rankfile FILE names the host of each rank";
const OWN_NAME: &str =
    "MPI_Get_processor_name returns the name that each host has for itself (uname -n)";
const COUNTED: &str =
    "--matrix FILE counts messages between ranks, and --explain prints the transports";
const NO_MACHINE: &str = "mpirun starts each job by itself";
const INSERTED: &str =
    "-x \"NAME=TEXT$NAME\" sets the whole value, in which the shell inserts the old one";
const ALLOCATION: &str =
    "allocations of Slurm, PBS and LSF are found; --host and --hostfile name other hosts";

const TABLE: &[Refused] = &[
    Refused {
        name: "arch",
        values: 1,
        harmless: &[std::env::consts::ARCH],
        what: "choosing hosts by their architecture",
        instead: "--host and --hostfile name hosts",
    },
    Refused {
        name: "launcher",
        values: 1,
        harmless: &["ssh"],
        what: "how other hosts are reached",
        instead: "--launch-agent COMMAND names the command in place of ssh",
    },
    Refused {
        name: "bootstrap",
        values: 1,
        harmless: &["ssh"],
        what: "how other hosts are reached",
        instead: "--launch-agent COMMAND names the command in place of ssh",
    },
    Refused {
        name: "rmk",
        values: 1,
        harmless: &["user", "slurm", "pbs", "lsf"],
        what: "which resource manager is asked for hosts",
        instead: ALLOCATION,
    },
    Refused {
        name: "topolib",
        values: 1,
        harmless: &["hwloc"],
        what: "which library knows the machine",
        instead: "--bind-to and --map-by need none",
    },
    refused(
        "file",
        1,
        "a file with more about the job",
        "--configfile FILE reads the programs and their options",
    ),
    refused("genvnone", 0, "an empty environment", WHOLE_ENVIRONMENT),
    refused(
        "genvlist",
        1,
        "a part of the environment",
        WHOLE_ENVIRONMENT,
    ),
    refused("envnone", 0, "an empty environment", WHOLE_ENVIRONMENT),
    refused("envlist", 1, "a part of the environment", WHOLE_ENVIRONMENT),
    refused(
        "iface",
        1,
        "the network to be used",
        "--mca btl_tcp_if_include NAME chooses it",
    ),
    refused(
        "outfile-pattern",
        1,
        "a file for each rank's output",
        OUTPUT,
    ),
    refused(
        "errfile-pattern",
        1,
        "a file for each rank's errors",
        OUTPUT,
    ),
    refused("prepend-pattern", 1, "text before each line", LABEL),
    refused("outfile", 1, "a file for each rank's output", OUTPUT),
    refused("errfile", 1, "a file for each rank's errors", OUTPUT),
    refused(
        "output-from",
        1,
        "the output of one rank only",
        "--output DIR:nocopy writes the output of each rank to DIR/JOB/rank.N/stdout and stderr",
    ),
    refused("rankmap", 1, "the host of each rank", NODES),
    refused(
        "profile",
        0,
        "times of the launcher",
        "--verbose prints the commands that are started, and --trace FILE times the calls of ranks",
    ),
    refused(
        "enable-x",
        0,
        "X11 forwarding to other hosts",
        "--launch-agent \"ssh -X\" forwards X11",
    ),
    refused(
        "enable-hostname-propagation",
        0,
        "host names from the launcher",
        OWN_NAME,
    ),
    refused(
        "hybrid-hosts",
        0,
        "hosts with other paths",
        "--prefix DIR names this installation's folder and --wdir DIR the working directory on the other hosts",
    ),
    refused(
        "localhost",
        1,
        "the name of this host",
        "--host and --hostfile name this host by its own name or as localhost",
    ),
    refused(
        "pmi-port",
        0,
        "a port for PMI",
        "ranks find mpirun by the descriptor PMI_FD, and no port is opened",
    ),
    refused(
        "pmi_args",
        4,
        "a process that runs without a launcher",
        "MPI_Comm_spawn of such a process starts mpirun by itself",
    ),
    refused(
        "skip-launch-node",
        0,
        "no ranks on this host",
        "--host lists the hosts to be used",
    ),
    refused(
        "print-all-exitcodes",
        0,
        "the status of each rank",
        "mpirun names the first rank that fails and its status",
    ),
    refused(
        "usize",
        1,
        "the value of MPI_UNIVERSE_SIZE",
        "it is the number of slots, which --host NAME:SLOTS gives",
    ),
    refused("nameserver", 1, "a server for published names", SERVER),
    refused("ompi-server", 1, "a server for published names", SERVER),
    refused(
        "membind",
        1,
        "binding memory",
        "--bind-to numa keeps ranks near their memory",
    ),
    refused(
        "gpus-per-proc",
        1,
        "GPUs for each rank",
        "-x CUDA_VISIBLE_DEVICES=N sets them for each program between colons",
    ),
    refused(
        "g",
        1,
        "GPUs for each rank",
        "-x CUDA_VISIBLE_DEVICES=N sets them for each program between colons",
    ),
    refused(
        "gpu-subdevs-per-proc",
        1,
        "parts of GPUs for each rank",
        "-x ZE_AFFINITY_MASK=N.M sets them for each program between colons",
    ),
    Refused {
        name: "gpu-support",
        values: 1,
        harmless: &["1", "true", "yes"],
        what: "whether device memory is recognised",
        instead: "--mca accelerator ^cuda,rocm,level_zero switches it off",
    },
    refused(
        "order-nodes",
        1,
        "another order of the hosts",
        "--host lists them in the order in which they are filled",
    ),
    refused("cpu-list", 1, "a list of processors", PROCESSORS),
    refused("cpu-set", 1, "a list of processors", PROCESSORS),
    refused("slot-list", 1, "a list of processors", PROCESSORS),
    refused(
        "nolocal",
        0,
        "no ranks on this host",
        "--host lists the hosts to be used",
    ),
    refused("preload-files", 1, "copying files to the hosts", COPIED),
    refused(
        "preload-binary",
        0,
        "copying the program to the hosts",
        COPIED,
    ),
    refused("s", 0, "copying the program to the hosts", COPIED),
    refused(
        "set-cwd-to-session-dir",
        0,
        "another working directory",
        "--wdir DIR names one",
    ),
    refused(
        "tune",
        1,
        "a file of parameters",
        "lines \"NAME = VALUE\" of ~/.portcullis/mca-params.conf set parameters",
    ),
    refused(
        "am",
        1,
        "a file of parameters",
        "lines \"NAME = VALUE\" of ~/.portcullis/mca-params.conf set parameters",
    ),
    refused(
        "amca",
        1,
        "a file of parameters",
        "lines \"NAME = VALUE\" of ~/.portcullis/mca-params.conf set parameters",
    ),
    refused("prtemca", 2, "parameters of PRRTE", PARAMETERS),
    refused("pmixmca", 2, "parameters of PMIx", PARAMETERS),
    refused("gprtemca", 2, "parameters of PRRTE", PARAMETERS),
    refused("gpmixmca", 2, "parameters of PMIx", PARAMETERS),
    refused(
        "runtime-options",
        1,
        "options of PRRTE",
        "mpirun --help all lists those of this mpirun",
    ),
    refused(
        "rtos",
        1,
        "options of PRRTE",
        "mpirun --help all lists those of this mpirun",
    ),
    refused(
        "do-not-launch",
        0,
        "a map without a job",
        "mpirun --display-map ... true shows the map",
    ),
    refused(
        "donotlaunch",
        0,
        "a map without a job",
        "mpirun --display-map ... true shows the map",
    ),
    refused(
        "display-topo",
        0,
        "the parts of each machine",
        "lstopo of hwloc shows them",
    ),
    refused(
        "output-proctable",
        0,
        "the process of each rank",
        "--report-bindings --bind-to none prints host, process and rank",
    ),
    refused("xml", 0, "output as XML", LABEL),
    refused(
        "xterm",
        1,
        "a terminal for some ranks",
        "mpirun -n 4 xterm -e ./program opens one for each rank",
    ),
    refused("xml-file", 1, "a file of output as XML", OUTPUT),
    refused(
        "parseable",
        0,
        "tables for programs",
        "--hang-report FILE and --io-report=FILE.json write JSON; the tables of --display are for people",
    ),
    refused(
        "parsable",
        0,
        "tables for programs",
        "--hang-report FILE and --io-report=FILE.json write JSON; the tables of --display are for people",
    ),
    refused("display-comm", 0, "the transports between ranks", COUNTED),
    refused(
        "display-comm-finalize",
        0,
        "the transports between ranks",
        COUNTED,
    ),
    refused(
        "index-argv-by-rank",
        0,
        "the rank in each program's name",
        "PMI_RANK in the environment is the rank",
    ),
    refused("stop-on-exec", 0, "ranks that stop at their start", STOPPED),
    refused("stop-in-init", 0, "ranks that stop in MPI_Init", STOPPED),
    refused("stop-in-app", 0, "ranks that stop in the program", STOPPED),
    refused("debug", 0, "a parallel debugger", DEBUGGER),
    refused("debugger", 1, "a parallel debugger", DEBUGGER),
    refused("tv", 0, "the debugger TotalView", DEBUGGER),
    refused(
        "get-stack-traces",
        0,
        "stacks of ranks after a time-out",
        "--timeout TIME prints which rank waits for which",
    ),
    refused("debug-devel", 0, "messages of the launcher", CHATTER),
    refused("d", 0, "messages of the launcher", CHATTER),
    refused("debug-daemons-file", 0, "messages of the launcher", CHATTER),
    refused("debug-daemons", 0, "messages of the launcher", CHATTER),
    refused(
        "leave-session-attached",
        0,
        "messages of the launcher",
        CHATTER,
    ),
    refused(
        "report-pid",
        1,
        "mpirun's process number in a file",
        "the shell has it as $! after \"mpirun ... &\"",
    ),
    refused(
        "report-uri",
        1,
        "an address of the launcher in a file",
        SERVER,
    ),
    refused("report-events", 1, "an address for events", CHATTER),
    refused(
        "report-child-jobs-separately",
        0,
        "a status without that of spawned jobs",
        "mpirun's status is that of the first rank that fails, in any job",
    ),
    refused(
        "spawn-timeout",
        1,
        "a time limit for starting a job",
        "--timeout TIME limits the time of the whole job",
    ),
    refused(
        "tmpdir",
        1,
        "the folder of the launcher's files",
        "mpirun has no such folder; -x TMPDIR=DIR moves temporary files of ranks",
    ),
    refused(
        "forward-signals",
        1,
        "signals that are passed on to ranks",
        "the list is fixed: SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2, SIGTSTP and SIGCONT reach the ranks",
    ),
    refused("prepend-env", 2, "text before a variable's value", INSERTED),
    refused("append-env", 2, "text after a variable's value", INSERTED),
    refused(
        "unset-env",
        1,
        "an environment without a variable",
        "start mpirun by \"env -u NAME mpirun ...\"",
    ),
    Refused {
        name: "fwd-environment",
        values: 0,
        harmless: &["", "1", "true"],
        what: "whether ranks get mpirun's environment",
        instead: WHOLE_ENVIRONMENT,
    },
    refused(
        "pset",
        1,
        "a name for the ranks of one program",
        "MPI_Comm_split with the attribute MPI_APPNUM as the colour groups the ranks by program",
    ),
    refused("app-pmix-prefix", 1, "the folder of PMIx", INSTALLATION),
    refused("no-app-prefix", 0, "no folder of PMIx", INSTALLATION),
    refused(
        "cartofile",
        1,
        "a file about the machine",
        "--bind-to and --map-by read the machine from the kernel",
    ),
    refused(
        "cf",
        1,
        "a file about the machine",
        "--bind-to and --map-by read the machine from the kernel",
    ),
    refused(
        "max-vm-size",
        1,
        "the number of launchers",
        "one launcher starts on each host that has ranks",
    ),
    refused(
        "dvm",
        1,
        "starting jobs in a machine that runs already",
        NO_MACHINE,
    ),
    refused(
        "hnp",
        1,
        "starting jobs in a machine that runs already",
        NO_MACHINE,
    ),
    refused(
        "max-restarts",
        1,
        "starting failed ranks again",
        "--restart-on-death N restarts the job from its newest checkpoint, and --with-ft ulfm lets the other ranks continue",
    ),
    refused(
        "continuous",
        0,
        "a job that continues after failures",
        SURVIVORS,
    ),
    refused(
        "add-host",
        1,
        "hosts for ranks to be spawned",
        "--host lists all hosts of the job",
    ),
    refused(
        "add-hostfile",
        1,
        "hosts for ranks to be spawned",
        "--hostfile lists all hosts of the job",
    ),
];

#[cfg(test)]
impl Refused {
    /// Returns the option as users write it: a single letter has one dash.
    pub fn spelling(&self) -> String {
        match self.name.len() {
            1 => format!("-{}", self.name),
            _ => format!("--{}", self.name),
        }
    }
}

/// Returns the unsupported option with this name.
pub fn find(name: &str) -> Option<&'static Refused> {
    TABLE.iter().find(|option| option.name == name)
}

/// Returns all unsupported options.
#[cfg(test)]
pub fn all() -> impl Iterator<Item = &'static Refused> {
    TABLE.iter()
}

/// Returns the names of all unsupported options.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|option| option.name)
}
