//! Fuzzing entry points of the decoders for files, environment variables and other processes' data.
//!
//! An entry point accepts any bytes. It panics if the decoder panics, or if the decoder accepts
//! a text that the matching encoder never writes.
//! cargo-fuzz calls them from `fuzz/fuzz_targets/`;
//! the test below passes random bytes to each.

use std::ffi::OsString;

use mpi_base::text;

use crate::cli::configfile;
use crate::foreign::dynamic;
use crate::hosts::rankfile::Rankfile;
use crate::hosts::{allocation, named};
use crate::launch::wire::{Frames, FromDaemon, ToDaemon, open};
use crate::pmi::{Proc, Server};
use crate::text::TextFile;

/// The name of a fuzz target and its function.
pub type Entry = (&'static str, fn(&[u8]));

/// All fuzz targets of this crate.
pub const ENTRIES: &[Entry] = &[
    ("hostfile", hostfile),
    ("host_list", host_list),
    ("rankfile", rankfile),
    ("configuration_file", configuration_file),
    ("launch_frames", launch_frames),
    ("elf_file", elf_file),
    ("pmi_server", pmi_server),
];

/// Returns a user's text file with these bytes as its content.
fn file(kind: &'static str, bytes: &[u8]) -> TextFile {
    TextFile {
        kind,
        path: "file".into(),
        text: text::from_bytes(bytes),
    }
}

/// Parses the bytes as a hostfile.
pub fn hostfile(bytes: &[u8]) {
    let _ = named::parse(&file("hostfile", bytes));
}

/// Parses the bytes as a host list of the command line and of batch systems.
pub fn host_list(bytes: &[u8]) {
    let text = text::from_bytes(bytes);
    let (list, counts) = text.split_once(' ').unwrap_or((&text, ""));
    let _ = (
        named::list(&text),
        allocation::expand(list),
        allocation::repeat(counts),
    );
}

/// Parses the bytes as a rankfile.
pub fn rankfile(bytes: &[u8]) {
    let _ = Rankfile::parse(file("rankfile", bytes));
}

/// Parses the bytes as a configuration file (`--configfile`).
pub fn configuration_file(bytes: &[u8]) {
    if let Ok(parts) = configfile::parse(&text::from_bytes(bytes), "file") {
        let words: usize = parts.iter().map(Vec::len).sum();
        let has_words = |part: &Vec<OsString>| !part.is_empty();
        assert!(words >= parts.len() && parts.iter().all(has_words));
    }
}

/// Parses frames of a daemon on another host; the first byte sets the size of the received pieces.
pub fn launch_frames(bytes: &[u8]) {
    let Some((first, stream)) = bytes.split_first() else {
        return;
    };
    let mut frames = Frames::new(first % 2 == 1);
    for piece in stream.chunks(1 + usize::from(*first)) {
        frames.push(piece);
        while let Ok(Some((_, body))) = frames.next_frame() {
            let _ = (open::<FromDaemon>(&body), open::<ToDaemon>(&body));
        }
    }
}

/// Passes lines to the PMI server, in turn from each rank of a job of three ranks.
pub fn pmi_server(bytes: &[u8]) {
    let mut server = Server::new("fuzzed", 1);
    server.add_job(&[0; 3], &[0; 3], &[]);
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        // An error ends one rank's connection; the other ranks continue.
        let _ = server.line(Proc(number % 3), line);
    }
}

/// Parses the bytes as an ELF file.
pub fn elf_file(bytes: &[u8]) {
    let _ = dynamic::read(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            ENTRIES.iter().for_each(|(_, entry)| entry(&bytes));
        }
    }
}
