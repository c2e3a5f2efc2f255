//! The restart of a job from images of its processes.

use super::attend::{Attendant, Input, null};
use super::attention::{Attention, Times};
use super::front::connections;
use super::keeper::{Keeper, Restore, keep};
use super::relay::Relay;
use super::remote::{HostError, Remote, ask_all};
use super::run::log_of;
use super::several::done;
use super::take::{
    ADDRESSES, AGENT, FROM, LAUNCHER, MPIRUN, NAME, SOCKET, STDERR, STDIN, STDOUT, STOPPED, TO,
    entry,
};
use super::work::Work;
use crate::launch::frontend::{Done, pass_on, raise_open_files};
use crate::launch::hold::{self, Go};
use crate::launch::limits::Limits;
use crate::launch::link::{command, reading_pipe, start_command, writing_pipe};
use crate::launch::program::{Images, RemoteLaunch};
use crate::launch::sys::{self, Forked, Signal};
use crate::launch::wire::{Failure, ImagesThere, RestoreThere, ToGuard, VERSION};
use crate::launch::{FORWARDED, descendants};
use mpi_core::crs::criu::open_files::{self, OpenFile};
use mpi_core::crs::criu::{self, Version};
use mpi_core::crs::manifest::Manifest;
use mpi_core::crs::store::{Damage, Found, Store, verify};
use printable::name;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A checkpoint of process images to restart from.
#[derive(Debug)]
pub struct Restart {
    pub(crate) found: Found,
    pub(crate) images: Images,
    /// The folder of the job's checkpoints.
    pub(crate) dir: PathBuf,
    /// The command that reaches other hosts; if it is empty, that of the checkpoint.
    pub(crate) agent: Vec<OsString>,
    /// The time limits for messages of other hosts.
    pub(crate) limits: Limits,
    /// The time between SIGTERM and SIGKILL when the job is ended.
    pub(crate) grace: Duration,
    pub(crate) is_quiet: bool,
    /// Whether files that have grown since the checkpoint are cut to their old length.
    pub(crate) truncates: bool,
    /// The number of restarts after deaths of ranks.
    pub(crate) restarts: u32,
}

/// The reason why a job cannot be restarted from images.
#[derive(Debug)]
enum RestartError {
    Damaged {
        set: String,
        damage: Damage,
    },
    /// An entry of the manifest is missing or malformed.
    Entry {
        set: String,
        entry: String,
    },
    Image {
        set: String,
    },
    Grown {
        set: String,
        file: OpenFile,
        now: u64,
    },
    Shrunk {
        set: String,
        file: OpenFile,
        now: Option<u64>,
    },
    Cut {
        file: PathBuf,
        error: io::Error,
    },
    /// This host does not have an address of a connection with another host.
    Address {
        set: String,
        address: IpAddr,
    },
    Version {
        set: String,
        here: String,
        there: String,
    },
}

impl fmt::Display for RestartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestartError::Damaged { set, damage } => {
                write!(f, "the checkpoint {} is not complete: {damage}", name(set))
            }
            RestartError::Entry { set, entry } => write!(
                f,
                "the manifest of the checkpoint {} has no valid entry \"{entry}\"",
                name(set)
            ),
            RestartError::Image { set } => write!(
                f,
                "the list of open files in the checkpoint {} cannot be read",
                name(set)
            ),
            RestartError::Grown { set, file, now } => write!(
                f,
                "the file {} has {now} bytes and had {} at the checkpoint {}; --checkpoint-truncate cuts it",
                name(&file.path),
                file.len,
                name(set)
            ),
            RestartError::Shrunk { set, file, now } => {
                let now = now.map_or("does not exist".to_owned(), |now| {
                    format!("has {now} bytes")
                });
                write!(
                    f,
                    "the file {} {now} and had {} at the checkpoint {}, which does not contain it",
                    name(&file.path),
                    file.len,
                    name(set)
                )
            }
            RestartError::Cut { file, error } => {
                write!(f, "the file {} cannot be cut: {error}", name(file))
            }
            RestartError::Address { set, address } => write!(
                f,
                "this host does not have the address {address} that connections in the checkpoint {} have, and a job on several hosts continues only on hosts with the same addresses",
                name(set)
            ),
            RestartError::Version { set, here, there } => write!(
                f,
                "CRIU is {here} here and was {there} at the checkpoint {}, and a restart needs the same or a later version",
                name(set)
            ),
        }
    }
}

