//! The documented list of unsafe outcomes: what version 1 of the hardware cannot help, and why.
//!
//! The list is a data file beside this one; a line is `fault | place | moments | reason`, and `#` begins a comment.
//! Moments are separated by `;` and `*` is all of them; a fault may end in `*`.

use std::fmt;

/// The list as it is shipped.
const SHIPPED: &str = include_str!("known-unsafe.txt");

/// A documented unsafe outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// The kind of fault.
    pub fault: &'static str,
    /// The kind of place.
    pub place: &'static str,
    /// The moments, separated by `;`, or `*`.
    pub moments: &'static str,
    /// Why it cannot be helped, and what to do about it.
    pub reason: &'static str,
}

/// The documented list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownUnsafe(Vec<Listed>);

/// A line that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadList {
    line: usize,
}

impl fmt::Display for BadList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the list of known unsafe outcomes, line {}: write fault | place | moments | reason",
            self.line
        )
    }
}

impl std::error::Error for BadList {}

impl KnownUnsafe {
    /// The list of the repository.
    pub fn shipped() -> Result<Self, BadList> {
        Self::parse(SHIPPED)
    }

    /// Nothing is known.
    pub fn none() -> Self {
        Self::default()
    }

    fn parse(text: &'static str) -> Result<Self, BadList> {
        let lines = text.lines().enumerate().filter(|(_, line)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        lines
            .map(|(number, line)| {
                let parts: Vec<_> = line.split('|').map(str::trim).collect();
                match parts.as_slice() {
                    &[fault, place, moments, reason] if !reason.is_empty() => Ok(Listed {
                        fault,
                        place,
                        moments,
                        reason,
                    }),
                    _ => Err(BadList { line: number + 1 }),
                }
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Every line.
    pub fn listed(&self) -> &[Listed] {
        &self.0
    }

    /// The line that documents this outcome.
    pub fn reason(&self, fault: &str, place: &str, moment: &str) -> Option<&Listed> {
        self.0
            .iter()
            .find(|listed| listed.covers(fault, place, moment))
    }
}

impl Listed {
    /// Whether this line documents this outcome.
    pub fn covers(&self, fault: &str, place: &str, moment: &str) -> bool {
        let same_fault = match self.fault.strip_suffix('*') {
            Some(start) => fault.starts_with(start),
            None => fault == self.fault,
        };
        let mut moments = self.moments.split(';').map(str::trim);
        same_fault && place == self.place && moments.any(|m| m == "*" || m == moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_reason_is_refused_by_its_number() {
        let bad = KnownUnsafe::parse("# why\n\nstuck at 0 | board | * |\n");
        assert_eq!(bad, Err(BadList { line: 3 }));
    }

    #[test]
    fn a_line_covers_its_faults_at_its_places_and_moments() {
        let text = "a | board | * | why\nb of * | node | idle, low; power-on | why";
        let list = KnownUnsafe::parse(text).expect("a list");
        let covered = |fault, place, moment| list.reason(fault, place, moment).is_some();
        assert!(covered("a", "board", "idle, low"));
        assert!(!covered("a", "node", "idle, low"));
        assert!(covered("b of 3ns", "node", "power-on"));
        assert!(!covered("b of 3ns", "node", "idle, high"));
        assert!(!covered("b", "node", "power-on"));
    }
}
