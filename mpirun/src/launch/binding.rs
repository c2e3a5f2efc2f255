//! Binding of a host's ranks to processors.
//!
//! The processors that this launcher may use are divided into *units*: hardware threads, cores,
//! caches, memory nodes or packages.
//! Ranks get units in mapping order: adjacent units, or units that alternate between larger units.
//! With `ppr:N:UNIT`, each larger unit gets N ranks.
//! If there are more ranks than units, ranks stay unbound, unless `:overload-allowed` is given:
//! two ranks that are bound to one core are slower than two ranks that may migrate.

use crate::hosts::rankfile::Cores;
use mpi_base::hardware::{self, Kind};
use mpi_base::ranges;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const SYS: &str = "/sys/devices/system/cpu";

/// The binding that `--bind-to` and `--map-by` request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The unit that each rank is bound to; `None` leaves ranks unbound.
    pub to: Option<Unit>,
    /// The larger units over which ranks are distributed round robin; `None` uses adjacent units.
    pub over: Option<Unit>,
    /// The number of units for each rank; 0 means 1.
    pub each: usize,
    /// The number of ranks on each unit of `over` before the next is used; 0 means round robin.
    pub per_unit: usize,
    pub overload: bool,
}

/// A level of the machine's topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Unit {
    Thread,
    Core,
    /// The processors that share one cache of this level.
    Cache(u8),
    Numa,
    Package,
}

impl Unit {
    /// Returns the unit for a name of Open MPI or MPICH.
    pub fn named(name: &str) -> Option<Unit> {
        Some(match name {
            "hwthread" | "hwt" | "pu" => Unit::Thread,
            "core" => Unit::Core,
            "l1cache" | "l1" => Unit::Cache(1),
            "l2cache" | "l2" => Unit::Cache(2),
            "l3cache" | "l3" => Unit::Cache(3),
            "numa" | "numanode" => Unit::Numa,
            "package" | "socket" => Unit::Package,
            _ => return None,
        })
    }

    /// Returns the name of the unit as a value of `--bind-to`.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Thread => "hwthread",
            Unit::Core => "core",
            Unit::Cache(1) => "l1cache",
            Unit::Cache(2) => "l2cache",
            Unit::Cache(_) => "l3cache",
            Unit::Numa => "numa",
            Unit::Package => "package",
        }
    }

    /// All units, from the largest to the smallest.
    const ALL: [Unit; 7] = [
        Unit::Package,
        Unit::Numa,
        Unit::Cache(3),
        Unit::Cache(2),
        Unit::Cache(1),
        Unit::Core,
        Unit::Thread,
    ];

    /// Returns the kernel's id of the unit of this level that contains a processor.
    fn instance(self, cpu: usize, sys: &Path) -> Option<u32> {
        match self {
            Unit::Thread => hardware::instance(cpu, Kind::ProcessingUnit, sys),
            Unit::Core => hardware::instance(cpu, Kind::Core, sys),
            Unit::Cache(level) => hardware::cache(cpu, level, sys),
            Unit::Numa => hardware::instance(cpu, Kind::NumaNode, sys),
            Unit::Package => hardware::instance(cpu, Kind::Package, sys),
        }
    }
}

/// The processors of one unit, with the ids of the enclosing package and unit of `over`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UnitCpus {
    package: u32,
    over: u32,
    cpus: Vec<usize>,
}

/// The index of [`Unit::Core`] in [`Unit::ALL`].
const CORE: usize = 5;

/// The machine's topology, as far as binding uses it.
#[derive(Debug)]
pub struct Machine {
    /// The allowed processors, each with the ids of its units at all levels.
    cpus: Vec<(usize, BTreeMap<Unit, u32>)>,
}

impl Machine {
    /// Reads the topology of the processors that this process may use.
    pub fn of_this_process() -> Machine {
        let allowed = rustix::thread::sched_getaffinity(None).map_or_else(
            |_| Vec::new(),
            |mask| {
                let all = 0..rustix::thread::CpuSet::MAX_CPU;
                all.filter(|&cpu| mask.is_set(cpu)).collect()
            },
        );
        Machine::new(allowed.into_iter().map(|cpu| {
            let place = Unit::ALL.map(|unit| unit.instance(cpu, Path::new(SYS)));
            (cpu, place)
        }))
    }

    fn new(cpus: impl Iterator<Item = (usize, [Option<u32>; Unit::ALL.len()])>) -> Machine {
        let cpus = cpus
            .map(|(cpu, place)| {
                let mut found = BTreeMap::new();
                for (unit, instance) in Unit::ALL.into_iter().zip(place) {
                    // Virtual machines often report no caches.
                    // Package replaces L3, core replaces L1 and L2.
                    let instead = match unit {
                        Unit::Cache(3) => found.get(&Unit::Package).copied(),
                        Unit::Cache(_) => place[CORE],
                        _ => None,
                    };
                    // If the kernel does not report a level, all processors count as one unit.
                    let instance = instance.or(instead).unwrap_or(0);
                    found.insert(unit, instance);
                }
                (cpu, found)
            })
            .collect();
        Machine { cpus }
    }

