//! What a receive asks for, and what a message is found by: a source and a tag.

use mpi_types::status::{ANY_SOURCE, ANY_TAG, Status};

/// How many forms a key can have.
pub(super) const FORMS: usize = 4;

/// A source and a tag, each possibly a wildcard, as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    /// Of a message with the sender's rank, of a receive also with `ANY_SOURCE` and `ANY_TAG`.
    #[inline]
    pub fn new(source: i32, tag: i32) -> Key {
        Key(u64::from(source as u32) << 32 | u64::from(tag as u32))
    }

    /// A rank in the communicator, or `ANY_SOURCE`.
    pub fn source(self) -> i32 {
        (self.0 >> 32) as i32
    }

    /// What the program named it, or `ANY_TAG`.
    pub fn tag(self) -> i32 {
        self.0 as i32
    }

    /// Which of the four forms this key has: bit 0 for any source, bit 1 for any tag.
    #[inline]
    pub(super) fn form(self) -> usize {
        usize::from(self.source() == ANY_SOURCE) | usize::from(self.tag() == ANY_TAG) << 1
    }

    /// Whether it names one source and one tag.
    #[inline]
    pub fn is_exact(self) -> bool {
        self.form() == 0
    }

    /// This message's key in one of the four forms.
    #[inline]
    pub(super) fn widened(self, form: usize) -> Key {
        let source = if form & 1 != 0 {
            ANY_SOURCE
        } else {
            self.source()
        };
        let tag = if form & 2 != 0 { ANY_TAG } else { self.tag() };
        Key::new(source, tag)
    }

    /// Whether a receive with this key takes a message with that one.
    #[inline]
    pub fn accepts(self, message: Key) -> bool {
        self == message
            || (self.source() == message.source() || self.source() == ANY_SOURCE)
                && (self.tag() == message.tag() || self.tag() == ANY_TAG)
    }

    /// The status of a receive that has got so many bytes of a message with this key.
    #[inline]
    pub(in crate::pml::ob1) fn status(self, bytes: u64) -> Status {
        Status {
            source: self.source(),
            tag: self.tag(),
            bytes,
            cancelled: false,
        }
    }
}
