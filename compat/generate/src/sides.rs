//! Lookup of a constant's or handle's values in the program's and the backend's ABI, for tests.

use crate::direction::Below;
use crate::entries::kind_of;
use crate::families::Which;
use crate::tables::{HANDLES, Handle, Tables};
use std::fmt::Write;

/// A non-standard ABI, and the direction of its translation.
pub struct Sides<'a> {
    pub tables: &'a Tables,
    pub which: Which,
    pub below: Below,
}

impl Sides<'_> {
    /// Orders a pair of values: the program's value first, the backend's second.
    fn sides(&self, standard: String, theirs: String) -> (String, String) {
        match self.below {
            Below::Standard => (theirs, standard),
            Below::Foreign => (standard, theirs),
        }
    }

    /// Returns a predefined handle in both ABIs.
    /// Returns the null handle if `null` is true or if the type has no other predefined handle.
    pub fn handle(&self, base: &str, null: bool) -> Result<(String, String), String> {
        let kind = HANDLES.iter().position(|h| *h == base);
        let kind = kind.ok_or_else(|| format!("{base} is no handle"))?;
        let theirs = |h: &Handle| match self.which {
            Which::Mpich => h
                .mpich
                .filter(|value| *value != 0x0c00_0000 || h.name.ends_with("_NULL"))
                .map(|value| format!("{value:#x}")),
            Which::OpenMpi => h
                .openmpi
                .as_ref()
                .map(|(symbol, ..)| format!("address!({symbol})")),
        };
        let mut known = self.tables.handles.iter().filter(|h| h.kind == kind);
        let is_null = |h: &&Handle| h.name.ends_with("_NULL");
        let found = match null {
            true => known.find(is_null),
            false => known
                .clone()
                .filter(|h| theirs(h).is_some())
                .find(|h| !is_null(h))
                .or_else(|| known.find(is_null)),
        };
        let found = found.ok_or("no predefined handle")?;
        let theirs = theirs(found).ok_or("no handle of the other ABI")?;
        Ok(self.sides(format!("{:#x}", found.standard), theirs))
    }

    /// Returns a constant of the kind `word` in both ABIs. For flags, returns all flags combined.
    pub fn word(&self, word: &str) -> Result<(String, String), String> {
        let word = self
            .tables
            .word(word)
            .ok_or_else(|| format!("no word {word}"))?;
        let mut both = word
            .values
            .iter()
            .filter_map(|value| Some((value.1, self.which.of(value)?)));
        let (standard, theirs) = match word.bits {
            true => both.fold((0, 0), |(s, t), (a, b)| (s | a, t | b)),
            // Of the constants whose values differ between the ABIs, the last one is used.
            false => {
                let all: Vec<(i64, i64)> = both.by_ref().collect();
                let differs = all.iter().rev().find(|(s, t)| s != t);
                match differs.or(all.last()) {
                    Some(pair) => *pair,
                    // The library's ABI has no constant of this kind, so any value will do.
                    // Values that are not constants pass unchanged.
                    None => return Ok(("-1".into(), "-1".into())),
                }
            }
        };
        Ok(self.sides(standard.to_string(), theirs.to_string()))
    }

    /// Generates functions that return the pairs of values of handles and constants,
    /// for the handwritten tests.
    pub fn write(&self) -> Result<String, String> {
        let mut out = String::new();
        for (name, null, what) in [
            (
                "predefined",
                false,
                "A predefined handle of a type, null if there is no other",
            ),
            ("null", true, "The null handle of a type"),
        ] {
            let mut arms = String::new();
            for base in HANDLES {
                let (program, below) = self.handle(base, null)?;
                let kind = kind_of(base);
                let _ = writeln!(
                    arms,
                    "        Kind::{kind} => ({program} as _, {below} as _),"
                );
            }
            let _ = writeln!(
                out,
                "/// {what}: the program's, and that of the library below.\n\
                 fn {name}(kind: Kind) -> (Handle, Below) {{\n    match kind {{\n{arms}    }}\n}}"
            );
        }
        let mut words = String::new();
        let mut constants = String::new();
        let mut written = Vec::new();
        for word in &self.tables.words {
            let (program, below) = self.word(&word.name)?;
            let _ = writeln!(words, "        {:?} => ({program}, {below}),", word.name);
            for value in &word.values {
                let Some(theirs) = self
                    .which
                    .of(value)
                    .filter(|_| !written.contains(&&value.0))
                else {
                    continue;
                };
                written.push(&value.0);
                let (program, below) = self.sides(value.1.to_string(), theirs.to_string());
                let _ = writeln!(constants, "        {:?} => ({program}, {below}),", value.0);
            }
        }
        let _ = writeln!(
            out,
            "/// A constant of a set that is not the same on both sides, if the set has one.\n\
             fn word(name: &str) -> (c_int, c_int) {{\n    match name {{\n{words}        \
             _ => panic!(\"no word {{name}}\"),\n    }}\n}}\n\
             /// A constant by its name, if both sides have it.\n\
             fn known(name: &str) -> Option<(c_int, c_int)> {{\n    Some(match name {{\n{constants}        \
             _ => return None,\n    }})\n}}"
        );
        Ok(out)
    }
}
