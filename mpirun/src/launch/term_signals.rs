//! Termination of ranks by a signal; ranks with a handler for the user's signal get more time.
//!
//! Python turns SIGINT into an exception (`KeyboardInterrupt`), and a program may save its state on
//! SIGTERM; such handlers take seconds.
//! A rank's disposition of a signal is read from `/proc/PID/status` (proc(5)).

use super::sys::{self, Signal};
use std::fs;

/// The disposition of a signal in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    /// The default action, which ends the process.
    Ends,
    /// The process has a handler, or receives the signal by sigwait(3) or signalfd(2).
    Handles,
    Ignores,
    /// The disposition cannot be read.
    Unknown,
}

fn reaction(pid: i32, signal: Signal) -> Reaction {
    match fs::read_to_string(format!("/proc/{pid}/status")) {
        Ok(status) => in_status(&status, signal),
        Err(_) => Reaction::Unknown,
    }
}

/// Returns the disposition of a signal from the text of `/proc/PID/status`.
fn in_status(status: &str, signal: Signal) -> Reaction {
    let is_in = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let set = u64::from_str_radix(line.trim(), 16).ok()?;
        Some(set >> (signal - 1) & 1 == 1)
    };
    match (is_in("SigIgn:"), is_in("SigCgt:"), is_in("SigBlk:")) {
        (Some(true), ..) => Reaction::Ignores,
        (_, Some(true), _) | (.., Some(true)) => Reaction::Handles,
        (Some(false), Some(false), Some(false)) => Reaction::Ends,
        _ => Reaction::Unknown,
    }
}

/// Sends a signal that asks for termination to the process groups of these leaders.
pub fn ask_to_end(leaders: impl IntoIterator<Item = i32>, signal: Signal) {
    for leader in leaders {
        sys::signal_group(leader, signal);
        let unheard = || {
            matches!(
                reaction(leader, signal),
                Reaction::Ignores | Reaction::Unknown
            )
        };
        // A shell ignores SIGINT in its background commands, so they get SIGTERM as well.
        if signal != libc::SIGTERM && unheard() {
            sys::signal_group(leader, libc::SIGTERM);
        }
        // A stopped process reacts only to SIGCONT and SIGKILL, so SIGCONT follows.
        sys::signal_group(leader, libc::SIGCONT);
    }
}

/// Kills the groups whose leaders have no handler for the signal that [`ask_to_end`] has sent.
/// More time would be useless for a process without a handler.
pub fn kill_without_handler(leaders: impl IntoIterator<Item = i32>, signal: Signal) {
    leaders
        .into_iter()
        .filter(|&leader| has_no_handler(|signal| reaction(leader, signal), signal))
        .for_each(|leader| sys::signal_group(leader, libc::SIGKILL));
}

fn has_no_handler(reaction: impl Fn(Signal) -> Reaction, signal: Signal) -> bool {
    match reaction(signal) {
        Reaction::Handles | Reaction::Unknown => false,
        Reaction::Ends => true,
        // A process that ignores the signal got SIGTERM as well, so the handler of SIGTERM decides.
        Reaction::Ignores => reaction(libc::SIGTERM) != Reaction::Handles,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_does_with_a_signal_is_read_from_its_status() {
        let status = "Name:\tx\nSigBlk:\t0000000000000200\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000004002\n";
        for (signal, expected) in [
            (libc::SIGHUP, Reaction::Ignores),
            (libc::SIGINT, Reaction::Handles),
            (libc::SIGQUIT, Reaction::Ends),
            (libc::SIGUSR1, Reaction::Handles),
            (libc::SIGTERM, Reaction::Handles),
        ] {
            assert_eq!(in_status(status, signal), expected, "{signal}");
        }
        assert_eq!(in_status("", libc::SIGINT), Reaction::Unknown);
    }

    #[test]
    fn only_a_process_that_handles_no_signal_it_was_sent_is_deaf() {
        let of = |int, term| {
            has_no_handler(
                |signal| match signal {
                    libc::SIGINT => int,
                    _ => term,
                },
                libc::SIGINT,
            )
        };
        assert!(!of(Reaction::Handles, Reaction::Ends));
        assert!(!of(Reaction::Ignores, Reaction::Handles));
        assert!(of(Reaction::Ignores, Reaction::Ignores));
        assert!(of(Reaction::Ends, Reaction::Handles));
    }
}
