//! Arrival distributions: how long each node computes before each barrier, drawn at random or read from a file.

use super::random::Random;
use super::time::Time;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The distribution of a node's computing time before the next barrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrivals {
    /// No computing time: a node enters the next barrier as soon as it has left the last one.
    Together,
    /// Uniformly distributed from 0 to this time.
    Uniform(Time),
    /// Exponentially distributed with this mean.
    Exponential(Time),
    /// Normally distributed, truncated at zero.
    Normal {
        /// The mean of the distribution.
        mean: Time,
        /// The standard deviation of the distribution.
        deviation: Time,
    },
    /// The last node computes for this time, all other nodes do not compute.
    OneLate(Time),
    /// The first node does not compute, all other nodes compute for this time.
    OneEarly(Time),
    /// Read from a table with a row per barrier and a column per node;
    /// both are repeated cyclically if needed.
    Table(Table),
}

/// Computing times from a file: one line per barrier, one time per node, `#` for comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    name: String,
    rows: Arc<Vec<Vec<Time>>>,
}

impl Arrivals {
    /// Returns the computing time of `node` of `nodes` nodes before barrier `barrier`.
    pub(super) fn sample(
        &self,
        random: &mut Random,
        nodes: usize,
        node: usize,
        barrier: usize,
    ) -> Time {
        match self {
            Self::Together => Time::ZERO,
            Self::Uniform(spread) => spread.scaled(random.unit()),
            // The inverse of the distribution function; the argument `1 - u` is never zero.
            Self::Exponential(mean) => mean.scaled(-(1.0 - random.unit()).ln()),
            Self::Normal { mean, deviation } => mean.plus_scaled(*deviation, random.normal()),
            Self::OneLate(late) if node + 1 == nodes => *late,
            Self::OneEarly(late) if node > 0 => *late,
            Self::OneLate(_) | Self::OneEarly(_) => Time::ZERO,
            Self::Table(table) => table.at(node, barrier),
        }
    }
}

impl Table {
    /// Parses the text of the file `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, BadArrivals> {
        let mut rows = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let words = line.split('#').next().unwrap_or_default();
            let row = words
                .split([' ', '\t', ',', ';'])
                .filter(|word| !word.is_empty())
                .map(|word| {
                    word.parse().map_err(|e| BadArrivals::Line {
                        name: name.to_owned(),
                        line: number + 1,
                        reason: format!("{e}"),
                    })
                })
                .collect::<Result<Vec<Time>, _>>()?;
            if !row.is_empty() {
                rows.push(row);
            }
        }
        if rows.is_empty() {
            return Err(BadArrivals::Empty(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            rows: Arc::new(rows),
        })
    }

    fn at(&self, node: usize, barrier: usize) -> Time {
        let row = &self.rows[barrier % self.rows.len()];
        row[node % row.len()]
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Together => f.write_str("together"),
            Self::Uniform(spread) => write!(f, "uniform:{spread}"),
            Self::Exponential(mean) => write!(f, "exponential:{mean}"),
            Self::Normal { mean, deviation } => write!(f, "normal:{mean}:{deviation}"),
            Self::OneLate(late) => write!(f, "one-late:{late}"),
            Self::OneEarly(late) => write!(f, "one-early:{late}"),
            Self::Table(table) => write!(f, "file:{}", table.name),
        }
    }
}

/// The reason why a text is not an arrival distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadArrivals {
    /// There is no distribution with this name.
    Word(String),
    /// The file cannot be read.
    File {
        /// The file's name.
        name: String,
        /// The error that the system reported.
        reason: String,
    },
    /// A line of the file contains something other than times.
    Line {
        /// The file's name.
        name: String,
        /// The line's number, counted from 1.
        line: usize,
        /// The error in the line.
        reason: String,
    },
    /// The file with this name contains no time.
    Empty(String),
}

