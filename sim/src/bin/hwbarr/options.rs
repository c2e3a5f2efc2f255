//! What a virtual run depends on, as options that several commands share.

use crate::Failure;
use clap::Args;
use sim::software::Network;
use sim::virtual_time::{Arrivals, Parameters, Time};

/// The hardware; the defaults are the prototype's.
#[derive(Args, Clone)]
pub struct Hardware {
    /// How the nodes arrive: together, uniform:TIME, exponential:MEAN, normal:MEAN:DEVIATION, one-late:TIME or
    /// one-early:TIME of computing between two barriers, or file:PATH with a line for each barrier and a time for each node.
    #[arg(long, value_name = "HOW", default_value = "uniform:10us")]
    arrivals: Arrivals,
    /// How long one access of the port takes, read or write.
    #[arg(
        long,
        visible_alias = "port",
        value_name = "TIME",
        default_value = "1.2us"
    )]
    port_time: Time,
    /// How much longer an access may take, at random.
    #[arg(long, value_name = "TIME", default_value = "0")]
    jitter: Time,
    /// Metres of cable between a node and the barrier, at 5 ns each.
    #[arg(long, value_name = "METRES", default_value_t = 3.0)]
    cable: f64,
    /// The clock of the barrier, in MHz.
    #[arg(long, value_name = "MHZ", default_value_t = fpga_model::CLOCK_HZ as f64 / 1e6)]
    clock: f64,
    /// Which of the possible random runs; the same seed gives the same run, to the bit.
    #[arg(long, default_value_t = 1)]
    seed: u64,
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
        Ok(Parameters {
            arrivals: self.arrivals.clone(),
            port_write: self.port_time,
            port_read: self.port_time,
            jitter: self.jitter,
            cable: Parameters::CABLE_PER_METRE.scaled(*cable),
            clock_hz: (clock * 1e6).round() as u64,
            seed: self.seed,
            ..Parameters::new(nodes, barriers)
        })
    }
}

/// The network of the software barriers; the defaults are those of LogGOPSim (spcl/LogGOPSim, simulator.ggo).
#[derive(Args, Clone, Copy)]
#[command(next_help_heading = "Software barriers (defaults: those of LogGOPSim)")]
pub struct Software {
    /// L: how long a message is under way.
    #[arg(long, value_name = "TIME", default_value_t = Network::LOGGOPSIM.latency)]
    latency: Time,
    /// o: how long a send or a receive keeps the processor.
    #[arg(long, value_name = "TIME", default_value_t = Network::LOGGOPSIM.overhead)]
    overhead: Time,
    /// g: how far apart two sends, or two receives, of one processor begin at least.
    #[arg(long, value_name = "TIME", default_value_t = Network::LOGGOPSIM.gap)]
    gap: Time,
    /// G: what each byte after the first adds, in LogGP.
    #[arg(long, value_name = "TIME", default_value_t = Network::LOGGOPSIM.byte_gap)]
    byte_gap: Time,
    /// How long a message is, in LogGP.
    #[arg(long, value_name = "BYTES", default_value_t = Network::LOGGOPSIM.bytes)]
    bytes: u64,
}

impl Software {
    pub fn network(self) -> Network {
        let Self {
            latency,
            overhead,
            gap,
            byte_gap,
            bytes,
        } = self;
        Network {
            latency,
            overhead,
            gap,
            byte_gap,
            bytes,
        }
    }
}
