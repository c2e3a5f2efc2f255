//! The value of `--bind-to`: the unit (core, cache, package, ...) that each rank is bound to.

use super::value_error::ValueError;
use crate::launch::binding::Unit;

const WANTED: &str =
    "none, core, hwthread, l3cache, numa or package, and after it :N or :overload-allowed";

/// A parsed value of `--bind-to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BindTo {
    /// The unit that ranks are bound to; `None` leaves ranks unbound.
    pub unit: Option<Unit>,
    /// The number of units that each rank is bound to.
    pub each: Option<usize>,
    /// Several ranks may share a unit if there are more ranks than units (`:overload-allowed`).
    pub overload: bool,
}

impl BindTo {
    /// Parses a value of `--bind-to` in any letter case.
    pub fn parse(text: &str) -> Result<BindTo, ValueError> {
        let wrong = || ValueError::unknown(WANTED);
        let lower = text.to_lowercase();
        let mut words = lower.split(':');
        let unit = match words.next().unwrap_or_default() {
            // The machine and the board contain all processors, so ranks stay unbound.
            "none" | "default" | "machine" | "board" => None,
            "rr" => Some(Unit::Thread),
            "user" | "cpu-list" | "cpulist" => {
                return Err(ValueError::Refused {
                    option: "--bind-to with a list of processors",
                    what: "processors for each rank",
                    instead: "a line of --rankfile FILE for each rank, such as \"rank 0=HOST slot=0-1\", names its cores",
                });
            }
            unit => Some(Unit::named(unit).ok_or_else(wrong)?),
        };
        let mut bind_to = BindTo {
            unit,
            ..BindTo::default()
        };
        for word in words {
            match (word, word.parse()) {
                ("overload-allowed", _) => bind_to.overload = true,
                ("if-supported" | "no-overload", _) => {}
                (_, Ok(each @ 1..)) => bind_to.each = Some(each),
                _ => return Err(wrong()),
            }
        }
        Ok(bind_to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_a_number_and_a_word_are_parsed() {
        let parsed = BindTo::parse("Core:2:overload-allowed").unwrap();
        assert_eq!((parsed.unit, parsed.each), (Some(Unit::Core), Some(2)));
        assert!(parsed.overload);
        assert_eq!(BindTo::parse("none"), Ok(BindTo::default()));
        for text in ["", "chair", "core:0", "core:loose"] {
            let error = BindTo::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("none, core, hwthread"), "{text}: {error}");
        }
        for text in ["cpu-list", "cpulist", "user"] {
            let error = BindTo::parse(text).unwrap_err().to_string();
            assert!(error.contains("--rankfile FILE"), "{text}: {error}");
        }
    }

    #[test]
    fn words_of_other_launchers_have_their_meaning_or_none() {
        for text in ["none", "default", "machine", "board", "none:if-supported"] {
            assert_eq!(BindTo::parse(text), Ok(BindTo::default()), "{text}");
        }
        let threads = BindTo {
            unit: Some(Unit::Thread),
            ..BindTo::default()
        };
        for text in ["rr", "hwthread", "hwthread:if-supported", "rr:no-overload"] {
            assert_eq!(BindTo::parse(text), Ok(threads), "{text}");
        }
        let several = BindTo {
            unit: Some(Unit::Core),
            each: Some(3),
            overload: false,
        };
        assert_eq!(BindTo::parse("core:3"), Ok(several));
    }
}
