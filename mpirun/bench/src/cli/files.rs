//! Options of the benchmark `io`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of the benchmark `io`.
#[derive(Clone, Debug, Args)]
pub struct FileOptions {
    /// The access pattern, for io
    #[arg(long, value_enum, default_value = "easy")]
    pub pattern: Pattern,

    /// Read what was written before the clock started, for io
    #[arg(long)]
    pub read: bool,

    /// Measure the same bytes by pwrite or pread too, in turns on the same file system, for io
    #[arg(long)]
    pub plain: bool,

    /// The folder of the files of io, open and first [default: this one]
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true
    )]
    pub directory: PathBuf,
}

impl FileOptions {
    /// Returns these options as command-line arguments for the ranks, with an absolute folder.
    pub fn arguments(&self) -> Vec<String> {
        let pattern = self.pattern.to_possible_value();
        let pattern = pattern.map_or_else(String::new, |value| value.get_name().to_owned());
        let folder = std::path::absolute(&self.directory).unwrap_or(self.directory.clone());
        let mut all = vec!["--pattern".to_owned(), pattern];
        all.extend(["--directory".to_owned(), folder.display().to_string()]);
        all.extend(self.read.then(|| "--read".to_owned()));
        all.extend(self.plain.then(|| "--plain".to_owned()));
        all
    }
}

/// The access pattern of the ranks, which determines the meaning of the sizes (`--sizes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pattern {
    /// Each rank has one contiguous region of the file, accessed at explicit offsets in four blocks of the --sizes value
    Easy,
    /// As easy, but each rank has a separate file
    Own,
    /// 64 interleaved pieces of each rank in one collective access; the size is the length of a piece, by default 47,008 bytes
    Hard,
    /// 4 MiB of each rank, interleaved in pieces of the --sizes value, in one collective access
    Strided,
    /// A tile of doubles with ghost cells in memory, in a two-dimensional array; the size is the tile's edge
    Tile,
    /// Nine successive arrays, with a block of the --sizes value of each rank in each array; nine collective accesses
    Checkpoint,
    /// 64 records of the --sizes value for each rank, at the shared pointer
    Shared,
    /// The same records at explicit offsets
    Records,
}
