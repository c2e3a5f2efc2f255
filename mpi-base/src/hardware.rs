//! The hardware resources that this process is confined to, from its affinity mask and the kernel's topology files.
//!
//! Kinds of resources are named as in hwloc (its documentation, "Terms and Definitions"),
//! from the largest to the smallest.
//! The files are in `/sys/devices/system/cpu/cpuN`
//! (the kernel's `Documentation/ABI/stable/sysfs-devices-system-cpu`).

use std::fs;
use std::path::Path;

/// A kind of hardware resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// All processors of one operating system; every process is confined to it.
    Machine,
    /// The processors of one socket; read from the file `topology/physical_package_id`.
    Package,
    /// The processors that are local to one memory node; read from the processor's directory `nodeN`.
    NumaNode,
    /// A core with all its hardware threads; read from the file `topology/core_id`,
    /// which the kernel numbers within a package.
    Core,
    /// A hardware thread, or a core without hardware threads; the kernel calls it a CPU.
    ProcessingUnit,
}

impl Kind {
    /// All kinds, from the largest to the smallest.
    pub const ALL: [Kind; 5] = [
        Kind::Machine,
        Kind::Package,
        Kind::NumaNode,
        Kind::Core,
        Kind::ProcessingUnit,
    ];

    /// Returns the URI of the kind for MPI programs (MPI 5.0, section 9.1.2).
    pub fn uri(self) -> &'static str {
        match self {
            Kind::Machine => "hwloc://Machine",
            Kind::Package => "hwloc://Package",
            Kind::NumaNode => "hwloc://NUMANode",
            Kind::Core => "hwloc://Core",
            Kind::ProcessingUnit => "hwloc://PU",
        }
    }
}

/// The encoding of "not confined to one instance".
const NOWHERE: u32 = u32::MAX;

/// For each kind of resource, the instance to which a process is confined, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// The only instance with all allowed processors, indexed by [`Kind`]; `None` if there are several.
    /// Instance numbers are unique within a kind on this machine.
    instances: [Option<u32>; Kind::ALL.len()],
}

impl Confinement {
    /// The confinement of a process that may run on all processors of its machine.
    pub const FREE: Confinement = Confinement {
        instances: [Some(0), None, None, None, None],
    };

    /// Returns the confinement of the calling thread during initialization.
    /// If the thread may use all online processors, returns [`Confinement::FREE`] without reading the topology files.
    pub fn at_start() -> Confinement {
        let sys = Path::new("/sys/devices/system/cpu");
        let allowed = crate::cpu::processors().unwrap_or_default();
        let online = fs::read_to_string(sys.join("online")).unwrap_or_default();
        match crate::ranges::read(online.trim(), rustix::thread::CpuSet::MAX_CPU) {
            Some(online) if online != allowed => Confinement::of(&allowed, sys),
            _ => Confinement::FREE,
        }
    }

    /// Returns the current confinement of the calling thread.
    pub fn of_this_process() -> Confinement {
        let allowed = crate::cpu::processors().unwrap_or_default();
        Confinement::of(&allowed, Path::new("/sys/devices/system/cpu"))
    }

    /// Returns the confinement to these processors, for one directory of topology files;
    /// a kind that the kernel does not report confines no process.
    fn of(processors: &[usize], sys: &Path) -> Confinement {
        let each: Vec<_> = processors
            .iter()
            .map(|cpu| Kind::ALL.map(|kind| instance(*cpu, kind, sys)))
            .collect();
        let only = |kind: usize| {
            let first = each.first()?[kind]?;
            each.iter().all(|p| p[kind] == Some(first)).then_some(first)
        };
        Confinement {
            instances: std::array::from_fn(only),
        }
    }

    /// Encodes the confinement for other processes of the machine.
    pub fn words(&self) -> [u32; Kind::ALL.len()] {
        self.instances.map(|instance| instance.unwrap_or(NOWHERE))
    }

    /// Decodes the result of [`Confinement::words`].
    pub fn from_words(words: [u32; Kind::ALL.len()]) -> Confinement {
        Confinement {
            instances: words.map(|word| (word != NOWHERE).then_some(word)),
        }
    }

    /// Returns the only instance of a kind to which the process is confined, if any;
    /// the number is unique within its kind on this machine.
    pub fn instance(&self, kind: Kind) -> Option<u32> {
        self.instances[kind as usize]
    }
}

