//! Disabling of restartable sequences in ranks whose cores are oversubscribed.
//!
//! Since version 2.35 glibc registers each thread for restartable sequences (rseq(2)) at its start.
//! At each context switch to the thread, the kernel writes the core's number to the thread's area.
//! Ranks on oversubscribed cores are switched in for each message and each collective.
//! These writes take a tenth of the time of a message or collective
//! (docs/adr/0025-no-restartable-sequences-on-shared-cores.md).
//! With the tunable `glibc.pthread.rseq=0`, glibc registers no thread.
//! Programs that use rseq(2) themselves then register their own threads.
//! Older versions and other C libraries ignore the tunable.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The variable that contains glibc's tunables: `name=value`, separated by colons.
const TUNABLES: &str = "GLIBC_TUNABLES";

const TUNABLE: &str = "glibc.pthread.rseq";

/// Adds the tunable to those that are set already; a user's own value is kept.
pub fn do_without(env: &mut Vec<(OsString, OsString)>) {
    let present = env.iter().find(|(name, _)| name == TUNABLES);
    let present = present.map_or(OsStr::new(""), |(_, value)| value);
    let name =
        |tunable: &[u8]| tunable.split(|byte| *byte == b'=').next() == Some(TUNABLE.as_bytes());
    if present.as_bytes().split(|byte| *byte == b':').any(name) {
        return;
    }
    let mut tunables = present.to_os_string();
    if !tunables.is_empty() {
        tunables.push(":");
    }
    tunables.push(format!("{TUNABLE}=0"));
    crate::rank_environment::set_env(env, TUNABLES, tunables);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunables(before: Option<&str>) -> String {
        let mut env = vec![("PATH".into(), "/bin".into())];
        env.extend(before.map(|value| (TUNABLES.into(), value.into())));
        do_without(&mut env);
        assert_eq!(env.len(), 2, "{env:?}");
        let (_, value) = env.iter().find(|(name, _)| name == TUNABLES).unwrap();
        value.to_str().unwrap().to_string()
    }

    #[test]
    fn it_stands_beside_other_tunables() {
        for (before, after) in [
            (None, "glibc.pthread.rseq=0"),
            (Some(""), "glibc.pthread.rseq=0"),
            (
                Some("glibc.malloc.arena_max=2"),
                "glibc.malloc.arena_max=2:glibc.pthread.rseq=0",
            ),
            (
                Some("glibc.pthread.rseq_not_this=1"),
                "glibc.pthread.rseq_not_this=1:glibc.pthread.rseq=0",
            ),
        ] {
            assert_eq!(tunables(before), after);
        }
    }

    #[test]
    fn a_value_set_by_the_user_stays() {
        for set in [
            "glibc.pthread.rseq=1",
            "glibc.malloc.arena_max=2:glibc.pthread.rseq=1:glibc.cpu.x86_ibt=on",
        ] {
            assert_eq!(tunables(Some(set)), set);
        }
    }
}
