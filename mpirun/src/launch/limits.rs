//! Timeouts of a link to the launcher on another host.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a launcher waits for another host; zero waits indefinitely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// For its first message; the command that reaches it may be asking the user for a password.
    pub greeting: Duration,
    /// For any message after that.
    pub silence: Duration,
}

impl Limits {
    /// Returns the interval at which a side checks these limits.
    pub fn heartbeat(&self) -> Option<Duration> {
        let limits = [self.greeting, self.silence].into_iter();
        let shortest = limits.filter(|limit| !limit.is_zero()).min()?;
        Some((shortest / 6).max(Duration::from_millis(10)))
    }
}
