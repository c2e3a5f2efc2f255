//! How many cores this process may keep busy: the smaller of its affinity mask and its cgroup's quota.
//!
//! The waiting policy compares this with the number of local ranks: where they fit, a waiting rank may spin; where not, it must yield.
//! The reading of both cgroup versions is the standard library's; half a core counts as one.
//! A rank that is bound to cores of its own does not share them with all local ranks, which it cannot see from where it is:
//! our mpirun tells it ([`SHARERS`]), and under other launchers ranks show each other where they may run.

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
    /// How many local ranks may run on them, if that is known.
    pub sharers: Option<usize>,
}

impl Cores {
    /// Asks the kernel; the answer can change while a process lives, so a caller that needs it asks once at start.
    pub fn of_this_process() -> Cores {
        let affinity = rustix::thread::sched_getaffinity(None)
            .ok()
            .map(|set| set.count() as usize);
        let usable = std::thread::available_parallelism()
            .map_or_else(|_| affinity.unwrap_or(1), usize::from)
            .max(1);
        let sharers = crate::environment::text(SHARERS);
        Cores {
            usable,
            affinity,
            sharers: sharers.and_then(|ranks| ranks.parse().ok()),
        }
    }

    /// The same, where `sharers` ranks were found to share them; a launcher that has said it knows better.
    pub fn found(self, sharers: Option<usize>) -> Cores {
        Cores {
            sharers: self.sharers.or(sharers),
            ..self
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

/// The processors that this thread may run on, ascending; `None` if that cannot be read.
pub fn processors() -> Option<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    let all = 0..rustix::thread::CpuSet::MAX_CPU;
    Some(all.filter(|&cpu| set.is_set(cpu)).collect())
}

/// How many of `all` may run where a process that is bound to `cpus` does; those of which nothing is known may run anywhere.
pub fn sharers<'a>(cpus: &[usize], all: impl IntoIterator<Item = Option<&'a [usize]>>) -> usize {
    let meets = |other: &Option<&[usize]>| {
        other.is_none_or(|other| other.iter().any(|cpu| cpus.contains(cpu)))
    };
    all.into_iter().filter(meets).count()
}

/// How many cores this process could keep busy if it were not bound: what its control group allows it, which a bound one does not see.
///
/// The calling thread's mask is wide for as long as the question takes; it is as it was afterwards.
pub fn usable_unbound() -> Option<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let mask = sched_getaffinity(None).ok()?;
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    // The system leaves out what is not there or not allowed.
    sched_setaffinity(None, &all).ok()?;
    let usable = std::thread::available_parallelism();
    sched_setaffinity(None, &mask).ok()?;
    usable.ok().map(usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `test` bound to one core: its number is given.
    fn on_one_core<T: Send + 'static>(test: fn(usize) -> T) -> T {
        // The mask is the thread's own, so a thread of its own keeps the other tests as they were.
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
        // This process may itself have been bound by the process that started it.
        assert!(found.unwrap() >= free, "{found:?} {free}");
        assert_eq!(after, Some(vec![first]));
    }

    #[test]
    fn who_may_meet_is_counted_and_strangers_may_be_anywhere() {
        let masks = [Some(&[0usize, 1][..]), Some(&[2]), None, Some(&[1, 2])];
        assert_eq!(sharers(&[0, 1], masks), 3);
        assert_eq!(sharers(&[2], masks), 3);
        assert_eq!(sharers(&[0], masks), 2);
        assert_eq!(sharers(&[3], masks), 1);
    }

    #[test]
    fn bound_ranks_do_not_share_if_somebody_says_so_and_the_launcher_knows_best() {
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
        assert_eq!(bound(None).found(Some(2)).shared_by(60), 2);
        assert_eq!(bound(Some(3)).found(Some(2)).shared_by(60), 3);
    }

    #[test]
    fn usable_cores_never_exceed_the_affinity() {
        let cores = Cores::of_this_process();
        assert!(cores.usable >= 1 && cores.usable <= cores.affinity.unwrap());
    }
}
