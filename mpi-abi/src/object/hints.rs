//! The hints of communicators and sessions (sections 7.4.4 and 11.3.1 of MPI 5.0).
//!
//! A hint that the standard does not define is dropped.
//! A query returns the known hints: values that the program has set, and defaults for other hints.

use crate::device;
use crate::info::Hints;

/// The assertions that a program can make about a communicator. Each is false by default.
const ASSERTIONS: [&str; 5] = [
    "mpi_assert_no_any_tag",
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    STRICT_ORDER,
];

/// The assertion that all members start their persistent collectives in the same order.
pub const STRICT_ORDER: &str = "mpi_assert_strict_persistent_collective_ordering";

/// The hint with the memory kinds of buffers (section 11.4.3).
/// A program requests kinds, and the library returns the supported kinds.
pub const ALLOC_KINDS: &str = "mpi_memory_alloc_kinds";

/// The hint with the thread level requested for a session, or the level provided.
pub const THREAD_LEVEL: &str = "thread_level";

/// The prefix of the standard's hints, which implementations must not use (section 10.1).
const STANDARD: &str = "mpi_";

impl Hints {
    /// Copies the hints that the standard defines.
    pub fn take_known(&mut self, given: &Hints) {
        for (key, value) in given.iter().filter(|(key, _)| key.starts_with(STANDARD)) {
            self.set(key.to_string(), value.to_string());
        }
    }

    /// Returns the known hints of a new communicator.
    pub fn known(given: &Hints) -> Hints {
        let mut known = Hints::new();
        known.take_known(given);
        known
    }

    /// Returns the current hints of a communicator, with defaults for hints that are not set.
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

    /// Returns the hints of a session with a thread level and the requested memory kinds.
    /// Other hints cannot be requested.
    pub fn of_session(thread_level: &str, kinds: Option<&str>) -> Hints {
        let mut all = Hints::new();
        all.set(THREAD_LEVEL.into(), thread_level.into());
        all.set(ALLOC_KINDS.into(), kinds.unwrap_or_default().into());
        all
    }

    /// Replaces the requested memory kinds by those that are supported.
    ///
    /// Each query does this, since a program may load an accelerator library at any time.
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
