//! `criu`: the component that saves images of all processes of a job on one host, with CRIU.
//!
//! The program is not involved. This module builds CRIU's arguments and interprets its output;
//! it does not run CRIU.
//!
//! The dumped process tree begins with the launcher's supervisor.
//! So the tree contains sockets, pipes and shared memory between the supervisor and the ranks.
//! The front end is outside the tree. The dump lists its socket to the supervisor as external.
//! A restart passes a new socket to the supervisor. Each process gets its old process id,
//! so a restart needs its own PID namespace unless all of these ids are free.
//!
//! Each version of CRIU fails on some newer kernels.
//! On Linux 6.18, CRIU 4.2 is the first version that works:
//! CRIU 3.17 does not start on this kernel, and CRIU 4.1 cannot dump TCP sockets.

use mpi_base::param::{Level, Param};
use printable::name;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Parameter `crs_criu_program`: the CRIU executable.
pub static PROGRAM: Param<PathBuf> = Param::new(
    "crs",
    "criu",
    "program",
    "criu",
    Level::USER,
    "The CRIU program: a path, or a name that is searched in PATH",
);

/// A version of CRIU: major and minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

/// The first CRIU version that can dump and restore processes with this library.
pub const NEEDED: Version = Version(4, 2);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Version {
    /// Reads the output of `criu --version`, whose first line is `Version: 4.2.1`.
    pub fn read(output: &str) -> Option<Version> {
        let line = output
            .lines()
            .find_map(|line| line.trim().strip_prefix("Version:"))?;
        let mut numbers = line.trim().split('.');
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next().map_or(Some(0), |minor| {
            let digits = minor.len() - minor.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            minor[..digits].parse().ok()
        });
        Some(Version(major, minor?))
    }
}

/// The reasons why CRIU cannot dump or restore a job; each displays as one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CriuError {
    Absent {
        program: String,
    },
    Unreadable {
        program: String,
        output: String,
    },
    TooOld {
        program: String,
        version: String,
        why: String,
    },
    NoPrivilege,
    OtherHosts {
        hosts: usize,
    },
    ForeignDescriptor {
        what: String,
    },
    OtherLibrary,
    Failed {
        doing: &'static str,
        line: String,
        log: String,
    },
    Taken {
        pid: u32,
        what: String,
    },
}

impl fmt::Display for CriuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CriuError::Absent { program } => write!(
                f,
                "checkpoints of processes need CRIU {NEEDED} or later, and there is no program {} (--mca crs_criu_program names it)",
                name(program)
            ),
            CriuError::Unreadable { program, output } => write!(
                f,
                "{} does not report its version as CRIU does, but \"{}\"",
                name(program),
                name(output)
            ),
            CriuError::TooOld {
                program,
                version,
                why,
            } => write!(
                f,
                "checkpoints of processes need CRIU {NEEDED} or later, and {} is {version}, {why}",
                name(program)
            ),
            CriuError::NoPrivilege => f.write_str(
                "CRIU needs the capability CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN, and this process has neither; run it as root, or give CRIU the capability",
            ),
            CriuError::OtherHosts { hosts } => write!(
                f,
                "the job runs on {hosts} hosts, and CRIU writes checkpoints of jobs on one host; --checkpoint-dir with the functions MPIX_Checkpoint_... works on any number"
            ),
            CriuError::ForeignDescriptor { what } => write!(f, "{what}, which CRIU cannot save"),
            CriuError::OtherLibrary => f.write_str(
                "the job runs on another MPI library (--on), whose processes were never tried under CRIU",
            ),
            CriuError::Failed { doing, line, log } => {
                write!(f, "CRIU has failed to {doing} the job: {} ({})", name(line), name(log))
            }
            CriuError::Taken { pid, what } => write!(
                f,
                "the process number {pid} of the checkpoint is in use here by {}; a restart in a process namespace of its own (unshare -pf --mount-proc) needs CAP_SYS_ADMIN",
                name(what)
            ),
        }
    }
}

impl std::error::Error for CriuError {}

/// Fails if this version of CRIU cannot dump and restore processes with this library.
pub fn admit(program: &Path, version: Version) -> Result<(), CriuError> {
    if version >= NEEDED {
        return Ok(());
    }
    let why = match version {
        version if version < Version(4, 1) => {
            "which does not start on Linux 6.13 and later (its memory layout of the vDSO is older)"
        }
        _ => "which dumps no TCP socket on Linux 6.16 and later",
    };
    Err(CriuError::TooOld {
        program: program.display().to_string(),
        version: version.to_string(),
        why: why.into(),
    })
}

/// Fails if CRIU cannot dump descriptor `number`; `target` is the link target in `/proc/PID/fd`.
pub fn check_descriptor(process: &str, number: u32, target: &str) -> Result<(), CriuError> {
    let what = match target {
        target if target.starts_with("anon_inode:[io_uring]") => "io_uring",
        target if target.starts_with("anon_inode:[userfaultfd]") => "userfaultfd",
        target if target.starts_with("/dev/nvidia") => "a CUDA device",
        target if target.starts_with("/dev/kfd") || target.starts_with("/dev/dri") => "a GPU",
        target if target.starts_with("/dev/infiniband") => "an InfiniBand device",
        target if target.starts_with("/dev/xpmem") => "XPMEM",
        target if target.starts_with("/dev/parport") => "a parallel port",
        target if target.starts_with("/dev/gpiochip") => "a GPIO port",
        _ => return Ok(()),
    };
    let what = format!("{process} has descriptor {number} ({what})");
    Err(CriuError::ForeignDescriptor { what })
}

