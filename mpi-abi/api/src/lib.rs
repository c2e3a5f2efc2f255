//! Tables of the MPI 5.0 C interface: functions, types and constants, for generators.
//!
//! The tables are text files beside this package's manifest.
//! The comment at the head of each table describes its format.
//! The tables are compiled into the package, so a generator opens no file.
//! Cargo runs a build script again when a table changes.
//!
//! * [`functions`], [`extensions`] and [`constants`] return the tables.
//!   [`values`] returns the numeric value of each constant.
//! * [`Function`] and [`Param`] describe a C prototype and its parameters' names and types in Rust.
//! * [`header`] writes `mpi.h` and `mpi-ext.h`.
//! * [`MEANINGS`] has one sentence per function for the manual pages.
//! * [`lines`] and [`number`] parse other tables of the same format.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod header;
mod parse;
mod prototype;

pub use parse::{Chapter, Functions, Item, Kind, Section, lines, number};
pub use prototype::{Function, Param, parse_prototype};

use std::collections::BTreeMap;

/// The table `meanings.txt`: a sentence for each function, in lines `NAME | SENTENCE`.
pub const MEANINGS: &str = include_str!("../meanings.txt");

/// Returns the table `functions.txt`: all functions of MPI 5.0.
pub fn functions() -> Result<Functions, String> {
    parse::functions(include_str!("../functions.txt")).map_err(|e| format!("functions.txt, {e}"))
}

/// Returns the table `extensions.txt`: the extensions, declared in `mpi-ext.h`.
pub fn extensions() -> Result<Functions, String> {
    parse::functions(include_str!("../extensions.txt")).map_err(|e| format!("extensions.txt, {e}"))
}

/// Returns the table `constants.txt`: types, handles, constants and callbacks of MPI 5.0.
pub fn constants() -> Result<Vec<Section>, String> {
    parse::constants(include_str!("../constants.txt")).map_err(|e| format!("constants.txt, {e}"))
}

/// Returns the table `extension_types.txt`: constants and callbacks of the extensions.
pub fn extension_types() -> Result<Vec<Section>, String> {
    parse::constants(include_str!("../extension_types.txt"))
        .map_err(|e| format!("extension_types.txt, {e}"))
}

/// Returns the numeric value of each constant and predefined handle, with aliases resolved.
pub fn values(sections: &[Section]) -> BTreeMap<&str, i64> {
    let mut values = BTreeMap::new();
    let valued = |s: &&Section| matches!(s.kind, Kind::Handle | Kind::Enum | Kind::Define);
    for item in sections.iter().filter(valued).flat_map(|s| &s.items) {
        let aliased = || values.get(item.value.as_str()).copied();
        if let Some(value) = item.number().or_else(aliased) {
            values.insert(item.name.as_str(), value);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_has_the_number_of_what_it_names() {
        let sections = constants().expect("constants.txt");
        let values = values(&sections);
        let alias = sections
            .iter()
            .flat_map(|s| &s.items)
            .find(|i| i.number().is_none() && values.contains_key(i.name.as_str()))
            .expect("an alias");
        assert_eq!(values[alias.name.as_str()], values[alias.value.as_str()]);
        assert_eq!(values["MPI_COMM_WORLD"], 0x101);
    }

    #[test]
    fn a_length_is_a_scalar_parameter_or_a_constant() {
        let sections = constants().expect("constants.txt");
        let values = values(&sections);
        let table = functions().expect("functions.txt");
        let mut checked = 0;
        for f in &table.functions {
            for p in f.params.iter().filter(|p| !p.length.is_empty()) {
                let name = p.length.trim_end_matches("+1");
                let is_scalar = |q: &Param| q.name == name && q.by_value();
                let known =
                    name == "*" || f.params.iter().any(is_scalar) || values.contains_key(name);
                assert!(known, "{}: {} has {name} elements", f.name, p.name);
                checked += 1;
            }
        }
        assert!(checked > 100, "{checked}");
    }

    #[test]
    fn large_counts_change_no_length() {
        let table = functions().expect("functions.txt");
        for pair in table.functions.windows(2) {
            let [small, large] = pair else { continue };
            if large.name.strip_suffix("_c") == Some(&small.name) {
                for p in &small.params {
                    let twin = large.params.iter().find(|q| q.name == p.name);
                    let length = twin.map_or(&p.length, |q| &q.length);
                    assert_eq!(&p.length, length, "{}: {}", large.name, p.name);
                }
            }
        }
    }

    #[test]
    fn extensions_have_their_own_prefix() {
        let extensions = extensions().expect("extensions.txt");
        assert!(
            extensions
                .functions
                .iter()
                .all(|f| f.name.starts_with("MPIX_"))
        );
    }
}
