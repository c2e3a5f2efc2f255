//! The handshake: both processes prove that they know the key that the listening process has published through the launcher.
//!
//! ```text
//! connector                                              listener
//!   HELLO     from, to, link, nonce, MAC("hello")    ->
//!                                                    <-  CHALLENGE nonce, MAC("challenge")
//!   PROOF     MAC("proof")                           ->
//!                                                    <-  WELCOME   MAC("welcome")
//! ```
//!
//! Each MAC is HMAC-SHA-256 (RFC 2104, FIPS 180-4) with the listener's random 256-bit key, over a label, the hello's fields and,
//! from the challenge on, the listener's nonce.
//! The labels prevent that a message of one kind is accepted as another. The listener's nonce is fresh, so a recorded handshake cannot be replayed to a listener.
//! The connector's nonce is also fresh, so a recorded listener cannot be replayed to a connector.
//! The MAC of the first message shows whether the caller knows the key; if it does not, the listener does not reply.
//!
//! All messages have fixed lengths, and every decoder in this file accepts any input without a panic.

use hmac::{Hmac, KeyInit, Mac};
use mpi_base::fdpass::Key;
use sha2::Sha256;

/// Protocol name and version. A program with another version counts as an unknown client.
const MAGIC: [u8; 8] = *b"PORTCLS2";

const MAC: usize = 32;
const NONCE: usize = 16;
/// Length of a hello without its MAC, in bytes.
const FIELDS: usize = MAGIC.len() + 2 * 8 + 4 + NONCE;

pub const HELLO: usize = FIELDS + MAC;
pub const CHALLENGE: usize = NONCE + MAC;
pub const PROOF: usize = MAC;
pub const WELCOME: usize = MAC;

/// A random number that is used only once.
pub type Nonce = [u8; NONCE];

/// The fields of a hello: the names of the connecting process and its peer ([`Names`](super::super::Names)), the index of the link, and a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    pub from: u64,
    pub to: u64,
    pub link: u32,
    pub nonce: Nonce,
}

impl Hello {
    fn fields(&self) -> [u8; FIELDS] {
        let mut out = [0; FIELDS];
        out[..8].copy_from_slice(&MAGIC);
        out[8..16].copy_from_slice(&self.from.to_le_bytes());
        out[16..24].copy_from_slice(&self.to.to_le_bytes());
        out[24..28].copy_from_slice(&self.link.to_le_bytes());
        out[28..].copy_from_slice(&self.nonce);
        out
    }

    pub fn encode(&self, key: &Key) -> [u8; HELLO] {
        let mut out = [0; HELLO];
        out[..FIELDS].copy_from_slice(&self.fields());
        out[FIELDS..].copy_from_slice(&self.mac(key, Label::Hello, &[]));
        out
    }

    /// Decodes a hello. Returns `None` if it is malformed, or if its sender does not know the key.
    pub fn decode(bytes: &[u8], key: &Key) -> Option<Hello> {
        let bytes: &[u8; HELLO] = bytes.try_into().ok()?;
        let name = |at: usize| {
            let mut name = [0; 8];
            name.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(name)
        };
        let mut link = [0; 4];
        link.copy_from_slice(&bytes[24..28]);
        let mut nonce = [0; NONCE];
        nonce.copy_from_slice(&bytes[28..FIELDS]);
        let hello = Hello {
            from: name(8),
            to: name(16),
            link: u32::from_le_bytes(link),
            nonce,
        };
        let known = bytes[..8] == MAGIC;
        (known && hello.verify(key, Label::Hello, &[], &bytes[FIELDS..])).then_some(hello)
    }

    /// Returns the listener's challenge, the reply to this hello.
    pub fn challenge(&self, key: &Key, nonce: &Nonce) -> [u8; CHALLENGE] {
        let mut out = [0; CHALLENGE];
        out[..NONCE].copy_from_slice(nonce);
        out[NONCE..].copy_from_slice(&self.mac(key, Label::Challenge, nonce));
        out
    }

    /// Returns the listener's nonce if the challenge is a valid reply to this hello.
    pub fn read_challenge(&self, key: &Key, bytes: &[u8]) -> Option<Nonce> {
        let (nonce, mac) = bytes.split_at_checked(NONCE)?;
        let nonce: Nonce = nonce.try_into().ok()?;
        self.verify(key, Label::Challenge, &nonce, mac)
            .then_some(nonce)
    }

    pub fn proof(&self, key: &Key, nonce: &Nonce) -> [u8; PROOF] {
        self.mac(key, Label::Proof, nonce)
    }

