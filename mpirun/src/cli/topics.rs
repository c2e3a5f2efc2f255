//! The topics of `--help TOPIC` and their texts.

use super::options;

/// A topic of `--help TOPIC`: its name, the heading of its options if it has one, and its text.
pub struct Topic {
    pub name: &'static str,
    pub heading: Option<&'static str>,
    pub text: &'static str,
}

pub const TOPICS: &[Topic] = &[
    Topic {
        name: "ranks",
        heading: Some(options::RANKS),
        text: "mpirun's options come before the program's name; all arguments after it are passed to the program. Colons separate the programs of one job, \
               whose ranks are numbered in this order; options of the whole job come before the first program:\n\n  \
               mpirun -n 1 ./manager : -n 8 -x MODE=fast ./worker\n\n\
               -n, -x, --env, --wdir, --path, --host, --hostfile and --soft apply to the program that they precede, and --genv and --mca to all programs.\n\n\
               Ranks get mpirun's whole environment and working directory, on every host. Long options may be written with one dash or two.",
    },
    Topic {
        name: "hosts",
        heading: Some(options::HOSTS),
        text: "Without --host and --hostfile ranks run on the hosts that Slurm, PBS or LSF has allocated, else on this one. \
               A hostfile has one host per line:\n\n  \
               node1 slots=4\n  node2:4\n\n\
               Other hosts are reached by ssh, or by what --launch-agent names: it is called with the host and one shell command. \
               The same mpirun must be there, in the same place or under --prefix. The launcher itself opens no port.",
    },
    Topic {
        name: "binding",
        heading: Some(options::BINDING),
        text: "With --bind-to each rank of a host gets units of its own, next to each other, or with --map-by package or numa dealt over those. \
               --map-by slot:PE=2 gives each rank two cores, and --map-by ppr:2:package puts two ranks on each package of this host. More ranks than units are not bound at all, unless \":overload-allowed\" follows the unit.",
    },
    Topic {
        name: "output",
        heading: Some(options::OUTPUT),
        text: "mpirun passes on whole lines of output, so that the lines of two ranks are never mixed. \
               Standard input goes to rank 0; the input of other ranks is empty.\n\n\
               --output also takes Open MPI's words, with commas between them: tag, rank, timestamp, merge-stderr-to-stdout and dir=DIR. \
               For a folder of such a name write ./tag.",
    },
    Topic {
        name: "ending",
        heading: Some(options::ENDING),
        text: "The first rank that fails ends the job, and mpirun names the rank, its host, the reason and the MPI call. \
               All processes get SIGTERM and 200 ms later SIGKILL (--mca mpirun_grace 1s). \
               Where mpirun got a signal, as by Ctrl-C, they get the same one, and those that handle it have 5 s (--mca mpirun_signal_grace 1m). \
               Ctrl-C twice does not wait. SIGUSR1 to mpirun prints which rank waits for which; SIGUSR2, SIGTSTP and SIGCONT are passed on.\n\n\
               Exit status: that of the first rank that failed, 128 + signal if it was killed, the code of MPI_Abort, \
               124 after a time-out, 125 if the ranks wait for each other, 74 if output could not be written, \
               126 or 127 if the program cannot be executed or does not exist, 2 for a mistake on the command line.\n\n\
               With --with-ft ulfm the job goes on without ranks that die, by a signal, with another status than 0, or without MPI_Finalize; \
               mpirun reports it at once and lists the lost ranks at the end. MPI_Abort still ends all. \
               Exit status: that of the ranks that are left; if none is, that of the first that died.",
    },
    Topic {
        name: "checkpoints",
        heading: Some(options::CHECKPOINTS),
        text: "A program that calls MPIX_Checkpoint_point in its main loop can be stopped and taken up again, on the same, fewer or other hosts:\n\n  \
               mpirun -n 4 --checkpoint-dir saved --checkpoint-every 30min ./stencil\n  mpirun --restart saved\n\n\
               A checkpoint is taken by the time, by a signal, by mpi-ctl checkpoint, or when the program asks for it; it is complete, or it is not there. \
               --restart without a program runs the program of then with its arguments; other options are given again. \
               mpi-ctl checkpoint --stop ends the job after the checkpoint, with exit status 85.\n\n\
               A program without such calls is saved as images of its processes, on this host, as root and with CRIU 4.2:\n\n  \
               mpirun -n 4 --checkpoint-dir saved --mca crs criu ./program",
    },
    Topic {
        name: "diagnostics",
        heading: Some(options::DIAGNOSTICS),
        text: "mpi-info lists frameworks, components and parameters; --explain prints which component serves what in a job, and why the others do not.",
    },
    Topic {
        name: "all",
        heading: None,
        text: "",
    },
];

/// Returns the names of all topics.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|topic| topic.name)
}

/// Returns the topic names, separated by commas, for the message about an unknown topic.
pub fn topics() -> String {
    names().collect::<Vec<_>>().join(", ")
}
