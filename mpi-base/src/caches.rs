//! The caches of the cores that ranks run on: their sizes, and whether cores share a level 2 cache.
//!
//! The data are read from `/sys/devices/system/cpu/cpuN/cache`
//! (the kernel's `Documentation/ABI/testing/sysfs-devices-system-cpu`).
//! A virtual machine reports the cache sizes that its host has configured, which may be wrong,
//! so decisions based on these values are later checked by measurement
//! (`mpi-core/transport/src/btl/sm/span.rs`).

use std::fs;
use std::path::Path;

/// The caches of the node's cores, as far as buffer sizes depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Size of the level 2 cache of one core in bytes.
    pub level_2: usize,
    /// True if no two cores share a level 2 cache.
    pub level_2_is_private: bool,
    /// Size of one level 3 cache in bytes; `None` if there is no level 3 cache.
    pub level_3: Option<usize>,
}

impl Caches {
    /// Returns the caches for a node with `nlocal` ranks, from the processors that this process may use;
    /// `None` if ranks share processors, or if the kernel does not report caches.
    pub fn for_ranks(nlocal: u32) -> Option<Caches> {
        let processors = crate::cpu::processors()?;
        if processors.len() < nlocal as usize {
            return None;
        }
        Caches::of(&processors, Path::new("/sys/devices/system/cpu"))
    }

    /// Returns the caches of the first and the last processor of the list.
    /// On a machine with two types of cores the two processors differ; the smaller size is used.
    pub fn of(processors: &[usize], sys: &Path) -> Option<Caches> {
        let first = Caches::of_processor(*processors.first()?, sys)?;
        let last = Caches::of_processor(*processors.last()?, sys)?;
        Some(Caches {
            level_2: first.level_2.min(last.level_2),
            level_2_is_private: first.level_2_is_private && last.level_2_is_private,
            level_3: first.level_3.min(last.level_3),
        })
    }

    fn of_processor(cpu: usize, sys: &Path) -> Option<Caches> {
        let of_cpu = sys.join(format!("cpu{cpu}"));
        let core = read(&of_cpu.join("topology/core_cpus_list"))
            .or_else(|| read(&of_cpu.join("topology/thread_siblings_list")))?;
        let mut level_2 = None;
        let mut level_3 = None;
        // The kernel numbers a processor's caches from the nearest one;
        // numbers 0 and 1 are usually the level 1 caches for data and instructions.
        for index in 0..MOST_CACHES {
            let folder = of_cpu.join(format!("cache/index{index}"));
            let Some(level) = read(&folder.join("level")) else {
                break;
            };
            match level.as_str() {
                "2" => {
                    let sharers = read(&folder.join("shared_cpu_list"))?;
                    level_2 = Some((bytes(&read(&folder.join("size"))?)?, sharers == core));
                }
                "3" => level_3 = bytes(&read(&folder.join("size"))?),
                _ => {}
            }
        }
        let (level_2, level_2_is_private) = level_2?;
        Some(Caches {
            level_2,
            level_2_is_private,
            level_3,
        })
    }
}

/// Maximum number of caches per processor that are read.
const MOST_CACHES: usize = 16;

fn read(file: &Path) -> Option<String> {
    Some(fs::read_to_string(file).ok()?.trim().to_owned())
}

/// Parses a cache size as the kernel writes it, such as `1024K`.
fn bytes(text: &str) -> Option<usize> {
    let kib: usize = text.strip_suffix('K')?.parse().ok()?;
    kib.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a copy of the sysfs folder for a test. Each processor has its core and its caches,
    /// and each cache its level, type, size and the processors that share it.
    fn machine(name: &str, processors: &[(&str, &[[&str; 4]])]) -> tempfile::TempDir {
        let sys = tempfile::Builder::new().prefix(name).tempdir().unwrap();
        for (cpu, (core, caches)) in processors.iter().enumerate() {
            let of_cpu = sys.path().join(format!("cpu{cpu}"));
            fs::create_dir_all(of_cpu.join("topology")).unwrap();
            fs::write(of_cpu.join("topology/core_cpus_list"), format!("{core}\n")).unwrap();
            for (index, texts) in caches.iter().enumerate() {
                let cache = of_cpu.join(format!("cache/index{index}"));
                fs::create_dir_all(&cache).unwrap();
                let files = ["level", "type", "size", "shared_cpu_list"];
                for (file, text) in files.iter().zip(texts) {
                    fs::write(cache.join(file), format!("{text}\n")).unwrap();
                }
            }
        }
        sys
    }

    #[test]
    fn a_level_2_that_only_the_threads_of_one_core_share_is_private() {
        let threads: &[_] = &[
            ["1", "Data", "32K", "0-1"],
            ["2", "Unified", "1024K", "0-1"],
            ["3", "Unified", "32768K", "0-3"],
        ];
        let sys = machine("private", &[("0-1", threads), ("0-1", threads)]);
        let found = Caches {
            level_2: 1 << 20,
            level_2_is_private: true,
            level_3: Some(32 << 20),
        };
        assert_eq!(Caches::of(&[0, 1], sys.path()), Some(found));
    }

    #[test]
    fn a_level_2_that_two_cores_share_is_not_private() {
        let pair: &[_] = &[["2", "Unified", "2048K", "0-1"]];
        let sys = machine("shared", &[("0", pair), ("1", pair)]);
        let found = Caches::of(&[0, 1], sys.path()).unwrap();
        assert!(!found.level_2_is_private);
        assert_eq!(found.level_3, None);
    }

    #[test]
    fn of_two_kinds_of_cores_the_one_with_less_counts() {
        let large: &[_] = &[
            ["2", "Unified", "2048K", "0"],
            ["3", "Unified", "30720K", "0-4"],
        ];
        let small: &[_] = &[
            ["2", "Unified", "4096K", "1-4"],
            ["3", "Unified", "30720K", "0-4"],
        ];
        let sys = machine("mixed", &[("0", large), ("1", small)]);
        let found = Caches::of(&[0, 1], sys.path()).unwrap();
        assert_eq!((found.level_2, found.level_2_is_private), (2 << 20, false));
    }

    #[test]
    fn a_machine_that_reports_no_caches_has_none() {
        let bare = machine("bare", &[("0", &[])]);
        assert_eq!(Caches::of(&[0], bare.path()), None);
        let odd: &[_] = &[["2", "Unified", "much", "0"]];
        let odd = machine("odd", &[("0", odd)]);
        assert_eq!(Caches::of(&[0], odd.path()), None);
        assert_eq!(Caches::of(&[0], Path::new("/nowhere")), None);
        assert_eq!(Caches::of(&[], Path::new("/nowhere")), None);
    }
}
