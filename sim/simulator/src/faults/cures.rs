//! Countermeasures (*cures*) against unsafe outcomes of the plain barrier:
//! runs the fault campaign with each cure, and measures each cure's cost.
//!
//! A cure is one or more parameters of a run. Its cost is latency in virtual time, and FPGA cells
//! as counted by yosys: `hdl/toggle/filter-cells.txt`, which a test of crate `hdl` verifies.

use super::campaign::{Campaign, Case, Class};
use super::known::KnownUnsafe;
use crate::virtual_time::{Parameters, Protocol, RunError, Time, run};
use embedded_hal::digital::PinState;
use std::fmt;

/// Number of FPGA cells of the barrier for 60 nodes, by number of filter samples.
const CELLS: &str = include_str!("../../../../hdl/toggle/filter-cells.txt");

/// Number of barriers of a run; the latency is the median over them.
const BARRIERS: usize = 400;
/// Number of nodes in the runs that measure a cure's cost.
const NODES: usize = 60;

/// A countermeasure: a combination of options that makes a run tolerate faults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cure {
    /// The parameters that the cure changes, as text.
    pub name: &'static str,
    filter: u16,
    reads: u8,
    protocol: Protocol,
    pull: Option<bool>,
}

const PLAIN: Cure = Cure {
    name: "plain",
    filter: 1,
    reads: 1,
    protocol: Protocol::Toggle,
    pull: None,
};
const LOW: Protocol = Protocol::Returning {
    rest: PinState::Low,
};
const HIGH: Protocol = Protocol::Returning {
    rest: PinState::High,
};

/// All cures: the plain barrier first, then each single cure, then combinations.
///
/// Seven samples suppress pulses of 200 ns, 128 samples pulses of 5 us;
/// six reads of 1.2 us suppress pulses of 5 us.
pub const CURES: [Cure; 9] = [
    PLAIN,
    Cure {
        name: "--filter 7",
        filter: 7,
        ..PLAIN
    },
    Cure {
        name: "--filter 128",
        filter: 128,
        ..PLAIN
    },
    Cure {
        name: "--reads 6",
        reads: 6,
        ..PLAIN
    },
    Cure {
        name: "--protocol returning:low",
        protocol: LOW,
        ..PLAIN
    },
    Cure {
        name: "--protocol returning:high",
        protocol: HIGH,
        ..PLAIN
    },
    Cure {
        name: "--protocol returning:low --pull down",
        protocol: LOW,
        pull: Some(false),
        ..PLAIN
    },
    Cure {
        name: "--protocol returning:low --pull down --filter 128 --reads 6",
        protocol: LOW,
        pull: Some(false),
        filter: 128,
        reads: 6,
    },
    Cure {
        name: "--protocol returning:high --pull up --filter 128 --reads 6",
        protocol: HIGH,
        pull: Some(true),
        filter: 128,
        reads: 6,
    },
];

impl Cure {
    /// Returns the parameters with this countermeasure applied.
    pub fn apply(&self, parameters: Parameters) -> Parameters {
        let Self {
            filter,
            reads,
            protocol,
            pull,
            ..
        } = *self;
        Parameters {
            filter,
            reads,
            protocol,
            pull,
            ..parameters
        }
    }
}

/// The cost of a cure for 60 nodes: median latency, and FPGA cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// The median time from the last node's entry until every node has left the barrier.
    pub latency: Time,
    /// Number of 4-input look-up tables of the barrier.
    pub luts: u32,
    /// Number of flip-flops of the barrier.
    pub flip_flops: u32,
}

/// The reason why a cure's cost cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CostError {
    /// The simulated run fails.
    Run(RunError),
    /// The table of FPGA cells has no row for this filter.
    Cells {
        /// The filter's number of samples.
        samples: u16,
    },
}

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(e) => e.fmt(f),
            Self::Cells { samples } => write!(
                f,
                "hdl/toggle/filter-cells.txt has no line for a filter of {samples} samples"
            ),
        }
    }
}

