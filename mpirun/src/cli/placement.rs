//! How `--map-by`, `--rank-by`, `--bind-to`, `-N` and the like place ranks.

use super::CliError;
use super::options::Options;
use crate::hosts::map::Policy;
use crate::launch::binding::{Binding, Unit};
use std::path::PathBuf;

/// The policy of mapping, that of binding, and whether there may be more ranks than slots.
pub fn placement(options: &Options) -> Result<(Policy, Binding, bool), CliError> {
    const MAP: &str = "slot, node, package, numa, core, hwthread or ppr:N:node, and :PE=N or :OVERSUBSCRIBE after it";
    const BIND: &str = "none, core, hwthread, numa or package, and :overload-allowed after it";
    let mut policy = options.per_node.map_or(Policy::Slot, Policy::PerNode);
    let mut binding = Binding::default();
    let mut oversubscribe = options.oversubscribe;
    if let Some(how) = &options.map_by {
        let wrong = || CliError::Value {
            option: "--map-by",
            value: how.clone(),
            wanted: MAP,
        };
        let lower = how.to_lowercase();
        let mut words: Vec<&str> = lower.split([':', ',']).collect();
        if words[0] == "ppr" {
            let (Some(count), Some(&"node")) = (words.get(1), words.get(2)) else {
                return Err(wrong());
            };
            policy = Policy::PerNode(count.parse().map_err(|_| wrong())?);
            words.drain(1..3);
        } else {
            match words[0] {
                // Which file is said by `rankfile`.
                "rankfile" => words.truncate(1),
                "slot" | "" => {}
                "node" => policy = Policy::Node,
                unit => binding.over = Some(Unit::named(unit).ok_or_else(wrong)?),
            }
        }
        for word in &words[1..] {
            match (*word, word.split_once('=')) {
                ("oversubscribe", _) => oversubscribe = true,
                ("nooversubscribe", _) => {}
                (_, Some(("pe", each))) => {
                    binding.each = each.parse().map_err(|_| wrong())?;
                    binding.to = Some(Unit::Core);
                }
                _ => return Err(wrong()),
            }
        }
    }
    if let Some(to) = &options.bind_to {
        let wrong = || CliError::Value {
            option: "--bind-to",
            value: to.clone(),
            wanted: BIND,
        };
        let lower = to.to_lowercase();
        let mut words = lower.split(':');
        binding.to = match words.next().unwrap_or_default() {
            "none" => None,
            unit => Some(Unit::named(unit).ok_or_else(wrong)?),
        };
        for word in words {
            match word {
                "overload-allowed" => binding.overload = true,
                "if-supported" | "no-overload" => {}
                _ => return Err(wrong()),
            }
        }
    }
    Ok((policy, binding, oversubscribe))
}

pub fn rank_by_node(options: &Options) -> Result<bool, CliError> {
    match options.rank_by.as_deref() {
        None | Some("slot") => Ok(false),
        Some("node") => Ok(true),
        Some(how) => Err(CliError::Value {
            option: "--rank-by",
            value: how.into(),
            wanted: "slot or node",
        }),
    }
}

/// The file of `--rankfile FILE` or `--map-by rankfile:file=FILE`.
pub fn rankfile(options: &Options) -> Option<PathBuf> {
    const FORM: &str = "rankfile:file=";
    let by_map = options.map_by.as_deref();
    let by_map = by_map.and_then(|how| how.strip_prefix(FORM).map(PathBuf::from));
    options.rankfile.clone().or(by_map)
}
