//! Fuzzing entry point of the decoders of a served board: requests of nodes, and replies of the server.
//!
//! Each function in [`ENTRIES`] accepts any bytes. It panics if the decoder panics,
//! or if the decoder accepts bytes that its encoder does not write.
//! cargo-fuzz calls it from `fuzz/fuzz_targets/`; the test below calls it with random bytes.

use crate::served::frame::{GREETING, Greeting, REPLY, REQUEST, Reply, Request};

/// The name of a fuzz target in `fuzz/fuzz_targets/`, and the function that the target calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The fuzz targets of this crate.
pub const ENTRIES: &[Entry] = &[("board_frames", board_frames)];

/// Decodes the frames of a served board; panics if a decoded frame encodes to other bytes.
pub fn board_frames(bytes: &[u8]) {
    if let Some(bytes) = bytes.first_chunk::<GREETING>()
        && let Ok(greeting) = Greeting::decode(bytes)
    {
        assert_eq!(greeting.encode(), *bytes);
    }
    if let Some(bytes) = bytes.first_chunk::<REQUEST>()
        && let Ok(request) = Request::decode(bytes)
    {
        assert_eq!(request.encode(), *bytes);
    }
    if let Some(bytes) = bytes.first_chunk::<REPLY>()
        && let Ok(reply) = Reply::decode(bytes)
    {
        assert_eq!(reply.encode(), *bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            ENTRIES.iter().for_each(|(_, entry)| entry(&bytes));
        }
    }
}