    /// Returns the number of units of this level that have allowed processors.
    pub fn count(&self, unit: Unit) -> usize {
        let all: BTreeSet<u32> = self.cpus.iter().map(|(_, place)| place[&unit]).collect();
        all.len()
    }

    /// Returns the processors for each of a host's ranks; `None` leaves all ranks unbound.
    pub fn bind(&self, binding: Binding, ranks: usize) -> Option<Vec<Vec<usize>>> {
        let to = binding.to?;
        if let (Some(over), 1..) = (binding.over, binding.per_unit) {
            return self.bind_per_unit(binding, to, over, ranks);
        }
        let parts = self.parts(to, binding.over);
        let each = binding.each.max(1);
        let places = parts.len() / each;
        if places == 0 || (ranks > places && !binding.overload) {
            return None;
        }
        let bundles: Vec<Vec<usize>> = parts
            .chunks_exact(each)
            .map(|bundle| bundle.iter().flat_map(|part| part.cpus.clone()).collect())
            .collect();
        Some(bundles.into_iter().cycle().take(ranks).collect())
    }

    /// Puts `per_unit` ranks on the first unit of `over`, then `per_unit` on the second, and so on.
    fn bind_per_unit(
        &self,
        binding: Binding,
        to: Unit,
        over: Unit,
        ranks: usize,
    ) -> Option<Vec<Vec<usize>>> {
        let each = binding.each.max(1);
        let parts = self.parts(to, None);
        let mut bound = Vec::with_capacity(ranks);
        for unit in self.parts(over, None) {
            // `here`: the units of `to` that are inside this unit of `over` or contain it.
            let meets = |part: &&UnitCpus| part.cpus.iter().any(|cpu| unit.cpus.contains(cpu));
            let here: Vec<&UnitCpus> = parts.iter().filter(meets).collect();
            let bundles: Vec<Vec<usize>> = here
                .chunks_exact(each.min(here.len().max(1)))
                .map(|bundle| bundle.iter().flat_map(|part| part.cpus.clone()).collect())
                .collect();
            let is_finer = to < over;
            if bundles.is_empty()
                || (is_finer && binding.per_unit > bundles.len() && !binding.overload)
            {
                return None;
            }
            bound.extend(bundles.into_iter().cycle().take(binding.per_unit));
        }
        (ranks <= bound.len() || binding.overload)
            .then(|| bound.into_iter().cycle().take(ranks).collect())
    }

    /// Returns the processors of a rankfile's cores; `None` if the machine lacks one of the cores.
    pub fn pick(&self, wanted: &[Cores]) -> Option<Vec<usize>> {
        let parts = self.parts(Unit::Core, None);
        let mut packages: Vec<u32> = parts.iter().map(|part| part.package).collect();
        packages.dedup();
        let mut cpus = Vec::new();
        for Cores { package, cores } in wanted {
            let package = match package {
                Some(package) => Some(*packages.get(*package)?),
                None => None,
            };
            let here = |part: &&UnitCpus| package.is_none_or(|package| part.package == package);
            let there: Vec<&UnitCpus> = parts.iter().filter(here).collect();
            let all = || (0..there.len()).collect();
            for core in cores.clone().unwrap_or_else(all) {
                cpus.extend(&there.get(core)?.cpus);
            }
        }
        Some(cpus)
    }

    fn parts(&self, unit: Unit, over: Option<Unit>) -> Vec<UnitCpus> {
        let mut parts: BTreeMap<u32, UnitCpus> = BTreeMap::new();
        for (cpu, place) in &self.cpus {
            let part = parts.entry(place[&unit]).or_insert_with(|| UnitCpus {
                package: place[&Unit::Package],
                over: over.map_or(0, |over| place[&over]),
                cpus: Vec::new(),
            });
            part.cpus.push(*cpu);
        }
        let mut parts: Vec<UnitCpus> = parts.into_values().collect();
        parts.sort_by_key(|part| (part.package, part.cpus.first().copied()));
        if over.is_some() {
            // Interleaves: the first unit inside each unit of `over`, then the second of each, ...
            let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
            let mut dealt: Vec<(usize, u32, UnitCpus)> = parts
                .into_iter()
                .map(|part| {
                    let round = seen.entry(part.over).or_insert(0);
                    *round += 1;
                    (*round, part.over, part)
                })
                .collect();
            dealt.sort_by_key(|(round, over, _)| (*round, *over));
            parts = dealt.into_iter().map(|(_, _, part)| part).collect();
        }
        parts
    }

