//! The list of programs that are known to fail, each with a reason; entries may only be removed.
//!
//! A line is `PROGRAM WHY REASON`: the program with its folder, a word of [`Why`], and a sentence.
//! `#` begins a comment.

use super::MpichTestsError;
use std::collections::BTreeMap;

/// How a listed program is known to behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The program does not build.
    Unbuilt,
    /// The program fails.
    Fails,
    /// The program is not run: even with MPICH it takes too long, or its result varies.
    Left,
}

/// The parsed list.
#[derive(Debug)]
pub struct Known(BTreeMap<String, Why>);

impl Known {
    /// Parses the list.
    pub fn parse(text: &str) -> Result<Known, MpichTestsError> {
        let mut known = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let mut words = text.splitn(3, ' ');
            let (program, why, reason) = (words.next(), words.next(), words.next());
            let why = match why {
                Some("unbuilt") => Some(Why::Unbuilt),
                Some("fails") => Some(Why::Fails),
                Some("left") => Some(Why::Left),
                _ => None,
            };
            match (program, why, reason) {
                (Some(program), Some(why), Some(_)) => known.insert(program.to_owned(), why),
                _ => return Err(MpichTestsError::Known { line }),
            };
        }
        Ok(Known(known))
    }

    /// Returns how a program is known to behave; `None` if it is not listed.
    pub fn of(&self, program: &str) -> Option<Why> {
        self.0.get(program).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_readable_and_a_line_without_a_reason_is_refused() {
        for list in [
            include_str!("known.txt"),
            include_str!("fortran.txt"),
            include_str!("on_openmpi.txt"),
            include_str!("on_mpich.txt"),
            include_str!("on_openmpi5.txt"),
            include_str!("on_intel.txt"),
        ] {
            let known = Known::parse(list).expect("our own list");
            assert!(known.0.keys().all(|program| program.contains('/')));
        }
        let refused = |text| match Known::parse(text) {
            Err(MpichTestsError::Known { line }) => Some(line),
            _ => None,
        };
        assert_eq!(
            refused("# fine\na/b fails it is wrong\na/c breaks it is wrong"),
            Some(3)
        );
        assert_eq!(refused("a/b fails"), Some(1));
    }
}
