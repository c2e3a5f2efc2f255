//! Options of virtual runs that several commands share.

use crate::Failure;
use barrier_simulator::software::Network;
use barrier_simulator::virtual_time::{Arrivals, Parameters, Protocol, Time};
use barrier_waveform::words::counted;
use clap::Args;

/// Countermeasures against noise, shorts, reboots and the limit of sixty nodes; the defaults are those of the prototype.
#[derive(Args, Clone)]
#[command(next_help_heading = "Cures")]
pub struct Cures {
    /// Number of consecutive samples at the board that must agree before a level counts, 1 to 256.
    #[arg(long, value_name = "SAMPLES", value_parser = clap::value_parser!(u16).range(1..=256), default_value_t = 1, hide_short_help = true)]
    filter: u16,
    /// Number of consecutive reads of the port that must agree on a release.
    #[arg(long, value_name = "READS", value_parser = clap::value_parser!(u8).range(1..=64), default_value_t = 1, hide_short_help = true)]
    reads: u8,
    /// Protocol of a barrier: toggle, or returning, returning:low or returning:high, which returns to the idle level.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "toggle",
        hide_short_help = true
    )]
    protocol: Protocol,
    /// Level to which resistors pull undriven wires: up or down; without it they float.
    #[arg(long, value_name = "WHERE", value_parser = pulled, hide_short_help = true)]
    pull: Option<bool>,
    /// Number of channels of a version 2 board, which the nodes use in turn, 1 to 5.
    #[arg(long, value_name = "CHANNELS", value_parser = clap::value_parser!(u8).range(1..=5), hide_short_help = true)]
    channels: Option<u8>,
    /// Number of leaf boards under the root; --nodes is then the number of nodes of each.
    #[arg(long, value_name = "BOARDS", value_parser = clap::value_parser!(u16).range(1..=3600), default_value_t = 1, conflicts_with = "channels")]
    boards: u16,
    /// Metres of cable between two boards, at 5 ns each.
    #[arg(
        long,
        value_name = "METRES",
        default_value_t = 5.0,
        hide_short_help = true
    )]
    trunk: f64,
}

/// Parses the value of `--pull`: up or down.
fn pulled(word: &str) -> Result<bool, String> {
    match word {
        "up" => Ok(true),
        "down" => Ok(false),
        _ => Err("resistors pull up or down".to_owned()),
    }
}

impl Cures {
    /// Returns the parameters with these countermeasures applied.
    pub fn apply(&self, parameters: Parameters) -> Result<Parameters, Failure> {
        let Self {
            filter,
            reads,
            protocol,
            pull,
            channels,
            boards,
            trunk,
        } = *self;
        if !(0.0..=1e9).contains(&trunk) {
            return Err(
                format!("--trunk {trunk}: the length must be between 0 and 1e9 metres").into(),
            );
        }
        let trunk = Parameters::CABLE_PER_METRE.scaled(trunk);
        let boards = usize::from(boards);
        let nodes = parameters.nodes.saturating_mul(boards);
        if nodes > MOST_NODES {
            return Err(format!(
                "{boards} boards of {} are {nodes} nodes, and a run in virtual time has room for {MOST_NODES}: hwbarr scale predicts more",
                counted(parameters.nodes, "node")
            )
            .into());
        }
        Ok(Parameters {
            nodes,
            filter,
            reads,
            protocol,
            pull,
            channels: channels.map_or(0, usize::from),
            boards,
            trunk,
            fan_out: match boards {
                1 => parameters.fan_out,
                _ => Parameters::fan_out_to(nodes, trunk),
            },
            ..parameters
        })
    }
}

/// Maximum message size in bytes; it keeps `ranks * bytes` within a u64.
pub const MOST_BYTES: u64 = u32::MAX as u64;

/// Parses the number of barriers of a run, at least one.
pub fn at_least_one(word: &str) -> Result<usize, String> {
    match word.parse() {
        Ok(0) => Err("a run needs at least 1 barrier".to_owned()),
        Ok(barriers) => Ok(barriers),
        Err(e) => Err(e.to_string()),
    }
}

/// Maximum number of nodes; each node's program needs a stack of its own.
const MOST_NODES: usize = 4096;

