//! Fuzzing entry points for this crate's parsers of files, debug pages and environment variables.
//!
//! An entry accepts any bytes. The entry panics if the decoder panics,
//! or if the decoder accepts bytes that its encoder does not write.
//! cargo-fuzz calls each entry from `fuzz/fuzz_targets/`;
//! the test below calls all of them with random bytes.

use crate::debug_page::{Comm, HEAD, MAGIC, Queues, VERSION};
use crate::param::{Params, Selection, Source};
use crate::plugin_file::manifest::{Interface, Manifest, Note};
use crate::{ranges, text};

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The fuzz targets of this crate.
pub const ENTRIES: &[Entry] = &[
    ("debug_page", debug_page),
    ("parameter_file", parameter_file),
    ("parameter_text", parameter_text),
    ("plugin_manifest", plugin_manifest),
];

/// Decodes bytes as a debug page: first as arbitrary words, then as a page that begins with them.
pub fn debug_page(bytes: &[u8]) {
    let words: Vec<u64> = bytes
        .chunks(8)
        .map(|chunk| {
            let byte = |at: usize| chunk.get(at).copied().unwrap_or(0);
            u64::from_le_bytes(std::array::from_fn(byte))
        })
        .collect();
    let part = |words: &[u64], first: usize, count: usize| {
        Some(words.get(first..first.checked_add(count)?)?.to_vec())
    };
    let _ = Queues::read(|first, count| part(&words, first, count));
    // A page whose tables follow the head. The bytes determine the tables' lengths and positions,
    // with values small enough for most tables to be inside the page.
    let mut page = vec![0; 512];
    page[..2].copy_from_slice(&[MAGIC, VERSION]);
    let small = |at: usize| bytes.get(at).copied().map_or(0, u64::from);
    let tables = [
        small(0) % 8,
        small(1),
        16,
        small(2) % 16,
        small(3),
        8,
        small(4),
        small(5),
    ];
    page[5..13].copy_from_slice(&tables);
    for (to, from) in page[HEAD..].iter_mut().zip(words.iter().skip(1)) {
        *to = *from;
    }
    if let Ok(queues) = Queues::read(|first, count| part(&page, first, count)) {
        assert_eq!(queues.comms.len() as u64, tables[0]);
        let comms = queues.comms.len();
        assert!(
            queues
                .operations
                .iter()
                .all(|operation| operation.comm < comms)
        );
        let are_whole =
            |comm: &Comm| comm.members.is_empty() || comm.members.len() == comm.size as usize;
        assert!(queues.comms.iter().all(are_whole));
    }
}

/// Parses a parameter file: each line sets a parameter, is a comment, or causes a warning.
pub fn parameter_file(bytes: &[u8]) {
    let text = text::from_bytes(bytes);
    let mut params = Params::default();
    params.read_lines("file", &text, Source::UserFile);
    let lines = text.lines().count();
    assert!(params.settings().count() + params.complaints().len() <= lines);
}

/// Parses a parameter's value as a list of components and as ranges of processors;
/// bytes that are not UTF-8 stay unchanged.
pub fn parameter_text(bytes: &[u8]) {
    let text = text::from_bytes(bytes);
    assert_eq!(text::to_os(&text).as_encoded_bytes(), bytes);
    let _ = (Selection::parse(&text), ranges::read(&text, 1 << 16));
}

/// Parses a plugin file: ELF header, segments, notes and manifest.
/// The bytes are parsed as a whole file and as a replacement for a part of a valid file.
pub fn plugin_manifest(bytes: &[u8]) {
    let interface = Interface {
        major: 2,
        layouts: &[(0, 7)],
    };
    let note = Note::of(&interface, c"coll", c"acme", c"1.2");
    let mut file = small_plugin(note.bytes());
    let whole = Manifest::read(&*file);
    assert!(whole.is_ok_and(|manifest| manifest.check(&interface, ("coll", "acme")).is_ok()));
    let _ = Manifest::read(bytes);
    let (at, new) = bytes.split_at(bytes.len().min(1));
    let at = at.first().map_or(0, |at| usize::from(*at)).min(file.len());
    for (to, from) in file[at..].iter_mut().zip(new) {
        *to = *from;
    }
    if let Ok(manifest) = Manifest::read(&*file) {
        let _ = manifest.check(&interface, ("coll", "acme"));
        assert!(manifest.component.len() < 64 && manifest.version.len() < 32);
    }
}

/// Returns the smallest ELF shared object with this note:
/// file header, one segment header, and the note.
fn small_plugin(note: &[u8]) -> Vec<u8> {
    const HEADERS: u64 = 64 + 56;
    let machine: u16 = if cfg!(target_arch = "aarch64") {
        183
    } else {
        62
    };
    let data = if cfg!(target_endian = "big") { 2 } else { 1 };
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, data, 1];
    file.resize(16, 0);
    let halves = |file: &mut Vec<u8>, all: &[u16]| {
        all.iter().for_each(|half| file.extend(half.to_ne_bytes()));
    };
    // The fields are ET_DYN, the machine, and the version.
    halves(&mut file, &[3, machine]);
    file.extend(1u32.to_ne_bytes());
    // The fields are the entry point, the offset of the segment headers
    // and the offset of the section headers (0: none).
    [0, 64, 0]
        .iter()
        .for_each(|word: &u64| file.extend(word.to_ne_bytes()));
    file.extend(0u32.to_ne_bytes());
    halves(&mut file, &[64, 56, 1, 64, 0, 0]);
    // The segment is a readable PT_NOTE, with its offset, addresses, lengths and alignment.
    [4u32, 4]
        .iter()
        .for_each(|word| file.extend(word.to_ne_bytes()));
    let len = note.len() as u64;
    let segment = [HEADERS, HEADERS, HEADERS, len, len, 4];
    segment
        .iter()
        .for_each(|word| file.extend(word.to_ne_bytes()));
    file.extend(note);
    file
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
