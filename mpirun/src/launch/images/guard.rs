//! The guard of a daemon whose processes are saved as images.
//!
//! The guard is the process that the command of a link (such as ssh) starts on another host.
//! Only this process has the command's standard files; the daemon, its child, has pipes.
//! The guard forwards the frames of the link, and orders of the front end reach the guard itself while the
//! supervisor and the daemon are silent: during a checkpoint, and before a restored daemon goes on.

use super::attend::Input;
use super::front::{become_launcher, connections};
use super::keeper::{Keeper, Restore, keep_in_steps};
use super::relay::Relay;
use super::restored::Source;
use super::run::{log_of, probe, version};
use super::several::{STAYS_STOPPED, stop};
use super::still::Processes;
use super::take::{Outside, TakeError, Tree, sealed};
use crate::launch::frontend::{feed_rank_0, pass_on, raise_open_files};
use crate::launch::hold::{self, FromSupervisor, Go};
use crate::launch::sys::{self, Forked, Signal};
use crate::launch::wire::{
    self, Failure, Frames, FromDaemon, FromGuard, GREETING, Hello, ImagesThere, RestoreThere,
    ToDaemon, ToGuard, VERSION,
};
use crate::launch::{daemon, descendants};
use mpi_core::crs::store::read_manifest;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The signals that a guard forwards; each ends the daemon.
const WAITED: [Signal; 4] = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Serves the front end at standard input and output; returns the exit code.
pub fn run() -> i32 {
    let done = match Link::default().first() {
        Ok((bytes, First::Hello(hello))) => begin(*hello, bytes),
        Ok((_, First::Check(order))) => restart(&order),
        Err(error) => Err(error),
    };
    done.unwrap_or_else(|error| {
        printable::eprintln!("mpirun on {}: {error}", crate::hosts::own_name());
        1
    })
}

/// The frames from above, which this process reads itself.
struct Link {
    frames: Frames,
}

impl Default for Link {
    fn default() -> Link {
        Link {
            frames: Frames::new(false),
        }
    }
}

enum First {
    Hello(Box<Hello>),
    Check(Box<RestoreThere>),
}

impl Link {
    /// Reads the first frame. Returns it with all bytes that were read.
    fn first(mut self) -> io::Result<(Vec<u8>, First)> {
        let mut all = Vec::new();
        loop {
            if let Some(order) = self.next()? {
                return match order {
                    ToDaemon::Hello(hello) => Ok((all, First::Hello(hello))),
                    ToDaemon::Guard(ToGuard::Check(order)) => Ok((all, First::Check(order))),
                    _ => Err(io::Error::other(
                        "the launcher above does not begin with a greeting",
                    )),
                };
            }
            self.read(|bytes| all.extend_from_slice(bytes))?;
        }
    }

    /// Waits for the next order of the front end.
    fn order(&mut self) -> io::Result<ToGuard> {
        loop {
            match self.next()? {
                Some(ToDaemon::Guard(order)) => return Ok(order),
                Some(_) => {}
                None => self.read(|_| ())?,
            }
        }
    }

    fn next(&mut self) -> io::Result<Option<ToDaemon>> {
        let next = self.frames.next_frame().map_err(io::Error::other)?;
        let next = next.map(|(_, body)| wire::open(&body));
        next.transpose().map_err(io::Error::other)
    }