    pub fn is_proof(&self, key: &Key, nonce: &Nonce, bytes: &[u8]) -> bool {
        self.verify(key, Label::Proof, nonce, bytes)
    }

    pub fn welcome(&self, key: &Key, nonce: &Nonce) -> [u8; WELCOME] {
        self.mac(key, Label::Welcome, nonce)
    }

    pub fn is_welcome(&self, key: &Key, nonce: &Nonce, bytes: &[u8]) -> bool {
        self.verify(key, Label::Welcome, nonce, bytes)
    }

    fn state(&self, key: &Key, label: Label, nonce: &[u8]) -> Hmac<Sha256> {
        // HMAC pads a short key with zeros to the hash's block length (RFC 2104, section 2).
        let mut block = [0; 64];
        block[..key.bytes().len()].copy_from_slice(key.bytes());
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(&[label as u8]);
        mac.update(&self.fields());
        mac.update(nonce);
        mac
    }

    fn mac(&self, key: &Key, label: Label, nonce: &[u8]) -> [u8; MAC] {
        self.state(key, label, nonce).finalize().into_bytes().into()
    }

    /// Compares the MAC in constant time. Returns true if it is valid.
    fn verify(&self, key: &Key, label: Label, nonce: &[u8], mac: &[u8]) -> bool {
        self.state(key, label, nonce).verify_slice(mac).is_ok()
    }
}

#[derive(Clone, Copy)]
enum Label {
    Hello = 1,
    Challenge,
    Proof,
    Welcome,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello() -> Hello {
        Hello {
            from: 3,
            to: 7,
            link: 1,
            nonce: [9; NONCE],
        }
    }

    fn key(byte: u8) -> Key {
        Key::from_hex(&format!("{byte:02x}").repeat(32)).unwrap()
    }

    #[test]
    fn both_ends_that_know_the_key_believe_each_other() {
        let (hello, key, nonce) = (hello(), key(1), [5; NONCE]);
        assert_eq!(Hello::decode(&hello.encode(&key), &key), Some(hello));
        let challenge = hello.challenge(&key, &nonce);
        assert_eq!(hello.read_challenge(&key, &challenge), Some(nonce));
        assert!(hello.is_proof(&key, &nonce, &hello.proof(&key, &nonce)));
        assert!(hello.is_welcome(&key, &nonce, &hello.welcome(&key, &nonce)));
    }

    #[test]
    fn another_key_is_recognised_at_every_step() {
        let (hello, ours, theirs, nonce) = (hello(), key(1), key(2), [5; NONCE]);
        assert_eq!(Hello::decode(&hello.encode(&theirs), &ours), None);
        assert_eq!(
            hello.read_challenge(&ours, &hello.challenge(&theirs, &nonce)),
            None
        );
        assert!(!hello.is_proof(&ours, &nonce, &hello.proof(&theirs, &nonce)));
        assert!(!hello.is_welcome(&ours, &nonce, &hello.welcome(&theirs, &nonce)));
    }

    #[test]
    fn a_recorded_proof_is_worth_nothing_against_another_nonce() {
        let (hello, key) = (hello(), key(1));
        let recorded = hello.proof(&key, &[5; NONCE]);
        assert!(!hello.is_proof(&key, &[6; NONCE], &recorded));
    }

    #[test]
    fn a_message_of_one_kind_does_not_pass_for_another() {
        let (hello, key, nonce) = (hello(), key(1), [5; NONCE]);
        let proof = hello.proof(&key, &nonce);
        assert!(!hello.is_welcome(&key, &nonce, &proof));
        assert!(!hello.is_proof(&key, &nonce, &hello.welcome(&key, &nonce)));
        let challenge = hello.challenge(&key, &nonce);
        assert!(!hello.is_proof(&key, &nonce, &challenge[NONCE..]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..=2 * HELLO)) {
            prop_assert_eq!(Hello::decode(&bytes, &key(1)), None);
            prop_assert_eq!(hello().read_challenge(&key(1), &bytes), None);
            prop_assert!(!hello().is_proof(&key(1), &[0; NONCE], &bytes));
            prop_assert!(!hello().is_welcome(&key(1), &[0; NONCE], &bytes));
        }

        #[test]
        fn a_damaged_hello_is_refused(at in 0..HELLO, bit in 0u32..8) {
            let mut bytes = hello().encode(&key(1));
            bytes[at] ^= 1u8 << bit;
            prop_assert_eq!(Hello::decode(&bytes, &key(1)), None);
        }
    }
}
