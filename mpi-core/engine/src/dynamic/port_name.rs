//! The name of a port: the address of its process and its number, in letters, digits, `-`, `_` and `:`.
//! Such a name can be printed, written to a file or passed on a command line.
//!
//! ```text
//! portcullis1: base64url( owner u64 | number u64 | card )
//! ```
//!
//! The name is a capability: any process that knows the name may connect.
//! Guarantee: [`PortName::parse`] accepts any text without a panic; its errors describe what is wrong with the text.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use mpi_transport::universe::{Card, Name};
use std::fmt;

const PREFIX: &str = "portcullis1:";

/// A parsed port name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortName {
    owner: Name,
    number: u64,
    card: Card,
}

/// The reason why a text is not a port name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortNameError {
    /// The prefix is missing.
    Foreign,
    /// The prefix is right, but the rest is incomplete or invalid.
    Damaged,
}

impl fmt::Display for PortNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortNameError::Foreign => write!(
                f,
                "it does not begin with \"{PREFIX}\", so it is no port that MPI_Open_port of this library has opened"
            ),
            PortNameError::Damaged => write!(
                f,
                "it begins like the name of a port, but is cut or changed; a name is at most 255 characters long"
            ),
        }
    }
}

impl std::error::Error for PortNameError {}

impl PortName {
    /// Creates the name of port `number` of the process `owner`, whose card is `card`.
    pub fn new(owner: Name, number: u64, card: &Card) -> PortName {
        PortName {
            owner,
            number,
            card: card.clone(),
        }
    }

    /// Returns the process that opened the port.
    pub fn owner(&self) -> Name {
        self.owner
    }

    /// Returns the port's number in the process that opened the port.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the endpoint address of the process that opened the port.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Parses a port name that `Display` has written.
    pub fn parse(text: &str) -> Result<PortName, PortNameError> {
        let digits = text.trim().strip_prefix(PREFIX);
        let digits = digits.ok_or(PortNameError::Foreign)?;
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(digits).ok();
        let read = |bytes: &[u8]| {
            let (owner, rest) = bytes.split_first_chunk()?;
            let (number, rest) = rest.split_first_chunk()?;
            Some(PortName {
                owner: Name(u64::from_le_bytes(*owner)),
                number: u64::from_le_bytes(*number),
                card: Card::decode(rest)?,
            })
        };
        bytes
            .and_then(|bytes| read(&bytes))
            .ok_or(PortNameError::Damaged)
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.owner.0.to_le_bytes().to_vec();
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.card.encode());
        write!(f, "{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn port(bytes: &[u8]) -> PortName {
        let mut card = Card::default();
        card.put("btl-tcp-0", bytes).unwrap();
        PortName::new(Name::new(5, 6), 7, &card)
    }

    proptest! {
        #[test]
        fn a_name_is_read_as_it_was_written(bytes in proptest::collection::vec(any::<u8>(), 0..150)) {
            let port = port(&bytes);
            let text = port.to_string();
            prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_:".contains(&b)));
            prop_assert_eq!(PortName::parse(&text), Ok(port));
        }

        #[test]
        fn a_cut_name_is_refused(cut in 0usize..60) {
            let name = port(b"0123456789").to_string();
            let cut = &name[..name.len().saturating_sub(cut + 1)];
            prop_assert!(PortName::parse(cut).is_err());
        }
    }
}
