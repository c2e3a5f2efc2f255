//! `-x`, `--env` and `--genv`: environment variables for the ranks of one or all programs.
//!
//! `-x` and `--env` apply to the program of the same section, as in Open MPI and MPICH.
//! `--genv` applies to all programs, at any position.
//! A variable with the same value in all programs belongs to the job; spawned programs get it too.

use super::CliError;
use super::options::AppOptions;
use crate::rank_environment::{set_env, split_at_sign};
use mpi_base::environment;
use std::ffi::{OsStr, OsString};

type Variable = (OsString, OsString);

/// Returns a warning for each `-x NAME` of this section whose variable is not set.
/// As in Open MPI, `-x PREFIX*` names all variables that begin so.
pub fn unset_exports(app: &AppOptions) -> Vec<String> {
    let is_set = |name: &OsStr| match name.as_encoded_bytes().strip_suffix(b"*") {
        Some(prefix) => {
            let mut all = environment::all().into_iter();
            all.any(|(known, _)| known.as_encoded_bytes().starts_with(prefix))
        }
        None => environment::is_set(name),
    };
    let names = app.export.iter();
    let names = names.filter(|export| !export.is_empty() && split_at_sign(export).is_none());
    names
        .filter(|name| !is_set(name))
        .map(|name| {
            format!(
                "-x {}: no such variable is set, so no rank gets it",
                printable::name(name)
            )
        })
        .collect()
}

/// Returns the variables that `--genv` in this section sets for the ranks of all programs.
pub fn of_all_programs(app: &AppOptions) -> Result<Vec<Variable>, CliError> {
    pairs("--genv", &app.genv)
}

/// Returns the variables for the section's own program; the last setting of a name wins.
pub fn own_variables(app: &AppOptions) -> Result<Vec<Variable>, CliError> {
    let mut own = Vec::new();
    for export in &app.export {
        match split_at_sign(export) {
            // `-x NAME` has no effect, since ranks get the whole environment anyway.
            None if !export.is_empty() => {}
            Some((name, value)) if !name.is_empty() => set_env(&mut own, name, value),
            _ => {
                return Err(CliError::Value {
                    option: "-x",
                    value: export.to_string_lossy().into_owned(),
                    wanted: "NAME=VALUE, or the NAME of a variable that is set",
                });
            }
        }
    }
    for (name, value) in pairs("--env", &app.env)? {
        set_env(&mut own, name, value);
    }
    Ok(own)
}

fn pairs(option: &'static str, words: &[OsString]) -> Result<Vec<Variable>, CliError> {
    let pair = |pair: &[OsString]| match pair[0].is_empty() || split_at_sign(&pair[0]).is_some() {
        false => Ok((pair[0].clone(), pair[1].clone())),
        true => Err(CliError::Value {
            option,
            value: pair[0].to_string_lossy().into_owned(),
            wanted: "two words, the name of a variable and its value",
        }),
    };
    words.chunks_exact(2).map(pair).collect()
}

/// Removes the variables that all programs have in common from their lists, and returns them.
pub fn shared_by_all<'a>(envs: impl Iterator<Item = &'a mut Vec<Variable>>) -> Vec<Variable> {
    let mut envs: Vec<_> = envs.collect();
    let first = envs.first().map_or_else(Vec::new, |first| first.to_vec());
    let shared: Vec<Variable> = first
        .into_iter()
        .filter(|variable| envs.iter().all(|env| env.contains(variable)))
        .collect();
    for env in &mut envs {
        env.retain(|variable| !shared.contains(variable));
    }
    shared
}
