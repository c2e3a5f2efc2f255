//! The card that a process publishes for its peers: the address of its port, and the key that its peers' messages must contain.
//!
//! ```text
//! "PF" | version u8 | fabric u8 | process u32 | key u64 | longest message u32 | length u16 | address | CRC-32 u32
//! ```
//!
//! A network library may crash if a damaged address is passed to it.
//! So the process number, length and checksum of a card are checked before its address is used.
//! [`Card::decode`] accepts any input without a panic.

use crate::btl::ProcId;

const MAGIC: [u8; 2] = *b"PF";
/// 2: before the address of UCX is the name of its dialect ([`named_address`](super::named_address)).
const VERSION: u8 = 2;
/// Maximum length of an address in bytes, with the name of its dialect; the launchers transfer it in several messages.
pub const MOST_ADDRESS: usize = 4096 + 1 + 255;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The number of the network library whose address format the card uses.
    pub fabric: u8,
    pub proc: ProcId,
    pub key: u64,
    /// The maximum payload of a message in bytes. It must be the same in all processes.
    pub longest: u32,
    pub address: Vec<u8>,
}

impl Card {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend([VERSION, self.fabric]);
        out.extend(self.proc.to_le_bytes());
        out.extend(self.key.to_le_bytes());
        out.extend(self.longest.to_le_bytes());
        out.extend((self.address.len() as u16).to_le_bytes());
        out.extend(&self.address);
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Card> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if crc32fast::hash(body) != u32::from_le_bytes(*sum) {
            return None;
        }
        let (head, body) = body.split_first_chunk::<4>()?;
        let (proc, body) = body.split_first_chunk::<4>()?;
        let (key, body) = body.split_first_chunk::<8>()?;
        let (longest, body) = body.split_first_chunk::<4>()?;
        let (len, address) = body.split_first_chunk::<2>()?;
        let [first, second, version, fabric] = *head;
        let whole = [first, second] == MAGIC
            && version == VERSION
            && address.len() == usize::from(u16::from_le_bytes(*len))
            && (1..=MOST_ADDRESS).contains(&address.len());
        whole.then(|| Card {
            fabric,
            proc: ProcId::from_le_bytes(*proc),
            key: u64::from_le_bytes(*key),
            longest: u32::from_le_bytes(*longest),
            address: address.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn card() -> Card {
        Card {
            fabric: 1,
            proc: 7,
            key: 0x1234_5678_9abc_def0,
            longest: 1 << 17,
            address: (0..215).collect(),
        }
    }

    #[test]
    fn a_card_is_read_as_it_was_written() {
        assert_eq!(Card::decode(&card().encode()), Some(card()));
    }

    /// An address of version 1 has no name before it, so the library would get its bytes from the wrong place.
    #[test]
    fn a_card_of_another_version_is_refused() {
        let mut bytes = card().encode();
        bytes[2] = 1;
        let body = bytes.len() - 4;
        let sum = crc32fast::hash(&bytes[..body]);
        bytes[body..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Card::decode(&bytes), None);
    }

    #[test]
    fn the_longest_address_has_a_name() {
        let mut card = card();
        card.address = super::super::named_address::join(&"x".repeat(255), &[7; 4096]);
        assert_eq!(Card::decode(&card.encode()), Some(card.clone()));
        card.address.push(7);
        assert_eq!(Card::decode(&card.encode()), None);
    }

    proptest! {
        #[test]
        fn a_damaged_card_is_refused(at in 0usize..241, flip in 1u8.., cut in 1usize..242) {
            let mut bytes = card().encode();
            bytes[at] ^= flip;
            prop_assert_eq!(Card::decode(&bytes), None);
            let bytes = card().encode();
            prop_assert_eq!(Card::decode(&bytes[..bytes.len() - cut]), None);
        }
    }
}
