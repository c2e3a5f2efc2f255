//! `hwbarr together` starts commands at one edge of a barrier;
//! `hwbarr starter` is one of its processes.
//!
//! A starter opens its wires and passes two barriers: it enters the first one when it is ready,
//! and the second one immediately after the first.
//! It records the time of the second release, and then executes the command in its own process.
//! All starters poll continuously in the second barrier,
//! so they leave it within the time of a poll.

use crate::command_failed::CommandFailed;
use crate::{Failure, say};
use barrier_board::live::{self, Board, Memory};
use barrier_board::served::{self, Address};
use barrier_driver::ports;
use barrier_driver::{ToggleBarrier, last_resort};
use barrier_waveform::words::counted;
use clap::Args;
use embedded_hal::digital::{InputPin, OutputPin};
use rustix::fs::Access;
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::convert::Infallible;
use std::ffi::OsString;
use std::num::NonZero;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

/// Environment variables of the command,
/// with its node and the clocks at the release in nanoseconds.
const EPOCH: &str = "HWBARR_EPOCH_NS";
const MONOTONIC: &str = "HWBARR_MONOTONIC_NS";
const NODE: &str = "HWBARR_NODE";

/// Time limit of a node's wait for the other nodes,
/// which users may start by hand on other machines.
const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Start a command in several processes, or on several machines, at one edge of a barrier.
///
/// With `--nodes` the command runs N times on this host, and the difference of the starts is printed.
/// With `--port` or `--board` it runs once, when the commands of all other nodes of that barrier are ready, on whatever machines they are.
/// The command has the clocks at the release in HWBARR_EPOCH_NS (of the day) and HWBARR_MONOTONIC_NS, and its node in HWBARR_NODE.
#[derive(Args)]
pub struct Together {
    /// Number of processes of this host, 2 to 64.
    #[arg(short, long, value_name = "N", required_unless_present_any = ["port", "board"], value_parser = clap::value_parser!(u16).range(2..=64))]
    nodes: Option<u16>,
    /// One node at a real port, such as uio:/dev/uio0,node=3; `hwbarr port list` has their texts. {rank} in it is the number of --node.
    #[arg(long, value_name = "PORT", conflicts_with_all = ["nodes", "board"])]
    port: Option<String>,
    /// One node of the board that `hwbarr serve` serves there.
    #[arg(long, value_name = "sim:tcp://HOST:PORT", conflicts_with = "nodes", requires_all = ["node", "of"])]
    board: Option<Address>,
    /// Number of this node, and value of HWBARR_NODE. Required with --board and for {rank} in --port; otherwise the default is node= of the port's text, or 0.
    #[arg(long, value_name = "NODE", conflicts_with = "nodes")]
    node: Option<usize>,
    /// Number of nodes of the served board.
    #[arg(long, value_name = "N", requires = "board")]
    of: Option<usize>,
    /// Write the clocks at the release to this file: node, nanoseconds of the day, nanoseconds of the monotonic clock.
    #[arg(long, value_name = "FILE")]
    epoch: Option<PathBuf>,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// One process of `together --nodes`.
#[derive(Args)]
pub struct Starter {
    /// The inherited descriptor of the board's memory.
    #[arg(long)]
    fd: i32,
    #[arg(long)]
    node: usize,
    #[arg(long)]
    nodes: usize,
    #[arg(long)]
    epoch: PathBuf,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// The clock values of one node at the release, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    node: usize,
    of_the_day: u64,
    monotonic: u64,
}

impl Stamp {
    fn take(node: usize) -> Self {
        let nanoseconds = |time: Timespec| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        let monotonic = nanoseconds(clock_gettime(ClockId::Monotonic));
        Self {
            node,
            of_the_day: nanoseconds(clock_gettime(ClockId::Realtime)),
            monotonic,
        }
    }

    fn to_line(self) -> String {
        format!("{} {} {}\n", self.node, self.of_the_day, self.monotonic)
    }

    /// Parses one complete line of a stamp file; `None` if it is malformed.
    fn from_line(line: &str) -> Option<Self> {
        let mut words = line.strip_suffix('\n')?.split(' ');
        Some(Self {
            node: words.next()?.parse().ok()?,
            of_the_day: words.next()?.parse().ok()?,
            monotonic: words.next()?.parse().ok()?,
        })
    }

