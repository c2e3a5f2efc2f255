//! Parser of the parameters `coll_hwbarr_*`.

use crate::choice::{Choice, RtlSource, SimFiles};
#[cfg(test)]
use crate::defect::Defect;
use crate::port::wired;
use barrier_board::served::SCHEME;
use barrier_waveform::wave_files::{WaveError, WaveFiles, check_writable};
use embedded_hal::digital::PinState;
use mpi_base::param::Value;
use mpi_base::text;
use mpi_core::plugin::abi::Param;
use mpi_core::plugin::guest::{Comm, param};
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const PORT: &CStr = c"port";
/// The name of a parameter that the library reads and supports for every component.
const REQUIRED: &CStr = c"required";
const VERSION: &CStr = c"version";
const TIMEOUT: &CStr = c"timeout";
const REBOOT: &CStr = c"reboot";
pub const BOARDS: &CStr = c"boards";
const SLEEP: &CStr = c"sleep";
const SELF_TEST: &CStr = c"self_test";
const SIM_VCD: &CStr = c"sim_vcd";
const SIM_REPORT: &CStr = c"sim_report";
const SIM_RECORD: &CStr = c"sim_record";
const SIM_NODES: &CStr = c"sim_nodes";
const RTL_CACHE: &CStr = c"rtl_cache";

pub static PARAMS: [Param; 13] = [
    param(PORT, c"none", c"string", c"Port that carries the wires: none, sim for the simulator's board in shared memory, sim:tcp://HOST:PORT for one that hwbarr serve serves to several hosts, rtl for the simulator's board with the Verilated RTL in place of the model (rtl:DIR for the Verilog in a folder), or a port such as parport:0x378,out=D0,in=nACK, ppdev:/dev/parport0,out=D0,in=nACK, gpio or rppal; {rank} in it is the rank's number, and {leader} that of the lowest rank of the host"),
    param(
        REQUIRED,
        c"false",
        c"bool",
        c"Whether MPI_COMM_WORLD must have the hardware barrier: true ends a job that cannot have it, with the reason; false warns and uses software barriers",
    ),
    param(
        VERSION,
        c"1",
        c"unsigned_int",
        c"The barrier's version: 1 has one wire pair per rank and serves MPI_COMM_WORLD; 2 has five channels per node, one for any communicator as long as a channel is free, with ports such as sim, or ppdev:/dev/parport0 for all ranks of a node",
    ),
    param(
        TIMEOUT,
        c"60",
        c"duration",
        c"Time limit for the release of a barrier, after which its communicator falls back to software barriers; 0 is no limit",
    ),
    param(
        REBOOT,
        c"none",
        c"string",
        c"Level, low or high, of a node's wire while the node reboots: each barrier then changes the wires twice, so that a rebooting node releases no other; none does not protect against reboots",
    ),
    param(
        BOARDS,
        c"1",
        c"unsigned_int",
        c"Number of boards of version 1 to which the ranks' wires lead, divided in order; several boards are cascaded, sixty below each, for jobs with more ranks than one board has wires",
    ),
    param(
        SLEEP,
        c"0",
        c"duration",
        c"Longest sleep of a rank in MPI_Barrier until its port's interrupt, for oversubscribed ranks; MPI makes no progress meanwhile, so a short time such as 1ms; 0, and any port without an interrupt, polls instead",
    ),
    param(SELF_TEST, c"1", c"unsigned_int", c"Number of nodes that are late in turn in the self-test at start"),
    param(SIM_VCD, c"", c"string", c"Write the simulator's wires to this file, an FST if it ends in .fst and else a VCD, and files for GTKWave and Surfer beside it"),
    param(SIM_REPORT, c"", c"string", c"Write the simulator's counters to this JSON file"),
    param(SIM_RECORD, c"1M", c"size_t", c"Maximum number of wire changes that are recorded for coll_hwbarr_sim_vcd"),
    param(SIM_NODES, c"0", c"unsigned_int", c"Number of nodes of the simulator's board of version 2, among which the ranks are divided in order; 0 is one per rank, or on a served board one per host"),
    param(RTL_CACHE, c"", c"string", c"The folder where translated RTL is kept; if empty, portcullis/rtl in the user's folder for caches"),
];

/// The component's settings, parsed from its parameters.
pub struct Settings {
    pub port: Choice,
    pub version: Version,
    pub timeout: Option<Duration>,
    /// Maximum duration of a sleep that the port's interrupt can end; `None` disables such sleeps.
    pub sleep: Option<Duration>,
    pub late_nodes: usize,
    /// The level of a rebooting node's wire (`coll_hwbarr_reboot`); `None` if reboots are not tolerated.
    pub reboot: Option<PinState>,
    /// Number of leaf boards to which the ranks' wires are connected.
    pub boards: u32,
}

/// The version of the hardware barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Version 1: one barrier with one wire pair per rank.
    Toggle,
    /// Version 2: several barriers (channels) with their own members, and one port per node.
    Channels,
}

