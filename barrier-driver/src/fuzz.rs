//! Fuzzing entry points of two parsers: of the bytes of the serial ring, and of port descriptions.
//!
//! Each entry point accepts any bytes. It panics if the parser panics,
//! or if the parser accepts bytes that its encoder never writes.
//! cargo-fuzz calls the entry points from `fuzz/fuzz_targets/`;
//! the test below calls all of them with random bytes.

use crate::ports::spec::Spec;
use crate::ring_fence::{COUNT, MOST_NODES, RingFence};

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The fuzz targets of this crate.
pub const ENTRIES: &[Entry] = &[
    ("ring_bytes", ring_bytes),
    ("port_description", port_description),
];

/// Feeds the bytes to a node of the serial ring. The first byte selects the number of nodes;
/// no later byte may produce a count above it.
pub fn ring_bytes(bytes: &[u8]) {
    let Some((first, heard)) = bytes.split_first() else {
        return;
    };
    let nodes = 1 + first % MOST_NODES;
    let Some(mut fence) = RingFence::new(nodes) else {
        return;
    };
    for byte in heard {
        fence.receive(*byte);
        assert!((1..=nodes).contains(&(fence.byte() & COUNT)));
        assert!(fence.byte() < 64);
    }
}

/// Parses a port description from the command line or the environment.
pub fn port_description(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(spec) = Spec::parse(&text, "a port") {
        let _ = (
            spec.place("a device"),
            spec.line("out"),
            spec.finish(&["out", "in"]),
        );
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