/// Returns the instance of a kind that a processor belongs to.
/// `sys` is the directory `/sys/devices/system/cpu`.
pub fn instance(cpu: usize, kind: Kind, sys: &Path) -> Option<u32> {
    let of_cpu = sys.join(format!("cpu{cpu}"));
    let number = |file: &str| -> Option<u32> {
        let text = fs::read_to_string(of_cpu.join("topology").join(file)).ok()?;
        text.trim().parse().ok()
    };
    match kind {
        Kind::Machine => Some(0),
        Kind::Package => number("physical_package_id"),
        Kind::NumaNode => fs::read_dir(&of_cpu).ok()?.find_map(|entry| {
            let name = entry.ok()?.file_name();
            name.to_str()?.strip_prefix("node")?.parse().ok()
        }),
        // The kernel numbers cores within a package, so the number includes the package's.
        Kind::Core => Some(number("physical_package_id")? << 16 | number("core_id")?),
        Kind::ProcessingUnit => u32::try_from(cpu).ok(),
    }
}

/// Returns the cache of this level that a processor uses,
/// identified by the first processor that shares the cache.
/// Returns `None` if the kernel reports no such cache.
pub fn cache(cpu: usize, level: u8, sys: &Path) -> Option<u32> {
    let caches = fs::read_dir(sys.join(format!("cpu{cpu}/cache"))).ok()?;
    caches.flatten().find_map(|cache| {
        let read = |file: &str| fs::read_to_string(cache.path().join(file)).ok();
        let holds_data = read("type")?.trim() != "Instruction";
        if !holds_data || read("level")?.trim().parse() != Ok(level) {
            return None;
        }
        let shared = read("shared_cpu_list")?;
        let sharers = crate::ranges::read(shared.trim(), rustix::thread::CpuSet::MAX_CPU)?;
        u32::try_from(*sharers.first()?).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Creates topology files: two packages of two cores with two threads, a memory node each.
    fn machine(name: &str) -> PathBuf {
        let sys = std::env::temp_dir().join(format!("hardware-{name}-{}", std::process::id()));
        for cpu in 0..8 {
            let of_cpu = sys.join(format!("cpu{cpu}"));
            fs::create_dir_all(of_cpu.join("topology")).unwrap();
            fs::create_dir_all(of_cpu.join(format!("node{}", cpu / 4))).unwrap();
            fs::write(
                of_cpu.join("topology/physical_package_id"),
                format!("{}\n", cpu / 4),
            )
            .unwrap();
            fs::write(
                of_cpu.join("topology/core_id"),
                format!("{}\n", cpu / 2 % 2),
            )
            .unwrap();
        }
        sys
    }

    #[test]
    fn a_mask_confines_to_what_holds_all_of_it() {
        let sys = machine("mask");
        let of = |processors: &[usize]| {
            let found = Confinement::of(processors, &sys);
            Kind::ALL.map(|kind| found.instance(kind))
        };
        assert_eq!(of(&[0, 1, 4]), [Some(0), None, None, None, None]);
        assert_eq!(of(&[4, 6]), [Some(0), Some(1), Some(1), None, None]);
        assert_eq!(
            of(&[6, 7]),
            [Some(0), Some(1), Some(1), Some(1 << 16 | 1), None]
        );
        assert_eq!(of(&[1]), [Some(0), Some(0), Some(0), Some(0), Some(1)]);
        fs::remove_dir_all(sys).unwrap();
    }

    #[test]
    fn a_cache_is_known_by_its_first_processor() {
        let sys = machine("cache");
        let caches = [
            ("0", "1", "Instruction", "4"),
            ("1", "1", "Data", "4-5"),
            ("2", "3", "Unified", "2-7"),
        ];
        for (index, level, kind, sharers) in caches {
            let cache = sys.join(format!("cpu5/cache/index{index}"));
            fs::create_dir_all(&cache).unwrap();
            for (file, text) in [
                ("level", level),
                ("type", kind),
                ("shared_cpu_list", sharers),
            ] {
                fs::write(cache.join(file), format!("{text}\n")).unwrap();
            }
        }
        let found = [1, 2, 3].map(|level| cache(5, level, &sys));
        assert_eq!(found, [Some(4), None, Some(2)]);
        assert_eq!(cache(4, 1, &sys), None);
        fs::remove_dir_all(sys).unwrap();
    }

    #[test]
    fn words_bring_it_to_another_process() {
        let bound = Confinement::of(&[0], Path::new("/sys/devices/system/cpu"));
        for here in [bound, Confinement::FREE, Confinement::at_start()] {
            assert_eq!(Confinement::from_words(here.words()), here);
        }
    }

    #[test]
    fn a_machine_without_topology_confines_to_itself_and_to_a_processor() {
        let found = Confinement::of(&[3], Path::new("/nowhere"));
        assert_eq!(found.instance(Kind::Machine), Some(0));
        assert_eq!(found.instance(Kind::Package), None);
        assert_eq!(found.instance(Kind::ProcessingUnit), Some(3));
    }
}
