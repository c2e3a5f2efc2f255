//! The decoder of `external32`, as an entry point for fuzzing.
//!
//! A fuzz entry takes arbitrary bytes. It panics if the decoder panics, or if the decoder accepts
//! bytes that its encoder would not write.
//! cargo-fuzz calls the entries from `fuzz/fuzz_targets/`.
//! The test below calls them with random bytes.

use crate::datatype::{Datatype, Named, Scratch};

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The fuzz targets of this package.
pub const ENTRIES: &[Entry] = &[("external32", external32)];

/// Unpacks `external32` data: the first byte selects the type, and all other bytes are the data.
/// The buffer has more elements than the data, and then fewer.
pub fn external32(bytes: &[u8]) {
    let Some((first, input)) = bytes.split_first() else {
        return;
    };
    let all: Vec<Named> = Named::all().collect();
    let datatype = Datatype::from(all[usize::from(*first) % all.len()]);
    for count in [1, 2 + input.len() as i64 / datatype.size().max(1)] {
        if let Ok(memory) = Scratch::new(count, &datatype) {
            memory.all().unpack_external(input);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            ENTRIES.iter().for_each(|(_, entry)| entry(&bytes));
        }
    }
}
