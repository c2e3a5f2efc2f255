//! Placement of ranks by `--map-by`, `--rank-by`, `--bind-to`, `-N` and related options.

use super::CliError;
use super::bind_to::BindTo;
use super::map_by::{MapBy, Order};
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
    /// Whether more ranks than slots are allowed.
    pub oversubscribe: bool,
    /// Whether the slot count is also a limit on a single host.
    pub strict: bool,
}

/// Combines the placement options; `--bind-to` overrides the binding that other options imply.
pub fn placement(options: &Options, hosts: &[Host]) -> Result<Placement, CliError> {
    let mut placement = Placement {
        policy: options.per_node.map_or(Policy::Slot, Policy::PerNode),
        oversubscribe: options.oversubscribe,
        strict: options.no_oversubscribe,
        ..Placement::default()
    };
    if let Some(map_by) = &options.map_by {
        placement.map_by(map_by, hosts)?;
    }
    if let Some(each) = options.cpus_per_rank {
        placement.give_cores(each);
    }
    if let Some(bind_to) = options.bind_to {
        placement.bind_to(bind_to);
    }
    Ok(placement)
}

impl Placement {
    fn map_by(&mut self, map_by: &MapBy, hosts: &[Host]) -> Result<(), CliError> {
        match &map_by.order {
            // The function `rankfile` below returns the rankfile's path.
            Order::Slot | Order::Rankfile(_) => {}
            Order::Node => self.policy = Policy::Node,
            Order::Unit(unit) => self.binding.over = Some(*unit),
            Order::PerNode(count) => self.policy = Policy::PerNode(*count),
            Order::PerUnit(count, unit) => self.put_on_each(*count, *unit, hosts)?,
        }
        // `:SPAN` changes only `slot`: other policies spread ranks over all hosts already.
        if map_by.span && self.policy == Policy::Slot {
            self.policy = Policy::Span;
        }
        self.oversubscribe |= map_by.oversubscribe;
        self.strict |= map_by.strict;
        if let Some(each) = map_by.cores {
            self.give_cores(each);
        }
        Ok(())
    }

    fn give_cores(&mut self, each: usize) {
        self.binding.each = each;
        self.binding.to = Some(Unit::Core);
    }

    /// Handles `ppr:N:UNIT`; the number of ranks depends on the number of units of the host.
    fn put_on_each(&mut self, count: usize, unit: Unit, hosts: &[Host]) -> Result<(), CliError> {
        if hosts.iter().any(|host| !host.here) {
            return Err(CliError::Refused {
                option: "--map-by ppr:N:UNIT for other hosts".to_owned(),
                what: "N ranks on each package, memory node, cache or core",
                instead: "--map-by ppr:N:node --bind-to UNIT, where N counts the ranks of a host, needs no knowledge of their machines",
            });
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

    fn bind_to(&mut self, bind_to: BindTo) {
        self.binding.to = bind_to.unit;
        self.binding.overload |= bind_to.overload;
        self.binding.each = bind_to.each.unwrap_or(self.binding.each);
    }
}

/// Returns the rankfile's path, from `--rankfile FILE` or `--map-by rankfile:file=FILE`.
pub fn rankfile(options: &Options) -> Option<PathBuf> {
    let by_map = options
        .map_by
        .as_ref()
        .and_then(|map_by| match &map_by.order {
            Order::Rankfile(file) => file.clone(),
            _ => None,
        });
    options.rankfile.clone().or(by_map)
}
