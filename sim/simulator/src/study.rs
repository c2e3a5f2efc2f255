//! A study: one virtual run, software barriers on the same arrivals, and parameter sweeps of both.

use crate::software::{ALGORITHMS, Algorithm, BadSchedule, Model, Network};
use crate::virtual_time::{BadTime, Distribution, Parameters, RunError, Summary, Time, run};
use barrier_board::event::Record;
use std::fmt;
use std::str::FromStr;

/// The results of a hardware run and of its comparison with software.
#[derive(Debug, Clone)]
pub struct Study {
    /// The parameters of the run.
    pub parameters: Parameters,
    /// The network's parameters for the software barriers.
    pub network: Network,
    /// The latencies of the hardware barrier in the run.
    pub summary: Summary,
    /// The waveform's events; empty if they were not recorded.
    pub record: Record,
    /// The software barriers' latencies, one entry per algorithm.
    pub software: Vec<Rival>,
}

/// A software barrier on the arrivals of a hardware run.
#[derive(Debug, Clone)]
pub struct Rival {
    /// The algorithm of the software barrier.
    pub algorithm: &'static Algorithm,
    /// Latencies from the last entry until every node has left, in the order of [`Model::ALL`].
    pub latencies: [Distribution; Model::ALL.len()],
}

/// The reason why a study failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StudyError {
    /// The simulated run fails.
    Run(RunError),
    /// The schedule of a software algorithm cannot be completed.
    Schedule(BadSchedule),
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(e) => e.fmt(f),
            Self::Schedule(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for StudyError {}

impl Study {
    /// Runs the hardware simulation, and the software barriers on its arrivals.
    pub fn conduct(
        parameters: Parameters,
        network: Network,
        keep_record: bool,
    ) -> Result<Self, StudyError> {
        let outcome = run(&parameters, keep_record).map_err(StudyError::Run)?;
        let entries = &outcome.summary.entries;
        let rival = |algorithm: &'static Algorithm| {
            let schedule = algorithm.schedule(parameters.nodes)?;
            let latencies =
                Model::ALL.map(|model| network.seen_by(model).latencies(&schedule, entries));
            Ok(Rival {
                algorithm,
                latencies,
            })
        };
        let software = ALGORITHMS.iter().map(rival).collect::<Result<_, _>>();
        Ok(Self {
            software: software.map_err(StudyError::Schedule)?,
            summary: outcome.summary,
            record: outcome.record,
            parameters,
            network,
        })
    }
}

/// A parameter that a sweep varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Number of nodes.
    Nodes,
    /// Duration of a port access.
    PortTime,
    /// Maximum additional duration of a port access.
    Jitter,
    /// Frequency of the machine's clock, in MHz.
    Clock,
    /// Length of a node's cable, in metres.
    Cable,
}

impl Axis {
    /// All parameters that a sweep can vary.
    pub const ALL: [Self; 5] = [
        Self::Nodes,
        Self::PortTime,
        Self::Jitter,
        Self::Clock,
        Self::Cable,
    ];

    /// Returns the parameter's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::PortTime => "port-time",
            Self::Jitter => "jitter",
            Self::Clock => "clock",
            Self::Cable => "cable",
        }
    }

    /// Returns the unit of the parameter's values; times are in microseconds.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Nodes => "",
            Self::PortTime | Self::Jitter => "us",
            Self::Clock => "MHz",
            Self::Cable => "m",
        }
    }

    /// Returns `parameters` with this parameter set to `value`.
    pub fn apply(self, value: f64, parameters: &Parameters) -> Parameters {
        let mut p = parameters.clone();
        let time = Time::from_ns(1000).scaled(value);
        match self {
            Self::Nodes => p.nodes = value.round() as usize,
            Self::PortTime => (p.port_read, p.port_write) = (time, time),
            Self::Jitter => p.jitter = time,
            Self::Clock => p.clock_hz = (value * 1e6).round() as u64,
            Self::Cable => p.cable = Parameters::CABLE_PER_METRE.scaled(value),
        }
        p
    }

    fn number(self, word: &str) -> Result<f64, BadSweep> {
        let bad = || BadSweep::Value {
            axis: self,
            word: word.to_owned(),
        };
        match self {
            Self::PortTime | Self::Jitter => word.parse().map(Time::us).map_err(|_: BadTime| bad()),
            Self::Nodes => word
                .parse()
                .map(|nodes: u32| f64::from(nodes))
                .map_err(|_| bad()),
            _ => match word.parse::<f64>() {
                Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
                _ => Err(bad()),
            },
        }
    }
}

/// A sweep of one parameter: `nodes=2..60:2`, `port-time=0.5us..5us:0.5us`, `clock=1,10,100`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// The parameter that varies.
    pub axis: Axis,
    /// The parameter's values, in order.
    pub values: Vec<f64>,
}

/// Maximum number of values of a sweep.
const MOST_VALUES: f64 = 10_000.0;