    /// Describes a set of processors in Open MPI's notation: `package[0][core:0-3]`.
    pub fn describe(&self, cpus: &[usize]) -> String {
        let mut packages: BTreeMap<u32, (Vec<u32>, Vec<usize>)> = BTreeMap::new();
        for (cpu, place) in self.cpus.iter().filter(|(cpu, _)| cpus.contains(cpu)) {
            let (cores, threads) = packages.entry(place[&Unit::Package]).or_default();
            // The low 16 bits of a core id are the core's number within its package.
            cores.push(place[&Unit::Core] & 0xffff);
            threads.push(*cpu);
        }
        packages
            .into_iter()
            .map(|(package, (mut cores, threads))| {
                cores.sort_unstable();
                cores.dedup();
                let cores: Vec<usize> = cores.into_iter().map(|core| core as usize).collect();
                format!(
                    "package[{package}][core:{}] (cpu {})",
                    ranges::write(&cores),
                    ranges::write(&threads)
                )
            })
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a machine of 2 packages of 2 cores of 2 threads; a core has threads i and i + 4.
    fn machine() -> Machine {
        Machine::new((0..8).map(|cpu| {
            let (package, core) = (cpu as u32 % 4 / 2, cpu as u32 % 2);
            let place = [
                Some(package),
                Some(package),
                None,
                None,
                None,
                Some(package << 16 | core),
                Some(cpu as u32),
            ];
            (cpu, place)
        }))
    }

    fn bound(to: Unit, over: Option<Unit>, each: usize, ranks: usize) -> Option<Vec<Vec<usize>>> {
        let binding = Binding {
            to: Some(to),
            over,
            each,
            ..Binding::default()
        };
        machine().bind(binding, ranks)
    }

    #[test]
    fn ranks_take_cores_next_to_each_other_or_dealt_over_packages() {
        let near = bound(Unit::Core, None, 1, 2).unwrap();
        assert_eq!(near, [[0, 4], [1, 5]]);
        let dealt = bound(Unit::Core, Some(Unit::Package), 1, 3).unwrap();
        assert_eq!(dealt, [[0, 4], [2, 6], [1, 5]]);
        let wide = bound(Unit::Core, None, 2, 2).unwrap();
        assert_eq!(wide, [[0, 4, 1, 5], [2, 6, 3, 7]]);
    }

    #[test]
    fn ranks_are_put_on_each_unit_before_the_next() {
        let on_each = |to, over, per_unit, ranks| {
            let binding = Binding {
                to: Some(to),
                over: Some(over),
                per_unit,
                ..Binding::default()
            };
            machine().bind(binding, ranks)
        };
        // Each of two packages gets two ranks, bound to the whole package or to one core each.
        let package = on_each(Unit::Package, Unit::Package, 2, 4).unwrap();
        assert_eq!(package[0], [0, 1, 4, 5]);
        assert_eq!((&package[0], &package[2]), (&package[1], &package[3]));
        assert_eq!(package[3], [2, 3, 6, 7]);
        let core = on_each(Unit::Core, Unit::Package, 2, 3).unwrap();
        assert_eq!(core, [[0, 4], [1, 5], [2, 6]]);
        assert_eq!(on_each(Unit::Core, Unit::Package, 3, 6), None);
        let numa = on_each(Unit::Numa, Unit::Core, 1, 4).unwrap();
        assert_eq!(numa[1], [0, 1, 4, 5]);
        assert_eq!(numa[2], [2, 3, 6, 7]);
    }

    #[test]
    fn a_large_cache_is_no_memory_node() {
        // This machine has two memory nodes with two L3 caches each.
        let machine = Machine::new((0..8u32).map(|cpu| {
            let place = [
                Some(0),
                Some(cpu / 4),
                Some(cpu / 2),
                None,
                None,
                Some(cpu),
                Some(cpu),
            ];
            (cpu as usize, place)
        }));
        let units = Unit::ALL.map(|unit| machine.count(unit));
        assert_eq!(units, [1, 2, 4, 8, 8, 8, 8]);
        let to = Unit::named("l3cache");
        let binding = Binding {
            to,
            ..Binding::default()
        };
        assert_eq!(machine.bind(binding, 2).unwrap(), [[0, 1], [2, 3]]);
    }

    #[test]
    fn more_ranks_than_units_are_not_bound_unless_asked_for() {
        assert_eq!(bound(Unit::Package, None, 1, 3), None);
        let binding = Binding {
            to: Some(Unit::Package),
            overload: true,
            ..Binding::default()
        };
        assert_eq!(machine().bind(binding, 3).unwrap().len(), 3);
        assert_eq!(machine().bind(Binding::default(), 1), None);
    }

    #[test]
    fn cores_are_picked_by_package_and_number() {
        let item = |package, cores: Option<&[usize]>| Cores {
            package,
            cores: cores.map(<[usize]>::to_vec),
        };
        let machine = machine();
        assert_eq!(machine.pick(&[item(Some(1), Some(&[0]))]).unwrap(), [2, 6]);
        assert_eq!(
            machine.pick(&[item(None, Some(&[1, 2]))]).unwrap(),
            [1, 5, 2, 6]
        );
        assert_eq!(machine.pick(&[item(Some(0), None)]).unwrap(), [0, 4, 1, 5]);
        assert_eq!(machine.pick(&[item(Some(2), None)]), None);
        assert_eq!(machine.pick(&[item(Some(0), Some(&[2]))]), None);
    }

    #[test]
    fn processors_are_named_by_package_and_core() {
        assert_eq!(
            machine().describe(&[0, 1, 4, 6]),
            "package[0][core:0-1] (cpu 0-1,4) package[1][core:0] (cpu 6)"
        );
    }
}
