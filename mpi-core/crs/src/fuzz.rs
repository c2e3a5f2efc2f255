//! Entry points for fuzzing the decoders of manifests and of CRIU's list of open files.
//!
//! An entry point accepts any bytes. It panics if the decoder panics,
//! or if the encoder of manifests would write an accepted input differently.
//! cargo-fuzz calls them from `fuzz/fuzz_targets/`; the test below passes random bytes to each.

use crate::criu::open_files;
use crate::description::Description;
use crate::manifest::Manifest;

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// All fuzz entry points.
pub const ENTRIES: &[Entry] = &[
    ("checkpoint_manifest", checkpoint_manifest),
    ("criu_open_files", criu_open_files),
];

/// Decodes a manifest and the job description in it, with and without a valid checksum.
pub fn checkpoint_manifest(bytes: &[u8]) {
    let sealed = [
        bytes,
        format!("end {:08x}\n", crc32fast::hash(bytes)).as_bytes(),
    ]
    .concat();
    for bytes in [bytes, &sealed] {
        if let Ok(manifest) = Manifest::read(bytes) {
            assert_eq!(Manifest::read(manifest.write().as_bytes()), Ok(manifest));
        }
    }
    let text = String::from_utf8_lossy(bytes);
    if let Some(job) = Description::read(&text) {
        assert_eq!(Description::read(&job.write()), Some(job));
    }
}

/// Decodes the bytes twice: as an image `files.img`, and as the only message of such an image.
pub fn criu_open_files(bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(0).to_le_bytes();
    let image = [&[0; 8][..], &length, bytes].concat();
    for image in [bytes, &image] {
        let _ = open_files::read(image);
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
