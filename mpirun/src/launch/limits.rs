//! How long a launcher waits for the launcher on another host.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long another host is waited for; zero waits for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// For its first word; the command that reaches it may be asking the user for a password.
    pub greeting: Duration,
    /// For any word after that.
    pub silence: Duration,
}

impl Limits {
    /// How often a side looks at its clock.
    pub fn beat(&self) -> Option<Duration> {
        let limits = [self.greeting, self.silence].into_iter();
        let shortest = limits.filter(|limit| !limit.is_zero()).min()?;
        Some((shortest / 6).max(Duration::from_millis(10)))
    }
}