impl std::error::Error for CostError {}

/// Measures the cost of a cure.
pub fn cost(cure: &Cure) -> Result<Cost, CostError> {
    let samples = cure.filter;
    let (luts, flip_flops) = cells(samples).ok_or(CostError::Cells { samples })?;
    let parameters = cure.apply(Parameters::new(NODES, BARRIERS).in_circuit());
    let outcome = run(&parameters, false).map_err(CostError::Run)?;
    Ok(Cost {
        latency: outcome.summary.complete.median(),
        luts,
        flip_flops,
    })
}

/// Returns the numbers of LUTs and flip-flops of a barrier with a filter of `samples` samples.
fn cells(samples: u16) -> Option<(u32, u32)> {
    let lines = CELLS.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split_whitespace().map(str::parse::<u32>);
            match (words.next(), words.next(), words.next()) {
                (Some(Ok(of)), Some(Ok(luts)), Some(Ok(ffs))) => Some((of, luts, ffs)),
                _ => None,
            }
        })
        .find_map(|(of, luts, ffs)| (of == u32::from(samples)).then_some((luts, ffs)))
}

/// One hazard of the plain barrier: a kind of fault at a kind of place that is unsafe at some moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hazard {
    /// The kind of fault, as named in the catalogue.
    pub fault: String,
    /// The kind of place, without the number of the node or board.
    pub place: &'static str,
    /// Number of unsafe cases of the hazard with each cure, in the order of [`CURES`].
    pub unsafe_cases: [usize; CURES.len()],
}

impl Hazard {
    /// Returns the first cure of [`CURES`] with which this hazard has no unsafe case.
    pub fn cure(&self) -> Option<&'static Cure> {
        let found = self.unsafe_cases.iter().position(|&cases| cases == 0)?;
        CURES.get(found)
    }
}

/// Runs the campaign with each cure.
/// Returns one row per hazard of the plain barrier or of a barrier with a cure.
pub fn compare(
    campaign: &Campaign,
    known: &KnownUnsafe,
    threads: usize,
) -> Result<Vec<Hazard>, RunError> {
    let mut hazards: Vec<Hazard> = Vec::new();
    for (column, cure) in CURES.iter().enumerate() {
        let mut cured = campaign.clone();
        cured.parameters = cure.apply(cured.parameters);
        for Case {
            fault,
            place,
            class,
            ..
        } in cured.run(known, threads)?
        {
            if class != Class::Unsafe {
                continue;
            }
            let place = place.kind();
            let row = hazards
                .iter()
                .position(|hazard| hazard.fault == fault && hazard.place == place);
            let row = row.unwrap_or_else(|| {
                hazards.push(Hazard {
                    fault,
                    place,
                    unsafe_cases: [0; CURES.len()],
                });
                hazards.len() - 1
            });
            hazards[row].unsafe_cases[column] += 1;
        }
    }
    Ok(hazards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hazard_of_the_plain_barrier_is_cured_by_something() {
        cured_by_something(3, 1);
    }

    #[test]
    #[ignore = "long: cargo xtask test --long"]
    fn every_hazard_of_four_nodes_is_cured_by_something() {
        cured_by_something(4, 2);
    }

    fn cured_by_something(nodes: usize, seed: u64) {
        let known = KnownUnsafe::shipped().expect("the shipped list is well formed");
        let hazards = compare(&Campaign::new(nodes, seed), &known, 2).expect("legal");
        assert!(hazards.len() >= 12, "{hazards:?}");
        for hazard in hazards {
            assert!(hazard.cure().is_some(), "{hazard:?}");
        }
    }

    #[test]
    fn every_cure_has_a_price() {
        let plain = cost(&CURES[0]).expect("a cost");
        for cure in &CURES[1..] {
            let cost = cost(cure).expect("a cost");
            assert!(cost.latency >= plain.latency, "{cure:?} {cost:?}");
            assert!(cost != plain || cure.pull.is_some(), "{cure:?}");
        }
    }
}