    fn read(&mut self, seen: impl FnOnce(&[u8])) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(got) => {
                    seen(&buffer[..got]);
                    self.frames.push(&buffer[..got]);
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let stdin = rustix::stdio::stdin();
                    let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Writes bytes to the launcher above before there is a daemon.
fn say_above(mut rest: &[u8]) {
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(written) => rest = &rest[written..],
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Starts a new daemon, and guards it.
fn begin(hello: Hello, bytes: Vec<u8>) -> io::Result<i32> {
    let host = hello.branch.host;
    let Some(images) = hello.images else {
        return Err(io::Error::other("the launcher above takes no images"));
    };
    let checked = version(&images.program).and_then(|_| probe(&images.program, &images.dir, host));
    if let Err(error) = checked {
        let lost = FromDaemon::Lost {
            hosts: vec![host],
            why: error.to_string(),
        };
        say_above(&[GREETING, &wire::frame(host, &lost)].concat());
        return Ok(1);
    }
    sys::adopt_orphans()?;
    let nofile = raise_open_files();
    let (inside, ours, outside) = connections()?;
    let signals = sys::signal_file(&WAITED)?;
    match sys::fork()? {
        Forked::Child => {
            drop((ours, signals));
            let done = become_launcher(inside, &WAITED, |guard, stdin, signals| {
                // The daemon takes its standard input itself.
                drop(stdin);
                daemon::serve(guard, signals, nofile)
            });
            sys::exit_now(done.unwrap_or_else(|error| {
                printable::eprintln!("mpirun on {}: {error}", crate::hosts::own_name());
                1
            }))
        }
        Forked::Parent(child) => {
            drop(inside);
            let guard = Guard {
                images,
                child,
                daemon: child,
                is_restored: false,
                socket: ours.socket,
                outside,
                signals,
                relay: Relay::new(ours.stdout, ours.stderr)?,
                input: Input {
                    pipe: Some(ours.stdin),
                    pending: bytes,
                    is_terminal: false,
                },
            };
            Ok(guard.attend())
        }
    }
}

/// Checks images, restores them in the steps that the front end orders, and guards the restored daemon.
fn restart(order: &RestoreThere) -> io::Result<i32> {
    say_above(GREETING);
    let answer = |outcome: Result<(), Failure>| {
        let answer = FromDaemon::Guard(FromGuard::Done(outcome));
        say_above(&wire::frame(order.host, &answer));
    };
    let restore = match check(order) {
        Ok(restore) => restore,
        Err(why) => {
            answer(Err(Failure::of(why)));
            return Ok(1);
        }
    };
    sys::adopt_orphans()?;
    raise_open_files();
    let (inside, ours, outside) = connections()?;
    let signals = sys::signal_file(&WAITED)?;
    let flags = SocketFlags::CLOEXEC;
    let (socket, keepers) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The restored daemon reads and writes these without blocking.
    rustix::io::ioctl_fionbio(&inside.stdin, true)?;
    rustix::io::ioctl_fionbio(&inside.stdout, true)?;
    sys::make_pid_namespace()?;
    let keeper = match sys::fork()? {
        Forked::Child => {
            drop((ours, signals, socket));
            let inside = vec![inside.socket, inside.stdout, inside.stderr, inside.stdin];
            sys::exit_now(keep_in_steps(&restore, inside, keepers))
        }
        Forked::Parent(pid) => {
            drop((inside, keepers));
            Keeper { pid, socket }
        }
    };
    answer(Ok(()));
    let mut link = Link::default();
    let go = loop {
        match link.order()? {
            ToGuard::Restore => answer(keeper.restore()),
            ToGuard::Undo => answer(keeper.undo()),
            ToGuard::Resume => answer(keeper.resume()),
            ToGuard::Go(go) => break go,
            ToGuard::End => {
                answer(Ok(()));
                return Ok(0);
            }
            _ => return Err(io::Error::other("the front end's order is out of turn")),
        }
    };
    hold::go(&ours.socket, &go);
    if let Err(failure) = keeper.go_on() {
        return Err(io::Error::other(failure.why));
    }
    let guard = Guard {
        images: order.images.clone(),
        child: keeper.pid,
        daemon: restore.launcher,
        is_restored: true,
        socket: ours.socket,
        outside,
        signals,
        relay: Relay::new(ours.stdout, ours.stderr)?,
        input: Input {
            pipe: Some(ours.stdin),
            pending: Vec::new(),
            is_terminal: false,
        },
    };
    Ok(guard.attend())
}

fn check(order: &RestoreThere) -> Result<Restore, String> {
    if order.version != VERSION {
        return Err(format!(
            "this is version {VERSION}, but the launcher is version {}",
            order.version
        ));
    }
    let version = version(&order.images.program).map_err(|error| error.to_string())?;
    let manifest = read_manifest(&order.set).map_err(|damage| {
        let set = order.set.display().to_string();
        format!(
            "the checkpoint {} cannot be read, and its folder must be on a file system of all hosts: {damage}",
            printable::name(&set)
        )
    })?;
    let source = Source {
        set: &order.set,
        manifest: &manifest,
        host: order.host,
        program: &order.images.program,
        dir: &order.images.dir,
        truncates: order.truncates,
    };
    source.plan_there(&version)
}

struct Guard {
    images: ImagesThere,
    /// The daemon, or the keeper of a restored one.
    child: i32,
    /// The daemon's pid in its own PID namespace.
    daemon: i32,
    is_restored: bool,
    socket: OwnedFd,
    outside: Outside,
    signals: OwnedFd,
    relay: Relay,
    /// The frames for the daemon.
    input: Input,
}

impl Guard {
    /// Forwards frames until the daemon has ended; returns the exit code.
    fn attend(mut self) -> i32 {
        let mut hung_up = false;
        loop {
            self.relay.step();
            let input = self.wait(hung_up);
            self.relay.step();
            if !hung_up {
                match hold::receive(&self.socket) {
                    FromSupervisor::Nothing | FromSupervisor::Reach(_) | FromSupervisor::Death => {}
                    FromSupervisor::Closed => hung_up = true,
                    FromSupervisor::Held(held) => {
                        let host = held.hosts.first().map_or(0, |((host, _), _)| *host);
                        if self.hold(host).is_err() {
                            // The front end has ended, and with it the job.
                            descendants::end_all();
                            return 1;
                        }
                    }
                }
            }
            while let Some(signal) = sys::next_signal(&self.signals) {
                if signal != libc::SIGCHLD {
                    pass_on(&self.socket, signal);
                    continue;
                }
                while let Some((pid, ended)) = sys::reap() {
                    if pid == self.child {
                        descendants::end_all();
                        self.relay.finish(|| true);
                        return ended.code();
                    }
                }
            }
            if input {
                feed_rank_0(&mut self.input.pipe, &mut self.input.pending);
            }
        }
    }

    /// Waits for an event. Returns true if a frame can be read or written.
    fn wait(&self, hung_up: bool) -> bool {
        let stdin = rustix::stdio::stdin();
        let mut fds = Vec::new();
        match &self.input.pipe {
            Some(pipe) if !self.input.pending.is_empty() => {
                fds.push(PollFd::new(pipe, PollFlags::OUT));
            }
            Some(_) => fds.push(PollFd::new(&stdin, PollFlags::IN)),
            None => {}
        }
        let has_input = !fds.is_empty();
        fds.push(PollFd::new(&self.signals, PollFlags::IN));
        if !hung_up {
            fds.push(PollFd::new(&self.socket, PollFlags::IN));
        }
        self.relay.poll(&mut fds);
        if poll(&mut fds, None).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        has_input && fds.first().is_some_and(|fd| !fd.revents().is_empty())
    }

    /// Reports that the daemon is silent, and serves the front end until the checkpoint is over.
    fn hold(&mut self, host: u32) -> io::Result<()> {
        self.relay.empty_pipes();
        self.say(host, &FromDaemon::Held);
        let mut processes = Processes::new(self.child, self.is_restored);
        let (mut link, mut dumped) = (Link::default(), None::<(PathBuf, u32)>);
        loop {
            let answer = match link.order()? {
                ToGuard::Stop => {
                    FromGuard::Stopped(stop(&mut processes).map_err(|failure| failure.why))
                }
                ToGuard::IsQuiet => FromGuard::Quiet(processes.is_quiet()),
                ToGuard::Dump { set, number } => {
                    let entries = self.dump(&set, number);
                    dumped = Some((set, number));
                    FromGuard::Dumped(entries.map_err(TakeError::into_failure))
                }
                ToGuard::Continue => {
                    processes.go_on();
                    FromGuard::Done(Ok(()))
                }
                ToGuard::Seal => FromGuard::Sealed(files(dumped.as_ref())),
                ToGuard::End => {
                    processes.forget_connections();
                    descendants::end_all();
                    FromGuard::Done(Ok(()))
                }
                ToGuard::Go(go) => {
                    processes.go_on();
                    self.go(&go);
                    return Ok(());
                }
                ToGuard::Check(_) | ToGuard::Restore | ToGuard::Resume | ToGuard::Undo => {
                    FromGuard::Done(Err(Failure::of("the processes run already")))
                }
            };
            self.say(host, &FromDaemon::Guard(answer));
        }
    }

    fn dump(&self, set: &Path, number: u32) -> Result<Vec<(String, String)>, TakeError> {
        let mounts = match self.is_restored {
            true => Some(File::open(format!("/proc/{}/ns/mnt", self.child))),
            false => None,
        };
        let mounts = mounts.transpose().map_err(TakeError::Keeper)?;
        let tree = Tree {
            launcher: self.daemon,
            outside: self.outside,
            mounts: mounts.as_ref().map(|mounts| mounts.as_fd()),
        };
        let log = log_of(&self.images.dir, "dump", number);
        tree.dump(&self.images.program, (set, number), &log, STAYS_STOPPED)
    }

    fn go(&self, go: &Go) {
        hold::go(&self.socket, go);
    }

    /// Sends a frame behind those of the daemon.
    fn say(&mut self, host: u32, what: &FromDaemon) {
        self.relay.send(&wire::frame(host, what));
    }
}

/// Syncs the images of this host and returns them.
fn files(dumped: Option<&(PathBuf, u32)>) -> Result<Vec<(std::ffi::OsString, u64, u32)>, String> {
    let (set, number) = dumped.ok_or("no images were written")?;
    let files = sealed(set, *number).map_err(|error| error.to_string())?;
    let files = files
        .into_iter()
        .map(|file| (file.name, file.len, file.crc));
    Ok(files.collect())
}