/// Returns the CRIU arguments that dump the process tree of a supervisor.
///
/// `outside` contains the inodes of both ends of the supervisor's socket to the front end.
/// Both ends of each loopback connection are in the tree, so CRIU need not lock the network.
pub fn dump_arguments(
    supervisor: u32,
    images: &Path,
    outside: &[u64],
    keeps_running: bool,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![
        "dump".into(),
        "-t".into(),
        supervisor.to_string().into(),
        "-D".into(),
        images.into(),
        "-o".into(),
        "dump.log".into(),
        "--shell-job".into(),
        "--tcp-established".into(),
        "--network-lock".into(),
        "skip".into(),
        "--file-locks".into(),
    ];
    for inode in outside {
        arguments.extend(["--external".into(), format!("unix[{inode}]").into()]);
    }
    if keeps_running {
        arguments.push("--leave-running".into());
    }
    arguments
}

/// Returns the CRIU arguments that restore a process tree.
/// `socket` contains the new descriptor of the supervisor's socket to the front end,
/// and the inode that this socket had at the dump.
pub fn restore_arguments(images: &Path, socket: (u32, u64)) -> Vec<OsString> {
    let (descriptor, inode) = socket;
    vec![
        "restore".into(),
        "-d".into(),
        "-S".into(),
        "-D".into(),
        images.into(),
        "-o".into(),
        "restore.log".into(),
        "--shell-job".into(),
        "--tcp-established".into(),
        "--file-locks".into(),
        "--inherit-fd".into(),
        format!("fd[{descriptor}]:socket:[{inode}]").into(),
    ]
}

/// Returns the first error in a CRIU log; that line names the cause.
pub fn first_error(log: &str) -> Option<&str> {
    let line = log.lines().find(|line| line.contains("Error ("))?;
    Some(line.split_once("): ").map_or(line, |(_, text)| text).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_cannot_work_are_refused_by_name() {
        let read = |text: &str| Version::read(&format!("Version: {text}\nGitID: v{text}\n"));
        assert_eq!(read("3.17.1"), Some(Version(3, 17)));
        assert_eq!(read("4.2"), Some(Version(4, 2)));
        assert_eq!(read("5"), Some(Version(5, 0)));
        assert_eq!(Version::read("criu\n"), None);
        let admitted = |text: &str| admit(Path::new("/usr/sbin/criu"), read(text).unwrap());
        let sentence = |text: &str| admitted(text).unwrap_err().to_string();
        assert_eq!(
            sentence("3.17.1"),
            "checkpoints of processes need CRIU 4.2 or later, and /usr/sbin/criu is 3.17, which does not start on Linux 6.13 and later (its memory layout of the vDSO is older)"
        );
        assert!(
            sentence("4.1.1").ends_with(
                "/usr/sbin/criu is 4.1, which dumps no TCP socket on Linux 6.16 and later"
            )
        );
        assert_eq!((admitted("4.2.1"), admitted("4.10")), (Ok(()), Ok(())));
    }

    #[test]
    fn the_front_end_stays_outside_of_the_dumped_tree() {
        let text = |arguments: Vec<OsString>| {
            let words = arguments
                .into_iter()
                .map(|word| word.into_string().unwrap());
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            text(dump_arguments(
                17,
                Path::new("/d/1.tmp/images"),
                &[5, 6],
                true
            )),
            "dump -t 17 -D /d/1.tmp/images -o dump.log --shell-job --tcp-established --network-lock skip --file-locks \
             --external unix[5] --external unix[6] --leave-running"
        );
        let restored = text(restore_arguments(Path::new("/d/1/images"), (3, 5)));
        assert!(
            restored.ends_with("--inherit-fd fd[3]:socket:[5]"),
            "{restored}"
        );
    }

    #[test]
    fn devices_are_refused_before_anything_is_written() {
        let refused =
            |target| check_descriptor("rank 2", 7, target).map_err(|error| error.to_string());
        let sentence = "rank 2 has descriptor 7 (io_uring), which CRIU cannot save";
        assert_eq!(refused("anon_inode:[io_uring]"), Err(sentence.into()));
        for device in [
            "/dev/nvidia0",
            "/dev/infiniband/uverbs0",
            "/dev/parport0",
            "/dev/gpiochip0",
            "/dev/kfd",
            "/dev/xpmem",
        ] {
            assert!(refused(device).is_err(), "{device}");
        }
        for plain in [
            "/dev/null",
            "socket:[17]",
            "pipe:[3]",
            "/memfd:portcullis-node (deleted)",
            "anon_inode:[eventfd]",
        ] {
            assert_eq!(refused(plain), Ok(()), "{plain}");
        }
    }

    #[test]
    fn the_first_error_of_a_log_is_found() {
        let log = "(00.1) Dumping\n(00.2) Error (criu/sk-inet.c:1): inet: Can't get 1:16 opt\n(00.3) Error (criu/x.c:2): later\n";
        assert_eq!(first_error(log), Some("inet: Can't get 1:16 opt"));
        assert_eq!(first_error("(00.1) fine\n"), None);
    }
}
