//! How many cores this process may keep busy: the smaller of its affinity mask and its cgroup's quota.
//!
//! The waiting policy compares this with the number of local ranks: where they fit, a waiting rank may spin; where not, it must yield.
//! The reading of both cgroup versions is the standard library's; half a core counts as one.
//! A rank that is bound to cores of its own does not share them with all local ranks, which only its launcher knows ([`SHARERS`]).

/// In the environment of a bound rank: how many ranks of its node, with itself, may run on its cores.
///
/// Our mpirun sets it where the ranks of the node fit the cores that it may use itself.
pub const SHARERS: &str = "PORTCULLIS_LOCAL_SHARERS";

/// What limits this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// Cores that may be kept busy at once; at least one.
    pub usable: usize,
    /// Cores in the affinity mask, if it could be read.
    pub affinity: Option<usize>,
    /// How many local ranks may run on them, if the launcher said so.
    pub sharers: Option<usize>,
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
        let sharers = std::env::var(SHARERS).ok();
        Cores {
            usable,
            affinity,
            sharers: sharers.and_then(|ranks| ranks.parse().ok()),
        }
    }

    /// How many of the node's `local_ranks` share these cores.
    pub fn shared_by(&self, local_ranks: usize) -> usize {
        self.sharers
            .map_or(local_ranks, |sharers| sharers.clamp(1, local_ranks.max(1)))
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
    fn only_a_launcher_knows_that_bound_ranks_do_not_share() {
        let bound = |sharers| Cores {
            usable: 1,
            affinity: Some(1),
            sharers,
        };
        assert_eq!(bound(None).shared_by(60), 60);
        assert_eq!(bound(Some(1)).shared_by(60), 1);
        // Nonsense does no harm.
        assert_eq!(bound(Some(0)).shared_by(60), 1);
        assert_eq!(bound(Some(99)).shared_by(60), 60);
    }

    #[test]
    fn usable_cores_never_exceed_the_affinity() {
        let cores = Cores::of_this_process();
        assert!(cores.usable >= 1 && cores.usable <= cores.affinity.unwrap());
    }
}