impl std::error::Error for RestartError {}

/// Restarts a job.
pub fn run(restart: &Restart) -> Done {
    let source = Source {
        set: &restart.found.folder,
        manifest: &restart.found.manifest,
        host: 0,
        program: &restart.images.program,
        dir: &restart.dir,
        truncates: restart.truncates,
    };
    let (plan, cuts) = match source.plan() {
        Ok(plan) => plan,
        Err(error) => {
            printable::eprintln!("mpirun: {error}");
            return Done::of(2);
        }
    };
    for (set, damage) in restart.found.skipped.iter().filter(|_| !restart.is_quiet) {
        printable::eprintln!("mpirun: the checkpoint {set} is passed over: {damage}");
    }
    launch(restart, plan, &cuts).unwrap_or_else(|error| match error {
        LaunchError::Host(error) => {
            printable::eprintln!("mpirun: the job cannot be restarted: {error}");
            Done::of(2)
        }
        LaunchError::Signal(signal) => Done::of(128 + signal),
        LaunchError::Start(error) => {
            printable::eprintln!(
                "mpirun: starting the launcher's second process failed: {error}{}",
                sys::advice(&error)
            );
            Done::of(1)
        }
    })
}

/// The images of one host in a checkpoint.
pub(super) struct Source<'a> {
    pub set: &'a Path,
    pub manifest: &'a Manifest,
    /// The number of the host; that of mpirun is 0.
    pub host: u32,
    /// The CRIU program.
    pub program: &'a Path,
    /// The folder of the job's checkpoints.
    pub dir: &'a Path,
    pub truncates: bool,
}