impl fmt::Display for BadArrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(
                f,
                "'{word}' is none of together, uniform:TIME, exponential:MEAN, normal:MEAN:DEVIATION, \
                 one-late:TIME, one-early:TIME, file:PATH (TIME as in 10us)"
            ),
            Self::File { name, reason } => {
                write!(f, "the arrival times in {name} cannot be read: {reason}")
            }
            Self::Line { name, line, reason } => write!(f, "{name}, line {line}: {reason}"),
            Self::Empty(name) => write!(
                f,
                "{name} holds no time: write a line for each barrier with a time for each node"
            ),
        }
    }
}

impl std::error::Error for BadArrivals {}

impl FromStr for Arrivals {
    type Err = BadArrivals;

    fn from_str(text: &str) -> Result<Self, BadArrivals> {
        let bad = || BadArrivals::Word(text.to_owned());
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let time = |word: &str| word.parse().map_err(|_| bad());
        match kind {
            "together" if text == kind => Ok(Self::Together),
            "uniform" => time(rest).map(Self::Uniform),
            "exponential" => time(rest).map(Self::Exponential),
            "one-late" => time(rest).map(Self::OneLate),
            "one-early" => time(rest).map(Self::OneEarly),
            "normal" => {
                let (mean, deviation) = rest.split_once(':').ok_or_else(bad)?;
                Ok(Self::Normal {
                    mean: time(mean)?,
                    deviation: time(deviation)?,
                })
            }
            "file" => {
                let text = std::fs::read_to_string(rest).map_err(|e| BadArrivals::File {
                    name: rest.to_owned(),
                    reason: e.to_string(),
                })?;
                Table::parse(rest, &text).map(Self::Table)
            }
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(text: &str, count: usize) -> Vec<f64> {
        let arrivals: Arrivals = text.parse().expect("a distribution");
        let mut random = Random::new(7, 0);
        (0..count)
            .map(|k| arrivals.sample(&mut random, 4, 0, k).ps() as f64)
            .collect()
    }

    #[test]
    fn every_distribution_is_written_as_it_is_read() {
        for text in [
            "together",
            "uniform:10us",
            "exponential:3us",
            "normal:10us:2us",
            "one-late:50us",
            "one-early:50us",
        ] {
            assert_eq!(
                text.parse::<Arrivals>().map(|a| a.to_string()),
                Ok(text.to_owned())
            );
        }
    }

    #[test]
    fn the_means_are_those_that_were_asked_for() {
        for (text, mean) in [
            ("uniform:10us", 5e6),
            ("exponential:3us", 3e6),
            ("normal:10us:2us", 10e6),
        ] {
            let samples = samples(text, 20_000);
            let found = samples.iter().sum::<f64>() / samples.len() as f64;
            assert!((found / mean - 1.0).abs() < 0.03, "{text}: {found}");
        }
    }

    #[test]
    fn one_node_is_late_or_early_and_the_others_are_alike() {
        let mut random = Random::new(1, 0);
        let mut row = |text: &str| -> Vec<u64> {
            let arrivals: Arrivals = text.parse().expect("a distribution");
            (0..3)
                .map(|node| arrivals.sample(&mut random, 3, node, 0).ns())
                .collect()
        };
        assert_eq!(row("one-late:5us"), [0, 0, 5000]);
        assert_eq!(row("one-early:5us"), [0, 5000, 5000]);
    }

    #[test]
    fn a_table_is_read_by_barrier_and_node_and_repeats() {
        let table = Table::parse(
            "t",
            "# two barriers\n1us 2us, 3us\n\n4us # the rest alike\n",
        );
        let table = table.expect("a table");
        let at = |node, barrier| table.at(node, barrier).ns();
        assert_eq!([at(0, 0), at(2, 0), at(3, 0)], [1000, 3000, 1000]);
        assert_eq!([at(0, 1), at(2, 1), at(1, 2)], [4000, 4000, 2000]);
    }

    #[test]
    fn what_is_wrong_in_a_table_is_named_with_its_line() {
        let said = |text| Table::parse("t", text).err().map(|e| e.to_string());
        assert_eq!(
            said("1us\n2us x\n").as_deref(),
            Some("t, line 2: 'x' is no time: write a number and a unit, as in 1.2us, 40ns, 3ms")
        );
        assert_eq!(
            said("# nothing\n").as_deref(),
            Some("t holds no time: write a line for each barrier with a time for each node")
        );
    }
}
