//! The hints of communicators and sessions (sections 7.4.4 and 11.3.1 of MPI 5.0).
//!
//! A hint that the standard does not define is dropped when it is given; a program that queries the hints gets those
//! that it gave and that are known, and the defaults of the others.

use crate::device;
use crate::info::Hints;

/// The assertions a program may make about a communicator; each is false by default.
const ASSERTIONS: [&str; 5] = [
    "mpi_assert_no_any_tag",
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    STRICT_ORDER,
];

/// With this hint a program asserts that all members start their persistent collectives in the same order.
pub const STRICT_ORDER: &str = "mpi_assert_strict_persistent_collective_ordering";

/// The kinds of memory that buffers may be in (section 11.4.3): a program requests some and gets the list of supported ones.
pub const ALLOC_KINDS: &str = "mpi_memory_alloc_kinds";

/// The thread level that a session requests, and the one it gets.
pub const THREAD_LEVEL: &str = "thread_level";

/// Hints of sessions and communicators with this prefix are the standard's; implementations define none (section 10.1).
const STANDARD: &str = "mpi_";

impl Hints {
    /// Adopts the hints that the standard defines.
    pub fn take_known(&mut self, given: &Hints) {
        for (key, value) in given.iter().filter(|(key, _)| key.starts_with(STANDARD)) {
            self.set(key.to_string(), value.to_string());
        }
    }

    /// The known hints of a new communicator.
    pub fn known(given: &Hints) -> Hints {
        let mut known = Hints::new();
        known.take_known(given);
        known
    }

    /// All hints in force on a communicator, with defaults for those that the program has not set.
    pub fn in_force(&self) -> Hints {
        let mut all = self.clone();
        for key in ASSERTIONS {
            if all.get(key).is_none() {
                all.set(key.into(), "false".into());
            }
        }
        all.set_alloc_kinds();
        all
    }

    /// The hints of a session with this thread level, which requests these kinds of memory; nothing else can be requested.
    pub fn of_session(thread_level: &str, kinds: Option<&str>) -> Hints {
        let mut all = Hints::new();
        all.set(THREAD_LEVEL.into(), thread_level.into());
        all.set(ALLOC_KINDS.into(), kinds.unwrap_or_default().into());
        all
    }

    /// Replaces the requested kinds of memory by the supported ones of them.
    ///
    /// A program may load the library of a device at any time, so this is done when it queries the hints.
    pub fn set_alloc_kinds(&mut self) {
        let kinds = device::kinds(self.get(ALLOC_KINDS));
        self.set(ALLOC_KINDS.into(), kinds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_standard_defines_is_kept_and_the_rest_of_it_is_false() {
        let mut given = Hints::new();
        given.set("mpi_assert_no_any_tag".into(), "true".into());
        given.set("colour".into(), "green".into());
        let mut known = Hints::known(&given);
        assert_eq!((known.len(), known.get("colour")), (1, None));
        known.set(ALLOC_KINDS.into(), "mpi,system,cuda".into());
        let all = known.in_force();
        assert_eq!(all.get("mpi_assert_no_any_tag"), Some("true"));
        assert_eq!(all.get("mpi_assert_exact_length"), Some("false"));
        assert_eq!(all.get("mpi_memory_alloc_kinds"), Some("mpi,system"));
        assert_eq!(all.len(), ASSERTIONS.len() + 1);
    }

    #[test]
    fn a_session_has_a_thread_level_and_kinds_of_memory_and_nothing_else() {
        let all = Hints::of_session("MPI_THREAD_SINGLE", Some("system,cuda"));
        let keys: Vec<&str> = all.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["thread_level", "mpi_memory_alloc_kinds"]);
    }
}