    /// Writes the stamp; a reader ignores a file whose line is not complete.
    fn write_to(self, file: &Path) -> Result<(), Failure> {
        std::fs::write(file, self.to_line())
            .map_err(|e| format!("{} cannot be written: {e}", file.display()).into())
    }
}

impl Together {
    pub fn execute(self) -> Result<(), Failure> {
        // The command is checked before this node enters a barrier:
        // otherwise the node could release the others and then fail to start its command.
        can_start(&self.command)?;
        if let Some(nodes) = self.nodes {
            return self.here(usize::from(nodes));
        }
        let port = self.port.as_deref().map(|port| placed(port, self.node));
        let port = port.transpose()?;
        let of_port = port.as_deref().and_then(node_in);
        let node = self.node.or(of_port).unwrap_or(0);
        let stamp = match (&port, &self.board) {
            (Some(port), _) => {
                let wires = ports::open(port)?;
                let _watch = last_resort::watch(wires.resting);
                let (stamp, barrier) = start(wires.out, wires.input, node, true)?;
                // The barrier is not closed: after a release the wire is idle, because it
                // has the barrier's level, and closing would take two more reads and writes.
                std::mem::forget(barrier);
                stamp
            }
            (None, Some(board)) => {
                let nodes = self.of.unwrap_or(0);
                let wires = served::Wires::connect(board, node, nodes, || ())?;
                let (stamp, barrier) = start(wires.out, wires.input, node, false)?;
                // If a connection ends without a disconnect message,
                // the server reports the node as dead.
                barrier.close()?;
                stamp
            }
            (None, None) => return Err("together needs --nodes, --port or --board".into()),
        };
        become_command(stamp, self.epoch.as_deref(), &self.command)
    }

    /// Runs all nodes on this host, with a board in shared memory.
    fn here(&self, nodes: usize) -> Result<(), Failure> {
        let memory = Memory::create(Board::layout_size(nodes, 0))?;
        memory.init(nodes, 0)?;
        let fd = memory.as_fd().as_raw_fd().to_string();
        let folder = Folder::new()?;
        let mut started = Started(Vec::new());
        for node in 0..nodes {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["starter", "--fd", &fd]);
            command.args(["--node", &node.to_string(), "--nodes", &nodes.to_string()]);
            command.arg("--epoch").arg(folder.file(node));
            command.arg("--").args(&self.command);
            started.0.push(command.spawn()?);
        }
        let stamps = started.stamps(&folder)?;
        say(&skew(&stamps, cores()))?;
        if let Some(file) = &self.epoch {
            let lines: String = stamps.iter().map(|stamp| stamp.to_line()).collect();
            std::fs::write(file, lines)
                .map_err(|e| format!("{} cannot be written: {e}", file.display()))?;
        }
        started.wait()
    }
}

/// Replaces `{rank}` in a port name that `hwbarr emulate` has printed by the number of this node.
fn placed(port: &str, node: Option<usize>) -> Result<String, Failure> {
    const RANK: &str = "{rank}";
    match node {
        Some(node) => Ok(port.replace(RANK, &node.to_string())),
        None if port.contains(RANK) => Err(format!(
            "the port {} is that of several nodes; --node chooses one of them for {RANK}",
            printable::name(port)
        )
        .into()),
        None => Ok(port.to_owned()),
    }
}

/// Returns the node's number in a port name such as `uio:/dev/uio0,node=3`.
fn node_in(port: &str) -> Option<usize> {
    let options = port.split(',');
    options
        .filter_map(|option| option.trim().strip_prefix("node="))
        .find_map(|node| node.parse().ok())
}

