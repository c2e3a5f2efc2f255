//! The card of a process for processes of other jobs: one key and value per transport.
//!
//! ```text
//! entries u8 | (key length u8 | key | value length u16 | value) ...
//! ```
//!
//! [`Card::decode`] accepts any input without a panic.

use std::fmt;

/// A list of keys and values, such as the addresses of a process's transports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card(Vec<(String, Vec<u8>)>);

/// Maximum number of entries on a card, and the maximum lengths of a key and of a value in bytes.
const ENTRIES: usize = u8::MAX as usize;
const KEY: usize = u8::MAX as usize;
const VALUE: usize = u16::MAX as usize;

/// The reason why a card cannot contain an entry. Without its entry, other jobs cannot reach a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardError {
    /// The card has the maximum number of entries.
    Full { key: String },
    /// The key or the value is too long.
    Long { key: String, value: usize },
}

impl fmt::Display for CardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CardError::Full { key } => write!(
                f,
                "the card of this process for other jobs has no space for the address \"{key}\": it has {ENTRIES} entries already"
            ),
            CardError::Long { key, value } => write!(
                f,
                "the address \"{key}\" of {value} bytes does not fit the card of this process for other jobs, which takes keys of {KEY} and values of {VALUE} bytes"
            ),
        }
    }
}

impl std::error::Error for CardError {}

impl Card {
    /// Adds an entry, or replaces the value of an existing key.
    pub fn put(&mut self, key: &str, value: &[u8]) -> Result<(), CardError> {
        if key.len() > KEY || value.len() > VALUE {
            return Err(CardError::Long {
                key: key.into(),
                value: value.len(),
            });
        }
        if let Some((_, known)) = self.0.iter_mut().find(|(known, _)| known == key) {
            *known = value.to_vec();
            return Ok(());
        }
        if self.0.len() == ENTRIES {
            return Err(CardError::Full { key: key.into() });
        }
        self.0.push((key.into(), value.to_vec()));
        Ok(())
    }

    /// Returns the value of a key; `None` if the card has no such key.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let entry = self.0.iter().find(|(known, _)| known == key);
        entry.map(|(_, value)| value.clone())
    }

    /// Returns the card in the wire format.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.0.len() as u8];
        for (key, value) in &self.0 {
            out.push(key.len() as u8);
            out.extend(key.as_bytes());
            out.extend((value.len() as u16).to_le_bytes());
            out.extend(value);
        }
        out
    }

    /// Decodes the format of [`Card::encode`]; returns `None` if it is malformed.
    pub fn decode(bytes: &[u8]) -> Option<Card> {
        let (&count, mut rest) = bytes.split_first()?;
        let mut card = Card::default();
        for _ in 0..count {
            let (&len, after) = rest.split_first()?;
            let (key, after) = after.split_at_checked(len.into())?;
            let (len, after) = after.split_first_chunk()?;
            let (value, after) = after.split_at_checked(u16::from_le_bytes(*len).into())?;
            let key = std::str::from_utf8(key).ok()?;
            if card.get(key).is_some() {
                return None;
            }
            card.put(key, value).ok()?;
            rest = after;
        }
        rest.is_empty().then_some(card)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_card_is_read_as_it_was_written(entries in proptest::collection::vec(("[a-z]{0,8}", proptest::collection::vec(any::<u8>(), 0..40)), 0..6)) {
            let mut card = Card::default();
            for (key, value) in &entries {
                prop_assert_eq!(card.put(key, value), Ok(()));
            }
            prop_assert_eq!(Card::decode(&card.encode()), Some(card));
        }
    }

    /// Regression test: the 17th entry of a card was dropped without an error.
    #[test]
    fn an_entry_that_a_card_does_not_take_is_an_error_that_names_it() {
        let mut card = Card::default();
        for number in 0..ENTRIES {
            assert_eq!(card.put(&format!("btl-{number}"), b"address"), Ok(()));
        }
        assert_eq!(Card::decode(&card.encode()), Some(card.clone()));
        let full = card.put("btl-more", b"address").unwrap_err().to_string();
        assert!(
            full.contains("no space for the address \"btl-more\""),
            "{full}"
        );
        assert_eq!(card.put("btl-16", b"another"), Ok(()));
        let long = card.put("btl-16", &[0; VALUE + 1]).unwrap_err().to_string();
        assert!(
            long.contains("\"btl-16\" of 65536 bytes does not fit"),
            "{long}"
        );
        assert_eq!(card.get("btl-16"), Some(b"another".to_vec()));
    }
}
