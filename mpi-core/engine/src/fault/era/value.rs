//! The value of an agreement: a flag, a number, and two bit sets of members, merged from all contributions.

/// The contribution of a member, or the merged contributions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// The AND of the members' flags, bit by bit.
    pub flag: u32,
    /// The maximum of the members' numbers.
    pub number: u64,
    /// The offset of shared memory for later agreements of members on one node (see [`super::super::node_agreement`]); merged by maximum.
    pub memory: u64,
    /// The members that at least one member considers dead.
    pub dead: Vec<bool>,
    /// The members whose deaths every member has acknowledged.
    pub acknowledged: Vec<bool>,
}

impl Value {
    /// Merges another contribution into this one; the operation is commutative, associative and idempotent.
    pub(super) fn merge(&mut self, other: &Value) {
        self.flag &= other.flag;
        self.number = self.number.max(other.number);
        self.memory = self.memory.max(other.memory);
        for (mine, theirs) in self.dead.iter_mut().zip(&other.dead) {
            *mine |= theirs;
        }
        for (mine, theirs) in self.acknowledged.iter_mut().zip(&other.acknowledged) {
            *mine &= theirs;
        }
    }

    /// Marks the members at dead places as dead.
    /// `members` and `dead` are indexed by place, and `self.dead` by member.
    pub(super) fn count_dead(&mut self, members: &[u32], dead: &[bool]) {
        for (member, dead) in members.iter().zip(dead) {
            if let Some(mine) = self.dead.get_mut(*member as usize) {
                *mine |= dead;
            }
        }
    }

    /// Returns true if a member is dead and some living member has not acknowledged its death.
    pub fn has_news(&self) -> bool {
        let mut both = self.dead.iter().zip(&self.acknowledged);
        both.any(|(dead, acknowledged)| *dead && !acknowledged)
    }

    /// Appends the encoded value to `to`.
    pub(in crate::fault) fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.flag.to_le_bytes());
        to.extend(self.number.to_le_bytes());
        to.extend(self.memory.to_le_bytes());
        for bits in [&self.dead, &self.acknowledged] {
            let bytes = bits.chunks(8).map(|eight| {
                let bits = eight.iter().enumerate();
                bits.fold(0, |byte, (at, bit)| byte | u8::from(*bit) << at)
            });
            to.extend(bytes);
        }
    }

    /// Decodes what [`Value::write`] has encoded, for `members` members; `None` if it is invalid.
    pub(in crate::fault) fn read(from: &[u8], members: usize) -> Option<Value> {
        let (flag, rest) = from.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (memory, rest) = rest.split_first_chunk()?;
        let bytes = members.div_ceil(8);
        if rest.len() != 2 * bytes {
            return None;
        }
        let (dead, acknowledged) = rest.split_at(bytes);
        let bits = |bytes: &[u8]| -> Vec<bool> {
            let bit = |member: usize| bytes[member / 8] >> (member % 8) & 1 == 1;
            (0..members).map(bit).collect()
        };
        Some(Value {
            flag: u32::from_le_bytes(*flag),
            number: u64::from_le_bytes(*number),
            memory: u64::from_le_bytes(*memory),
            dead: bits(dead),
            acknowledged: bits(acknowledged),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Value;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(flag: u32, number: u64, memory: u64, bits in prop::collection::vec(any::<(bool, bool)>(), 0..100)) {
            let (dead, acknowledged): (Vec<bool>, Vec<bool>) = bits.into_iter().unzip();
            let places = dead.len();
            let value = Value { flag, number, memory, dead, acknowledged };
            let mut bytes = Vec::new();
            value.write(&mut bytes);
            prop_assert_eq!(Value::read(&bytes, places), Some(value));
        }

        #[test]
        fn other_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..64), places in 0usize..200) {
            if let Some(value) = Value::read(&bytes, places) {
                prop_assert_eq!(value.dead.len(), places);
            }
        }
    }
}
