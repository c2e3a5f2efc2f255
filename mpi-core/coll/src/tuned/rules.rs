//! The decision table: a text with one choice per line; the head of [`BUILT_IN`] documents the format.

use crate::CallId;
use crate::algo::Algorithm;
use mpi_base::occupancy::Occupancy;
use mpi_base::param::Value;
use std::fmt;

/// The built-in table.
pub const BUILT_IN: &str = include_str!("rules.txt");

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Rule {
    call: CallId,
    ranks: u32,
    bytes: i64,
    /// True if the row applies only to oversubscribed ranks: the column of cores contains `shared`.
    shared: bool,
    algorithm: Algorithm,
}

/// A decision table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rules(Vec<Rule>);

/// The reason why a text is not a decision table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    line: usize,
    text: String,
    expected: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuleError {
            line,
            text,
            expected,
        } = self;
        write!(f, "line {line}, \"{text}\": expected {expected}")
    }
}

/// The criteria that do not depend on a call: number of ranks and oversubscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub ranks: u32,
    pub occupancy: Occupancy,
}

/// The minimum number of bytes from which an algorithm is used, and the algorithm.
pub type Step = (i64, Algorithm);

impl Rules {
    /// Parses a table; empty lines are skipped, and a `#` begins a comment.
    pub fn parse(text: &str) -> Result<Rules, RuleError> {
        let mut rules = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let words = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = words.split_whitespace().collect();
            if words.is_empty() {
                continue;
            }
            let rule = Rule::parse(&words).map_err(|expected| RuleError {
                line: number,
                text: line.trim().into(),
                expected,
            })?;
            rules.push(rule);
        }
        Ok(Rules(rules))
    }

    /// Describes each row for a collective in a sentence; if several rows apply to a call, the last of them is used.
    pub fn explain(&self, call: CallId) -> Vec<String> {
        let rows = self.0.iter().filter(|rule| rule.call == call);
        rows.map(|rule| {
            let shared = if rule.shared {
                " that are oversubscribed"
            } else {
                ""
            };
            let Rule {
                ranks,
                bytes,
                algorithm,
                ..
            } = rule;
            format!(
                "{} for {ranks} ranks or more{shared}, from {bytes} bytes on",
                algorithm.name()
            )
        })
        .collect()
    }

    /// Returns the rows for a collective that apply to a setting, in the order of the table.
    pub fn steps(&self, call: CallId, setting: Setting) -> Box<[Step]> {
        let met = |rule: &&Rule| {
            rule.call == call
                && rule.ranks <= setting.ranks
                && (!rule.shared || setting.occupancy == Occupancy::Oversubscribed)
        };
        self.0
            .iter()
            .filter(met)
            .map(|rule| (rule.bytes, rule.algorithm))
            .collect()
    }
}

impl Rule {
    fn parse(words: &[&str]) -> Result<Rule, String> {
        let [call, ranks, bytes, cores, algorithm] = words else {
            return Err("call, ranks, bytes, cores and algorithm".into());
        };
        let call = CallId::ALL.into_iter().find(|c| c.name() == *call);
        let call = call.ok_or("the name of a collective call first")?;
        Ok(Rule {
            call,
            ranks: <u32 as Value>::parse(ranks)?,
            bytes: <usize as Value>::parse(bytes)? as i64,
            shared: match *cores {
                "any" => false,
                "shared" => true,
                _ => return Err("any or shared in the column of cores".into()),
            },
            algorithm: algorithm_named(call, algorithm)?,
        })
    }
}

/// Returns the algorithm with this name, or an error that lists the names of all.
pub fn algorithm_named(call: CallId, name: &str) -> Result<Algorithm, String> {
    Algorithm::named(call, name).ok_or_else(|| {
        let names: Vec<&str> = Algorithm::serving(call).map(Algorithm::name).collect();
        format!("one of {} as the algorithm of {call}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(call: CallId, ranks: u32, occupancy: Occupancy, bytes: i64) -> &'static str {
        let rules = Rules::parse(BUILT_IN).expect("the built-in table");
        let steps = rules.steps(call, Setting { ranks, occupancy });
        steps
            .iter()
            .rev()
            .find(|(from, _)| *from <= bytes)
            .expect("a choice")
            .1
            .name()
    }

    #[test]
    fn the_built_in_table_chooses_for_every_call_of_every_size() {
        for call in CallId::ALL {
            for ranks in [1, 2, 3, 60, 100_000] {
                for bytes in [0, 1, 1 << 40] {
                    chosen(call, ranks, Occupancy::Oversubscribed, bytes);
                    chosen(call, ranks, Occupancy::Dedicated, bytes);
                }
            }
        }
    }

    #[test]
    fn of_the_rows_that_are_met_the_last_one_counts() {
        assert_eq!(
            chosen(CallId::Allreduce, 16, Occupancy::Dedicated, 8),
            "recursive_doubling"
        );
        assert_eq!(
            chosen(CallId::Allreduce, 16, Occupancy::Oversubscribed, 8),
            "reduce_bcast"
        );
        assert_eq!(
            chosen(CallId::Allreduce, 16, Occupancy::Oversubscribed, 64 << 10),
            "rabenseifner"
        );
        assert_eq!(
            chosen(CallId::Bcast, 2, Occupancy::Dedicated, 64 << 10),
            "binomial"
        );
        assert_eq!(
            chosen(CallId::Bcast, 3, Occupancy::Dedicated, 64 << 10),
            "scatter_allgather"
        );
    }

    #[test]
    fn a_bad_line_is_named_with_what_was_expected() {
        let says = |text: &str| Rules::parse(text).expect_err("a complaint").to_string();
        assert_eq!(
            says("\nbcast 1 0 any quick # fast"),
            "line 2, \"bcast 1 0 any quick # fast\": expected one of binomial, knomial, chain, scatter_allgather as the algorithm of bcast"
        );
        assert!(says("cast 1 0 any binomial").contains("name of a collective call"));
        assert!(says("bcast 1 0 binomial").contains("call, ranks, bytes, cores and algorithm"));
        assert!(says("bcast x 0 any binomial").contains("whole number"));
        assert!(says("bcast 1 4q any binomial").contains("a size"));
        assert!(says("bcast 1 0 few binomial").contains("any or shared"));
    }
}
