//! The wire format of failure messages: active messages of [`Family::Fault`].

use super::era::{Say, Value};
use mpi_transport::btl::{Am, Family, Header};

/// A message of an agreement. Header: context id; number of the agreement and message type. The payload depends on the type.
pub(crate) const AGREE: Am = Family::Fault.am(0);
/// A communicator has been revoked. Header: context id, 0.
pub(crate) const REVOKE: Am = Family::Fault.am(1);
/// A process has died. Header: the process's name, 0.
pub(crate) const DEATH: Am = Family::Fault.am(2);

const UP: u64 = 0;
const UP_ANSWER: u64 = 1;
const DOWN: u64 = 2;
const DOWN_ANSWER: u64 = 3;
const ASK: u64 = 4;
const KIND_BITS: u32 = 8;

/// Identifies an agreement: the communicator's context id, and the agreement's number on it, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) comm: u64,
    pub(crate) number: u64,
}

pub(crate) fn write(key: Key, say: &Say) -> (Header, Vec<u8>) {
    let mut payload = Vec::new();
    let kind = match say {
        Say::Ask => ASK,
        Say::Up { value, answers } => {
            value.write(&mut payload);
            if *answers { UP_ANSWER } else { UP }
        }
        Say::Down {
            root,
            value,
            answers,
        } => {
            payload.extend(root.to_le_bytes());
            value.write(&mut payload);
            if *answers { DOWN_ANSWER } else { DOWN }
        }
    };
    ([key.comm, key.number << KIND_BITS | kind], payload)
}

pub(crate) fn key_of([comm, word]: Header) -> Key {
    Key {
        comm,
        number: word >> KIND_BITS,
    }
}

/// Decodes a message of an agreement of `members` members; `None` if it is invalid.
pub(crate) fn read([_, word]: Header, payload: &[u8], members: usize) -> Option<Say> {
    let kind = word & ((1 << KIND_BITS) - 1);
    match kind {
        ASK => Some(Say::Ask),
        UP | UP_ANSWER => Some(Say::Up {
            value: Value::read(payload, members)?,
            answers: kind == UP_ANSWER,
        }),
        DOWN | DOWN_ANSWER => {
            let (root, rest) = payload.split_first_chunk()?;
            Some(Say::Down {
                root: u32::from_le_bytes(*root),
                value: Value::read(rest, members)?,
                answers: kind == DOWN_ANSWER,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(comm: u64, number in 0u64..1 << 56, root: u32, answers: bool, which in 0..3, places in 0usize..70) {
            let value = Value { flag: 7, number: 9, memory: 11, dead: vec![true; places], acknowledged: vec![false; places] };
            let say = match which {
                0 => Say::Ask,
                1 => Say::Up { value, answers },
                _ => Say::Down { root, value, answers },
            };
            let key = Key { comm, number };
            let (header, payload) = write(key, &say);
            prop_assert_eq!(key_of(header), key);
            prop_assert_eq!(read(header, &payload, places), Some(say));
        }
    }
}
