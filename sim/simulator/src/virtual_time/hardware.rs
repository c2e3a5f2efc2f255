//! The two barrier protocols of the driver, and their names.

use embedded_hal::digital::PinState;
use std::fmt;
use std::str::FromStr;

/// The driver's barrier protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Each barrier toggles the level once.
    Toggle,
    /// Each barrier goes from the idle level `rest` to the other level and back
    /// ([`ReturningBarrier`](barrier_driver::ReturningBarrier)).
    Returning {
        /// The level of the idle wires.
        rest: PinState,
    },
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Toggle => "toggle",
            Self::Returning {
                rest: PinState::Low,
            } => "returning:low",
            Self::Returning {
                rest: PinState::High,
            } => "returning:high",
        })
    }
}

/// The error for a text that names no protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadProtocol(String);

impl fmt::Display for BadProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no protocol: write toggle, returning (to low), returning:low or returning:high",
            self.0
        )
    }
}

impl std::error::Error for BadProtocol {}

impl FromStr for Protocol {
    type Err = BadProtocol;

    fn from_str(text: &str) -> Result<Self, BadProtocol> {
        match text {
            "toggle" => Ok(Self::Toggle),
            "returning" | "returning:low" => Ok(Self::Returning {
                rest: PinState::Low,
            }),
            "returning:high" => Ok(Self::Returning {
                rest: PinState::High,
            }),
            other => Err(BadProtocol(other.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_read_as_they_are_written() {
        for text in ["toggle", "returning:low", "returning:high"] {
            assert_eq!(
                text.parse::<Protocol>().map(|p| p.to_string()),
                Ok(text.to_owned())
            );
        }
        assert_eq!("returning".parse::<Protocol>(), "returning:low".parse());
        let bad = "there".parse::<Protocol>().err().map(|e| e.to_string());
        assert!(bad.is_some_and(|said| said.starts_with("'there' is no protocol")));
    }
}
