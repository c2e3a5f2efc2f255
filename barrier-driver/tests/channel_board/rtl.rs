//! The RTL of barrier version 2 as a [`Machine`]: a simulation by Icarus Verilog, connected by a pipe.

use super::{Machine, NODES, Seen};
use fpga_model::channels::{MAX_CHANNELS, Pins};
use hdl::tool::{Tool, ToolError};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Environment variable: if it is set, tests whose tools are missing fail instead of being skipped.
const NO_SKIPS: &str = "PORTCULLIS_TEST_NO_SKIPS";

/// Returns true if Icarus is installed; otherwise prints that these tests were skipped.
pub fn is_there() -> bool {
    match compiled() {
        Ok(_) => true,
        Err(missing @ ToolError::Missing(_)) if std::env::var_os(NO_SKIPS).is_none() => {
            eprintln!("SKIPPED: the driver against the channels in RTL: {missing}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// The simulation, compiled once for all tests of this process.
fn compiled() -> &'static Result<PathBuf, ToolError> {
    static COMPILED: OnceLock<Result<PathBuf, ToolError>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("channel_pipe_tb");
        fs::create_dir_all(&folder)
            .map_err(|e| ToolError::Folder(folder.display().to_string(), e))?;
        let sources = hdl::CHANNEL_RTL
            .into_iter()
            .chain([hdl::CHANNEL_PIPE_BENCH]);
        let sources = sources.map(|source| source.path().to_string_lossy().into_owned());
        let size = [("N", NODES), ("C", MAX_CHANNELS)];
        let size = size.map(|(name, value)| format!("-Pchannel_pipe_tb.{name}={value}"));
        let options = ["-g2001", "-s", "channel_pipe_tb", "-o", "tb.vvp"].map(String::from);
        Tool::IVERILOG.run(
            "compiling version 2",
            options.into_iter().chain(size).chain(sources),
            &folder,
            Duration::from_secs(60),
        )?;
        Ok(folder)
    })
}

/// A running simulation; its process is killed when the board is dropped.
pub struct Rtl {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Machine for Rtl {
    fn power_on() -> Self {
        let folder = compiled().as_ref().expect("callers ask is_there first");
        let mut child = Command::new(Tool::VVP.program)
            .args(["-n", "tb.vvp"])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the simulator that belongs to the compiler");
        let (to, from) = Option::zip(child.stdin.take(), child.stdout.take()).expect("two pipes");
        let from = BufReader::new(from);
        Self { child, to, from }
    }

    fn run(&mut self, pins: &Pins, edges: u64) -> Seen {
        let Pins {
            arrive,
            select,
            clock,
            data,
        } = pins;
        let lines = arrive.iter().rev();
        let arrive = lines.fold(0u64, |all, &lines| {
            all << NODES | lines & ((1 << NODES) - 1)
        });
        writeln!(self.to, "{edges} {arrive:x} {select:x} {clock:x} {data:x}")
            .and_then(|()| self.to.flush())
            .expect("the simulation listens");
        let mut line = String::new();
        self.from
            .read_line(&mut line)
            .expect("the simulation answers");
        let mut words = line
            .split_whitespace()
            .map(|word| u64::from_str_radix(word, 16).expect("a known level"));
        let mut next = || words.next().expect("two words");
        Seen {
            release: next() as u8,
            last: next(),
        }
    }
}

impl Drop for Rtl {
    fn drop(&mut self) {
        // An error means that the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