impl Source<'_> {
    /// Checks the images of this host, and the files that the processes have open.
    /// Returns how the processes are restored, and the files that must be cut before.
    fn plan(&self) -> Result<(Restore, Vec<Cut>), RestartError> {
        verify(self.set, self.manifest, self.host).map_err(|damage| RestartError::Damaged {
            set: self.shown(),
            damage,
        })?;
        let launcher = self.number(LAUNCHER)?;
        let launcher = i32::try_from(launcher).map_err(|_| self.no_entry(LAUNCHER.into()))?;
        let mut replaced = vec![
            self.dumped("socket", SOCKET.into(), self.host)?,
            self.dumped("pipe", STDOUT.into(), self.host)?,
            self.dumped("pipe", STDERR.into(), self.host)?,
        ];
        if self.host > 0 {
            replaced.push(self.dumped("pipe", STDIN.into(), self.host)?);
        } else {
            for (host, _) in self.others() {
                replaced.push(self.dumped("pipe", TO.into(), host)?);
                replaced.push(self.dumped("pipe", FROM.into(), host)?);
            }
        }
        let cuts = check_files(self.set, self.host, self.truncates)?;
        self.check_addresses()?;
        let restore = Restore {
            program: self.program.to_owned(),
            images: self.set.join(criu::images_of(self.host)),
            log: log_of(self.dir, "restore", self.host),
            replaced,
            launcher,
            highest: highest(self.manifest, self.host),
            stopped: self.stopped(),
        };
        Ok((restore, cuts))
    }

    /// Returns the numbers of the processes that were stopped before the checkpoint.
    fn stopped(&self) -> Vec<i32> {
        let stopped = self.manifest.system(&entry(STOPPED, self.host));
        let stopped = stopped.unwrap_or_default().to_string_lossy().into_owned();
        let numbers = stopped.split_whitespace();
        numbers.filter_map(|number| number.parse().ok()).collect()
    }

    /// Checks the images on another host than mpirun's; the error is a sentence.
    pub(super) fn plan_there(&self, version: &str) -> Result<(Restore, Vec<Cut>), String> {
        let there = self.manifest.system(criu::NAME).unwrap_or_default();
        let there = there.to_string_lossy().into_owned();
        let is_older = Version::read(&format!("Version: {version}"))
            < Version::read(&format!("Version: {there}"));
        if is_older {
            let error = RestartError::Version {
                set: self.shown(),
                here: version.into(),
                there,
            };
            return Err(error.to_string());
        }
        self.plan().map_err(|error| error.to_string())
    }

    fn shown(&self) -> String {
        self.set.display().to_string()
    }

    fn no_entry(&self, entry: String) -> RestartError {
        RestartError::Entry {
            set: self.shown(),
            entry,
        }
    }

    fn number(&self, name: &str) -> Result<u64, RestartError> {
        self.number_of(entry(name, self.host))
    }

    fn number_of(&self, entry: String) -> Result<u64, RestartError> {
        let number = self.manifest.system(&entry);
        let number = number.and_then(|text| text.to_str()?.parse().ok());
        number.ok_or_else(|| self.no_entry(entry))
    }

    /// Returns a dumped file by the name that CRIU gives it.
    fn dumped(&self, kind: &str, name: String, host: u32) -> Result<String, RestartError> {
        let inode = self.number_of(entry(&name, host))?;
        Ok(format!("{kind}:[{inode}]"))
    }

    /// Returns the other hosts of the job, as number in the checkpoint and name.
    fn others(&self) -> Vec<(u32, String)> {
        let named = |host| {
            let named = self.manifest.system(&entry(NAME, host))?;
            Some((host, named.to_string_lossy().into_owned()))
        };
        (1..).map_while(named).collect()
    }

    /// Fails if this host does not have the addresses of the connections with other hosts.
    fn check_addresses(&self) -> Result<(), RestartError> {
        let addresses = self.manifest.system(&entry(ADDRESSES, self.host));
        let addresses = addresses.unwrap_or_default().to_string_lossy();
        for address in addresses.split_whitespace() {
            let Ok(address) = address.parse::<IpAddr>() else {
                return Err(self.no_entry(entry(ADDRESSES, self.host)));
            };
            let bound = TcpListener::bind((address, 0));
            if bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable) {
                return Err(RestartError::Address {
                    set: self.shown(),
                    address,
                });
            }
        }
        Ok(())
    }

    /// Returns how the other hosts are reached.
    /// `agent` is another command than that of the checkpoint, if it is not empty.
    fn reach(&self, agent: &[OsString], limits: Limits) -> RemoteLaunch {
        let word = |at| Some(self.manifest.system(&entry(AGENT, at))?.to_owned());
        let agent = match agent {
            [] => (1..).map_while(word).collect(),
            agent => agent.to_vec(),
        };
        let mpirun = self.manifest.system(MPIRUN).unwrap_or_default();
        RemoteLaunch {
            agent,
            mpirun: mpirun.into(),
            fanout: super::FANOUT,
            limits,
        }
    }
}

/// Returns the highest number of a process or thread: each one has an image `core-NUMBER.img`.
fn highest(manifest: &Manifest, host: u32) -> u32 {
    let files = manifest.files.iter().filter(|file| file.rank == host);
    let names = files.filter_map(|file| file.name.to_str());
    let numbers = names.filter_map(|name| {
        let number = name.strip_prefix("core-")?.strip_suffix(".img")?;
        number.parse().ok()
    });
    numbers.max().unwrap_or(0)
}

/// A file that has grown since the checkpoint, and its old length.
pub(super) type Cut = (PathBuf, u64);