/// The hardware; the defaults are the prototype's.
#[derive(Args, Clone)]
pub struct Hardware {
    /// Arrivals of the nodes: together, uniform:TIME, exponential:MEAN, normal:MEAN:DEVIATION, one-late:TIME or
    /// one-early:TIME of computation between two barriers, or file:PATH with a line for each barrier and a time for each node.
    #[arg(long, value_name = "HOW", default_value = "uniform:10us")]
    arrivals: Arrivals,
    /// Duration of one access of the port, read or write.
    #[arg(
        long,
        visible_alias = "port",
        value_name = "TIME",
        default_value = "1.2us"
    )]
    port_time: Time,
    /// Maximum of the random addition to an access.
    #[arg(long, value_name = "TIME", default_value = "0", hide_short_help = true)]
    jitter: Time,
    /// Metres of cable between a node and the barrier, at 5 ns each.
    #[arg(long, value_name = "METRES", default_value_t = 3.0)]
    cable: f64,
    /// Delay of the Schmitt receivers at the board; the default is two inverters of a 74LVC14A.
    #[arg(long, value_name = "TIME", default_value_t = Parameters::SCHMITT_INVERTERS, hide_short_help = true)]
    receivers: Time,
    /// Delay of the buffers from the board's pin to the cables of its nodes; the default is a 74LVC244A and a
    /// 74HCT244. Those that more than sixty nodes need are added automatically.
    #[arg(long, value_name = "TIME", default_value_t = Parameters::BUFFER + Parameters::CABLE_BUFFER, hide_short_help = true)]
    buffers: Time,
    /// Time of a slow edge on a node's cable to the receiver's threshold, in each direction: 0.69 RC; the default is 47 ohms
    /// and a port's capacitor of 2.2 nF. An open-collector line of 4.7 kohms reaches half of its swing in 7.1us.
    #[arg(long, value_name = "TIME", default_value_t = Parameters::PORT_EDGE, hide_short_help = true)]
    edge: Time,
    /// The same for the direction from the board to a node, if the resistors there differ; the desk kit's 220 ohms give 334ns,
    /// and --edge 76ns is its other direction.
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    edge_back: Option<Time>,
    /// The clock of the barrier, in MHz.
    #[arg(long, value_name = "MHZ", default_value_t = fpga_model::CLOCK_HZ as f64 / 1e6)]
    clock: f64,
    /// Seed of the random numbers; the same seed gives exactly the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    cures: Cures,
}

impl Hardware {
    pub fn parameters(&self, nodes: usize, barriers: usize) -> Result<Parameters, Failure> {
        let Self { cable, clock, .. } = self;
        if !(0.0..=1e9).contains(cable) {
            return Err(
                format!("--cable {cable}: the length must be between 0 and 1e9 metres").into(),
            );
        }
        if !(1e-6..=1e6).contains(clock) {
            return Err(
                format!("--clock {clock}: the clock must be between 1e-6 and 1e6 MHz").into(),
            );
        }
        let parameters = Parameters {
            arrivals: self.arrivals.clone(),
            port_write: self.port_time,
            port_read: self.port_time,
            jitter: self.jitter,
            cable: Parameters::CABLE_PER_METRE.scaled(*cable),
            clock_hz: (clock * 1e6).round() as u64,
            seed: self.seed,
            fan_out: self.buffers,
            receivers: self.receivers,
            edge: self.edge,
            edge_back: self.edge_back,
            ..Parameters::new(nodes, barriers)
        };
        self.cures.apply(parameters)
    }
}

/// The networks of the software barriers: those that have a name, one of them, or one of the user's own.
#[derive(Args, Clone)]
#[command(next_help_heading = "Software barriers")]
pub struct Software {
    /// The network, by name: hdr (InfiniBand HDR, a cluster of today) or loggopsim (a cluster of 2009); without it both.
    #[arg(long, value_name = "NAME", value_parser = named)]
    network: Option<Network>,
    /// L: latency of a message, instead of the network's (LogP).
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    latency: Option<Time>,
    /// o: processor time of a send or a receive, instead of the network's (LogP).
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    overhead: Option<Time>,
    /// g: minimum interval between two sends, or two receives, of a processor, instead of the network's (LogP).
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    gap: Option<Time>,
    /// G: time of each byte after the first, instead of the network's (LogGP).
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    byte_gap: Option<Time>,
    /// Bytes of a message of a barrier (LogGP).
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(..=MOST_BYTES), default_value_t = Network::HDR.bytes, hide_short_help = true)]
    bytes: u64,
    /// Also measure this machine's own software barrier, by the mpirun and mpi-bench beside hwbarr.
    #[arg(long)]
    pub measured: bool,
}

/// Returns the network with this name, for `--network`.
fn named(name: &str) -> Result<Network, String> {
    let found = Network::NAMED.iter().find(|(known, ..)| *known == name);
    found.map(|(.., network)| *network).ok_or_else(|| {
        let names = Network::NAMED.map(|(name, ..)| name);
        format!(
            "there is no network of that name; there are {}",
            names.join(" and ")
        )
    })
}

impl Software {
    /// Returns the networks for the comparison:
    /// only the network that the options name or change, or all named networks if they do neither.
    pub fn networks(&self) -> Vec<Network> {
        let own = [self.latency, self.overhead, self.gap, self.byte_gap];
        let bytes = self.bytes;
        if self.network.is_none() && own.iter().all(Option::is_none) {
            return Network::NAMED
                .iter()
                .map(|(.., network)| Network { bytes, ..*network })
                .collect();
        }
        let base = self.network.unwrap_or(Network::HDR);
        vec![Network {
            latency: self.latency.unwrap_or(base.latency),
            overhead: self.overhead.unwrap_or(base.overhead),
            gap: self.gap.unwrap_or(base.gap),
            byte_gap: self.byte_gap.unwrap_or(base.byte_gap),
            bytes,
        }]
    }

    /// Returns the first network, for output that compares with only one.
    pub fn network(&self) -> Network {
        self.networks()[0]
    }
}
