//! Warnings about unknown parameters, each with the most similar existing name,
//! and about lines of parameter files that are not understood.
//!
//! Rank 0 of `MPI_COMM_WORLD`, or a process that runs alone,
//! prints the warnings when all frameworks are known.
//!
//! Settings for other programs cause no warning.
//! The launcher reports unknown parameters of its own ([`is_launchers`]).
//! Settings of absent components cause no warning: other installations may have these components.
//! A component is absent if a selection excludes it by name or its plugin file was skipped.

use crate::frameworks::{self, Framework};
use mpi_base::param::{About, Kind, Params, Selection};
use mpi_core::plugin::Catalogue;
use strsim::normalized_damerau_levenshtein;

/// The frameworks of the launcher, whose parameters are not known to this library.
pub const LAUNCHERS: [&str; 2] = ["mpirun", "plm"];

/// Minimum similarity (0 to 1) for a name to be suggested.
const NEAR: f64 = 0.6;

/// Returns true if a name belongs to a framework of the launcher.
pub fn is_launchers(name: &str) -> bool {
    words(name)
        .next()
        .is_some_and(|first| LAUNCHERS.contains(&first))
}

/// Prints the warnings about unknown parameters, and about lines of parameter files that are not understood.
pub fn warn(params: &Params, plugins: &Catalogue) {
    for complaint in params.complaints() {
        printable::eprintln!("rank 0: {complaint}");
    }
    // Most jobs set no parameter, so the check is skipped for them.
    if params.settings().next().is_none() {
        return;
    }
    let known = frameworks::with(plugins);
    let others = |name: &str| is_launchers(name) || plugins.passed.reads(name);
    for sentence in sentences(params, &known, others) {
        printable::eprintln!("rank 0: {sentence}");
    }
}

/// Returns the warnings about settings that belong neither to this library nor to another program.
pub fn sentences(
    params: &Params,
    known: &[Framework],
    others: impl Fn(&str) -> bool,
) -> Vec<String> {
    let abouts: Vec<&About> = known.iter().flat_map(Framework::abouts).collect();
    let names: Vec<String> = abouts.iter().map(|about| about.full_name()).collect();
    let left_out = left_out(params, &abouts);
    let unknown = params.settings().filter(|(name, ..)| {
        !names.iter().any(|known| known == name)
            && !left_out.iter().any(|begin| name.starts_with(begin))
            && !others(name)
    });
    unknown
        .map(|(name, _, source)| {
            let instead = match nearest(name, &names) {
                Some(near) => format!("the nearest name is {near}"),
                None => {
                    let framework = words(name).next();
                    let listed = known.iter().find(|known| Some(known.name) == framework);
                    let which = listed.map_or("--all".into(), |listed| {
                        format!("--param {} all", listed.name)
                    });
                    format!("mpi-info {which} lists those there are")
                }
            };
            let name = printable::name(name);
            format!("there is no parameter \"{name}\" (from {source}); {instead}")
        })
        .collect()
}

/// Returns the name prefixes of absent components that the user has excluded by name.
/// The settings of such a component may be meant for another installation.
fn left_out(params: &Params, abouts: &[&About]) -> Vec<String> {
    let selections = abouts.iter().filter(|about| about.kind == Kind::Selection);
    selections
        .flat_map(|about| {
            let names = match Selection::parse(params.text(about)) {
                Ok(Selection::Except(names)) => names,
                _ => Vec::new(),
            };
            let is_here = |name: &String| {
                let mut of_framework = abouts.iter().filter(|a| a.framework == about.framework);
                of_framework.any(|a| a.component == name)
            };
            let absent = names.into_iter().filter(move |name| !is_here(name));
            absent.map(|name| format!("{}_{name}_", about.framework))
        })
        .collect()
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split('_')
}

/// Returns the existing name that the user probably meant.
/// First choice: the only name with all words of `name`, as `coll_base_check` for `coll_check`.
/// Of several such names, the only one with the same last word is chosen.
/// Otherwise the most similar name is chosen.
fn nearest<'a>(name: &str, names: &'a [String]) -> Option<&'a String> {
    let has_words = |known: &&String| {
        let mut theirs = words(known);
        words(name).all(|word| theirs.any(|their| their == word))
    };
    let ends_alike = |known: &&String| words(known).last() == words(name).last();
    let longer = names.iter().filter(has_words);
    if let Some(known) = only(longer.clone()).or_else(|| only(longer.filter(ends_alike))) {
        return Some(known);
    }
    let alike = names.iter().map(|known| (likeness(name, known), known));
    let near = alike.filter(|(likeness, _)| *likeness >= NEAR);
    near.max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known)
}

fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    all.next().filter(|_| all.next().is_none())
}

/// Returns the similarity of two names (0 to 1). An equal first word is not compared:
/// parameters of one component are not similar merely because they have the same prefix.
fn likeness(a: &str, b: &str) -> f64 {
    match (a.split_once('_'), b.split_once('_')) {
        (Some((first_a, rest_a)), Some((first_b, rest_b))) if first_a == first_b => {
            likeness(rest_a, rest_b)
        }
        _ => normalized_damerau_levenshtein(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_base::param::Source;

    fn told(settings: &[(&str, &str)]) -> Vec<String> {
        let mut params = Params::default();
        for (name, value) in settings {
            params.set(name, value, Source::CommandLine);
        }
        sentences(&params, &frameworks::all(&params), is_launchers)
    }

    #[test]
    fn every_listed_parameter_can_be_set_without_a_warning() {
        let known = frameworks::all(&Params::default());
        let names: Vec<String> = known
            .iter()
            .flat_map(Framework::abouts)
            .map(|about| about.full_name())
            .collect();
        let settings: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert!(names.contains(&"coll_tuned_priority".into()));
        assert_eq!(told(&settings), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_is_near_is_suggested() {
        for (written, meant) in [
            ("coll_check", "coll_base_check"),
            ("coll_tuned_bcast", "coll_tuned_bcast_algorithm"),
            ("btl_tcp_lniks", "btl_tcp_links"),
            ("btl_tpc_links", "btl_tcp_links"),
            ("tcp_links", "btl_tcp_links"),
            ("btl_sm_eager_limt", "btl_sm_eager_limit"),
            ("cool", "coll"),
        ] {
            let sentence = format!(
                "there is no parameter \"{written}\" (from command line); the nearest name is {meant}"
            );
            assert_eq!(told(&[(written, "1")]), [sentence]);
        }
    }

    #[test]
    fn where_no_name_is_near_the_list_is_named() {
        for (written, list) in [
            ("btl_tcp_zzzzz", "--param btl all"),
            ("btl_base_verbose", "--param btl all"),
            ("orte_tmpdir", "--all"),
            ("", "--all"),
        ] {
            let sentence = format!(
                "there is no parameter \"{written}\" (from command line); mpi-info {list} lists those there are"
            );
            assert_eq!(told(&[(written, "1")]), [sentence]);
        }
    }

    #[test]
    fn settings_of_other_programs_are_not_reported() {
        for settings in [
            &[("mpirun_grace", "1s"), ("plm_rsh_agnet", "ssh")][..],
            &[("coll", "^mine,basic"), ("coll_mine_size", "4")],
        ] {
            assert_eq!(told(settings), Vec::<String>::new());
        }
        for settings in [
            [("coll", "mine"), ("coll_mine_size", "4")],
            [("coll", "^shm"), ("coll_shm_size", "4")],
        ] {
            assert_eq!(told(&settings).len(), 1, "{settings:?}");
        }
    }
}