/// Checks that the files open for writing have their old lengths.
/// With `truncates`, returns those that have grown.
fn check_files(folder: &Path, host: u32, truncates: bool) -> Result<Vec<Cut>, RestartError> {
    let mut cuts = Vec::new();
    let set = || folder.display().to_string();
    let image = fs::read(folder.join(criu::images_of(host)).join("files.img")).ok();
    let files = image.and_then(|image| open_files::read(&image));
    let files = files.ok_or_else(|| RestartError::Image { set: set() })?;
    for file in files {
        let Ok(there) = fs::metadata(&file.path) else {
            // A file without a name is part of the images.
            let is_deleted = file.path.to_string_lossy().ends_with(" (deleted)");
            match is_deleted {
                true => continue,
                false => {
                    return Err(RestartError::Shrunk {
                        set: set(),
                        file,
                        now: None,
                    });
                }
            }
        };
        let now = there.len();
        if !there.is_file() || now == file.len {
            continue;
        }
        if now < file.len {
            return Err(RestartError::Shrunk {
                set: set(),
                file,
                now: Some(now),
            });
        }
        if !truncates {
            return Err(RestartError::Grown {
                set: set(),
                file,
                now,
            });
        }
        cuts.push((file.path, file.len));
    }
    Ok(cuts)
}

/// Cuts files to their old lengths, when all hosts have agreed to the restart.
pub(super) fn cut(files: &[Cut]) -> Result<(), Failure> {
    for (file, length) in files {
        let there = File::options().write(true).open(file);
        let cut = there.and_then(|there| there.set_len(*length));
        cut.map_err(|error| {
            let file = file.clone();
            Failure::of(RestartError::Cut { file, error }.to_string())
        })?;
    }
    Ok(())
}

/// The reason why a restart has failed.
enum LaunchError {
    Start(io::Error),
    Host(HostError),
    /// A signal of the user.
    Signal(Signal),
}

impl From<io::Error> for LaunchError {
    fn from(error: io::Error) -> Self {
        LaunchError::Start(error)
    }
}

impl From<rustix::io::Errno> for LaunchError {
    fn from(error: rustix::io::Errno) -> Self {
        LaunchError::Start(error.into())
    }
}

fn launch(restart: &Restart, plan: Restore, cuts: &[Cut]) -> Result<Done, LaunchError> {
    sys::adopt_orphans()?;
    raise_open_files();
    let (inside, ours, outside) = connections()?;
    // The restored supervisor has the end of its input behind what it had read.
    drop((inside.stdin, ours.stdin));
    let mut replacements = vec![inside.socket, inside.stdout, inside.stderr];
    let source = Source {
        set: &restart.found.folder,
        manifest: &restart.found.manifest,
        host: 0,
        program: &restart.images.program,
        dir: &restart.dir,
        truncates: restart.truncates,
    };
    let reach = source.reach(&restart.agent, restart.limits);
    let mut waited = FORWARDED.to_vec();
    waited.push(libc::SIGCHLD);
    let signals = sys::signal_file(&waited)?;
    let times = Times {
        step: restart.images.limit,
        limits: restart.limits,
    };
    let mut attention = Attention::new(&signals, times, None)?;
    let mut remotes = Vec::new();
    for (host, named) in &source.others() {
        let (remote, ends) = open(&reach, *host, named)?;
        remotes.push(remote);
        replacements.extend(ends);
    }
    let agreed = agree(restart, cuts, &mut remotes, &mut attention);
    unless_ended(agreed, &mut attention)?;
    let flags = SocketFlags::CLOEXEC;
    let (socket, keepers) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // All children from here on, the keeper and later CRIU, are in the new namespace.
    sys::make_pid_namespace()?;
    let keeper = match sys::fork()? {
        Forked::Child => {
            drop((
                (ours.socket, ours.stdout, ours.stderr),
                (signals, socket, remotes, attention),
            ));
            sys::exit_now(keep(&plan, replacements, keepers))
        }
        Forked::Parent(pid) => Keeper { pid, socket },
    };
    drop((replacements, keepers));
    let folder = &restart.found.folder;
    let outcome = Ok(format!(
        "the job continues from the checkpoint {}",
        name(folder)
    ));
    let go = Go {
        outcome,
        front_end: rustix::process::getpid().as_raw_pid(),
        is_restored: true,
        lost: Vec::new(),
    };
    let restored = restore_all(&keeper, &mut remotes, &go, &mut attention);
    unless_ended(restored, &mut attention)?;
    // From here on, the supervisor has the links.
    drop(remotes);
    // The supervisor reads this when it continues.
    hold::go(&ours.socket, &go);
    for signal in attention.close().0 {
        pass_on(&ours.socket, signal);
    }
    let attendant = Attendant {
        images: &restart.images,
        reach: &reach,
        dir: &restart.dir,
        store: Store::new(&restart.dir),
        child: keeper.pid,
        supervisor: plan.launcher,
        is_restored: true,
        socket: ours.socket,
        outside,
        signals,
        relay: Relay::new(ours.stdout, ours.stderr)?,
        input: Input::default(),
        is_quiet: restart.is_quiet,
        by_death: false,
        host_is_lost: false,
    };
    Ok(attendant.attend())
}

