//! The match key: a source rank and a tag.

use mpi_types::status::{ANY_SOURCE, ANY_TAG, Status};

/// The number of forms of a key: source and tag are each exact or a wildcard.
pub(super) const FORMS: usize = 4;

/// A source rank and a tag, each possibly a wildcard, in one 64-bit integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    /// Creates the key of a message (`source` is the sender's rank), or of a receive (`ANY_SOURCE` and `ANY_TAG` are permitted).
    #[inline]
    pub fn new(source: i32, tag: i32) -> Key {
        Key(u64::from(source as u32) << 32 | u64::from(tag as u32))
    }

    /// Returns the source rank in the communicator, or `ANY_SOURCE`.
    pub fn source(self) -> i32 {
        (self.0 >> 32) as i32
    }

    /// Returns the tag, or `ANY_TAG`.
    pub fn tag(self) -> i32 {
        self.0 as i32
    }

    /// Returns the form of the key: bit 0 is set for any source, bit 1 for any tag.
    #[inline]
    pub(super) fn form(self) -> usize {
        usize::from(self.source() == ANY_SOURCE) | usize::from(self.tag() == ANY_TAG) << 1
    }

    /// Returns true if the key has no wildcard.
    #[inline]
    pub fn is_exact(self) -> bool {
        self.form() == 0
    }

    /// Returns a message's key with source and tag replaced by the wildcards of `form`.
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

    /// Returns true if a receive with this key matches a message with the key `message`.
    #[inline]
    pub fn accepts(self, message: Key) -> bool {
        self == message
            || (self.source() == message.source() || self.source() == ANY_SOURCE)
                && (self.tag() == message.tag() || self.tag() == ANY_TAG)
    }

    /// Returns the status of a completed receive for `bytes` received bytes of a message with this key.
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
