//! `hwbarr emulate`: emulates the ports of a barrier's nodes, for a command or until a signal.

use crate::command_failed::CommandFailed;
use crate::{Failure, say};
use barrier_board::live::{Board, Memory, Wires};
use barrier_driver::ports::parallel::{INPUTS, Line, OUTPUTS};
use barrier_emulation::gpio::GpioChip;
use barrier_emulation::parallel::{ParallelPort, Plug};
use barrier_emulation::ppdev::Parports;
use barrier_emulation::registers::RegisterDevice;
use barrier_emulation::supervised;
use barrier_emulation::uio::Uios;
use clap::{Args, ValueEnum};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;

/// Environment variable of the command: the port of its node;
/// `{rank}` in it stands for the node's number.
const PORT: &str = "HWBARR_PORT";

/// The lines of each emulated GPIO chip for the wires of its node: outward and inward,
/// as in the example `gpio:/dev/gpiochip0,out=17,in=27` of `hwbarr port list`.
const GPIO_LINES: (u32, u32) = (17, 27);

/// Play the hardware of a barrier, so that its ports can be tried on any machine.
///
/// The command has the port in HWBARR_PORT, in the form that `--mca coll_hwbarr_port` takes, with {rank} for the number of a node;
/// without a command the port is printed and the device is there until this program is interrupted.
#[derive(Args)]
pub struct Emulate {
    /// The port.
    kind: Kind,
    /// Number of nodes, 1 to 64.
    #[arg(short, long, default_value_t = 4)]
    nodes: usize,
    /// Number of groups of a register block, 1 to 8; 1 by default.
    #[arg(short, long)]
    groups: Option<usize>,
    /// The file with the registers of a register block; without it, one in a folder that is removed at the end.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A command and its arguments.
    #[arg(last = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// The registers of a register block, in a file.
    Mem,
    /// The same, and a file for the interrupt of each node; needs /dev/fuse and the right to mount.
    Uio,
    /// A parallel port for each node, at a board of version 1; needs /dev/fuse and the right to mount.
    Ppdev,
    /// A GPIO chip for each node, at a board of version 1: for a command and what it starts; needs the right to mount.
    Gpio,
}

impl Emulate {
    pub fn execute(self) -> Result<(), Failure> {
        match self.kind {
            Kind::Mem | Kind::Uio => self.registers(),
            Kind::Ppdev => self.parallel_ports(),
            Kind::Gpio => self.gpio_chips(),
        }
    }

    fn registers(&self) -> Result<(), Failure> {
        // No signal is blocked before the device exists, so an interrupt ends the program as usual.
        let folder = Folder::new()?;
        let file = match &self.file {
            Some(file) => file.clone(),
            None => folder.0.join("registers"),
        };
        let device = RegisterDevice::create(&file, self.nodes, self.groups.unwrap_or(1))
            .map_err(|e| format!("{} cannot be a register block: {e}", file.display()))?;
        let uios = match self.kind {
            Kind::Uio => Some(Uios::mount(&device).map_err(|e| {
                format!("the files of the interrupts cannot be mounted: {e}; {MOUNT}")
            })?),
            _ => None,
        };
        let ended = self.serve(&self.registers_text(&file, uios.as_ref()));
        drop(uios);
        succeeded(ended?)?;
        released("block", device.releases())
    }

    fn registers_text(&self, file: &Path, uios: Option<&Uios>) -> String {
        let (file, last) = (file.display(), self.nodes - 1);
        match uios {
            None => format!("mem:{file},node={{rank}},members=0-{last}"),
            Some(uios) => format!(
                "uio:{}/uio{{rank}},node={{rank}},members=0-{last},registers={file}",
                uios.folder().display()
            ),
        }
    }

    fn parallel_ports(&self) -> Result<(), Failure> {
        let (board, wires) = self.board()?;
        let plug = usual_plug()?;
        let ports = wires.into_iter().map(|wires| {
            let Wires { out, input, .. } = wires;
            ParallelPort::new(plug, 0, (out, input))
        });
        let files = Parports::mount(ports.collect()).map_err(|e| {
            format!("the files of the parallel ports cannot be mounted: {e}; {MOUNT}")
        })?;
        let folder = files.folder().display();
        let (out, input) = (plug.out.name, plug.input.name);
        let ended = self.serve(&format!(
            "ppdev:{folder}/parport{{rank}},out={out},in={input}"
        ));
        drop(files);
        succeeded(ended?)?;
        released("board", board.releases())
    }