/// Checks that the command's program exists and may be executed.
fn can_start(command: &[OsString]) -> Result<(), Failure> {
    let Some(program) = command.first() else {
        return Err("there is no command to start".into());
    };
    let is_executable =
        |path: &Path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok();
    let found = match Path::new(program).components().count() {
        1 => {
            // The shell searches `PATH` like the system call that starts the program.
            let mut shell = Command::new("sh");
            shell.args(["-c", "command -v \"$1\" > /dev/null", "sh"]);
            shell
                .arg(program)
                .status()
                .is_ok_and(|status| status.success())
        }
        _ => is_executable(Path::new(program)),
    };
    match found {
        true => Ok(()),
        false => Err(format!(
            "{} cannot be started: there is no such program, or it may not be executed; no node has been released",
            printable::name(program)
        )
        .into()),
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Formats the time between the first and the last start, for example `4 nodes left the barrier
/// within 1.234 us, node 2 first and node 0 last, and became their commands`.
fn skew(stamps: &[Stamp], cores: usize) -> String {
    let first = stamps.iter().min_by_key(|stamp| stamp.monotonic);
    let last = stamps.iter().max_by_key(|stamp| stamp.monotonic);
    let (Some(first), Some(last)) = (first, last) else {
        return String::new();
    };
    let mut text = format!(
        "{} nodes left the barrier within {:.3} us, node {} first and node {} last, and became their commands\n",
        stamps.len(),
        (last.monotonic - first.monotonic) as f64 / 1e3,
        first.node,
        last.node
    );
    if stamps.len() > cores {
        text += &format!(
            "with more nodes than the {} here that is the time in which the scheduler runs them one after the other\n",
            counted(cores, "processor")
        );
    }
    text
}

/// The started processes; those that still run are killed if this command fails.
struct Started(Vec<Child>);

impl Started {
    /// Waits until each starter has recorded its stamp, just before it executes the command.
    fn stamps(&mut self, folder: &Folder) -> Result<Vec<Stamp>, Failure> {
        let mut stamps = Vec::new();
        for node in 0..self.0.len() {
            let file = folder.file(node);
            let stamp = loop {
                let read = || Stamp::from_line(&std::fs::read_to_string(&file).ok()?);
                if let Some(stamp) = read() {
                    break stamp;
                }
                for (which, child) in self.0.iter_mut().enumerate() {
                    // A command may end before its stamp is read; the stamp's file then exists.
                    if let Some(status) = child.try_wait()?
                        && !folder.file(which).exists()
                    {
                        return Err(format!("node {which} did not start: {status}").into());
                    }
                }
                thread::sleep(Duration::from_millis(1));
            };
            stamps.push(stamp);
        }
        Ok(stamps)
    }

    /// Waits for all commands; returns the first failure.
    fn wait(mut self) -> Result<(), Failure> {
        let mut ended = Ok(());
        for (node, child) in self.0.iter_mut().enumerate() {
            let status = child.wait()?;
            let what = format!("the command of node {node}");
            ended = ended.and(CommandFailed::check(&what, status));
        }
        ended
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Both calls fail only for a process that has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A temporary folder for the stamps, removed when this value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let name = format!("hwbarr-together-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)
            .map_err(|e| format!("{} cannot be made: {e}", path.display()))?;
        Ok(Self(path))
    }

    fn file(&self, node: usize) -> PathBuf {
        self.0.join(node.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Starter {
    pub fn execute(self) -> Result<(), Failure> {
        // Without its parent this starter would wait for the others indefinitely,
        // so the kernel kills the starter when the parent ends.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The file is opened through /proc because a `File`
        // from a descriptor's number would need `unsafe`.
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/self/fd/{}", self.fd))?;
        let memory = Memory::map(file.into())?;
        let board = memory.attach()?;
        let live::Wires { out, input, .. } = board.wires(self.node, |_| ())?;
        let (stamp, barrier) = start(out, input, self.node, self.nodes <= cores())?;
        // The barrier is not closed:
        // its board ends with these processes, and closing would delay the command.
        std::mem::forget(barrier);
        become_command(stamp, Some(&self.epoch), &self.command)
    }
}

/// Passes the two barriers and records the clocks at the second release.
///
/// `spins` must be false if this host has more nodes than processors:
/// a node that polls without yielding would delay the others.
fn start<O: OutputPin, I: InputPin<Error = O::Error>>(
    out: O,
    input: I,
    node: usize,
    spins: bool,
) -> Result<(Stamp, ToggleBarrier<O, I>), Failure>
where
    O::Error: 'static,
{
    let mut barrier = ToggleBarrier::open(out, input, || Ok::<(), Infallible>(()))?;
    barrier.enter()?;
    // Other nodes may be started much later, so the first wait sleeps between its polls.
    barrier.wait(|| thread::sleep(Duration::from_micros(100)), LIMIT)?;
    barrier.enter()?;
    let pause: fn() = match spins {
        true => std::hint::spin_loop,
        false => thread::yield_now,
    };
    barrier.wait(pause, LIMIT)?;
    let stamp = Stamp::take(node);
    Ok((stamp, barrier))
}

/// Replaces this process by the command; returns only if that fails.
fn become_command(stamp: Stamp, epoch: Option<&Path>, command: &[OsString]) -> Result<(), Failure> {
    let [program, arguments @ ..] = command else {
        return Err("there is no command to start".into());
    };
    if let Some(file) = epoch {
        stamp.write_to(file)?;
    }
    let error = Command::new(program)
        .args(arguments)
        .env(EPOCH, stamp.of_the_day.to_string())
        .env(MONOTONIC, stamp.monotonic.to_string())
        .env(NODE, stamp.node.to_string())
        .exec();
    let program = printable::name(program);
    Err(format!("{program} cannot be started: {error}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_only_when_its_line_is_complete() {
        let stamp = Stamp {
            node: 3,
            of_the_day: 17,
            monotonic: 5,
        };
        let line = stamp.to_line();
        assert_eq!(Stamp::from_line(&line), Some(stamp));
        for end in 0..line.len() {
            assert_eq!(Stamp::from_line(&line[..end]), None);
        }
    }

    #[test]
    fn the_first_and_the_last_start_are_named() {
        let at = |node, monotonic| Stamp {
            node,
            of_the_day: 0,
            monotonic,
        };
        let stamps = [at(0, 2500), at(1, 1000), at(2, 1200)];
        let sentence = "3 nodes left the barrier within 1.500 us, node 1 first and node 0 last, and became their commands\n";
        assert_eq!(skew(&stamps, 3), sentence);
        let reason = "with more nodes than the 2 processors here that is the time in which the scheduler runs them one after the other\n";
        assert_eq!(skew(&stamps, 2), sentence.to_owned() + reason);
    }

    #[test]
    fn the_text_of_a_port_names_its_node() {
        assert_eq!(node_in("uio:/dev/uio0,members=0-3,node=3"), Some(3));
        assert_eq!(node_in("ppdev:/dev/parport0,out=D0,in=nACK"), None);
    }
}