/// Ends all processes of a restart that has failed. A signal of the user is the cause of the failure, if there was one.
fn unless_ended(
    outcome: Result<(), HostError>,
    attention: &mut Attention,
) -> Result<(), LaunchError> {
    let Err(error) = outcome else { return Ok(()) };
    descendants::end_all();
    Err(match attention.end() {
        Some(signal) => LaunchError::Signal(signal),
        None => LaunchError::Host(error),
    })
}

/// Starts mpirun on another host. Returns the connection with it, and the ends of the pipes
/// that the restored supervisor gets.
fn open(reach: &RemoteLaunch, host: u32, named: &str) -> io::Result<(Remote, [OwnedFd; 2])> {
    let (theirs_in, to) = writing_pipe()?;
    let (from, theirs_out) = reading_pipe()?;
    let files = (theirs_in.as_fd(), theirs_out.as_fd());
    start_command(&command(reach, named, true), files, null()?.as_fd(), None)?;
    let copies = [to.try_clone()?, from.try_clone()?];
    Ok((
        Remote::new((host, named.to_owned()), (to, from), true),
        copies,
    ))
}

/// Lets all other hosts check their images. When all have agreed, cuts the files that have grown.
fn agree(
    restart: &Restart,
    cuts: &[Cut],
    remotes: &mut [Remote],
    attention: &mut Attention,
) -> Result<(), HostError> {
    let order = |remote: &Remote| {
        ToGuard::Check(Box::new(RestoreThere {
            version: VERSION.into(),
            images: ImagesThere {
                program: restart.images.program.clone(),
                dir: restart.dir.clone(),
                limit: restart.images.limit,
                silence: restart.limits.silence,
            },
            set: restart.found.folder.clone(),
            host: remote.number,
            truncates: restart.truncates,
        }))
    };
    // The check reads all images, and has no limit on this host either.
    attention.limit_steps(Duration::ZERO);
    ask_all(attention, remotes, order, || Work::Done(Ok(())), done)?;
    attention.limit_steps(restart.images.limit);
    let here = || Work::Done(cut(cuts));
    ask_all(attention, remotes, |_| ToGuard::Cut, here, done).map(|_| ())
}

/// Restores all hosts, and continues the processes.
/// Repeats it while a kernel has connections of the ended job, and if a process is killed meanwhile.
fn restore_all(
    keeper: &Keeper,
    remotes: &mut [Remote],
    go: &Go,
    attention: &mut Attention,
) -> Result<(), HostError> {
    /// The kernel keeps such connections for one minute.
    const LIMIT: Duration = Duration::from_secs(90);
    let end = Instant::now() + LIMIT;
    while let Err(error) = restore_once(keeper, remotes, attention) {
        if !error.failure.may_repeat || Instant::now() > end {
            return Err(error);
        }
        let here = || keeper.undo();
        ask_all(attention, remotes, |_| ToGuard::Undo, here, done)?;
        attention.sleep(Duration::from_secs(1));
    }
    for remote in remotes.iter_mut() {
        remote.send_go(go)?;
    }
    attention.complete(keeper.go_on()).map_err(HostError::here)
}

/// Restores all hosts: first up to the stage at which all sockets exist, then to the end.
fn restore_once(
    keeper: &Keeper,
    remotes: &mut [Remote],
    attention: &mut Attention,
) -> Result<(), HostError> {
    let here = || keeper.restore();
    ask_all(attention, remotes, |_| ToGuard::Restore, here, done)?;
    let here = || keeper.resume();
    ask_all(attention, remotes, |_| ToGuard::Resume, here, done).map(|_| ())
}