    fn gpio_chips(&self) -> Result<(), Failure> {
        if self.command.is_empty() {
            return Err("gpio is emulated for a command and what it starts: give one after --, such as -- sh".into());
        }
        let (board, wires) = self.board()?;
        let (out_line, in_line) = GPIO_LINES;
        let chips = wires.into_iter().map(|wires| {
            let Wires { out, input, .. } = wires;
            GpioChip::default().plug(out_line, in_line, (out, input))
        });
        let port = format!("gpio:/dev/gpiochip{{rank}},out={out_line},in={in_line}");
        let ended = supervised::run(chips.collect(), || self.serve(&port));
        succeeded(ended.map_err(|refused| refused.to_string())??)?;
        released("board", board.releases())
    }

    /// Returns a board of version 1 and its nodes' wires; both stay until this program ends.
    fn board(&self) -> Result<(Board<'static>, Vec<NodeWires>), Failure> {
        if self.groups.is_some() || self.file.is_some() {
            return Err("--groups and --file are for a register block: mem or uio".into());
        }
        let memory = Memory::create(Board::layout_size(self.nodes, 0))?;
        let board = Box::leak(Box::new(memory)).init(self.nodes, 0)?;
        let wires = (0..self.nodes).map(|node| board.wires(node, ignored as fn(usize)));
        let wires = wires.collect::<Result<_, _>>()?;
        Ok((board, wires))
    }

    /// Runs the command with this port and returns its status; without a command, prints the port and waits for a signal.
    fn serve(&self, port: &str) -> Result<Option<ExitStatus>, String> {
        let [program, arguments @ ..] = self.command.as_slice() else {
            let ended = until_a_signal(port).map_err(|e| e.to_string());
            return ended.map(|()| None);
        };
        let mut command = Command::new(program);
        command.args(arguments).env(PORT, port);
        let status = run(&mut command)
            .map_err(|e| format!("{} cannot be started: {e}", printable::name(program)))?;
        Ok(Some(status))
    }
}

/// Returns an error if the command was run and has failed.
fn succeeded(status: Option<ExitStatus>) -> Result<(), Failure> {
    status.map_or(Ok(()), |status| CommandFailed::check("the command", status))
}

/// The wires of a node, with a function that ignores releases as `ring`.
type NodeWires = Wires<'static, fn(usize)>;

fn ignored(_: usize) {}

/// The end of an error message: the requirements of a file system in user space.
const MOUNT: &str = "it needs /dev/fuse and the right to mount";

fn released(what: &str, times: u64) -> Result<(), Failure> {
    say(&format!("the {what} has released {times} times\n"))
}

/// Returns the plug that the wiring notes recommend: D0 and nACK.
fn usual_plug() -> Result<Plug, Failure> {
    let line = |lines: &[Line], name| lines.iter().find(|line| line.name == name).copied();
    let (out, input) = (line(&OUTPUTS, "D0"), line(&INPUTS, "nACK"));
    let plug = out
        .zip(input)
        .map(|(out, input)| Plug::straight(out, input));
    plug.ok_or_else(|| "a parallel port has no D0 or nACK".into())
}

/// Runs a command to its end. Until then this program forwards SIGTERM to it and ignores SIGINT,
/// which a terminal sends to both; so the emulated devices are removed after the command has ended.
fn run(command: &mut Command) -> std::io::Result<ExitStatus> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    thread::scope(|scope| {
        scope.spawn(move || {
            for signal in signals.forever() {
                if signal == SIGTERM {
                    // The call fails if the command has already ended.
                    let _ = kill_process(pid, Signal::TERM);
                }
            }
        });
        let status = child.wait();
        handle.close();
        status
    })
}

/// Prints the port, and returns when a signal ends this program.
fn until_a_signal(port: &str) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    say(&format!("{port}\n"))?;
    signals.forever().next();
    Ok(())
}

/// A temporary folder that is removed when this value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let name = format!("hwbarr-emulate-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)
            .map_err(|e| format!("{} cannot be made: {e}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
