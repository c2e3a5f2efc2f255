//! Timeouts of a link to the launcher on another host.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The time limits of a launcher for messages of another host; zero disables a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The limit for the first message of the other host.
    /// The limit is long, since the command that reaches the host may ask the user for a password.
    pub greeting: Duration,
    /// The limit for the time between two later messages.
    pub silence: Duration,
}

impl Limits {
    /// Returns the interval at which a launcher checks these limits; `None` if both are disabled.
    pub fn heartbeat(&self) -> Option<Duration> {
        let limits = [self.greeting, self.silence].into_iter();
        let shortest = limits.filter(|limit| !limit.is_zero()).min()?;
        Some((shortest / 6).max(Duration::from_millis(10)))
    }
}
