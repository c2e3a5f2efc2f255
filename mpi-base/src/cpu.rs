//! How many cores this process may keep busy: the smaller of its affinity mask and its cgroup's quota.
//!
//! The waiting policy compares this with the number of local ranks: where they fit, a waiting rank may spin; where not, it must yield.
//! The reading of both cgroup versions is the standard library's; half a core counts as one.

/// What limits this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// Cores that may be kept busy at once; at least one.
    pub usable: usize,
    /// Cores in the affinity mask, if it could be read.
    pub affinity: Option<usize>,
}

impl Cores {
    /// Asks the kernel; the answer can change while a process lives, so whoever needs it asks once at start.
    pub fn of_this_process() -> Cores {
        let affinity = rustix::thread::sched_getaffinity(None)
            .ok()
            .map(|set| set.count() as usize);
        let usable = std::thread::available_parallelism()
            .map_or_else(|_| affinity.unwrap_or(1), usize::from)
            .max(1);
        Cores { usable, affinity }
    }

    /// Whether a cgroup quota, not the affinity, is what limits.
    pub fn limited_by_quota(&self) -> bool {
        self.affinity.is_some_and(|affinity| self.usable < affinity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_bound_to_one_core_has_one_core() {
        // The mask is the thread's own, so a thread of its own keeps the other tests as they were.
        let bound = std::thread::spawn(|| {
            let all = rustix::thread::sched_getaffinity(None).unwrap();
            let first = (0..rustix::thread::CpuSet::MAX_CPU)
                .find(|&cpu| all.is_set(cpu))
                .unwrap();
            let mut one = rustix::thread::CpuSet::new();
            one.set(first);
            rustix::thread::sched_setaffinity(None, &one).unwrap();
            Cores::of_this_process()
        });
        let cores = bound.join().unwrap();
        assert_eq!((cores.usable, cores.affinity), (1, Some(1)));
    }

    #[test]
    fn usable_cores_never_exceed_the_affinity() {
        let cores = Cores::of_this_process();
        assert!(cores.usable >= 1 && cores.usable <= cores.affinity.unwrap());
    }
}
