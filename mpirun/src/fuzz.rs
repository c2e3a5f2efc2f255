//! The readers of files, of the environment and of other processes, as entry points for fuzzing.
//!
//! An entry takes any bytes. It panics if the decoder does, or if the decoder accepts what its encoder does not write.
//! cargo-fuzz calls each from `fuzz/fuzz_targets/`; the test below calls all of them with random bytes.

use std::ffi::OsString;

use mpi_base::text;

use crate::cli::configfile;
use crate::foreign::dynamic;
use crate::hosts::rankfile::Rankfile;
use crate::hosts::{allocation, named};
use crate::launch::wire::{Frames, FromDaemon, ToDaemon, open};
use crate::pmi::{Proc, Server};
use crate::text::TextFile;

/// The name of a fuzz target, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

/// The decoders.
pub const ENTRIES: &[Entry] = &[
    ("hostfile", hostfile),
    ("host_list", host_list),
    ("rankfile", rankfile),
    ("configuration_file", configuration_file),
    ("launch_frames", launch_frames),
    ("elf_file", elf_file),
    ("pmi_server", pmi_server),
];

/// A file of the user, of any bytes.
fn file(kind: &'static str, bytes: &[u8]) -> TextFile {
    TextFile {
        kind,
        path: "file".into(),
        text: text::from_bytes(bytes),
    }
}

/// A hostfile.
pub fn hostfile(bytes: &[u8]) {
    let _ = named::parse(&file("hostfile", bytes));
}

/// A list of hosts on the command line, and those of batch systems.
pub fn host_list(bytes: &[u8]) {
    let text = text::from_bytes(bytes);
    let (list, counts) = text.split_once(' ').unwrap_or((&text, ""));
    let _ = (
        named::list(&text),
        allocation::expand(list),
        allocation::repeat(counts),
    );
}

/// A rankfile.
pub fn rankfile(bytes: &[u8]) {
    let _ = Rankfile::parse(file("rankfile", bytes));
}

/// A file of the parts of a job.
pub fn configuration_file(bytes: &[u8]) {
    if let Ok(parts) = configfile::parse(&text::from_bytes(bytes), "file") {
        let words: usize = parts.iter().map(Vec::len).sum();
        let has_words = |part: &Vec<OsString>| !part.is_empty();
        assert!(words >= parts.len() && parts.iter().all(has_words));
    }
}

/// What an agent on another host sends: the first byte is the length of the pieces in which the rest arrives.
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

/// Lines of the ranks of a job of three, in turn.
pub fn pmi_server(bytes: &[u8]) {
    let mut server = Server::new("fuzzed", 1);
    server.add_job(&[0; 3], &[0; 3], &[]);
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        // An error ends the connection of one rank, and the others go on.
        let _ = server.line(Proc(number % 3), line);
    }
}

/// A program file.
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
