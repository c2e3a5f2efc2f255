//! `hwbarr emulate`: emulates a register block of the barrier, for a command or until a signal.

use crate::{Failure, say};
use barrier_emulation::registers::RegisterDevice;
use barrier_emulation::uio::Uios;
use clap::{Args, ValueEnum};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Environment variable of the command: the port of its node;
/// `{rank}` in it stands for the node's number.
const PORT: &str = "HWBARR_PORT";

/// Play a register block behind a file, so that the ports mem and uio can be tried on any machine.
///
/// The command has the port in HWBARR_PORT, in the form that `--mca coll_hwbarr_port` takes;
/// without a command the port is printed and the device is there until this program is interrupted.
#[derive(Args)]
pub struct Emulate {
    /// mem: the registers alone. uio: also a file for the interrupt of each node, which needs the right to mount.
    kind: Kind,
    /// Number of nodes, 1 to 64.
    #[arg(short, long, default_value_t = 4)]
    nodes: usize,
    /// Number of groups, 1 to 8.
    #[arg(short, long, default_value_t = 1)]
    groups: usize,
    /// The file with the registers; without it, one in a folder that is removed at the end.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A command and its arguments.
    #[arg(last = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Mem,
    Uio,
}

impl Emulate {
    pub fn execute(self) -> Result<(), Failure> {
        // No signal is blocked before the device exists, so an interrupt ends the program as usual.
        let folder = Folder::new()?;
        let file = match &self.file {
            Some(file) => file.clone(),
            None => folder.0.join("registers"),
        };
        let device = RegisterDevice::create(&file, self.nodes, self.groups)
            .map_err(|e| format!("{} cannot be a register block: {e}", file.display()))?;
        let uios = match self.kind {
            Kind::Mem => None,
            Kind::Uio => Some(Uios::mount(&device).map_err(|e| {
                format!("the files of the interrupts cannot be mounted: {e}; it needs /dev/fuse and the right to mount")
            })?),
        };
        let port = self.port(&file, uios.as_ref());
        let ended = match self.command.as_slice() {
            [] => until_a_signal(&port),
            [program, arguments @ ..] => {
                let status = Command::new(program)
                    .args(arguments)
                    .env(PORT, &port)
                    .status()
                    .map_err(|e| format!("{} cannot be started: {e}", printable::name(program)))?;
                match status.success() {
                    true => Ok(()),
                    false => Err(format!("the command failed: {status}").into()),
                }
            }
        };
        drop(uios);
        ended?;
        say(&format!(
            "the block has released {} times\n",
            device.releases()
        ))
    }

    fn port(&self, file: &std::path::Path, uios: Option<&Uios>) -> String {
        let (file, last) = (file.display(), self.nodes - 1);
        match uios {
            None => format!("mem:{file},node={{rank}},members=0-{last}"),
            Some(uios) => format!(
                "uio:{}/uio{{rank}},node={{rank}},members=0-{last},registers={file}",
                uios.folder().display()
            ),
        }
    }
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