impl Settings {
    pub fn read(comm: &Comm) -> Result<Settings, String> {
        let port = Choice::read(comm)?;
        let timeout: Duration = value(comm, TIMEOUT)?;
        Ok(Settings {
            port,
            version: match value::<u32>(comm, VERSION)? {
                1 => Version::Toggle,
                2 => Version::Channels,
                other => {
                    return Err(format!(
                        "coll_hwbarr_version is {other}, and there are 1 and 2"
                    ));
                }
            },
            timeout: Some(timeout).filter(|t| !t.is_zero()),
            sleep: Some(value::<Duration>(comm, SLEEP)?).filter(|t| !t.is_zero()),
            late_nodes: value::<u32>(comm, SELF_TEST)? as usize,
            boards: value::<u32>(comm, BOARDS)?.max(1),
            reboot: match text_of(comm, REBOOT).as_str() {
                "" | "none" => None,
                "low" => Some(PinState::Low),
                "high" => Some(PinState::High),
                other => {
                    return Err(format!(
                        "coll_hwbarr_reboot is \"{other}\", but none, low or high is expected"
                    ));
                }
            },
        })
    }
}

impl Choice {
    fn read(comm: &Comm) -> Result<Choice, String> {
        let text = text_of(comm, PORT);
        #[cfg(test)]
        if let Some((defect, node)) = Defect::parse(&text) {
            return Ok(Choice::Broken(defect, node));
        }
        match text.as_str() {
            "" | "none" => Err("no port is configured (coll_hwbarr_port is none)".into()),
            "sim" => Ok(Choice::Sim(SimFiles::read(comm)?)),
            _ if text.starts_with(SCHEME) => match text.parse() {
                Ok(server) => Ok(Choice::Served(server, value(comm, SIM_NODES)?)),
                Err(refused) => Err(format!("coll_hwbarr_port: {refused}")),
            },
            _ => match text.strip_prefix("rtl") {
                Some(rest) if rest.is_empty() || rest.starts_with(':') => Ok(Choice::Rtl(
                    SimFiles::read(comm)?,
                    RtlSource::read(comm, rest),
                )),
                _ => {
                    wired::is_known(&text)?;
                    Ok(Choice::Wired(text))
                }
            },
        }
    }
}

impl RtlSource {
    /// Parses the rest of the port parameter after `rtl`: empty, or a colon and a folder.
    fn read(comm: &Comm, text: &str) -> RtlSource {
        RtlSource {
            folder: path(text.trim_start_matches(':').to_owned()),
            cache: path(text_of(comm, RTL_CACHE)),
        }
    }
}

impl SimFiles {
    fn read(comm: &Comm) -> Result<SimFiles, String> {
        let file = |name| path(text_of(comm, name));
        let vcd = file(SIM_VCD).map(|path| {
            let files = WaveFiles::named(&path);
            files.map_err(|why| no_file(SIM_VCD, &path, &why))
        });
        let vcd = vcd.transpose()?;
        let report = file(SIM_REPORT);
        if let Some(report) = &report {
            check_writable(report).map_err(|why| no_file(SIM_REPORT, report, &why))?;
        }
        let record = if vcd.is_some() {
            value(comm, SIM_RECORD)?
        } else {
            0
        };
        Ok(SimFiles {
            vcd,
            report,
            record,
            nodes: value(comm, SIM_NODES)?,
        })
    }
}

/// Returns the error message for a parameter whose value is not the name of a writable file.
fn no_file(name: &CStr, value: &Path, why: &WaveError) -> String {
    let is = format!(
        "coll_hwbarr_{} is \"{}\"",
        name.to_string_lossy(),
        value.display()
    );
    match why {
        WaveError::Beside { what, .. } => format!(
            "{is}, but a file of that name is {what}, which the waveform would overwrite; a name that ends in .vcd or .fst is expected"
        ),
        WaveError::File { path, reason } if path == value => {
            format!("{is}, which cannot be written: {reason}")
        }
        WaveError::File { path, reason } => format!(
            "{is}, and the file {} beside it cannot be written: {reason}",
            path.display()
        ),
    }
}

/// Returns a parameter's value as text; bytes that are not UTF-8 are encoded ([`mpi_base::text`]).
pub fn text_of(comm: &Comm, name: &CStr) -> String {
    text::from_bytes(&comm.param_bytes(name))
}

fn path(text: String) -> Option<PathBuf> {
    Some(text)
        .filter(|path| !path.is_empty())
        .map(|path| text::to_path(&path))
}

fn value<T: Value>(comm: &Comm, name: &CStr) -> Result<T, String> {
    let text = text_of(comm, name);
    T::parse(&text).map_err(|expected| {
        format!(
            "coll_hwbarr_{} is \"{text}\", but {expected} is expected",
            name.to_string_lossy()
        )
    })
}
