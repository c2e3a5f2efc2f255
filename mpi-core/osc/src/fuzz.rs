//! Entry points for fuzzing the decoders of one-sided messages.
//!
//! An entry takes any bytes. It panics if the decoder panics,
//! or if the decoder accepts a value that the encoder never writes.
//! cargo-fuzz calls each from `fuzz/fuzz_targets/`; the test below calls all of them with random bytes.

use crate::am::wire::{Runs, read_operation, take_word};

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// All fuzz entry points.
pub const ENTRIES: &[Entry] = &[("window_runs", window_runs)];

/// Decodes the operation and the runs of an accumulate message.
pub fn window_runs(payload: &[u8]) {
    let mut rest = payload;
    // The target refuses unknown operations before the runs; this entry decodes them anyway.
    let _ = take_word(&mut rest).and_then(read_operation);
    if let Some(runs) = Runs::take(&mut rest) {
        let span = runs.span();
        assert!(span.start <= span.end);
        // Runs of one row do not overlap, so no row holds more bytes than the span.
        let rows = runs.rows() as u128;
        assert!(u128::from(runs.bytes()) <= rows * u128::from(span.end - span.start));
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
