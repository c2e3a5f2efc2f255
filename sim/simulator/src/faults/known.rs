//! The documented list of unsafe outcomes that version
//! 1 of the hardware cannot prevent, with reasons.
//!
//! The list is the file `known-unsafe.txt` in this folder; a line is `fault | place | moments | reason`,
//! `#` is a comment.
//! Moments are separated by `;`, and `*` matches all moments; a fault's name may end in `*`.
//! A place may end in `, below` or `, cured`. The line then applies only to cascaded boards,
//! or only to a barrier with a filter or a returning protocol.

use std::fmt;

use crate::virtual_time::{Parameters, Protocol};

/// The text of the list in the repository.
const SHIPPED: &str = include_str!("known-unsafe.txt");

/// A documented unsafe outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownCase {
    /// The name of the fault; a trailing `*` matches any ending.
    pub fault: &'static str,
    /// The kind of place, without the number of the node or board.
    pub place: &'static str,
    /// The moments, separated by `;`, or `*` for all moments.
    pub moments: &'static str,
    /// The reason why version 1 cannot prevent the outcome, and the remedy.
    pub reason: &'static str,
}

/// The documented list of unsafe outcomes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownUnsafe(Vec<KnownCase>);

/// The error for a line of the list that cannot be parsed.
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
    /// Returns the documented list, `known-unsafe.txt`.
    pub fn shipped() -> Result<Self, BadList> {
        Self::parse(SHIPPED)
    }

    /// Returns a list that documents no unsafe outcome.
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
                    &[fault, place, moments, reason] if !reason.is_empty() => Ok(KnownCase {
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

    /// Returns all lines of the list.
    pub fn listed(&self) -> &[KnownCase] {
        &self.0
    }

    /// Returns the line that documents an unsafe outcome on this hardware.
    ///
    /// With several channels used in turn, the protocol state may be that
    /// of another channel than the disturbed one, so `moment` is ignored.
    pub fn reason_with(
        &self,
        hardware: &Parameters,
        fault: &str,
        place: &str,
        moment: &str,
    ) -> Option<&KnownCase> {
        let below = (hardware.boards > 1).then_some("below");
        let is_cured = hardware.filter > 1 || hardware.protocol != Protocol::Toggle;
        let cured = is_cured.then_some("cured");
        let qualified = [below, cured].into_iter().flatten();
        let qualified = qualified.map(|qualifier| format!("{place}, {qualifier}"));
        std::iter::once(place.to_owned())
            .chain(qualified)
            .find_map(|place| match hardware.channels {
                ..=1 => self.reason(fault, &place, moment),
                _ => self.0.iter().find(|listed| listed.is_of(fault, &place)),
            })
    }

    /// Returns the line that documents an unsafe outcome of this fault, place and moment.
    pub fn reason(&self, fault: &str, place: &str, moment: &str) -> Option<&KnownCase> {
        self.0
            .iter()
            .find(|listed| listed.covers(fault, place, moment))
    }
}

impl KnownCase {
    /// Returns true if this line documents an unsafe outcome of this fault, place and moment.
    pub fn covers(&self, fault: &str, place: &str, moment: &str) -> bool {
        let mut moments = self.moments.split(';').map(str::trim);
        self.is_of(fault, place) && moments.any(|m| m == "*" || m == moment)
    }

    /// Returns true if this line is for this fault at this kind of place, at any moment.
    fn is_of(&self, fault: &str, place: &str) -> bool {
        let same_fault = match self.fault.strip_suffix('*') {
            Some(start) => fault.starts_with(start),
            None => fault == self.fault,
        };
        same_fault && place == self.place
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
