//! Ranks that share cores do without restartable sequences.
//!
//! The C library registers each thread for them at start (rseq(2), glibc since 2.35), whether the program has any or not.
//! The system then looks at the thread's area and writes the number of its core there each time that it has been switched in,
//! which ranks that share cores are for each message and each collective: a tenth of an operation (docs/adr/0025-no-restartable-sequences-on-shared-cores.md).
//! `glibc.pthread.rseq=0` among the C library's tunables leaves the registration to the program, should it want one.
//! Older and other C libraries know no such tunable and go on as they were.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Where the C library finds its tunables: `name=value`, separated by colons.
const TUNABLES: &str = "GLIBC_TUNABLES";

const TUNABLE: &str = "glibc.pthread.rseq";

/// Sets the tunable beside those that there are; a user who has set it is right.
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
    super::program::set_env(env, TUNABLES, tunables);
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
    fn what_somebody_has_set_stays() {
        for set in [
            "glibc.pthread.rseq=1",
            "glibc.malloc.arena_max=2:glibc.pthread.rseq=1:glibc.cpu.x86_ibt=on",
        ] {
            assert_eq!(tunables(Some(set)), set);
        }
    }
}
