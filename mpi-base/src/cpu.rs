//! The number of cores that this process may keep busy, by its affinity mask and cgroup quota.
//!
//! The waiting policy compares this number with the number of local ranks:
//! if the ranks fit, a waiting rank may spin; if the node is oversubscribed, it must yield.
//! The standard library reads both cgroup versions and rounds down to whole cores, at least one.
//! A rank that is bound to a subset of the cores shares them with some of the local ranks,
//! but cannot determine their number by itself.
//! Portcullis's mpirun passes this number ([`SHARERS`]).
//! Under other launchers the ranks exchange their affinity masks.

/// Environment variable of a bound rank: the number of its node's ranks on its cores, with itself.
///
/// Portcullis's mpirun sets the variable if the ranks of the node fit on mpirun's own cores.
pub const SHARERS: &str = "PORTCULLIS_LOCAL_SHARERS";

/// Returns the kernel's ID of the calling thread.
pub fn this_thread() -> u32 {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

/// The number of cores that this process may use, and the limits that determine it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The number of cores that this process may keep busy at the same time; at least one.
    pub usable: usize,
    /// Number of cores in the affinity mask; `None` if the mask could not be read.
    pub affinity: Option<usize>,
    /// The number of local ranks, including this one, on these cores; `None` if unknown.
    pub sharers: Option<usize>,
}

impl Cores {
    /// Queries the kernel. The limits may change while a process runs,
    /// but callers query them only at start.
    pub fn of_this_process() -> Cores {
        let affinity = rustix::thread::sched_getaffinity(None)
            .ok()
            .map(|set| set.count() as usize);
        let usable = std::thread::available_parallelism()
            .map_or_else(|_| affinity.unwrap_or(1), usize::from)
            .max(1);
        Cores {
            usable,
            affinity,
            sharers: None,
        }
    }

    /// Sets `sharers`, the number of local ranks on these cores.
    pub fn with_sharers(self, sharers: Option<usize>) -> Cores {
        Cores { sharers, ..self }
    }

    /// Returns the number of the node's `local_ranks` ranks that run on these cores.
    pub fn shared_by(&self, local_ranks: usize) -> usize {
        self.sharers
            .map_or(local_ranks, |sharers| sharers.clamp(1, local_ranks.max(1)))
    }

    /// Returns true if the limit is a cgroup quota and not the affinity mask.
    pub fn limited_by_quota(&self) -> bool {
        self.affinity.is_some_and(|affinity| self.usable < affinity)
    }
}

/// Returns the processors that this thread may run on, ascending; `None` if the mask cannot be read.
pub fn processors() -> Option<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    let all = 0..rustix::thread::CpuSet::MAX_CPU;
    Some(all.filter(|&cpu| set.is_set(cpu)).collect())
}

/// Counts the processes of `all` whose masks intersect `cpus`, the mask of a bound process.
/// Unknown masks count as intersecting.
pub fn sharers<'a>(cpus: &[usize], all: impl IntoIterator<Item = Option<&'a [usize]>>) -> usize {
    let meets = |other: &Option<&[usize]>| {
        other.is_none_or(|other| other.iter().any(|cpu| cpus.contains(cpu)))
    };
    all.into_iter().filter(meets).count()
}

/// Returns the number of cores that this process could keep busy if it were not bound.
/// This is the limit of its control group.
///
/// For the query, the calling thread's mask is widened and then restored.
pub fn usable_unbound() -> Option<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let mask = sched_getaffinity(None).ok()?;
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    // The kernel ignores processors in the mask that do not exist or are not allowed.
    sched_setaffinity(None, &all).ok()?;
    let usable = std::thread::available_parallelism();
    sched_setaffinity(None, &mask).ok()?;
    usable.ok().map(usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `test` bound to one core and passes it the core's number.
    fn on_one_core<T: Send + 'static>(test: fn(usize) -> T) -> T {
        // The mask belongs to a thread, so a separate thread leaves the other tests unbound.
        let bound = std::thread::spawn(move || {
            let first = processors().unwrap()[0];
            let mut one = rustix::thread::CpuSet::new();
            one.set(first);
            rustix::thread::sched_setaffinity(None, &one).unwrap();
            test(first)
        });
        bound.join().unwrap()
    }

    #[test]
    fn a_process_bound_to_one_core_has_one_core() {
        let cores = on_one_core(|_| Cores::of_this_process());
        assert_eq!((cores.usable, cores.affinity), (1, Some(1)));
    }

    #[test]
    fn what_a_bound_process_could_use_is_found_and_leaves_it_bound() {
        let free = Cores::of_this_process().usable;
        let (found, first, after) = on_one_core(|first| (usable_unbound(), first, processors()));
        // The process that started the tests may have bound them to fewer cores.
        assert!(found.unwrap() >= free, "{found:?} {free}");
        assert_eq!(after, Some(vec![first]));
    }

    #[test]
    fn ranks_that_may_share_a_core_are_counted_and_unknown_ones_may_be_on_any() {
        let masks = [Some(&[0usize, 1][..]), Some(&[2]), None, Some(&[1, 2])];
        assert_eq!(sharers(&[0, 1], masks), 3);
        assert_eq!(sharers(&[2], masks), 3);
        assert_eq!(sharers(&[0], masks), 2);
        assert_eq!(sharers(&[3], masks), 1);
    }

    #[test]
    fn bound_ranks_do_not_share_cores_if_the_launcher_or_the_cards_say_so() {
        let bound = |sharers| Cores {
            usable: 1,
            affinity: Some(1),
            sharers,
        };
        assert_eq!(bound(None).shared_by(60), 60);
        assert_eq!(bound(Some(1)).shared_by(60), 1);
        // Values outside of the valid range are clamped.
        assert_eq!(bound(Some(0)).shared_by(60), 1);
        assert_eq!(bound(Some(99)).shared_by(60), 60);
        assert_eq!(bound(None).with_sharers(Some(2)).shared_by(60), 2);
    }

    #[test]
    fn usable_cores_never_exceed_the_affinity() {
        let cores = Cores::of_this_process();
        assert!(cores.usable >= 1 && cores.usable <= cores.affinity.unwrap());
    }
}
