//! The value of `--map-by`: how ranks are assigned to hosts and to the units of a host.

use super::numbers;
use super::value_error::ValueError;
use crate::launch::binding::Unit;
use std::path::PathBuf;

const WANTED: &str = "slot, node, package, numa, l3cache, core, hwthread, ppr:N:node or rankfile:file=FILE, and after it :PE=N, :SPAN, :OVERSUBSCRIBE or :NOOVERSUBSCRIBE";

/// The order in which ranks are assigned to hosts and units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Hosts are filled one after the other; the default, which other options may override.
    #[default]
    Slot,
    /// Ranks are assigned round robin over the hosts.
    Node,
    /// Ranks are assigned round robin over these units of a host.
    Unit(Unit),
    /// Each host gets this number of ranks (`ppr:N:node`).
    PerNode(usize),
    /// Each of these units gets this number of ranks (`ppr:N:UNIT`).
    PerUnit(usize, Unit),
    /// A rankfile names the host and cores of each rank.
    Rankfile(Option<PathBuf>),
}

/// A parsed value of `--map-by`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapBy {
    pub order: Order,
    /// Ranks are balanced over all hosts (`:SPAN`).
    pub span: bool,
    /// The number of cores of each rank (`:PE=N`).
    pub cores: Option<usize>,
    /// More ranks than slots are allowed (`:OVERSUBSCRIBE`).
    pub oversubscribe: bool,
    /// The slot count is also a limit on a single host (`:NOOVERSUBSCRIBE`).
    pub strict: bool,
}

impl MapBy {
    /// Parses a value of `--map-by`; only file names are case-sensitive.
    pub fn parse(text: &str) -> Result<MapBy, ValueError> {
        let wrong = || ValueError::unknown(WANTED);
        let lower = text.to_lowercase();
        if lower.starts_with("pe-list") {
            return Err(ValueError::Refused {
                option: "--map-by pe-list",
                what: "a list of processors",
                instead: "a line of --rankfile FILE for each rank, such as \"rank 0=HOST slot=0-1\", names its cores",
            });
        }
        let mut words = lower.split([':', ',']);
        let order = match words.next().unwrap_or_default() {
            "rankfile" => {
                return Ok(MapBy {
                    order: Order::Rankfile(file_of(text)),
                    ..MapBy::default()
                });
            }
            "ppr" => {
                let count = words.next().and_then(|count| numbers::count(count).ok());
                let count = count.ok_or_else(wrong)?;
                match words.next().ok_or_else(wrong)? {
                    "node" => Order::PerNode(count),
                    unit => Order::PerUnit(count, Unit::named(unit).ok_or_else(wrong)?),
                }
            }
            "slot" | "" => Order::Slot,
            "node" => Order::Node,
            unit => Order::Unit(Unit::named(unit).ok_or_else(wrong)?),
        };
        let mut map_by = MapBy {
            order,
            ..MapBy::default()
        };
        words.try_for_each(|word| map_by.modify(word))?;
        Ok(map_by)
    }

    /// Applies one modifier that follows the unit, such as `span` or `pe=2`.
    fn modify(&mut self, word: &str) -> Result<(), ValueError> {
        match (word, word.split_once('=')) {
            ("oversubscribe", _) => self.oversubscribe = true,
            ("nooversubscribe", _) => self.strict = true,
            ("span", _) => self.span = true,
            // `hwtcpus` has no effect, since this launcher's processors are hardware threads.
            // `inherit` and `noinherit` have no effect: spawned jobs always inherit the policy.
            ("hwtcpus" | "inherit" | "noinherit", _) => {}
            (_, Some(("pe", each))) => {
                let each = numbers::count(each).map_err(|_| ValueError::unknown(WANTED))?;
                self.cores = Some(each);
            }
            ("nolocal", _) => {
                return Err(ValueError::Refused {
                    option: "--map-by :NOLOCAL",
                    what: "no ranks on this host",
                    instead: "--host lists the hosts to be used",
                });
            }
            _ => return Err(ValueError::unknown(WANTED)),
        }
        Ok(())
    }
}

/// Returns the file of a value `rankfile:file=FILE`.
fn file_of(text: &str) -> Option<PathBuf> {
    const FORM: &str = "rankfile:file=";
    let (head, file) = text.split_at_checked(FORM.len())?;
    head.eq_ignore_ascii_case(FORM).then(|| file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_after_the_unit_are_properties() {
        let parsed = MapBy::parse("PPR:2:numa:pe=3,Span").unwrap();
        assert_eq!(parsed.order, Order::PerUnit(2, Unit::Numa));
        assert_eq!(
            (parsed.cores, parsed.span, parsed.strict),
            (Some(3), true, false)
        );
        let file = MapBy::parse("RankFile:File=/tmp/A,b:c").unwrap();
        assert_eq!(file.order, Order::Rankfile(Some("/tmp/A,b:c".into())));
        assert_eq!(MapBy::parse(""), Ok(MapBy::default()));
    }

    #[test]
    fn each_first_word_is_an_order() {
        for (text, order) in [
            ("slot", Order::Slot),
            (":span", Order::Slot),
            ("node", Order::Node),
            ("core", Order::Unit(Unit::Core)),
            ("socket", Order::Unit(Unit::Package)),
            ("ppr:3:node", Order::PerNode(3)),
            ("ppr:1:core", Order::PerUnit(1, Unit::Core)),
            ("rankfile", Order::Rankfile(None)),
        ] {
            assert_eq!(MapBy::parse(text).map(|parsed| parsed.order), Ok(order));
        }
    }

    #[test]
    fn each_later_word_sets_its_property_alone() {
        let plain = || MapBy {
            order: Order::Node,
            ..MapBy::default()
        };
        for word in ["hwtcpus", "inherit", "noinherit"] {
            assert_eq!(MapBy::parse(&format!("node:{word}")), Ok(plain()));
        }
        let span = MapBy {
            span: true,
            ..plain()
        };
        let oversubscribe = MapBy {
            oversubscribe: true,
            ..plain()
        };
        let strict = MapBy {
            strict: true,
            ..plain()
        };
        let cores = MapBy {
            cores: Some(2),
            ..plain()
        };
        assert_eq!(MapBy::parse("node:SPAN"), Ok(span.clone()));
        assert_eq!(MapBy::parse("node,span"), Ok(span));
        assert_eq!(MapBy::parse("node:oversubscribe"), Ok(oversubscribe));
        assert_eq!(MapBy::parse("node:nooversubscribe"), Ok(strict));
        assert_eq!(MapBy::parse("node:PE=2"), Ok(cores));
    }

    #[test]
    fn what_cannot_be_done_is_an_error_that_names_the_choices() {
        for text in [
            "chair",
            "ppr",
            "ppr:0:node",
            "ppr:1:chair",
            "slot:PE=x",
            "node:fast",
        ] {
            let error = MapBy::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("slot, node, package"), "{text}: {error}");
        }
        for (text, cure) in [
            ("pe-list=0,1", "--rankfile FILE"),
            ("slot:NoLocal", "--host lists"),
        ] {
            let error = MapBy::parse(text).unwrap_err().to_string();
            assert!(error.contains(cure), "{text}: {error}");
        }
    }
}
