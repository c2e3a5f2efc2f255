//! The fifth cache line of the state page: the current system call on a file, or plugin function.

use super::name::{NAME_WORDS, name_words, read_name, store_name};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Number of words that store a file's name, or the end of a long name.
pub const FILE_NAME_WORDS: usize = NAME_WORDS;

/// Encodes a file's name for [`StatePage::enters_file_call`](super::StatePage).
/// Only the end of a longer name is encoded.
pub fn file_name_words(name: &str) -> [u64; FILE_NAME_WORDS] {
    name_words(name)
}

/// A system call on a file, or a function of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum FileCall {
    /// `pwrite`: writing at an offset.
    Pwrite = 1,
    /// `pread`: reading at an offset.
    Pread = 2,
    /// `fsync`: flushing written data to the disk.
    Fsync = 3,
    /// `open`: opening or creating a file.
    Open = 4,
    /// Locking or unlocking a range of a file.
    Lock = 5,
    /// `ftruncate`: setting the length of a file.
    Ftruncate = 6,
    /// `fallocate`: reserving space for a file.
    Fallocate = 7,
    /// `close`: closing a file.
    Close = 8,
    /// Opening a plugin file, which runs the file's constructors and its entry point.
    PluginStart = 9,
    /// A call of a plugin's function `query`.
    PluginQuery = 10,
    /// A call of a plugin's function `enable`.
    PluginEnable = 11,
    /// A call of the function `open` of a transport's plugin.
    PluginOpen = 12,
}

impl FileCall {
    /// All file calls, in the order of their numbers.
    pub const ALL: [FileCall; 12] = [
        FileCall::Pwrite,
        FileCall::Pread,
        FileCall::Fsync,
        FileCall::Open,
        FileCall::Lock,
        FileCall::Ftruncate,
        FileCall::Fallocate,
        FileCall::Close,
        FileCall::PluginStart,
        FileCall::PluginQuery,
        FileCall::PluginEnable,
        FileCall::PluginOpen,
    ];

    /// Returns the file call with this number; `None` if the number is unknown.
    pub fn from_number(number: u32) -> Option<FileCall> {
        FileCall::ALL
            .into_iter()
            .find(|call| *call as u32 == number)
    }

    /// Returns the system call's name as in the manual pages, or the plugin function's name.
    pub fn name(self) -> &'static str {
        match self {
            FileCall::Pwrite => "pwrite",
            FileCall::Pread => "pread",
            FileCall::Fsync => "fsync",
            FileCall::Open => "open",
            FileCall::Lock => "fcntl(F_OFD_SETLKW)",
            FileCall::Ftruncate => "ftruncate",
            FileCall::Fallocate => "fallocate",
            FileCall::Close => "close",
            FileCall::PluginStart => "the start",
            FileCall::PluginQuery => "the function query",
            FileCall::PluginEnable => "the function enable",
            FileCall::PluginOpen => "the function open",
        }
    }
}

/// The file call that a rank is executing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFile {
    /// The system call or function.
    pub call: FileCall,
    /// Time at which the call began, in CLOCK_MONOTONIC nanoseconds.
    pub since_ns: u64,
    /// The file's name, or the end of a long name.
    pub name: String,
}

#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct FileLine {
    /// Time at which the call began, in CLOCK_MONOTONIC nanoseconds.
    since_ns: AtomicU64,
    /// The current [`FileCall`] as a number; 0 outside of such calls.
    call: AtomicU32,
    /// The file's name or its end, padded with zeros.
    name: [AtomicU64; FILE_NAME_WORDS],
}

impl FileLine {
    #[inline]
    pub(super) fn enter(&self, call: FileCall, now_ns: u64, name: &[u64; FILE_NAME_WORDS]) {
        store_name(&self.name, name);
        self.since_ns.store(now_ns, Relaxed);
        self.call.store(call as u32, Relaxed);
    }

    #[inline]
    pub(super) fn leave(&self) {
        self.call.store(0, Relaxed);
    }

    pub(super) fn current(&self) -> Option<InFile> {
        let call = FileCall::from_number(self.call.load(Relaxed))?;
        Some(InFile {
            call,
            since_ns: self.since_ns.load(Relaxed),
            name: read_name(&self.name),
        })
    }
}
