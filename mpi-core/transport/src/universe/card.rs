//! A process's card for processes of other jobs: one key and value per transport.
//!
//! ```text
//! entries u8 | (key length u8 | key | value length u16 | value) ...
//! ```
//!
//! [`Card::decode`] is total.

/// A list of keys and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card(Vec<(String, Vec<u8>)>);

/// Maximum number of entries of a card.
const ENTRIES: usize = 16;

impl Card {
    /// Adds or replaces an entry; one that exceeds a card's limits is left out.
    pub fn put(&mut self, key: &str, value: &[u8]) {
        let fits = u8::try_from(key.len()).is_ok() && u16::try_from(value.len()).is_ok();
        self.0.retain(|(known, _)| known != key);
        if fits && self.0.len() < ENTRIES {
            self.0.push((key.into(), value.to_vec()));
        }
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let entry = self.0.iter().find(|(known, _)| known == key);
        entry.map(|(_, value)| value.clone())
    }

    /// Returns the wire format.
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

    /// Decodes the wire format of [`Card::encode`].
    pub fn decode(bytes: &[u8]) -> Option<Card> {
        let (&count, mut rest) = bytes.split_first()?;
        let mut card = Card::default();
        for _ in 0..count {
            let (&len, after) = rest.split_first()?;
            let (key, after) = after.split_at_checked(len.into())?;
            let (len, after) = after.split_first_chunk()?;
            let (value, after) = after.split_at_checked(u16::from_le_bytes(*len).into())?;
            let key = std::str::from_utf8(key).ok()?;
            card.get(key).is_none().then(|| card.put(key, value))?;
            rest = after;
        }
        (rest.is_empty() && usize::from(count) <= ENTRIES).then_some(card)
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
            entries.iter().for_each(|(key, value)| card.put(key, value));
            prop_assert_eq!(Card::decode(&card.encode()), Some(card));
        }
    }
}