impl Sweep {
    /// Runs a study for each value.
    pub fn conduct(
        &self,
        parameters: &Parameters,
        network: Network,
    ) -> Result<Vec<(f64, Study)>, StudyError> {
        let study = |&value: &f64| {
            let parameters = self.axis.apply(value, parameters);
            Ok((value, Study::conduct(parameters, network, false)?))
        };
        self.values.iter().map(study).collect()
    }
}

/// The reason why a text does not describe a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadSweep {
    /// No parameter with this name can be varied.
    Axis(String),
    /// The parameter cannot have this value.
    Value {
        /// The parameter that was to be varied.
        axis: Axis,
        /// The value, as the user wrote it.
        word: String,
    },
    /// The range is empty, is incomplete, or has more than 10,000 values.
    Range(String),
}

impl fmt::Display for BadSweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Axis(word) => write!(
                f,
                "'{word}' cannot be swept: write {} with values, as in nodes=2..60:2 or clock=1,10,100",
                Axis::ALL.map(Axis::name).join(", ")
            ),
            Self::Value { axis, word } => {
                let example = match axis {
                    Axis::PortTime | Axis::Jitter => "a time as 1.2us",
                    Axis::Nodes => "a whole number as 10",
                    Axis::Clock | Axis::Cable => "a number as 10",
                };
                write!(
                    f,
                    "'{word}' is no value of {}: write {example}",
                    axis.name()
                )
            }
            Self::Range(range) => write!(
                f,
                "'{range}' is no range: write FIRST..LAST:STEP with a step above 0 and at most {MOST_VALUES} values"
            ),
        }
    }
}

impl std::error::Error for BadSweep {}

impl FromStr for Sweep {
    type Err = BadSweep;

    fn from_str(text: &str) -> Result<Self, BadSweep> {
        let (name, values) = text.split_once('=').unwrap_or((text, ""));
        let axis = Axis::ALL.into_iter().find(|axis| axis.name() == name);
        let axis = axis.ok_or_else(|| BadSweep::Axis(name.to_owned()))?;
        let Some((first, rest)) = values.split_once("..") else {
            let values = values.split(',').map(|word| axis.number(word));
            let values = values.collect::<Result<_, _>>()?;
            return Ok(Self { axis, values });
        };
        let bad = || BadSweep::Range(values.to_owned());
        let (last, step) = rest.split_once(':').ok_or_else(bad)?;
        let [first, last, step] = [axis.number(first)?, axis.number(last)?, axis.number(step)?];
        // The tolerance compensates the rounding of steps that have no exact binary representation.
        let steps = ((last - first) / step + 1e-9).floor();
        if !(0.0..MOST_VALUES).contains(&steps) {
            return Err(bad());
        }
        let values = (0..=steps as u32).map(|k| first + f64::from(k) * step);
        Ok(Self {
            axis,
            values: values.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_lists_are_read_with_their_ends() {
        let values = |text: &str| text.parse::<Sweep>().map(|sweep| sweep.values);
        assert_eq!(values("nodes=2..8:2"), Ok(vec![2.0, 4.0, 6.0, 8.0]));
        assert_eq!(values("clock=1,25.175"), Ok(vec![1.0, 25.175]));
        let times = values("port-time=100ns..0.3us:100ns").expect("a range");
        assert_eq!(times.len(), 3);
        assert!((times[2] - 0.3).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_swept_is_refused_with_a_sentence() {
        let said = |text: &str| text.parse::<Sweep>().err().map(|e| e.to_string());
        for (text, start) in [
            (
                "seed=1..2:1",
                "'seed' cannot be swept: write nodes, port-time",
            ),
            (
                "nodes=two",
                "'two' is no value of nodes: write a whole number as 10",
            ),
            (
                "nodes=2,2.5",
                "'2.5' is no value of nodes: write a whole number as 10",
            ),
            (
                "port-time=3",
                "'3' is no value of port-time: write a time as 1.2us",
            ),
            ("nodes=1..9", "'1..9' is no range: write FIRST..LAST:STEP"),
            ("nodes=9..1:1", "'9..1:1' is no range"),
            ("nodes=1..9:0", "'1..9:0' is no range"),
        ] {
            let said = said(text).unwrap_or_default();
            assert!(said.starts_with(start), "{text}: {said}");
        }
    }

    #[test]
    fn a_sweep_is_a_study_for_each_value() {
        let sweep: Sweep = "nodes=2,60".parse().expect("a sweep");
        let studies = sweep.conduct(&Parameters::new(7, 50), Network::LOGGOPSIM);
        let studies = studies.expect("legal parameters");
        let medians = |study: &Study| {
            let hardware = study.summary.complete.median();
            let software = study.software.iter().map(|r| r.latencies[0].median());
            (hardware, software.min().unwrap_or_default())
        };
        let [(hw2, sw2), (hw60, sw60)] = [0, 1].map(|k| medians(&studies[k].1));
        // The hardware's latency must not grow with the number of nodes,
        // while the latency of the best software barrier does.
        assert!(hw60 < hw2 + Time::from_ns(1200), "{hw2} to {hw60}");
        assert!(sw60 > sw2 + sw2, "{sw2} to {sw60}");
    }
}
