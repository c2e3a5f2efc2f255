//! Placement of ranks by `--map-by`, `--rank-by`, `--bind-to`, `-N` and related options.

use super::CliError;
use super::options::Options;
use crate::hosts::Host;
use crate::hosts::map::Policy;
use crate::launch::binding::{Binding, Machine, Unit};
use std::path::PathBuf;

/// The mapping and binding of ranks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Placement {
    pub policy: Policy,
    pub binding: Binding,
    /// Whether oversubscription is allowed.
    pub oversubscribe: bool,
    /// Whether slots are a limit also on one host.
    pub strict: bool,
}

const MAP: &str = "slot, node, package, numa, l3cache, core, hwthread, ppr:N:node or rankfile:file=FILE, and after it :PE=N, :SPAN, :OVERSUBSCRIBE or :NOOVERSUBSCRIBE";
const BIND: &str =
    "none, core, hwthread, l3cache, numa or package, and after it :N or :overload-allowed";

/// Combines the options; `--bind-to` overrides the binding that others imply.
pub fn placement(options: &Options, hosts: &[Host]) -> Result<Placement, CliError> {
    let mut placement = Placement {
        policy: options.per_node.map_or(Policy::Slot, Policy::PerNode),
        oversubscribe: options.oversubscribe,
        strict: options.no_oversubscribe,
        ..Placement::default()
    };
    if let Some(how) = &options.map_by {
        placement.map_by(how, hosts)?;
    }
    if let Some(each) = options.cpus_per_rank {
        placement.give_cores(each);
    }
    if let Some(to) = &options.bind_to {
        placement.bind_to(to)?;
    }
    Ok(placement)
}

impl Placement {
    fn map_by(&mut self, how: &str, hosts: &[Host]) -> Result<(), CliError> {
        let wrong = || value("--map-by", how, MAP);
        let lower = how.to_lowercase();
        if lower.starts_with("pe-list") {
            return Err(refused(
                "--map-by pe-list",
                "a list of processors",
                "a line of --rankfile FILE for each rank, such as \"rank 0=HOST slot=0-1\", names its cores",
            ));
        }
        let mut words = lower.split([':', ',']);
        match words.next().unwrap_or_default() {
            // The function `rankfile` returns the file.
            "rankfile" => return Ok(()),
            "ppr" => {
                let count = words
                    .next()
                    .and_then(|count| super::numbers::count(count).ok());
                let each = words.next().ok_or_else(wrong)?;
                self.put_on_each(count.ok_or_else(wrong)?, each, hosts, wrong)?;
            }
            "slot" | "" => {}
            "node" => self.policy = Policy::Node,
            unit => self.binding.over = Some(Unit::named(unit).ok_or_else(wrong)?),
        }
        for word in words {
            match (word, word.split_once('=')) {
                ("oversubscribe", _) => self.oversubscribe = true,
                ("nooversubscribe", _) => self.strict = true,
                ("span", _) if self.policy == Policy::Slot => self.policy = Policy::Span,
                // Dealt ranks are spread already; processors are hardware threads, and spawned jobs are placed by the same policy.
                ("span" | "hwtcpus" | "inherit" | "noinherit", _) => {}
                (_, Some(("pe", each))) => {
                    self.give_cores(super::numbers::count(each).map_err(|_| wrong())?);
                }
                ("nolocal", _) => {
                    return Err(refused(
                        "--map-by :NOLOCAL",
                        "no ranks on this host",
                        "--host lists the hosts to be used",
                    ));
                }
                _ => return Err(wrong()),
            }
        }
        Ok(())
    }

    fn give_cores(&mut self, each: usize) {
        self.binding.each = each;
        self.binding.to = Some(Unit::Core);
    }

    /// Handles `ppr:N:node`, or `ppr:N:UNIT`, which depends on the number of units of a host.
    fn put_on_each(
        &mut self,
        count: usize,
        each: &str,
        hosts: &[Host],
        wrong: impl Fn() -> CliError,
    ) -> Result<(), CliError> {
        if each == "node" {
            self.policy = Policy::PerNode(count);
            return Ok(());
        }
        let unit = Unit::named(each).ok_or_else(wrong)?;
        if hosts.iter().any(|host| !host.here) {
            return Err(refused(
                "--map-by ppr:N:UNIT for other hosts",
                "N ranks on each package, memory node, cache or core",
                "--map-by ppr:N:node --bind-to UNIT, where N counts the ranks of a host, needs no knowledge of their machines",
            ));
        }
        let units = Machine::of_this_process().count(unit).max(1);
        self.policy = Policy::PerNode(count * units);
        self.binding = Binding {
            to: Some(unit),
            over: Some(unit),
            per_unit: count,
            ..self.binding
        };
        Ok(())
    }

    fn bind_to(&mut self, to: &str) -> Result<(), CliError> {
        let wrong = || value("--bind-to", to, BIND);
        let lower = to.to_lowercase();
        let mut words = lower.split(':');
        self.binding.to = match words.next().unwrap_or_default() {
            // With one unit for the whole machine, or without any, binding has no effect.
            "none" | "default" | "machine" | "board" => None,
            "rr" => Some(Unit::Thread),
            "user" | "cpu-list" | "cpulist" => {
                return Err(refused(
                    "--bind-to with a list of processors",
                    "processors for each rank",
                    "a line of --rankfile FILE for each rank, such as \"rank 0=HOST slot=0-1\", names its cores",
                ));
            }
            unit => Some(Unit::named(unit).ok_or_else(wrong)?),
        };
        for word in words {
            match (word, word.parse()) {
                ("overload-allowed", _) => self.binding.overload = true,
                ("if-supported" | "no-overload", _) => {}
                (_, Ok(each @ 1..)) => self.binding.each = each,
                _ => return Err(wrong()),
            }
        }
        Ok(())
    }
}

fn value(option: &'static str, value: &str, wanted: &'static str) -> CliError {
    CliError::Value {
        option,
        value: value.to_owned(),
        wanted,
    }
}

fn refused(option: &str, what: &'static str, instead: &'static str) -> CliError {
    CliError::NotYet {
        option: option.to_owned(),
        what,
        instead,
    }
}

/// Returns the file of `--rankfile FILE` or `--map-by rankfile:file=FILE`.
pub fn rankfile(options: &Options) -> Option<PathBuf> {
    const FORM: &str = "rankfile:file=";
    let by_map = options.map_by.as_deref().and_then(|how| {
        let head = how.get(..FORM.len())?;
        let file = how.get(FORM.len()..)?;
        head.eq_ignore_ascii_case(FORM).then(|| PathBuf::from(file))
    });
    options.rankfile.clone().or(by_map)
}
