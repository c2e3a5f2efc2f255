//! Reassembly of file names, which a rank's event ring stores in several events.

use mpi_base::node::{Event, EventKind};
use std::collections::BTreeMap;

/// Returns the names of a rank's files, indexed by the numbers that its events use for files.
pub fn names(events: &[Event]) -> BTreeMap<u64, String> {
    let mut pieces: BTreeMap<u64, BTreeMap<i32, [u64; 3]>> = BTreeMap::new();
    for event in events.iter().filter(|e| e.kind == EventKind::FileName) {
        let words = [event.comm, event.bytes, event.extra];
        pieces
            .entry(event.number)
            .or_default()
            .insert(event.tag, words);
    }
    let name = |pieces: BTreeMap<i32, [u64; 3]>| {
        let bytes = pieces.into_values().flatten().flat_map(u64::to_le_bytes);
        let bytes: Vec<u8> = bytes.filter(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    pieces
        .into_iter()
        .map(|(number, pieces)| (number, name(pieces)))
        .collect()
}
